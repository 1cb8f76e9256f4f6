"""Host affinity on nodes with a label, under YARN's CapacityScheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from clusters_under_test import LocalUnderTest
from node_labels import stays_on_labelled_nodes
from yarn_jobs import Job

from homeport.local_cluster.hadoop_conf import LABEL, LABELS

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
    stays_on_labelled_nodes(make_job(f"labels-{request.node.callspec.id}"), values)


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
