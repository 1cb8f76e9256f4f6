"""The serde avro: bytes of the specification's examples, columns, and what it refuses."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import sys
import uuid
from typing import Any

import pyarrow as pa
import pytest

from homeport.config.errors import ConfigError, WireError
from homeport.container.serde.avro_serde import avro_serde, column_type
from homeport.container.serde.columns import Columns

KEY = "stores.s.msg.serde"
RECORD = """{"type": "record", "name": "test", "fields": [
    {"name": "a", "type": "long"}, {"name": "b", "type": "string"}]}"""


def test_the_bytes_are_those_of_the_specification() -> None:
    """Avro 1.11, binary encoding of records: 27 and "foo" are 36 06 66 6f 6f."""
    serde = avro_serde(KEY, RECORD)
    value = {"a": 27, "b": "foo"}
    assert serde.to_bytes(value).hex() == "3606666f6f"
    assert serde.from_bytes(bytes.fromhex("3606666f6f")) == value
    assert avro_serde(KEY, '"long"').to_bytes(-64).hex() == "7f"


@pytest.mark.parametrize("data", ["", "36", "3606666f", "3606666f6f00", "3601"])
def test_bytes_of_another_schema_are_refused(data: str) -> None:
    """Too few, too many, or impossible ones."""
    with pytest.raises(WireError, match="not of the serde 'avro'"):
        avro_serde(KEY, RECORD).from_bytes(bytes.fromhex(data))


def test_without_the_library_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra: jobs without Avro go without."""
    monkeypatch.setitem(sys.modules, "fastavro", None)
    with pytest.raises(ConfigError) as caught:
        avro_serde(KEY, RECORD)
    assert str(caught.value) == (
        "stores.s.msg.serde = 'avro': fastavro is not installed; install homeport[avro] for the "
        "interpreter of the job's containers"
    )


FIELDS: list[dict[str, Any]] = [
    {"name": "a", "type": "long"},
    {"name": "b", "type": ["null", "string"]},
    {"name": "c", "type": {"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]}},
    {"name": "d", "type": {"type": "int", "logicalType": "date"}},
    {"name": "e", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "f", "type": {"type": "bytes", "logicalType": "decimal", "precision": 6, "scale": 2}},
    {"name": "g", "type": {"type": "string", "logicalType": "uuid"}},
    {"name": "h", "type": {"type": "int", "logicalType": "time-millis"}},
    {"name": "i", "type": {"type": "array", "items": ["null", "int"]}},
    {"name": "j", "type": {"type": "map", "values": "double"}},
    {
        "name": "k",
        "type": {
            "type": "record",
            "name": "Inner",
            "fields": [{"name": "x", "type": "Colour"}, {"name": "y", "type": "bytes"}],
        },
    },
    {"name": "l", "type": ["Inner", "null"]},
    {"name": "m", "type": {"type": "fixed", "name": "Four", "size": 4}},
    {"name": "n", "type": "float"},
    {"name": "o", "type": "boolean"},
]
ALL = json.dumps({"type": "record", "name": "R", "namespace": "my.own", "fields": FIELDS})
UUID = uuid.UUID(int=7)
VALUE: dict[str, Any] = {
    "a": 5,
    "b": None,
    "c": "BLUE",
    "d": dt.date(2013, 1, 2),
    "e": dt.datetime(2013, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    "f": decimal.Decimal("12.50"),
    "g": UUID,
    "h": dt.time(0, 0, 1),
    "i": [1, None],
    "j": {"z": 1.5},
    "k": {"x": "RED", "y": b"y"},
    "l": None,
    "m": b"four",
    "n": 0.5,
    "o": True,
}


def _columns(schema: str) -> Columns:
    made = avro_serde(KEY, schema).columns
    assert made is not None
    return made()


def test_each_type_comes_as_a_column_of_its_kind() -> None:
    """Uuid and time of day as what carries them; the serde itself is not changed."""
    serde = avro_serde(KEY, ALL)
    data = serde.to_bytes(VALUE)
    assert serde.from_bytes(data)["g"] == UUID
    found = _columns(ALL).decode(pa.array([data, None, data[:-3], data + b"x"], pa.binary()))
    assert sorted(found.bad) == [2, 3]
    row, *rest = found.column.to_pylist(maps_as_pydicts="strict")
    assert row == VALUE | {"g": str(UUID), "h": 1000}
    assert rest == [None, None, None]
    assert found.column.type.field("e").type == pa.timestamp("us", "UTC")
    assert found.column.type.field("f").type == pa.decimal128(6, 2)


def test_one_short_name_in_two_namespaces_stands_for_two_records() -> None:
    """Each reference means the one of its namespace, or the one that it names in full."""

    def place(namespace: str, field: str) -> dict[str, Any]:
        fields = [{"name": field, "type": "string"}]
        return {"type": "record", "name": "Place", "namespace": namespace, "fields": fields}

    fields = [
        {"name": "a", "type": place("of.ports", "quay")},
        {"name": "b", "type": place("of.airports", "gate")},
        {"name": "c", "type": "of.ports.Place"},
        {"name": "d", "type": "Place"},
    ]
    schema = {"type": "record", "name": "of.airports.Trip", "fields": fields}
    port, airport = {"quay": "q"}, {"gate": "g"}
    value = {"a": port, "b": airport, "c": port, "d": airport}
    data = avro_serde(KEY, json.dumps(schema)).to_bytes(value)
    found = _columns(json.dumps(schema)).decode(pa.array([data], pa.binary()))
    assert found.column.to_pylist() == [value]


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (["int", "string"], "a union of 2 types is no column"),
        (["null"], "a union of 0 types is no column"),
        (
            {
                "type": "record",
                "name": "Tree",
                "fields": [{"name": "left", "type": ["null", "Tree"]}],
            },
            "the record Tree holds itself, and so is no column",
        ),
    ],
)
def test_what_no_column_can_hold_is_refused(schema: object, said: str) -> None:
    """A StreamTask may have it."""
    with pytest.raises(ValueError, match=said):
        column_type(schema)
