"""Host affinity under YARN's CapacityScheduler; every other test has the FairScheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from clusters_under_test import LocalUnderTest
from yarn_jobs import Job

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def cluster(
    running_cluster: Callable[..., AbstractContextManager[LocalUnderTest]],
) -> Iterator[LocalUnderTest]:
    """Three nodes and Kafka."""
    with running_cluster("capacity", 3, scheduler="capacity") as started:
        yield started


def test_a_job_in_a_queue_comes_home_and_moves(make_job: Callable[[str], Job]) -> None:
    """Each strict request is granted on its host: after a restart, and where an operator asks."""
    job = make_job("capacity")
    job.values |= {"yarn.queue": "streams", "job.hotstandby.enabled": "true"}
    job.produce(60)
    job.run()
    first = {p: c["host"] for p, c in job.wait_until_running().items()}
    assert len(first) == 6
    assert all(first[p] != first[p.partition("-")[0]] for p in first if "-" in p)
    job.expects(60)
    job.kill()
    job.run()
    again = {p: c["host"] for p, c in job.wait_until_running().items()}
    assert again == first
    target = next(n for n in job.cluster.nodes if n not in {first["0"], first["0-0"]})
    done = job.operator("move", "0", target)
    assert done.returncode == 0, done.stderr
    assert job.wait_until_running()["0"]["host"] == target
    job.produce(60, first=60)
    job.expects(120)
    job.kill()
    job.judge_history()
