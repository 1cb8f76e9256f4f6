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
from tests.unit.container.serde.avro_schemas import array, logical, record

KEY = "stores.s.msg.serde"
RECORD = json.dumps(record("test", a="long", b="string"))


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


ALL = json.dumps(
    record(
        "my.own.R",
        c={"type": "enum", "name": "Colour", "symbols": ["RED", "BLUE"]},
        e=logical("timestamp-millis"),
        f=logical("decimal", "bytes", precision=6, scale=2),
        g=logical("uuid", "string"),
        h=logical("time-millis", "int"),
        i=array(["null", "int"]),
        k=record("Inner", x="Colour", y="bytes"),
        l=["Inner", "null"],
    )
)
UUID = uuid.UUID(int=7)
VALUE: dict[str, Any] = {
    "c": "BLUE",
    "e": dt.datetime(2013, 1, 2, 3, 4, 5, tzinfo=dt.UTC),
    "f": decimal.Decimal("12.50"),
    "g": UUID,
    "h": dt.time(0, 0, 1),
    "i": [1, None],
    "k": {"x": "RED", "y": b"y"},
    "l": None,
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
    schema = record(
        "of.airports.Trip",
        a=record("of.ports.Place", quay="string"),
        b=record("of.airports.Place", gate="string"),
        c="of.ports.Place",
        d="Place",
    )
    port, airport = {"quay": "q"}, {"gate": "g"}
    value = {"a": port, "b": airport, "c": port, "d": airport}
    data = avro_serde(KEY, json.dumps(schema)).to_bytes(value)
    found = _columns(json.dumps(schema)).decode(pa.array([data], pa.binary()))
    assert found.column.to_pylist() == [value]


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (["int", "string"], "a union of 2 types is no column"),
        (["null"], "a union of 0 types is no column"),
        (
            record("Tree", left=["null", "Tree"]),
            "the record Tree holds itself, and so is no column",
        ),
    ],
)
def test_what_no_column_can_hold_is_refused(schema: object, expected: str) -> None:
    """A StreamTask may have it."""
    with pytest.raises(ValueError, match=expected):
        column_type(schema)
