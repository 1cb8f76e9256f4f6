"""A part of the fields costs less, and says the same: values, bad records, reasons."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.container.serde.columns import Columns, is_taken, narrowed, part_type, require_years
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns
from tests.unit.container.serde.avro_schemas import record, serde_of

KIND = struct_of_ddl(
    "a STRING, b INT, c DECIMAL(4,2), d STRUCT<x: TINYINT, y: STRING>, e MAP<STRING, SMALLINT>, "
    "f ARRAY<DOUBLE>, g TIMESTAMP, h BINARY, i BOOLEAN"
)
NAMES = [own.name for own in KIND]
OF_FIELD: dict[str, st.SearchStrategy[Any]] = {
    "a": st.sampled_from(["x", "", 5]),
    "b": st.sampled_from([0, -(2**31), 2**31 - 1, 2**31, "1", 1.0]),
    "c": st.sampled_from(["1.25", "99.99", "100.00", 3, True]),
    "d": st.sampled_from([{}, {"x": 127, "y": "z"}, {"x": 128}, {"y": 1}, []]),
    "e": st.sampled_from([{}, {"k": 5}, {"k": 40_000}, {"k": None}, {"k": "v"}]),
    "f": st.sampled_from([[], [1, 2.5, None], [1, "2"], {}]),
    "g": st.sampled_from(["2013-01-02T03:04:05Z", "0001-01-01T00:00:00", "yesterday", 7]),
    "h": st.sampled_from(["AAEC", "not Base64", 1]),
    "i": st.sampled_from([True, False, 0]),
}
OBJECT = st.fixed_dictionaries({}, optional={n: s | st.none() for n, s in OF_FIELD.items()})
VALUE = OBJECT.map(lambda o: json.dumps(o).encode()) | st.sampled_from([None, b"{", b"null"])


def _same(columns: Columns, values: list[bytes | None], only: frozenset[str]) -> None:
    array = pa.array(values, pa.binary())
    whole, part = columns.decode(array), columns.decode(array, only)
    assert part.bad == whole.bad
    assert part.column.type == part_type(columns.type, only)
    assert part.column.equals(narrowed(whole.column, part.column.type))


@given(st.lists(VALUE, max_size=4), st.sets(st.sampled_from(NAMES)))
def test_bad_records_and_values_are_the_same_whatever_is_read(
    values: list[bytes | None], only: set[str]
) -> None:
    """A value that does not fit a field that is not read is bad as before."""
    _same(json_columns(KIND), values, frozenset(only))


@pytest.mark.parametrize(
    "only", [frozenset[str](), frozenset("a"), frozenset("bc"), frozenset("z")]
)
def test_many_good_records(only: frozenset[str]) -> None:
    """In several chunks, one of which has a bad record in a field that is not read."""
    values: list[bytes | None] = [b'{"a": "%d", "b": %d}' % (n, n) for n in range(2500)]
    _same(json_columns(KIND), values, only)
    values[1200] = b'{"a": "x", "d": {"x": 1000}}'
    _same(json_columns(KIND), values, only)


def test_fields_that_are_not_read_become_no_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """But for those of types whose values Arrow judges."""
    made: list[pa.DataType] = []
    array = pa.array

    def seen(values: Any, kind: pa.DataType) -> pa.Array:  # noqa: ANN401 - as Arrow takes them
        made.append(kind)
        return array(values, kind)

    monkeypatch.setattr(pa, "array", seen)
    json_columns(KIND).decode(array([b"{}"], pa.binary()), frozenset("a"))
    assert made == [pa.string(), pa.decimal128(4, 2), pa.timestamp("us", "UTC")]


def test_values_that_a_reader_leaves_are_decoded_and_come_in_their_places() -> None:
    """Of all fields, and of some; the reader's own elements in these places have no meaning."""
    kind = struct_of_ddl("a STRING, b INT")
    python = json_columns(kind)
    values = [b'{"a": "x", "b": 1}', b'{"b": "1"}', None, b'{"a": "y", "b": 2}', b'{"b": 3}']
    left: list[int] = []

    def read(array: pa.Array, wanted: pa.StructType) -> tuple[pa.StructArray, list[int]]:
        assert len(array) == len(values)
        found = [{"a": "x", "b": 1}, {"b": 9}, None, {"a": "y", "b": 2}, {"b": 3}]
        return narrowed(pa.array(found, kind), wanted), left

    array = pa.array(values, pa.binary())
    columns = replace(python, read=read)
    for only in (None, frozenset("b")):
        left[:] = [1, 3]
        assert columns.decode(array, only) == python.decode(array, only)
        assert list(columns.decode(array, only).bad) == [1]
        left.clear()
        assert columns.decode(array, only).column[1].as_py()["b"] == 9


AVRO = record("r", a="string", b="int", m={"type": "map", "values": "double"})


def test_avro_judges_a_whole_record_too() -> None:
    """An int in Avro's bytes may be too large for one, and only Arrow sees it."""
    serde = serde_of(AVRO)
    long = serde_of(record("r", a="string", b="long", m={"type": "map", "values": "double"}))
    assert serde.columns is not None
    good = serde.to_bytes({"a": "x", "b": 1, "m": {"k": 0.5}})
    bad = long.to_bytes({"a": "x", "b": 2**40, "m": {}})
    columns = serde.columns()
    for only in (frozenset("a"), frozenset("bm"), frozenset[str]()):
        _same(columns, [good, bad, None, b"\x00"], only)
    assert columns.decode(pa.array([bad]), frozenset("a")).bad.keys() == {0}


def test_a_column_that_is_no_struct_is_whole() -> None:
    """It has no fields."""
    long = serde_of("long")
    assert long.columns is not None
    found = long.columns().decode(pa.array([long.to_bytes(7)]), frozenset("a"))
    assert found.column.to_pylist() == [7]


def test_a_serde_without_parts_makes_the_whole() -> None:
    """And the part is taken of it."""
    kind = pa.struct([("a", pa.decimal128(3, 1)), ("b", pa.int32())])
    columns = Columns(kind, json.loads, lambda rows: pa.array(rows, kind))
    found = columns.decode(pa.array([b'{"b": 4}', b'{"b": "x"}']), frozenset("b"))
    assert found.column.to_pylist() == [{"b": 4}, None]
    assert found.bad.keys() == {1}


@pytest.mark.parametrize(
    ("text", "are_exact", "expected"),
    [
        ("n INT", False, False),
        ("n INT", True, True),
        ("n ARRAY<MAP<STRING, STRUCT<x: BIGINT>>>", True, True),
        ("n MAP<STRING, DECIMAL(3,1)>", True, False),
        ("n FLOAT", True, False),
        ("n DOUBLE", False, True),
    ],
)
def test_what_arrow_takes_in_any_case(text: str, *, are_exact: bool, expected: bool) -> None:
    """A part as the whole."""
    assert is_taken(struct_of_ddl(text), are_exact=are_exact) is expected


def test_times_are_looked_at_beside_what_is_no_time() -> None:
    """Within a struct too."""
    inner = pa.struct([("t", pa.timestamp("us", "UTC")), ("n", pa.int64())])
    require_years(pa.array([{"t": 0, "n": 1}, None], inner))
    with pytest.raises(ValueError, match="outside of the years 1 to 9999"):
        require_years(pa.array([{"t": 253_402_300_800_000_000, "n": 1}], inner))
