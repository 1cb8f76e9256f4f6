"""What a transactional producer says of its end, on a real broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
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
PARTITIONS = 2
_LARGE = b"x" * 1_500_000


@pytest.fixture(name="topic")
def _topic(kafka: str) -> str:
    name = f"t{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": kafka})
    admin.create_topics([NewTopic(name, PARTITIONS, 1)])[name].result()
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


def _committed(servers: str, topic: str, partition: int) -> list[Message]:
    """Return what a reader of committed records sees, up to the end of all that was sent."""
    config = {"bootstrap.servers": servers, "group.id": topic, "isolation.level": "read_committed"}
    consumer = Consumer({**config, "auto.offset.reset": "earliest", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    records: list[Message] = []
    while True:
        found = consumer.poll(DEADLINE_S)
        assert found is not None
        error = found.error()
        if error is not None:
            break
        records.append(found)
    assert error.code() == KafkaError._PARTITION_EOF
    place = TopicPartition(topic, partition)
    end = consumer.get_watermark_offsets(place, DEADLINE_S, cached=False)[1]
    consumer.close()
    assert found.offset() == end
    return records


def _is_aborted(servers: str, topic: str) -> bool:
    return not any(_committed(servers, topic, partition) for partition in range(PARTITIONS))


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


_KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "with a header": {"headers": [("h", b"x")]},
    "with a timestamp": {"timestamp_ms": int(time.time() * 1000)},
    "of a named partition": {"partition": 0},
    "of a named partition, with a header": {"partition": 0, "headers": [("h", None)]},
}


@pytest.mark.parametrize("kind", _KINDS.values(), ids=_KINDS)
@pytest.mark.parametrize(
    ("change", "expected"),
    [({"value": _LARGE}, "Message size too large"), ({"timestamp_ms": 2**50}, "Invalid timestamp")],
    ids=["size", "time"],
)
def test_a_refused_record_in_the_midst_fails_the_transaction(
    kafka: str,
    producer: TransactionalProducer,
    topic: str,
    kind: dict[str, Any],
    change: dict[str, Any],
    expected: str,
) -> None:
    """It has no report of its own, and others follow it to the same partition and the other."""
    key = None if "partition" in kind else b"k"
    sends = [Send(topic, key, b"y", **kind) for _ in range(8)]
    sends[4] = sends[4]._replace(**change)
    others = [Send(topic, None, b"z", 1) for _ in sends]
    producer.send([send for pair in zip(sends, others, strict=True) for send in pair])
    with pytest.raises(RecordRefusedError, match=expected):
        producer.deliver()
    assert _is_aborted(kafka, topic)


def test_the_last_offset_of_each_named_partition_is_known_in_any_mixture(
    kafka: str, producer: TransactionalProducer, topic: str
) -> None:
    """Records of all kinds keep their order within a partition, their headers and their times."""
    kinds = [
        *_KINDS.values(),
        {"partition": 1},
        {"partition": 1, "headers": [("h", b"a"), ("h", b"b")]},
    ]
    sends = [Send(topic, b"k", b"%d" % i, **kinds[i % len(kinds)]) for i in range(50)]
    sends.append(Send(topic, b"k", b"last"))
    producer.expect_beyond({(topic, 0): -1, (topic, 1): -1})
    producer.send(sends[:20])
    producer.send(sends[20:])
    producer.deliver()
    found = producer.commit()
    records = {partition: _committed(kafka, topic, partition) for partition in range(PARTITIONS)}
    (by_key,) = (p for p, own in records.items() if own[-1].value() == b"last")
    sent: dict[int, list[Send]] = {partition: [] for partition in records}
    for send in sends:
        sent[by_key if send.partition is None else send.partition].append(send)
    for partition, own in records.items():
        assert [r.value() for r in own] == [send.value for send in sent[partition]]
        assert [r.headers() for r in own] == [send.headers for send in sent[partition]]
        for record, send in zip(own, sent[partition], strict=True):
            assert send.timestamp_ms in (None, record.timestamp()[1])
    assert found == {
        (topic, p): next(
            r.offset()
            for r, send in zip(reversed(own), reversed(sent[p]), strict=True)
            if send.partition == p
        )
        for p, own in records.items()
    }
