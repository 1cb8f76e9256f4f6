"""The coordinator stream in a real Kafka when it is long, or much is written at once."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer
from job_configs import kafka_system
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import MessageType, Namespace
from homeport.job_coordinator.kafka.clients import LIBRDKAFKA_LOG
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.job_model import SystemStreamPartition

RECORDS = 200_000
TYPES = [*(t.value for t in MessageType), *(n.value for n in Namespace)]

OpenStream = Callable[..., CoordinatorStreamStore]


@pytest.fixture
def open_stream(kafka: str) -> Iterator[OpenStream]:
    """Opens bootstrapped stores on one coordinator stream."""
    system = kafka_system(kafka)
    topic = f"__samza_coordinator_{uuid.uuid4()}_1"
    TopicAdmin(system).create(topic, 1, 1, {"cleanup.policy": "compact"})
    with contextlib.ExitStack() as opened:

        def opener(transactional_id: str | None = None) -> CoordinatorStreamStore:
            store = CoordinatorStreamStore(
                system, topic, source="test", transactional_id=transactional_id
            )
            opened.enter_context(store).bootstrap()
            return store

        yield opener


def test_a_write_of_the_driver_is_seen_whole(open_stream: OpenStream) -> None:
    """One write is one transaction: a value too large for the topic keeps all of it out."""
    driver, reader = open_stream(transactional_id=f"homeport.{uuid.uuid4()}"), open_stream()
    driver.fence()
    driver.write(wire.set_config(str(number), "1") for number in range(1000))
    with pytest.raises(WireError, match=r"big.*too large"):
        driver.write([wire.set_config("a", "1"), wire.set_config("big", "x" * 2_000_000)])
    driver.write([wire.set_config("b", "1")])
    reader.catch_up()
    assert reader.latest("set-config").keys() == {*map(str, range(1000)), "b"}


def _long_log() -> Iterator[tuple[bytes, bytes | None]]:
    """A job of many tasks and keys: rewritten, deleted, damaged, of Samza's own formats."""
    for number in range(RECORDS // 5):
        task = f"Partition {number}"
        ssp = SystemStreamPartition("kafka", "in", number)
        for message in (
            wire.set_config(f"key.{number % 20_000}", str(number)),
            wire.set_changelog(task, number),
            wire.set_task_container_assignment(task, str(number % 100)),
            wire.set_task_partition_assignment(ssp, [task])
            if number % 3
            else wire.tombstone(MessageType.SET_TASK_CONTAINER, f"Partition {number // 2}"),
            wire.of_namespace(Namespace.STARTPOINT, f"kafka.in.{number}", b"\xff%d" % number),
        ):
            key, value = wire.encode(message)
            yield key, b"damaged" if number % 1000 == 999 and message.key == task else value


def test_a_long_stream_is_read_whole(kafka: str, open_stream: OpenStream) -> None:
    """200,000 records of all kinds are the state that their log has without Kafka, also twice."""
    early = open_stream()
    topic = early._topic
    producer = Producer({"bootstrap.servers": kafka, "linger.ms": 20}, logger=LIBRDKAFKA_LOG)
    expected = InMemoryCoordinatorStream()
    for key, value in _long_log():
        expected.log.append((key, value))
        while True:
            try:
                producer.produce(topic, value, key, partition=0)
                break
            except BufferError:
                producer.poll(1)
    assert producer.flush(60) == 0
    assert len(expected.log) == RECORDS
    news = expected.catch_up()
    late = open_stream()
    assert early.catch_up() == news
    assert late.catch_up() == ()
    for message_type in TYPES:
        found = expected.latest(message_type)
        assert early.latest(message_type) == found
        assert list(late.latest(message_type).items()) == list(found.items())
    assert early.damaged_count == late.damaged_count == expected.damaged_count > 0


def test_a_configuration_of_8_mb_is_written_and_read(open_stream: OpenStream) -> None:
    """20,000 keys in one call: plainly, and as one transaction that is seen whole."""
    reader = open_stream()
    driver = open_stream(transactional_id=f"homeport.{uuid.uuid4()}")
    driver.fence()
    for store, value in ((open_stream(), "a" * 400), (driver, "b" * 400)):
        store.write(wire.set_config(f"key.{number}", value) for number in range(20_000))
        reader.catch_up()
        assert {m.value("value") for m in reader.latest("set-config").values()} == {value}
        assert len(reader.latest("set-config")) == 20_000
