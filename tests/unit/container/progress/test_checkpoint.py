"""Bytes of checkpoint records."""

from __future__ import annotations

import json

import pytest

from homeport.config.errors import WireError
from homeport.container.progress.checkpoint import (
    Change,
    CheckpointKey,
    decode_changes,
    decode_key,
    decode_value,
    encode_changes,
    encode_key,
    encode_value,
)
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

GROUPER = "org.apache.samza.container.grouper.stream.GroupByPartitionFactory"
KEY = (
    b'{"systemstreampartition-grouper-factory":"' + GROUPER.encode() + b'",'
    b'"taskName":"Partition 0","type":"checkpoint"}'
)
VALUE = (
    b'{"SystemStreamPartition [kafka, in, 0]":'
    b'{"system":"kafka","partition":"0","offset":"10","stream":"in"}}'
)


def test_key_and_value_are_samzas_bytes() -> None:
    """Field order, the grouper's Java name, and texts for all numbers."""
    key = CheckpointKey(GROUPER, TaskName("Partition 0"))
    assert encode_key(key) == KEY
    assert decode_key(KEY) == key
    offsets = {SystemStreamPartition("kafka", "in", 0): 10}
    assert encode_value(offsets) == VALUE
    assert decode_value(VALUE) == offsets


def test_changelog_entries_of_samza_are_left_out() -> None:
    """An offset of the form id:offset belongs to a changelog, not to the input."""
    value = VALUE[:-1] + (
        b',"SystemStreamPartition [kafka, c, 0]":'
        b'{"system":"kafka","partition":"0","offset":"170-1:42","stream":"c"}}'
    )
    assert decode_value(value) == {SystemStreamPartition("kafka", "in", 0): 10}


@pytest.mark.parametrize("data", [b"", b"[]", b"{", b'{"taskName":"x"}'])
def test_other_bytes_are_no_key(data: bytes) -> None:
    """What is not such a key is refused."""
    with pytest.raises(WireError):
        decode_key(data)


@pytest.mark.parametrize("data", [b"[]", b'{"a":1}', b'{"a":{"system":"k"}}'])
def test_other_bytes_are_no_value(data: bytes) -> None:
    """What is not such a value is refused."""
    with pytest.raises(WireError):
        decode_value(data)


def test_a_task_that_is_to_begin_at_offset_0_has_processed_nothing() -> None:
    """Its offset is -1, which Samza reads as we do: the next message is the first."""
    ssp = SystemStreamPartition("kafka", "in", 0)
    assert decode_value(encode_value({ssp: -1})) == {ssp: -1}


_ENTRY = {"system": "kafka", "partition": "0", "offset": "10", "stream": "in"}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *((name, value) for name in ("partition", "offset") for value in ("9" * 19, "9" * 5_000)),
        ("partition", 2**31),
        ("partition", -1),
        ("partition", float("inf")),
        ("partition", True),
        ("offset", 10**400),
        ("system", []),
        ("stream", {}),
        ("stream", None),
    ],
    ids=lambda value: str(value)[:12],
)
def test_a_number_that_no_partition_has_is_damage(field: str, value: object) -> None:
    """No consumer could be put there: it is said as of other damage."""
    data = json.dumps({"x": {**_ENTRY, field: value}}).encode()
    with pytest.raises(WireError, match=r"checkpoint entry|field '"):
        decode_value(data)


@pytest.mark.parametrize("data", [b"[" * 100_000, b'{"x":' + b"9" * 5_000 + b"}"])
def test_json_that_python_does_not_read_is_no_value(data: bytes) -> None:
    """Nested too deeply, or a number of too many digits."""
    with pytest.raises(WireError, match="not JSON"):
        decode_value(data)


def test_changes_come_back_as_they_were() -> None:
    """None of them, one without a checkpoint before, several."""
    changes = (
        Change(SystemStreamPartition("kafka", "a.b", 3), None, 0),
        Change(SystemStreamPartition("other", "in", 0), 140, 7),
    )
    for some in ((), changes[:1], changes):
        assert decode_changes(encode_changes(some)) == some


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"{}",
        b'{"changes": {}}',
        b'{"changes": [1]}',
        b'{"changes": [{"system": "s", "stream": "t", "partition": "0", "next": 1}]}',
        b'{"changes": [{"system": "s", "stream": "t", "partition": 0, "next": 1, "first": "x"}]}',
    ],
)
def test_changes_of_another_form_are_refused(data: bytes) -> None:
    """By an error of the wire, for which their reader goes on without them."""
    with pytest.raises(WireError):
        decode_changes(data)
