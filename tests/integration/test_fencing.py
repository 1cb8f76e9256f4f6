"""The driver's fence on a real broker: a dead incarnation's transaction delays no reader."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from stream_containers import COUNTER, DEADLINE_S, P0, Job, make_job

from homeport.appmaster.lease.fencing import fence_incarnation
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.log_reader import LogReader
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id

LOOKS = 20
DEAD = Incarnation(P0, 1)


@pytest.fixture
def job(kafka: str, tmp_path: Path) -> Iterator[Job]:
    """A job with topics, of which nothing runs."""
    made = make_job(kafka, tmp_path, COUNTER, {})
    yield made
    made.close()


def test_a_restore_ends_when_the_driver_has_fenced_the_lost_container(job: Job) -> None:
    """Until then the changelog cannot be read to its head; the record of the dead is not in it.

    Its transaction would stay open for five minutes: only the fence ends it (safety I4).
    """
    left = Producer(
        {
            "bootstrap.servers": job.servers,
            "transactional.id": transactional_id(job.config["job.name"], "1", DEAD),
            "transaction.timeout.ms": 300_000,
        }
    )
    left.init_transactions(DEADLINE_S)
    for key, commit in (("whole", True), ("open", False)):
        left.begin_transaction()
        left.produce(job.topic("changelog"), b"1", key, partition=0)
        assert left.flush(DEADLINE_S) == 0
        if commit:
            left.commit_transaction(DEADLINE_S)

    looks = 0

    def fence_after_some_looks(_seconds: float) -> None:
        nonlocal looks
        looks += 1
        if looks == LOOKS:
            fence_incarnation(job.config, DEAD)

    reader = LogReader(SystemConfig.of(job.config, "kafka"), fence_after_some_looks)
    place = (job.topic("changelog"), 0)
    head = reader.ends([place])[place].head
    looks = 0
    read = [m.key() for chunk in reader.read(*place, 0, head) for m in chunk]
    reader.close()
    assert read == [b"whole"]
    assert looks >= LOOKS
    with pytest.raises(KafkaException) as refused:
        left.commit_transaction(DEADLINE_S)
    assert refused.value.args[0].fatal()
