"""Bytes of checkpoint records."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from homeport.config.errors import WireError
from homeport.container.progress.checkpoint import (
    NOTHING,
    Change,
    CheckpointKey,
    CheckpointValue,
    decode_changes,
    decode_key,
    decode_value,
    decode_value_v2,
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
    """Field order, the grouper's Java name, texts for all numbers; an entry for each partition."""
    key = CheckpointKey(GROUPER, TaskName("Partition 0"))
    assert encode_key(key) == KEY
    assert decode_key(KEY) == key
    offsets = {SystemStreamPartition("kafka", "in", 0): 10}
    assert encode_value(offsets) == VALUE
    assert decode_value(VALUE) == CheckpointValue(offsets)
    key = CheckpointKey("G", TaskName("Größe 0"))
    assert "Größe 0".encode() in encode_key(key), "an escaped one is another key to Kafka"
    assert decode_key(encode_key(key)) == key
    places = (("in", 0), ("in", 1), ("other", 0))
    offsets = {SystemStreamPartition("kafka", *place): n for n, place in enumerate(places)}
    assert decode_value(encode_value(offsets)).offsets == offsets


_NO_CHANGES = (
    b"",
    b"[]",
    b"{}",
    b'{"changes": {}}',
    b'{"changes": [1]}',
    b'{"changes": [{"system": "s", "stream": "t", "partition": "0", "next": 1}]}',
    b'{"changes": [{"system": "s", "stream": "t", "partition": 0, "next": 1, "first": "x"}]}',
)


IN, LOG = (SystemStreamPartition("kafka", name, 3) for name in ("exp1-in", "exp1-counts"))
SAMZAS_V1 = (
    b'{"SystemStreamPartition [kafka, exp1-counts, 3]":{"system":"kafka","partition":"3",'
    b'"offset":"1795742801172-725725:54","stream":"exp1-counts"},'
    b'"SystemStreamPartition [kafka, exp1-in, 3]":{"system":"kafka","partition":"3",'
    b'"offset":"92","stream":"exp1-in"}}'
)
SAMZAS_FIRST_V1 = (
    b'{"SystemStreamPartition [kafka, exp1-counts, 3]":{"system":"kafka","partition":"3",'
    b'"offset":"1795742799969-874916:null","stream":"exp1-counts"}}'
)
SAMZAS_V2 = (
    b'{"checkpoint-id":"1795742801172-725725","input-offsets":{"kafka.exp1-in.3":"92"},'
    b'"state-checkpoint-markers":{"org.apache.samza.storage.KafkaChangelogStateBackendFactory":'
    b'{"counts":"{\\"version\\":1,\\"changelog-ssp\\":{\\"system\\":\\"kafka\\",'
    b'\\"partition\\":3,\\"stream\\":\\"exp1-counts\\",\\"keyBucket\\":-1},'
    b'\\"changelog-offset\\":\\"54\\"}"}},"version":2}'
)
SAMZAS_FIRST_V2 = (
    b'{"checkpoint-id":"1795742799969-874916","input-offsets":{},"state-checkpoint-markers":'
    b'{"org.apache.samza.storage.KafkaChangelogStateBackendFactory":{"counts":'
    b'"{\\"version\\":1,\\"changelog-ssp\\":{\\"system\\":\\"kafka\\",'
    b'\\"partition\\":3,\\"stream\\":\\"exp1-counts\\",\\"keyBucket\\":-1},'
    b'\\"changelog-offset\\":null}"}},"version":2}'
)
"""As a job of Samza 1.8.0 wrote them: at its second commit, and at its start."""


def test_both_versions_of_samza_say_where_the_state_ends() -> None:
    """Both of one commit have the same, and nothing of an empty changelog."""
    whole = CheckpointValue({IN: 92}, {LOG: 54})
    assert decode_value(SAMZAS_V1) == decode_value_v2(SAMZAS_V2) == whole
    first = CheckpointValue({}, {LOG: NOTHING})
    assert decode_value(SAMZAS_FIRST_V1) == decode_value_v2(SAMZAS_FIRST_V2) == first


def test_what_is_no_offset_of_kafkas_is_left_out() -> None:
    """Another system has offsets of its own form; Kafka's have plain digits."""
    assert decode_value(SAMZAS_V1.replace(b"54", b"x")) == CheckpointValue({IN: 92})
    value = SAMZAS_V2.replace(b'"92"', b'"-1"').replace(b"54", b"x")
    assert decode_value_v2(value) == CheckpointValue({IN: NOTHING})
    for digit in ("²", "٣"):
        value = VALUE.replace(b'"10"', f'"{digit}"'.encode())
        assert decode_value(value).offsets == {}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"input-offsets", b"input"),
        (b"state-checkpoint-markers", b"markers"),
        (b"kafka.exp1-in.3", b"3"),
        (b"kafka.exp1-in.3", b"kafka.exp1-in.x"),
        (b'"92"', b'"' + b"9" * 19 + b'"'),
        (b"54", b"9" * 19),
        (b'"counts":"{', b'"counts":"'),
        (b"changelog-ssp", b"ssp"),
        (b'\\"partition\\":3', b'\\"partition\\":null'),
        (b'{"counts":', b'["counts"],"other":{"counts":'),
    ],
)
def test_other_bytes_are_no_value_of_version_2(before: bytes, after: bytes) -> None:
    """Whatever is missing or of another form."""
    assert SAMZAS_V2.count(before) == 1
    with pytest.raises(WireError):
        decode_value_v2(SAMZAS_V2.replace(before, after))


@pytest.mark.parametrize(
    ("decode", "data"),
    [
        *((decode_key, data) for data in (b"", b"[]", b"{", b'{"taskName":"x"}')),
        *((decode_value, data) for data in (b"[]", b'{"a":1}', b'{"a":{"system":"k"}}')),
        *((decode_changes, data) for data in _NO_CHANGES),
    ],
)
def test_bytes_of_another_form_are_refused(decode: Callable[[bytes], object], data: bytes) -> None:
    """By an error of the wire, for which their reader goes on without them."""
    with pytest.raises(WireError):
        decode(data)


@pytest.mark.parametrize("name", ["systemstreampartition-grouper-factory", "taskName", "type"])
def test_each_field_of_a_checkpoints_key_is_a_text(name: str) -> None:
    """A number in the place of one is another's record."""
    key = KEY.replace(f'"{name}":"'.encode(), f'"{name}":1,"x":"'.encode())
    assert key != KEY
    with pytest.raises(WireError, match="checkpoint key lacks a field"):
        decode_key(key)


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
