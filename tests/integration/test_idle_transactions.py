"""A writer idle for so long that Kafka forgets its id, on a broker that soon does.

Kafka's own limit, ``transactional.id.expiration.ms``, is seven days.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition
from job_configs import kafka_system
from producer_ids import STATE_TOPIC, transactional_id_of
from stream_containers import COUNTER, DEADLINE_S, P0, Job, make_job

from homeport.container.host.exit_codes import EXIT_UNAVAILABLE
from homeport.job_coordinator.kafka.record_writer import TransactionalWriter, WriterOverError
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.local_cluster import daemons, kafka_broker
from homeport.local_cluster.cluster import LocalCluster

SOON = {
    "transactional.id.expiration.ms": 3000,
    "transaction.remove.expired.transaction.cleanup.interval.ms": 500,
    "producer.id.expiration.ms": 3000,
    "producer.id.expiration.check.interval.ms": 500,
}


@pytest.fixture(scope="module", name="forgetful")
def _forgetful(
    running_cluster: Callable[[str, int], AbstractContextManager[LocalCluster]],
) -> Iterator[str]:
    known = kafka_broker.server_properties

    def server_properties(broker: str, addresses: Mapping[str, str], data: Path) -> str:
        more = "".join(f"{key}={value}\n" for key, value in SOON.items())
        return known(broker, addresses, data) + more

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(daemons, "server_properties", server_properties)
        with running_cluster("forgetful", 0) as started:
            yield started.bootstrap_servers


@pytest.fixture(name="job")
def _job(forgetful: str, tmp_path: Path) -> Iterator[Job]:
    made = make_job(forgetful, tmp_path, COUNTER, {})
    yield made
    made.close()


def _await_forgotten(servers: str, transactional_id: str) -> None:
    """Kafka has dropped the id: its last record there is a deletion."""
    settings = {"bootstrap.servers": servers, "group.id": "nobody", "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    partitions = consumer.list_topics(STATE_TOPIC, DEADLINE_S).topics[STATE_TOPIC].partitions
    consumer.assign([TopicPartition(STATE_TOPIC, partition, 0) for partition in partitions])
    try:
        while True:
            record = consumer.poll(DEADLINE_S)
            assert record is not None, f"{transactional_id} is not forgotten"
            is_its = transactional_id_of(record.key() or b"") == transactional_id
            if is_its and record.value() is None:
                return
    finally:
        consumer.close()


def _container_id(job: Job, epoch: int) -> str:
    return transactional_id(job.config["job.name"], "1", Incarnation(P0, epoch))


@pytest.mark.parametrize("before", [0, 1])
def test_a_container_that_was_idle_for_too_long_ends_uncharged(job: Job, before: int) -> None:
    """Whether it had written ``before`` or not; its successor, under a new id, goes on exactly."""
    first = job.start(1)
    job.report(first, 1)
    words = [(0, b"word", b"")]
    job.produce(words * before)
    job.until(lambda: job.processed() == before, first)
    _await_forgotten(job.servers, _container_id(job, 1))
    job.produce(words)
    assert first.process.wait(DEADLINE_S) == EXIT_UNAVAILABLE
    line = first.last_line()
    assert f"Kafka does not know {_container_id(job, 1)} any more" in line
    assert "transactional.id.expiration.ms" in line

    second = job.start(2, fence=[1])
    job.report(second, 2)
    job.until(lambda: job.processed() == before + 1, second)
    assert second.stop() == 143
    assert job.table("changelog") == {"word": (before + 1).to_bytes(8, "big")}


def test_a_drivers_writer_that_was_idle_for_too_long_is_over(forgetful: str) -> None:
    """It never takes the id again, as a newer driver may lead: its process begins again."""
    topic = f"stream{uuid.uuid4().hex[:10]}"
    system = kafka_system(forgetful)
    TopicAdmin(system).create(topic, 1, 1, {})

    def writer() -> TransactionalWriter:
        return TransactionalWriter(system, topic, DEADLINE_S, f"{topic}-driver")

    idle = writer()
    idle.write([(b"key", b"before")])
    _await_forgotten(forgetful, f"{topic}-driver")
    for _ in range(2):
        with pytest.raises(WriterOverError, match=r"transactional\.id\.expiration\.ms"):
            idle.write([(b"key", b"lost")])
    idle.close()
    again = writer()
    again.write([(b"key", b"after")])
    again.close()
    assert _values(forgetful, topic, 2) == [b"before", b"after"]


def _values(servers: str, topic: str, count: int) -> list[bytes | None]:
    """The first committed records of partition 0."""
    settings = {"bootstrap.servers": servers, "group.id": "nobody"}
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, 0)])
    try:
        return [m.value() for m in consumer.consume(count, DEADLINE_S)]
    finally:
        consumer.close()
