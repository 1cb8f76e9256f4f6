"""Host affinity on nodes with a label, under YARN's CapacityScheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from clusters_under_test import LocalUnderTest
from yarn_jobs import Job

from local_cluster.hadoop_conf import LABEL, LABELS, labelled_nodes

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(
    running_cluster: Callable[..., AbstractContextManager[LocalUnderTest]],
) -> Iterator[LocalUnderTest]:
    """Three nodes with the label, one without, and Kafka."""
    with running_cluster("labels", 4, scheduler=LABELS) as started:
        yield started


@pytest.mark.parametrize(
    "values",
    [
        {"yarn.queue": "streams"},
        {"yarn.queue": "default", "yarn.container.label": LABEL, "yarn.am.container.label": LABEL},
        {"yarn.queue": "default", "yarn.container.label": LABEL},
    ],
    ids=["queue", "both", "containers"],
)
def test_a_job_has_labelled_nodes_alone_and_comes_home(
    make_job: Callable[[str], Job], values: dict[str, str], request: pytest.FixtureRequest
) -> None:
    """By its queue's default or by its own label; strict requests are granted, moves too."""
    job = make_job(f"labels-{request.node.callspec.id}")
    job.values |= values | {
        "job.hotstandby.enabled": "true",
        "cluster-manager.container.request.timeout.ms": "20000",
    }
    labelled = labelled_nodes(job.cluster.nodes)
    (other,) = set(job.cluster.nodes) - set(labelled)
    job.produce(60)
    done = job.call("run")
    assert done.returncode == 0, done.stderr
    warned = [line for line in done.stderr.splitlines() if line.startswith("warning: ")]
    assert [line.split()[1] for line in warned] == ["yarn.nodemanager.recovery.enabled"]
    job.learn(done.stdout)
    first = {p: c["host"] for p, c in job.wait_until_running().items()}
    assert len(first) == 6
    assert set(first.values()) <= set(labelled)
    assert all(first[p] != first[p.partition("-")[0]] for p in first if "-" in p)
    am_has_label = values["yarn.queue"] == "streams" or "yarn.am.container.label" in values
    assert (job.am_host() in labelled) is am_has_label
    job.expects(60)
    assert request_expiries(job) == []
    refused = job.operator("move", "0", other)
    assert refused.returncode == 1, refused.stdout
    assert other in refused.stderr
    job.kill()
    job.run()
    assert {p: c["host"] for p, c in job.wait_until_running().items()} == first
    target = next(n for n in labelled if n not in {first["0"], first["0-0"]})
    done = job.operator("move", "0", target)
    assert done.returncode == 0, done.stderr
    assert job.wait_until_running()["0"]["host"] == target
    job.produce(60, first=60)
    job.expects(120)
    assert request_expiries(job) == []
    job.kill()
    job.judge_history()


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"yarn.queue": "none"}, "yarn.queue = 'none': YARN has no such queue; name one of root.d"),
        ({"yarn.queue": "root"}, "yarn.queue = 'root': root has queues below it"),
        (
            {"yarn.container.label": "gpu"},
            "yarn.container.label = 'gpu': the queue root.default may not use nodes with this",
        ),
    ],
)
def test_a_queue_or_label_that_cannot_be_had_is_refused(
    make_job: Callable[[str], Job], change: dict[str, str], line: str
) -> None:
    """One line, and no application."""
    job = make_job("labels-refused")
    job.values |= change
    job.produce(1)
    done = job.call("run")
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: {line}")
    assert done.stderr.count("\n") == 1
    assert job.rest.applications("labels-refused_1") == ()


def request_expiries(job: Job) -> list[str]:
    """The requests that YARN has not granted in time: none was for a host in vain."""
    causes = [str(decision["cause"]) for decision in job.driver_events("decision")]
    assert causes
    return [cause for cause in causes if "request-expiry" in cause]
