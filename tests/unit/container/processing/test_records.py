"""Rows as messages, and bad records."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from homeport.container.api import BATCH_SCHEMA, IncomingMessage
from homeport.container.processing.records import (
    BadRecords,
    InputMessages,
    PipelineMessages,
    UndecodableError,
)
from homeport.container.processing.task_instance import Outputs
from homeport.container.serde.serdes import Serde, serde

TASK = "Partition 0"


def _rows(*pairs: tuple[bytes | None, bytes | None]) -> pa.Table:
    rows: list[dict[str, Any]] = [
        {
            "task": TASK,
            "key": key,
            "value": value,
            "system": "kafka",
            "stream": "in",
            "partition": 3,
            "offset": 7 + i,
            "timestamp": 5,
            "headers": [("h", b"1")],
        }
        for i, (key, value) in enumerate(pairs)
    ]
    return pa.Table.from_pylist(rows, schema=BATCH_SCHEMA)


def _serdes(_system: str, _stream: str) -> tuple[Serde | None, Serde | None]:
    return serde("string"), serde("json")


def _outputs() -> Outputs:
    return Outputs({"kafka"}, {"kafka"}, "kafka")


def test_keys_and_values_are_decoded_and_nulls_stay() -> None:
    """By the serdes of the stream; a null is None, whatever the serde."""
    messages = InputMessages(_serdes, BadRecords(_outputs(), None, drop=False))
    assert list(messages.of(_rows((b"k", b"[1]"), (None, None)))) == [
        IncomingMessage("kafka", "in", 3, 7, "k", [1], 5, {"h": b"1"}),
        IncomingMessage("kafka", "in", 3, 8, None, None, 5, {"h": b"1"}),
    ]


def test_without_serdes_they_stay_bytes() -> None:
    """Only configured fields are decoded."""
    messages = InputMessages(lambda *_: (None, None), BadRecords(_outputs(), None, drop=False))
    (message,) = messages.of(_rows((b"k", b"\xff")))
    assert (message.key, message.value) == (b"k", b"\xff")


@pytest.mark.parametrize(("value", "why"), [(b"\xff", "not JSON"), (b"[" * 100_000, "recursion")])
def test_a_bad_record_is_an_error_of_one_line(value: bytes, why: str) -> None:
    """With its place, the serde and what to do."""
    messages = InputMessages(_serdes, BadRecords(_outputs(), None, drop=False))
    with pytest.raises(UndecodableError) as failed:
        list(messages.of(_rows((b"k", value))))
    said = str(failed.value)
    assert said.startswith(
        "input kafka.in partition 3 offset 7: its value cannot be read by the serde 'json': "
    )
    assert why in said
    assert "task.drop.deserialization.errors=true" in said
    assert "\n" not in said


def test_a_dropped_record_is_counted_and_the_rest_goes_on() -> None:
    """Without dead letters nothing is sent."""
    outputs = _outputs()
    bad = BadRecords(outputs, None, drop=True)
    rows = _rows((b"k", b"bad"), (b"k", b"1"))
    assert [m.offset for m in InputMessages(_serdes, bad).of(rows)] == [8]
    assert bad.dropped == 1
    assert outputs.sends == []


def test_a_dead_letter_keeps_the_record_and_says_where_it_was() -> None:
    """Raw key and value, the record's own headers, and four of ours."""
    outputs = _outputs()
    bad = BadRecords(outputs, "kafka.dead.letters", drop=True)
    list(InputMessages(_serdes, bad).of(_rows((b"\xff", b"1"))))
    (send,) = outputs.sends
    assert (send.topic, send.key, send.value) == ("dead.letters", b"\xff", b"1")
    assert send.headers == {
        "h": b"1",
        "homeport.reason": b"its key cannot be read by the serde 'string': not UTF-8: b'\\xff'",
        "homeport.source.topic": b"in",
        "homeport.source.partition": b"3",
        "homeport.source.offset": b"7",
    }


def test_rows_of_a_pipeline_are_values() -> None:
    """Columns that it dropped are empty; the task's name is not among them."""
    rows = pa.table({"task": [TASK], "offset": [4], "key": ["k"], "total": [1.5]})
    assert list(PipelineMessages().of(rows)) == [
        IncomingMessage("", "", -1, 4, "k", {"offset": 4, "key": "k", "total": 1.5}, -1, {})
    ]
