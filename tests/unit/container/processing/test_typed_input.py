"""TypedInput on the way to the tasks: a batch that is ahead refuses nothing before its turn."""

from __future__ import annotations

import pyarrow as pa
import pytest

from homeport.config.system_stream import SystemStream
from homeport.container.api import BATCH_SCHEMA
from homeport.container.host.executors import SameThread
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.processing.prefetch import Prefetch
from homeport.container.processing.records import BadRecords, UndecodableError
from homeport.container.processing.task_instance import Outputs
from homeport.container.processing.typed_input import TypedInput, Typing
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns
from homeport.container.spark.inputs import SplitRows, Wanted


class _Counting:
    """A pipeline that hands on its rows; ``runs``: how many there were each time."""

    def __init__(self) -> None:
        self.runs: list[int] = []

    def run(self, table: pa.Table, _stores: object = None) -> pa.Table:
        """The rows, as they are."""
        self.runs.append(table.num_rows)
        return table


def _table(*rows: tuple[str, bytes | None]) -> pa.Table:
    rest = {"task": "t", "system": "kafka", "partition": 0, "timestamp": 0}
    found = [rest | {"stream": s, "value": v, "offset": n} for n, (s, v) in enumerate(rows)]
    return pa.Table.from_pylist(found, BATCH_SCHEMA)


def _batch(*values: bytes | None) -> MicroBatch:
    return MicroBatch(_table(*(("in", value) for value in values)), 1, {}, {})


def _typed(outputs: Outputs, *, drop: bool) -> TypedInput:
    bad = BadRecords(outputs, "kafka.bad" if drop else None, drop=drop)
    return TypedInput({None: Typing(json_columns(struct_of_ddl("n INT")), "json")}, bad)


def test_dead_letters_are_of_the_transaction_of_their_batch() -> None:
    """Decoded ahead, they are sent when the batch is processed, not before."""
    outputs, pipeline = Outputs({"kafka"}, {"kafka"}, "kafka"), _Counting()
    typed = _typed(outputs, drop=True)
    ahead = Prefetch(pipeline, SameThread(), typed=typed)
    ahead.add(_batch(b'{"n": 1}', b"bad", None))
    assert list(outputs.sends) == []
    prefetched = ahead.take(0)
    assert prefetched is not None
    assert prefetched.rows.column("value").to_pylist() == [{"n": 1}, None]
    assert list(outputs.sends) == []
    typed.refuse(prefetched.refused)
    assert [send.value for send in outputs.sends] == [b"bad"]
    assert pipeline.runs == [2]


def test_a_batch_of_which_all_is_refused_enters_no_pipeline() -> None:
    """One without records does, as a warm-up has none."""
    pipeline = _Counting()
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
    ahead = Prefetch(pipeline, SameThread(), typed=_typed(outputs, drop=False))
    ahead.add(_batch(b"bad"))
    prefetched = ahead.take(0)
    assert prefetched is not None
    assert prefetched.rows.num_rows == 0
    assert pipeline.runs == []
    with pytest.raises(UndecodableError, match=r"input kafka\.in partition 0 offset 0"):
        _typed(outputs, drop=False).refuse(prefetched.refused)
    ahead.add(_batch())
    assert ahead.take(0) is not None
    assert pipeline.runs == [0]


ORDERS, LATE, RAW = (SystemStream("kafka", name) for name in ("orders", "late", "raw"))


def _typing(ddl: str) -> Typing:
    return Typing(json_columns(struct_of_ddl(ddl)), f"json of {ddl}")


def test_each_stream_has_its_own_schema_and_some_have_none() -> None:
    """Refused rows of all come in the order of the batch; a stream without rows has no table."""
    typings: dict[SystemStream | None, Typing] = {
        ORDERS: _typing("n INT"),
        LATE: _typing("text STRING"),
        SystemStream("kafka", "none"): _typing("x INT"),
    }
    bad = BadRecords(Outputs({"kafka"}, {"kafka"}, "kafka"), None, drop=True)
    table = _table(
        ("late", b"bad"),
        ("orders", b'{"n": 1}'),
        ("raw", b"bad"),
        ("orders", b'{"n": "x"}'),
        ("late", b'{"text": "t"}'),
        ("orders", None),
        ("late", b'{"text": 5}'),
    )
    rows, refused = TypedInput(typings, bad).of(table)
    assert isinstance(rows, SplitRows)
    values = {s: t.column("value").to_pylist() for s, t in rows.by_stream.items()}
    assert values == {LATE: [{"text": "t"}], ORDERS: [{"n": 1}, None], RAW: [b"bad"]}
    assert rows.by_stream[ORDERS].column("offset").to_pylist() == [1, 5]
    assert [row["offset"] for row, _ in refused] == [0, 3, 6]
    assert "the serde 'json of n INT'" in refused[1][1]


def test_refused_records_at_one_place_of_their_streams_are_all_refused() -> None:
    """The order is that of the batch, in which streams take turns."""
    typings: dict[SystemStream | None, Typing] = {ORDERS: _typing("n INT"), LATE: _typing("n INT")}
    bad = BadRecords(Outputs({"kafka"}, {"kafka"}, "kafka"), None, drop=True)
    table = _table(*((stream, b"bad") for stream in ("late", "orders", "orders", "late", "orders")))
    _, refused = TypedInput(typings, bad).of(table)
    assert [(row["stream"], row["offset"]) for row, _ in refused] == [
        ("late", 0),
        ("orders", 1),
        ("orders", 2),
        ("late", 3),
        ("orders", 4),
    ]


def test_only_what_is_read_becomes_columns() -> None:
    """Of each stream's values what its frame reads; a bad record is one whatever is read."""
    typing = _typing("n INT, text STRING, more DOUBLE")
    bad = BadRecords(Outputs({"kafka"}, {"kafka"}, "kafka"), None, drop=True)
    asked: list[int] = []

    def wanted(rows: int) -> Wanted | None:
        asked.append(rows)
        return {ORDERS: frozenset({"n"}), LATE: frozenset({"more"})}

    table = _table(("orders", b'{"n": 1, "text": "t"}'), ("late", b'{"text": 5}'), ("raw", b"{}"))
    apart: dict[SystemStream | None, Typing] = dict.fromkeys([ORDERS, LATE, RAW], typing)
    rows, refused = TypedInput(apart, bad, wanted).of(table)
    assert isinstance(rows, SplitRows)
    types = {s: t.schema.field("value").type for s, t in rows.by_stream.items()}
    assert types == {
        ORDERS: pa.struct([("n", pa.int32())]),
        LATE: pa.struct([("more", pa.float64())]),
        RAW: pa.struct([("n", pa.int32())]),  # nothing of it is read: one stands for the value
    }
    assert len(refused) == 1
    alike, refused = TypedInput({None: typing}, bad, wanted).of(table)
    assert not isinstance(alike, SplitRows)
    assert alike.column("value").to_pylist() == [{"n": 1, "more": None}, {"n": None, "more": None}]
    assert len(refused) == 1
    assert asked == [3, 3]
