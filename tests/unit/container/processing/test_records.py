"""Rows as messages, and bad records."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import pyarrow as pa
import pytest

from homeport.container.api import BATCH_SCHEMA, IncomingMessage, header_pairs
from homeport.container.callables import TaskFailedError
from homeport.container.processing import records
from homeport.container.processing.records import (
    BadRecords,
    InputMessages,
    UndecodableError,
    pipeline_messages,
)
from homeport.container.processing.task_instance import Outputs
from homeport.container.serde.serdes import Serde, SerdeFailedError, SerdesOf, serde

TASK = "Partition 0"


def _rows(*pairs: tuple[bytes | None, bytes | None]) -> pa.Table:
    place, headers = ("kafka", "in", 3), [("h", b"1")]
    return _table((place, *pair, 7 + i, 5, headers) for i, pair in enumerate(pairs))


def _table(rows: Iterable[tuple[Any, ...]]) -> pa.Table:
    """Rows of (place, key, value, offset, timestamp, headers)."""
    found = [(TASK, key, value, *place, *rest) for place, key, value, *rest in rows]
    named = [dict(zip(BATCH_SCHEMA.names, row, strict=True)) for row in found]
    return pa.Table.from_pylist(named, schema=BATCH_SCHEMA)


def _serdes(_system: str, _stream: str) -> tuple[Serde | None, Serde | None]:
    return serde("string"), serde("json")


def _outputs() -> Outputs:
    return Outputs({"kafka"}, {"kafka"}, "kafka")


def _messages(
    serdes: SerdesOf = _serdes,
    outputs: Outputs | None = None,
    letters: str | None = None,
    *,
    drop: bool = False,
) -> InputMessages:
    return InputMessages(serdes, BadRecords(outputs or _outputs(), letters, drop=drop).met)


def _bytes(_system: str, _stream: str) -> tuple[None, None]:
    return None, None


def test_keys_and_values_are_decoded_and_nulls_stay() -> None:
    """By the serdes of the stream; a null is None, whatever the serde; without one all is bytes."""
    assert list(_messages(_bytes).of(_rows((b"k", b"\xff")))) == [
        IncomingMessage("kafka", "in", 3, 7, b"k", b"\xff", 5, {"h": b"1"})
    ]
    assert list(_messages().of(_rows((b"k", b"[1]"), (None, None)))) == [
        IncomingMessage("kafka", "in", 3, 7, "k", [1], 5, {"h": b"1"}),
        IncomingMessage("kafka", "in", 3, 8, None, None, 5, {"h": b"1"}),
    ]


@pytest.mark.parametrize(
    ("value", "why"), [(b"\xff", "not JSON"), (b"[" * 100_000, "nested deeper")]
)
def test_a_bad_record_is_an_error_of_one_line(value: bytes, why: str) -> None:
    """With its place, the serde and what to do."""
    messages = _messages()
    with pytest.raises(UndecodableError) as failed:
        list(messages.of(_rows((b"k", value))))
    message = str(failed.value)
    assert message.startswith(
        "input kafka.in partition 3 offset 7: its value cannot be read by the serde 'json': "
    )
    assert why in message
    assert "task.drop.deserialization.errors=true" in message
    assert "\n" not in message


def test_a_dropped_record_is_counted_and_the_rest_goes_on() -> None:
    """Without dead letters nothing is sent."""
    outputs = _outputs()
    bad = BadRecords(outputs, None, drop=True)
    rows = _rows((b"k", b"bad"), (b"k", b"1"))
    assert [m.offset for m in InputMessages(_serdes, bad.met).of(rows)] == [8]
    assert bad.dropped == 1
    assert list(outputs.sends) == []


def test_a_dead_letter_keeps_the_record_and_says_where_it_was() -> None:
    """Raw key and value, the record's own headers, and four of ours."""
    outputs = _outputs()
    list(_messages(_serdes, outputs, "kafka.dead.letters", drop=True).of(_rows((b"\xff", b"1"))))
    (send,) = outputs.sends
    assert (send.topic, send.key, send.value) == ("dead.letters", b"\xff", b"1")
    assert send.headers == [
        ("h", b"1"),
        ("homeport.reason", b"its key cannot be read by the serde 'string': not UTF-8: b'\\xff'"),
        ("homeport.source.topic", b"in"),
        ("homeport.source.partition", b"3"),
        ("homeport.source.offset", b"7"),
    ]


def test_a_dead_letter_that_is_read_again_has_the_newer_place() -> None:
    """All other headers are there, those of one name too."""
    outputs = _outputs()
    bad = BadRecords(outputs, "kafka.dead", drop=True)
    (row,) = _rows((b"k", b"{")).to_pylist()
    row["headers"] = [("h", b"1"), ("homeport.reason", b"old"), ("h", None)]
    bad.met(row, "new")
    (send,) = outputs.sends
    assert send.headers is not None
    assert list(send.headers)[:3] == [("h", b"1"), ("h", None), ("homeport.reason", b"new")]


def _found(headers: list[tuple[str, bytes | None]] | None) -> Any:  # noqa: ANN401 - a mapping
    return dict(headers or ())


def _placed(
    *places: tuple[str, str, int], headers: list[tuple[str, bytes | None]] | None
) -> pa.Table:
    return _table(
        (place, b"k%d" % i, b"%d" % i, i, 100 + i, headers if i % 2 else None)
        for i, place in enumerate(places)
    )


@pytest.mark.parametrize("headers", [None, [], [("h", b"1"), ("h", b"2")]])
def test_each_row_keeps_its_place_and_its_headers(
    headers: list[tuple[str, bytes | None]] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several systems, streams and partitions in one table, and in slices of a table."""
    monkeypatch.setattr(records, "_ROWS", 2)
    places = [
        *(("a", "in", 0),) * 3,
        *(("a", "in", 1),) * 2,
        *(("a", "other", 1),) * 1,
        *(("b", "other", 1),) * 5,
    ]
    messages = _messages()
    table = _placed(*places, headers=headers)
    right = [
        IncomingMessage(*place, i, f"k{i}", i, 100 + i, _found(headers) if i % 2 else {})
        for i, place in enumerate(places)
    ]
    assert list(messages.of(table)) == right
    assert list(messages.of(table.slice(2, 7))) == right[2:9]
    assert list(messages.of(pa.concat_tables([table.slice(0, 4), table.slice(4)]))) == right
    assert list(messages.of(table.slice(0, 0))) == []


def test_each_message_has_headers_of_its_own() -> None:
    """What a task puts into those of one message is in no other."""
    messages = _messages()
    first, second = messages.of(_placed(("a", "in", 0), ("a", "in", 0), headers=None))
    assert isinstance(first.headers, dict)
    first.headers["own"] = b"1"
    assert second.headers == {}


@pytest.mark.parametrize("bad_at", [0, 1, 5, 9])
def test_a_bad_record_hides_none_before_it(bad_at: int) -> None:
    """All before it are there first, and with it dropped all behind it too, dead letter in turn."""
    pairs = [(b"k", b"%d" % i) for i in range(10)]
    pairs[bad_at] = b"k", b"bad"
    outputs = _outputs()
    seen: list[int] = []
    messages = _messages(_serdes, outputs)
    with pytest.raises(UndecodableError, match=f"offset {7 + bad_at}: "):
        deque(map(seen.append, (m.value for m in messages.of(_rows(*pairs)))), 0)
    assert seen == list(range(bad_at))
    messages = _messages(_serdes, outputs, "kafka.dead", drop=True)
    letters = [(message.value, len(list(outputs.sends))) for message in messages.of(_rows(*pairs))]
    assert letters == [(i, int(i > bad_at)) for i in range(10) if i != bad_at]


def test_a_serde_of_the_jobs_own_reads_a_record_when_its_turn_has_come() -> None:
    """It may take any time: the order to stop is looked for between two of them."""
    read: list[bytes] = []

    def from_bytes(data: bytes) -> bytes:
        read.append(data)
        return data

    own = Serde("its:Own", bytes, from_bytes, is_own=True)
    messages = _messages(lambda *_: (None, own)).of(_rows((None, b"1"), (None, b"2")))
    assert next(messages).value == b"1"
    assert read == [b"1"]


@pytest.mark.parametrize(("size", "at_once"), [(1, 100), (50_000, 12), (2_000_000, 1)])
def test_large_records_are_read_few_at_a_time(size: int, at_once: int) -> None:
    """What they become may take several times their bytes."""
    read: list[int] = []

    def from_bytes(data: bytes) -> int:
        read.append(len(data))
        return len(data)

    rows = _rows(*[(None, b"x" * size)] * 100)
    messages = _messages(lambda *_: (None, Serde("quick", bytes, from_bytes))).of(rows)
    assert next(messages).value == size
    assert len(read) == at_once
    assert [message.value for message in messages] == [size] * 99
    assert len(read) == 100


def test_all_headers_of_a_message_are_there_whichever_way_it_was_read() -> None:
    """By the column, row by row behind a bad one, and behind a pipeline."""
    pairs = [("h", b"1"), ("h", None), ("g", b"2")]
    table = _placed(("a", "in", 0), ("a", "in", 0), headers=pairs)
    own = Serde("own", bytes, bytes, is_own=True)
    ways = [
        list(_messages(_bytes).of(table)),
        list(_messages(lambda *_: (None, own)).of(table)),
        list(pipeline_messages(table)),
    ]
    for without, having in ways:
        assert header_pairs(without.headers) == []
        assert header_pairs(having.headers) == pairs
        assert having.headers == {"h": None, "g": b"2"}


@pytest.mark.parametrize(
    "column",
    [
        pa.array([253402300800000000], pa.timestamp("us", "UTC")),
        pa.array([[{"at": -62135596800000001}]], pa.list_(pa.struct([("at", pa.timestamp("us"))]))),
        pa.Array.from_buffers(
            pa.string(), 1, [None, pa.py_buffer(b"\0\0\0\0\1\0\0\0"), pa.py_buffer(b"\xff")]
        ),
    ],
)
def test_a_row_that_python_does_not_have_is_one_line(column: pa.Array) -> None:
    """A pipeline may make times and texts that only Spark has."""
    rows = pa.table({"task": [TASK], "odd": column})
    with pytest.raises(
        TaskFailedError, match="the column 'odd' of the pipeline's rows has a value"
    ):
        list(pipeline_messages(rows))


def test_a_pipelines_columns_are_fields_where_they_have_their_type() -> None:
    """Nulls and other types are as columns that are not there; the value has all but the task."""
    row = {
        "system": "kafka",
        "stream": 5,
        "partition": None,
        "offset": 4,
        "key": "k",
        "value": b"v",
    }
    headers = pa.array([[("h", b"1")]], BATCH_SCHEMA.field("headers").type)
    columns = {name: pa.array([value]) for name, value in row.items()}
    rows = pa.table({"task": [TASK], **columns, "headers": headers, "timestamp": ["now"]})
    value = {**row, "headers": [("h", b"1")], "timestamp": "now"}
    right = IncomingMessage("kafka", "", -1, 4, "k", value, -1, {"h": b"1"})
    assert list(pipeline_messages(rows)) == [right]


def test_rows_of_a_pipeline_that_has_dropped_all_columns_are_there_all_the_same() -> None:
    """Each with nothing in it, and in several slices."""
    rows = pa.table({"task": [TASK] * 3000})
    right = IncomingMessage("", "", -1, -1, None, {}, -1, {})
    assert list(pipeline_messages(rows)) == [right] * 3000


def test_a_dead_letter_that_no_broker_takes_ends_the_container() -> None:
    """The record is not dropped for it."""
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka", limits={"kafka": 1})
    messages = _messages(_serdes, outputs, "kafka.dead", drop=True)
    with pytest.raises(UndecodableError, match="its dead letter cannot be sent: "):
        list(messages.of(_rows((b"k", b"{"))))


def test_a_serde_that_has_failed_names_the_record_and_drops_none() -> None:
    """A Schema Registry that does not answer proves nothing about the bytes."""

    def fail(_data: bytes) -> Any:  # noqa: ANN401 - a serde's
        raise SerdeFailedError("the registry is away")

    failing = Serde("own", bytes, fail)
    messages = _messages(lambda *_: (None, failing), drop=True)
    with pytest.raises(SerdeFailedError, match="partition 3 offset 7: its value: the registry is"):
        list(messages.of(_rows((b"k", b"1"))))
