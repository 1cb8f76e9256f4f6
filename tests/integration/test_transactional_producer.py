"""What a transactional producer says of its end, on a real broker."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.container.kafka.transactional_producer import (
    RecordRefusedError,
    TransactionalProducer,
)
from homeport.container.progress.transaction_plan import (
    Changes,
    Send,
    SendColumns,
    SendPairs,
    Sends,
    StoreId,
)
from homeport.job_coordinator.model.ids import TaskName

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


def _pairs(topic: str, *records: tuple[bytes | None, bytes | None]) -> Sends:
    """Records without more than a key and a value, as a task's collector has them."""
    pairs = SendPairs(topic, None)
    for record in records:
        pairs.flat.extend(record)
    return Sends([pairs])


def _send_on(producer: TransactionalProducer, sends: Iterable[Send]) -> None:
    """Records are handed over until that fails."""
    deadline = time.monotonic() + DEADLINE_S
    while time.monotonic() < deadline:
        producer.send(sends)


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


@pytest.mark.parametrize("are_pairs", [False, True])
def test_a_record_refused_while_others_are_handed_over_is_the_reason(
    kafka: str, producer: TransactionalProducer, topic: str, *, are_pairs: bool
) -> None:
    """Not the state that the refusal has put the library into."""
    producer.send([Send(topic, None, _LARGE, 0)])
    others = _pairs(topic, (None, b"y")) if are_pairs else [Send(topic, None, b"y", 0)]
    with pytest.raises(RecordRefusedError, match="Message size too large"):
        _send_on(producer, others)
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


def test_pairs_arrive_whole_and_in_their_order(
    kafka: str, producer: TransactionalProducer, topic: str
) -> None:
    """So do those behind a record that is none, in the same topic; and the changes of a store."""
    count = 3000
    sends = _pairs(topic, *((b"k", b"%d" % i) for i in range(count)))
    sends.parts.append(Send(topic, b"k", b"h", headers=[("h", b"x")]))
    sends.parts += _pairs(topic, (b"k", None), (b"k", b"")).parts
    producer.send(sends)
    entries = {b"%d" % i: b"v" if i % 2 else None for i in range(count)}
    changes = Changes(StoreId("s", TaskName("t")), SystemStream("kafka", topic), 1, entries)
    producer.send_changes(changes)
    producer.deliver()
    (found,) = producer.commit().items()
    records = [(r.key(), r.value()) for p in range(PARTITIONS) for r in _committed(kafka, topic, p)]
    values = [*(b"%d" % i for i in range(count)), b"h", None, b""]
    assert [value for key, value in records if key == b"k"] == values
    assert [(key, value) for key, value in records if key != b"k"] == [*entries.items()]
    last = max(r.offset() or 0 for r in _committed(kafka, topic, 1) if r.key() != b"k")
    assert found == ((topic, 1), last)


def test_columns_arrive_whole_and_in_their_order(
    kafka: str, producer: TransactionalProducer, topic: str
) -> None:
    """In more than one call of the library, before and behind pairs; slices, null, empty."""
    count = 3000
    values = pa.array([b"first", *(b"%d" % i for i in range(count)), None, b""], pa.large_binary())
    keys = pa.array([None, *[b"k"] * (count + 2)], pa.large_binary())
    sends = _pairs(topic, (b"k", b"before"))
    sends.parts.append(SendColumns(topic, None, keys[1:], values[1:]))
    sends.parts += _pairs(topic, (b"k", b"behind")).parts
    sends.parts.append(SendColumns(topic, None, None, values[:1]))
    producer.send(sends)
    producer.deliver()
    assert producer.commit() == {}
    records = [(r.key(), r.value()) for p in range(PARTITIONS) for r in _committed(kafka, topic, p)]
    expected = [b"before", *(b"%d" % i for i in range(count)), None, b"", b"behind"]
    assert [value for key, value in records if key == b"k"] == expected
    assert [value for key, value in records if key is None] == [b"first"]


_REFUSED = [b"a", b"b" * 6_000_000, b"c"]


@pytest.mark.parametrize("are_columns", [False, True])
def test_a_record_that_the_client_refuses_among_many_is_the_reason(
    kafka: str, producer: TransactionalProducer, topic: str, *, are_columns: bool
) -> None:
    """Its limit is that of the system's producer."""
    columns = Sends([SendColumns(topic, None, None, pa.array(_REFUSED, pa.large_binary()))])
    pairs = _pairs(topic, *((None, value) for value in _REFUSED))
    with pytest.raises(RecordRefusedError, match="too large"):
        producer.send(columns if are_columns else pairs)
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
