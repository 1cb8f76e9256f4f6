"""Bytes of Avro that the library does not bear, or reads as more than the schema has."""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa
import pytest

from homeport.config.errors import ConfigError, WireError
from homeport.container.serde.serdes import Serde
from tests.unit.container.serde.avro_schemas import array, logical, record, serde_of

TREE = record(
    "Tree",
    id={"type": "fixed", "name": "Id", "size": 1},
    on="boolean",
    weight=["null", "double", "int"],
    tags={"type": "map", "values": "bytes"},
    parts=["null", array("Tree")],
)
NOTHING = record("Nothing")


def _tree(records: int) -> Any:  # noqa: ANN401 - a record
    found: Any = None
    for _ in range(records):
        parts = None if found is None else [found]
        found = {"id": b"x", "on": True, "weight": 1.5, "tags": {"a": b"b"}, "parts": parts}
    return found


def _level(parts: bytes) -> bytes:
    return b"x\1\0\0" + parts


def test_a_record_may_hold_itself_a_hundred_times() -> None:
    """What is read can be written, by a task whose own calls take some of the stack."""
    serde = serde_of(TREE)
    data = serde.to_bytes(_tree(101))
    assert serde.from_bytes(data) == _tree(101)
    with pytest.raises(TypeError, match="records are nested deeper than 100"):
        serde.to_bytes(_tree(102))


@pytest.mark.parametrize("count", [102, 100_000])
def test_a_deeper_record_is_undecodable_and_ends_no_process(count: int) -> None:
    """The library's calls of C have no limit but the stack."""
    data = _level(b"\2\2") * (count - 1) + _level(b"\0") + b"\0" * (count - 1)
    with pytest.raises(WireError, match="records are nested deeper than 100"):
        serde_of(TREE).from_bytes(data)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (_level(b"\4"), "a union of 2 types has no type 2"),
        (_level(b"\1"), "a union of 2 types has no type -1"),
        (_level(b""), "it ends too early"),
        (b"x\1\0\2\1", "it ends too early"),
        (_level(b"\2\1"), "it ends too early"),
        (_level(b"\2" + b"\xff" * 9), "it ends too early"),
        (_level(b"\2" + b"\xff" * 1_000_000), "a number has more than 64 bits"),
    ],
)
def test_damaged_bytes_of_such_a_record_are_undecodable(data: bytes, why: str) -> None:
    """As of any other."""
    with pytest.raises(WireError, match=why):
        serde_of(TREE).from_bytes(data)


def test_blocks_with_their_length_are_read() -> None:
    """A count below 0 is followed by the length of the block."""
    serde = serde_of(TREE)
    leaf = _level(b"\0")
    data = _level(b"\2\1" + bytes([2 * len(leaf)]) + leaf + b"\0")
    assert serde.from_bytes(data)["parts"] == [serde.from_bytes(leaf)]


@pytest.mark.parametrize(
    "items",
    [
        "null",
        NOTHING,
        {"type": "fixed", "name": "None", "size": 0},
        record("R", a={"type": "null"}),
    ],
)
def test_elements_without_bytes_are_a_thousand_at_most(items: Any) -> None:  # noqa: ANN401 - JSON
    """Six bytes may say that there are more than a memory holds."""
    serde = serde_of(record("All", f=array(items)))
    assert len(serde.from_bytes(b"\xd0\x0f\0")["f"]) == 1000
    with pytest.raises(WireError, match="more than 1000 elements have no bytes"):
        serde.from_bytes(b"\x80\x80\x80\x80\x20\0")


def test_a_type_without_bytes_is_known_by_its_name_too() -> None:
    """It is defined once in a schema."""
    with pytest.raises(WireError, match="more than 1000 elements have no bytes"):
        serde_of(record("R", a=NOTHING, f=array("Nothing"))).from_bytes(b"\xd2\x0f\0")


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
@pytest.mark.parametrize(
    "around",
    [
        lambda kind: kind,
        lambda kind: ["null", kind],
        lambda kind: ["null", array(kind), "string"],
        lambda kind: ["null", array(kind)],
        lambda kind: ["null", {"type": "map", "values": kind}],
        lambda kind: ["null", record("R", f=kind)],
    ],
)
def test_an_int_of_more_than_32_bits_is_undecodable(number: int, around: Any) -> None:  # noqa: ANN401 - JSON to JSON
    """A writer's schema may have become one of long; it could not be written."""
    schema = around("int")
    inner = {"array": [number], "map": {"a": number}, "record": {"f": number}}
    value = inner[schema[1]["type"]] if isinstance(schema, list) and schema[1] != "int" else number
    data = serde_of(around("long")).to_bytes(value)
    with pytest.raises(WireError, match=f"{number} is beyond an int of 32 bits"):
        serde_of(schema).from_bytes(data)
    near = serde_of(around("long")).to_bytes(serde_of(around("long")).from_bytes(data))
    assert near == data


def test_beside_an_int_a_long_is_read() -> None:
    """Its value alone does not differ from that of an int."""
    serde = serde_of(["int", "long"])
    assert serde.from_bytes(serde.to_bytes(2**31)) == 2**31


@pytest.mark.parametrize(
    "text",
    [
        "{00000000-0000-0000-0000-000000000005}",
        "urn:uuid:00000000-0000-0000-0000-000000000005",
        "00000000000000000000000000000005",
        "0_000000-0000-0000-0000-000000000005",
        " 0x00000000000000000000000000005",
        "\uff10" + "0000000-0000-0000-0000-000000000005",
        "x",
    ],
)
def test_a_uuid_is_read_and_written_in_its_own_form_alone(text: str) -> None:
    """Python takes others, which would leave as another text."""
    serde, data = serde_of(logical("uuid", "string")), serde_of("string").to_bytes(text)
    with pytest.raises(WireError, match="is no UUID"):
        serde.from_bytes(data)
    with pytest.raises(TypeError, match="is no UUID"):
        serde.to_bytes(text)
    assert _bad(serde, data) == [0]
    own = "00000000-0000-0000-0000-00000000000A"
    assert serde.from_bytes(serde.to_bytes(own)) == uuid.UUID(own)


def _bad(serde: Serde, data: bytes) -> list[int]:
    assert serde.columns is not None
    return list(serde.columns().decode(pa.array([data], pa.binary())).bad)


@pytest.mark.parametrize(("kind", "name"), [("int", "time-millis"), ("long", "time-micros")])
def test_a_column_refuses_what_its_rows_could_not_be_sent_as(kind: str, name: str) -> None:
    """It has the number that carries a time of day, where it is one."""
    serde = serde_of(logical(name, kind))
    assert _bad(serde, serde_of(kind).to_bytes(-1)) == [0]
    assert _bad(serde, serde_of(kind).to_bytes(5)) == []


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (["null", "long", logical("timestamp-millis")], "one type twice"),
        ([array("int"), array("string")], "one type twice"),
        (record("map"), "'map', which is a kind of types"),
    ],
)
def test_a_schema_by_which_values_cannot_be_told_apart_is_refused(schema: object, why: str) -> None:
    """Avro has no such schema; the library takes it, and reads one for the other."""
    with pytest.raises(ConfigError, match=why):
        serde_of(schema)
