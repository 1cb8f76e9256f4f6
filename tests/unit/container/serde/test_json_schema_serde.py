"""The serde json with a schema: record by record exact, in bulk and one by one alike."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from homeport.config.errors import WireError
from homeport.container.serde.columns import Decoded
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns, json_schema_serde
from homeport.container.serde.protobuf_values import PreciseTime

FLAT = struct_of_ddl("carrier STRING, delay INT")
UTC = dt.UTC


def _decoded(kind: pa.StructType, *values: bytes | None) -> Decoded:
    return json_columns(kind).decode(pa.array(values, pa.binary()))


def test_each_record_is_one_row_whatever_its_bytes() -> None:
    """Newlines, blanks around, several documents, none: each counts for itself alone."""
    values = [
        b'{"carrier": "UA", "delay": 1}',
        b'{"carrier":\n"A\\nA",\n "delay": 2}\n',
        b'{"delay": 3}{"delay": 4}',
        b"",
        None,
        b'  {"delay": 5, "more": {"delay": [6]}}  ',
        b"{",
        b'"delay": 7}',
        b"null",
        b"{}",
    ]
    found = _decoded(FLAT, *values)
    assert found.column.type == FLAT
    assert found.column.to_pylist() == [
        {"carrier": "UA", "delay": 1},
        {"carrier": "A\nA", "delay": 2},
        None,
        None,
        None,
        {"carrier": None, "delay": 5},
        None,
        None,
        None,
        {"carrier": None, "delay": None},
    ]
    assert sorted(found.bad) == [2, 3, 6, 7, 8]
    assert found.bad[2] == "JSON is malformed: trailing characters (byte 13)"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (b'{"delay": "5"}', "Expected `int | null`, got `str` - at `$.delay`"),
        (b'{"delay": 5.5}', "Expected `int | null`, got `float` - at `$.delay`"),
        (b'{"delay": true}', "got `bool`"),
        (b'{"delay": 2147483648}', ""),
        (b'{"delay": 18446744073709551616}', ""),
        (b'{"carrier": 5}', "Expected `str | null`, got `int` - at `$.carrier`"),
        (b'{"carrier": "\xff"}', "utf-8"),
        (b'{"carrier": "\\ud800"}', ""),
        (b"[]", "Expected `object`, got `array`"),
        (b'{"delay": 5}\0', "trailing characters"),
        (b'{"more": ' + b"[" * 100000 + b"]" * 100000 + b"}", "recursion"),
    ],
)
def test_another_type_is_undecodable_in_bulk_and_one_by_one(value: bytes, expected: str) -> None:
    """Nothing is cast. The records around it are not touched."""
    found = _decoded(FLAT, b'{"delay": 1}', value, b'{"delay": 3}')
    assert list(found.bad) == [1]
    assert expected in found.bad[1]
    assert [row and row["delay"] for row in found.column.to_pylist()] == [1, None, 3]
    with pytest.raises(WireError):
        json_schema_serde(FLAT).from_bytes(value)


def test_bad_ones_are_found_in_every_chunk() -> None:
    """2,500 records are three chunks; each has its own bad ones."""
    values = [b'{"delay": %d}' % n for n in range(2500)]
    for bad in (0, 999, 1000, 2499):
        values[bad] = b'{"delay": "x"}'
    values[1500] = b'{"delay": 3000000000}'
    found = _decoded(FLAT, *values)
    assert sorted(found.bad) == [0, 999, 1000, 1500, 2499]
    delays = [row and row["delay"] for row in found.column.to_pylist()]
    assert delays == [None if n in found.bad else n for n in range(2500)]
    assert _decoded(FLAT).column.type == FLAT
    assert _decoded(FLAT, None, None).column.null_count == 2


NESTED = (
    "list array<smallint>, map map<int, struct<y: string>>, inner struct<z: array<struct<w: date>>>"
)
VALUE: dict[str, Any] = {
    "list": [1, None],
    "map": {"7": {"y": "why", "other": 1}, "8": None},
    "inner": {"z": [{"w": "2013-01-02"}, {}, None]},
}
ROW: dict[str, Any] = {
    "list": [1, None],
    "map": {7: {"y": "why"}, 8: None},
    "inner": {"z": [{"w": dt.date(2013, 1, 2)}, {"w": None}, None]},
}


def test_what_is_nested_comes_as_declared() -> None:
    """As a column and one by one: a StreamTask gets what a column holds."""
    kind = struct_of_ddl(NESTED)
    data = json.dumps(VALUE).encode()
    found = _decoded(kind, data)
    assert found.bad == {}
    (row,) = found.column.to_pylist(maps_as_pydicts="strict")
    assert row == ROW
    serde = json_schema_serde(kind)
    assert serde.from_bytes(data) == ROW
    assert serde.from_bytes(serde.to_bytes(ROW)) == ROW
    assert serde.from_bytes(b"{}") == dict.fromkeys(ROW)


@pytest.mark.parametrize(
    ("field", "value"),
    [("list", [40000]), ("list", 5), ("map", {"x": {}}), ("inner", {"z": [{"w": 5}]})],
)
def test_a_nested_value_of_another_type_is_undecodable(field: str, value: object) -> None:
    """In bulk and one by one."""
    kind = struct_of_ddl(NESTED)
    data = json.dumps({field: value}).encode()
    assert list(_decoded(kind, data, b"{}").bad) == [0]
    with pytest.raises(WireError):
        json_schema_serde(kind).from_bytes(data)


def test_a_time_without_a_zone_is_one_of_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in Spark with a session of UTC, which ours is; whatever zone the machine is in."""
    monkeypatch.setenv("TZ", "America/New_York")
    time.tzset()
    kind = struct_of_ddl("t timestamp")
    data = b'{"t": "2013-01-02 03:04:05"}'
    at = dt.datetime(2013, 1, 2, 3, 4, 5, tzinfo=UTC)
    try:
        assert _decoded(kind, data).column.to_pylist() == [{"t": at}]
        assert json_schema_serde(kind).from_bytes(data) == {"t": at}
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_value_that_is_no_mapping_is_refused() -> None:
    """At the put or send."""
    with pytest.raises(TypeError, match="the serde 'json' carries a mapping, not int"):
        json_schema_serde(FLAT).to_bytes(5)


WIDE = struct_of_ddl(
    "f float, x double, n bigint, b boolean, s string, d date, t timestamp, c decimal(6,2), "
    "raw binary, list array<double>, map map<bigint, double>, names map<string, int>, "
    "inner struct<x: float>"
)


@pytest.mark.parametrize(
    "value",
    [
        *({"x": np.float64("inf")}, {"f": float("-inf")}, {"f": np.float64(3.4028236e38)}, {5: 1}),
        *({"s": float("nan")}, {"d": float("nan")}, {"t": float("nan")}, {"raw": float("nan")}),
        *({"list": [1.0, float("nan")]}, {"map": {1: float("inf")}}, {"inner": {"x": 1e39}}),
        *({"more": float("nan")}, {"more": [{"x": float("inf")}]}, {"more": {1: 2}}),
        {"map": [(1, 1.0), (np.int64(1), 2.0)]},
        *({"names": {1: 1}}, {"names": {b"a": 1}}, {"names": [("a",)]}, {"names": {None: 1}}),
        *({"s": dt.date(2013, 1, 1)}, {"n": True}, {"n": 1.0}, {"x": decimal.Decimal(1)}),
        *({"d": dt.datetime(2013, 1, 1, tzinfo=UTC)}, {"inner": []}),
        {"t": dt.datetime.max.replace(tzinfo=dt.timezone(dt.timedelta(hours=-5)))},
        {"map": {True: 1.0}},
        *({"list": [2**64 - 1]}, {"more": {float("nan")}}),
        {"more": [frozenset({float("inf")})]},
    ],
)
def test_nothing_becomes_null_or_another_value(value: dict[str, Any]) -> None:
    """The writer of JSON makes null of a number that is not finite, and text of any key."""
    with pytest.raises(TypeError, match=r"the schema of the serde 'json' cannot carry it: ."):
        json_schema_serde(WIDE).to_bytes(value)


@pytest.mark.parametrize("name", ["t", "more"])
def test_a_zone_with_seconds_loses_none(name: str) -> None:
    """As the local times of cities had before there were zones; RFC 3339 has minutes alone."""
    zone = dt.timezone(dt.timedelta(minutes=19, seconds=32))
    data = json_schema_serde(WIDE).to_bytes({name: dt.datetime(1900, 1, 1, 0, 19, 32, 5, zone)})
    assert data == b'{"%s":"1900-01-01T00:00:00.000005Z"}' % name.encode()


def test_rows_of_a_column_and_numbers_of_arrays_are_written() -> None:
    """A column's maps are lists of pairs; a number of NumPy is a number."""
    serde = json_schema_serde(WIDE)
    data = (
        b'{"f":0.5,"map":{"-1":2.5},"names":{"a":null},"raw":"aGk=","list":[null],"inner":null,'
        b'"t":"2013-01-02T03:04:05Z","c":"1.50"}'
    )
    (row,) = _decoded(WIDE, data).column.to_pylist()
    assert isinstance(row["map"], list)
    assert serde.from_bytes(serde.to_bytes(row)) == serde.from_bytes(data)
    numbers = {"f": np.float32(0.1), "n": np.int64(5), "b": np.bool_(1), "x": 3}
    found = serde.from_bytes(serde.to_bytes(numbers | {"more": {"a": [1, None, "x", 1.5]}}))
    assert found["n"] == 5
    assert found["f"] == float(np.float32(0.1))
    assert json.loads(serde.to_bytes({"t": "2013-01-02T03:04:05+02:00"}))["t"][-6:] == "+02:00"
    precise = PreciseTime(2013, 1, 2, tzinfo=UTC)
    precise.nanosecond = 7
    assert b"2013-01-02T00:00:00.000000007+00:00" in serde.to_bytes({"t": precise})
    undeclared = serde.to_bytes({"more": {"a": [precise], "b": (1,)}})
    assert b'{"a":["2013-01-02T00:00:00.000000007+00:00"],"b":[1]}' in undeclared


@pytest.mark.parametrize(
    ("ddl", "value"),
    [
        ("a array<float>", b'{"a":[-3.4028236e38]}'),
        ("a timestamp", b'{"a":"0001-01-01T00:00:00+05:00"}'),
        ("a array<timestamp>", b'{"a":[null,"9999-12-31T23:59:59-05:00"]}'),
        ("a map<string, timestamp>", b'{"a":{"x":"9999-12-31T23:59:59-05:00"}}'),
        ("a tinyint", b'{"a":128,"a":1}'),
        ("a map<string, struct<b: tinyint>>", b'{"a":{"x":{"b":128},"x":null}}'),
        ("a array<struct<b: int>>", b'{"a":[{"b":2147483648,"b":1}]}'),
        (
            "a struct<b: array<struct<c: timestamp>>>",
            b'{"a":{"b":[{"c":"9999-12-31T23:59:59-05:00"}]}}',
        ),
    ],
)
def test_what_python_or_the_type_does_not_have_is_undecodable_in_both(
    ddl: str, value: bytes
) -> None:
    """A column has no time that its task could not show, and no infinity for a large number."""
    kind = struct_of_ddl(f"{ddl}, z int")
    for only in (None, frozenset({"a"}), frozenset({"z"})):
        found = json_columns(kind).decode(pa.array([b"{}", value, b"{}"], pa.binary()), only)
        assert list(found.bad) == [1]
    with pytest.raises(WireError):
        json_schema_serde(kind).from_bytes(value)
    assert not _decoded(struct_of_ddl("a float"), b'{"a":3.4028235e38}').bad


@pytest.mark.parametrize("digits", [77, 128, 10_000])
def test_a_decimal_with_many_digits_is_what_it_says(digits: int) -> None:
    """Arrow makes 0 of some of them."""
    kind = struct_of_ddl("d DECIMAL(5, 2)")
    for text in ("1." + "0" * digits, "1." + "0" * digits + "e0", '"1.' + "0" * digits + '"'):
        data = b'{"d":%s}' % text.encode()
        assert json_schema_serde(kind).from_bytes(data) == {"d": decimal.Decimal("1.00")}
        assert _decoded(kind, data).column.to_pylist() == [{"d": decimal.Decimal("1.00")}]
    data = b'{"d":1.%s1}' % (b"0" * digits)
    assert "does not fit decimal128(5, 2)" in _decoded(kind, data).bad[0]


@pytest.mark.parametrize(
    "text",
    [
        *('"1_0"', '" 1"', '"+1"', '"\uff11"', '"\u0661"', '"nan"', '"-Infinity"', '""', "true"),
        *("[1]", '{"a":1}', "1e400", '"1e9999999999999999999"', "1e999999999", "1" * 60),
    ],
)
def test_a_decimal_is_read_of_the_text_that_others_write(text: str) -> None:
    """Python takes more for a number, and what it takes would leave as another text."""
    kind = struct_of_ddl("d DECIMAL(5, 2), e ARRAY<DECIMAL(3, 0)>")
    for data in (b'{"d":%s}' % text.encode(), b'{"e":[1,%s]}' % text.encode()):
        assert list(_decoded(kind, data).bad) == [0]
        with pytest.raises(WireError):
            json_schema_serde(kind).from_bytes(data)
