"""TypedInput on the way to the tasks: a batch that is ahead refuses nothing before its turn."""

from __future__ import annotations

import pyarrow as pa
import pytest

from homeport.container.api import BATCH_SCHEMA
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.processing.ahead import Ahead
from homeport.container.processing.beside import Inline
from homeport.container.processing.records import BadRecords, UndecodableError
from homeport.container.processing.task_instance import Outputs
from homeport.container.processing.typed_input import TypedInput
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns


class _Counting:
    """A pipeline that hands on its rows; ``runs``: how many there were each time."""

    def __init__(self) -> None:
        self.runs: list[int] = []

    def run(self, table: pa.Table) -> pa.Table:
        """The rows, as they are."""
        self.runs.append(table.num_rows)
        return table


def _batch(*values: bytes | None) -> MicroBatch:
    rest = {"task": "t", "system": "kafka", "stream": "in", "partition": 0, "timestamp": 0}
    rows = [rest | {"value": value, "offset": n} for n, value in enumerate(values)]
    return MicroBatch(pa.Table.from_pylist(rows, BATCH_SCHEMA), 1, {}, {})


def _typed(outputs: Outputs, *, drop: bool) -> TypedInput:
    bad = BadRecords(outputs, "kafka.bad" if drop else None, drop=drop)
    return TypedInput(json_columns(struct_of_ddl("n INT")), "json", bad)


def test_dead_letters_are_of_the_transaction_of_their_batch() -> None:
    """Decoded ahead, they are sent when the batch is processed, not before."""
    outputs, pipeline = Outputs({"kafka"}, {"kafka"}, "kafka"), _Counting()
    typed = _typed(outputs, drop=True)
    ahead = Ahead(pipeline, Inline(), typed=typed)
    ahead.add(_batch(b'{"n": 1}', b"bad", None))
    assert outputs.sends == []
    piped = ahead.take(0)
    assert piped is not None
    assert piped.rows.column("value").to_pylist() == [{"n": 1}, None]
    assert outputs.sends == []
    typed.refuse(piped.refused)
    assert [send.value for send in outputs.sends] == [b"bad"]
    assert pipeline.runs == [2]


def test_a_batch_of_which_all_is_refused_enters_no_pipeline() -> None:
    """One without records does, as a warm-up has none."""
    pipeline = _Counting()
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
    ahead = Ahead(pipeline, Inline(), typed=_typed(outputs, drop=False))
    ahead.add(_batch(b"bad"))
    piped = ahead.take(0)
    assert piped is not None
    assert piped.rows.num_rows == 0
    assert pipeline.runs == []
    with pytest.raises(UndecodableError, match=r"input kafka\.in partition 0 offset 0"):
        _typed(outputs, drop=False).refuse(piped.refused)
    ahead.add(_batch())
    assert ahead.take(0) is not None
    assert pipeline.runs == [0]
