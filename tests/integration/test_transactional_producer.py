"""What a transactional producer says of its end, on a real broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.transactional_producer import (
    RecordRefusedError,
    TransactionalProducer,
)
from homeport.container.progress.transaction_plan import Send

DEADLINE_S = 30.0
TRANSACTION_TIMEOUT_MS = 20_000
_LARGE = b"x" * 1_500_000


@pytest.fixture(name="topic")
def _topic(kafka: str) -> str:
    name = f"t{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(name, 1, 1)])[name].result()
    return name


def _send_on(producer: TransactionalProducer, topic: str) -> None:
    """Records are handed over until that fails."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        producer.send([Send(topic, None, b"y", 0)])


@pytest.fixture(name="producer")
def _producer(kafka: str, topic: str) -> Iterator[TransactionalProducer]:
    config = Config(
        {
            "systems.kafka.samza.factory": "org.apache.samza.system.kafka.KafkaSystemFactory",
            "systems.kafka.consumer.bootstrap.servers": kafka,
            "systems.kafka.producer.bootstrap.servers": kafka,
            "systems.kafka.producer.max.request.size": "5000000",
            "systems.kafka.producer.transaction.timeout.ms": str(TRANSACTION_TIMEOUT_MS),
        }
    )
    producer = TransactionalProducer(SystemConfig.of(config, "kafka"), topic)
    producer.initialise()
    producer.begin()
    yield producer
    producer.close()


def _is_aborted(servers: str, topic: str) -> bool:
    """Whether a reader of committed records is past all that was sent, and has seen none of it."""
    config = {"bootstrap.servers": servers, "group.id": topic, "isolation.level": "read_committed"}
    consumer = Consumer({**config, "auto.offset.reset": "earliest", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found = consumer.poll(DEADLINE_S)
    assert found is not None
    error = found.error()
    is_at_end = error is not None and error.code() == KafkaError._PARTITION_EOF
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), DEADLINE_S, cached=False)[1]
    consumer.close()
    return is_at_end and found.offset() == end


def test_a_record_refused_while_others_are_handed_over_is_the_reason(
    kafka: str, producer: TransactionalProducer, topic: str
) -> None:
    """Not the state that the refusal has put the library into."""
    producer.send([Send(topic, None, _LARGE, 0)])
    with pytest.raises(RecordRefusedError, match="Message size too large"):
        _send_on(producer, topic)
    assert _is_aborted(kafka, topic)


@pytest.mark.parametrize(
    "runs",
    [[[_LARGE], [b"y"]], [[_LARGE, b"y"]]],
    ids=["each reported on", "only the last of a run reported on"],
)
def test_a_refused_record_ends_the_wait_for_those_behind_it(
    kafka: str, producer: TransactionalProducer, topic: str, runs: list[list[bytes]]
) -> None:
    """Else the transaction would time out, and the error would give that as the cause."""
    began = time.monotonic()
    for run in runs:
        producer.send([Send(topic, None, value, 0) for value in run])
    with pytest.raises(RecordRefusedError, match="Message size too large"):
        producer.deliver()
    assert (time.monotonic() - began) * 1000 < TRANSACTION_TIMEOUT_MS
    assert _is_aborted(kafka, topic)
