"""Host affinity on labelled nodes of the cluster in containers, under the CapacityScheduler."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from clusters_in_containers import ContainersUnderTest
from node_labels import stays_on_labelled_nodes
from yarn_jobs import Job

from homeport.local_cluster.hadoop_conf import LABELS

pytestmark = pytest.mark.long
_BUILD = Path(__file__).resolve().parents[2] / "build"


@pytest.fixture(scope="module")
def cluster(containers: str) -> Iterator[ContainersUnderTest]:
    """``docker/up --scheduler labels``: nm1 and nm2 have the label, nm3 has none."""
    del containers
    started = ContainersUnderTest(_BUILD / "docker-labels")
    started.down(print)  # of a run that was killed
    try:
        started.up(print, LABELS)
        yield started
    finally:
        started.down(print)


def test_a_job_in_a_labelled_queue_comes_home(make_job: Callable[[str], Job]) -> None:
    """As on the local cluster: see ``node_labels``."""
    stays_on_labelled_nodes(make_job("labels"), {"yarn.queue": "streams"})
