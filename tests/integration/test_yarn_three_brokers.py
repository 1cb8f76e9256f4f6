"""A whole job on YARN and three brokers, each of which dies once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager

import pytest
from yarn_jobs import Job

from homeport.local_cluster.cluster import LocalCluster

pytestmark = pytest.mark.long

KEYS = {
    "systems.kafka.default.stream.replication.factor": "3",
    # No transaction runs out of time by a fault that only changes leaders, and no lease.
    "systems.kafka.producer.transaction.timeout.ms": "60000",
    "job.coordinator.isolation.max.ms": "60000",
}


@pytest.fixture(scope="module")
def cluster(
    running_cluster: Callable[..., AbstractContextManager[LocalCluster]],
) -> Iterator[LocalCluster]:
    """Three nodes and three brokers of this module's own."""
    with running_cluster("brokers", 3, brokers=3) as started:
        yield started


def test_each_broker_dies_in_turn_and_then_all_at_once(make_job: Callable[[str], Job]) -> None:
    """Driver and containers live on while two brokers are left; at no time is anything charged."""
    job = make_job("replicated")
    job.values |= KEYS
    before = job.begin(600, "cluster-manager.container.retry.count=0")
    driver = job.program("application_master")
    total = 600
    for broker in (1, 2, 3):
        job.cluster.stop_kafka(broker)
        job.produce(300, first=total)
        total += 300
        job.expects(total)
        job.cluster.start_kafka(broker=broker)
        job.produce(300, first=total)
        total += 300
        job.expects(total)
    assert job.settled() == before
    assert job.get("v1/status")["failures"] == []

    job.cluster.stop_kafka()
    job.cluster.start_kafka()
    job.produce(300, first=total)
    total += 300
    job.expects(total)
    job.settled()
    assert job.program("application_master") == driver
    assert not {f["cause"] for f in job.get("v1/status")["failures"]} & {"failed", "killed"}
    assert {c["failures"] for c in job.containers().values()} == {0}
    job.end()
