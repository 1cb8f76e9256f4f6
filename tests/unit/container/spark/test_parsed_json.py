"""Which JSON is read before Spark, and the two columns that then stand for the values."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest

from homeport.container.spark.parsed_json import Parse, ParsedColumn, parses, widened

KIND = pa.struct([("n", pa.int64()), ("k", pa.string())])
VALUES = [b'{"n": 1, "k": "a"}', None, b'{"n": "x"}', b'{"k": "b"}', b"{}"]


def _line(*fields: tuple[str, Any]) -> str:
    own = [{"name": n, "type": kind, "nullable": True, "metadata": {}} for n, kind in fields]
    return f"7\tvalue\t{json.dumps({'type': 'struct', 'fields': own})}"


def test_objects_of_plain_fields_are_read() -> None:
    """Objects within objects, too."""
    inner = json.loads(_line(("y", "double")).split("\t")[2])
    plain = _line(("n", "long"), ("k", "string"))
    nested = _line(("x", inner), ("b", "boolean"))
    kind = pa.struct([("x", pa.struct([("y", pa.float64())])), ("b", pa.bool_())])
    found = parses(f"{plain}\n{nested}\n", "_corrupt_record")
    assert found == [Parse(7, "value", KIND, plain), Parse(7, "value", kind, nested)]


@pytest.mark.parametrize(
    "line",
    [
        _line(("n", "float")),
        _line(("n", "date")),
        _line(("n", "timestamp")),
        _line(("n", {"type": "array", "elementType": "long", "containsNull": True})),
        _line(("x", json.loads(_line(("y", "decimal(9,2)")).split("\t")[2]))),
        _line(("n", "long"), ("n", "long")),
        _line(("n", "long"), ("bad", "string")),
        _line(*((f"f{n}", "long") for n in range(65))),
        _line(),
    ],
)
def test_other_objects_are_left_to_spark(line: str) -> None:
    """And those whose fields have one name, are too many, or take what is no JSON."""
    assert parses(line, "bad") == []


def _table(values: list[bytes | None]) -> pa.Table:
    return pa.table({"value": pa.array(values, pa.binary()), "offset": range(len(values))})


@pytest.mark.parametrize("kind", [pa.binary(), pa.string()])
def test_each_value_is_in_one_of_the_columns(kind: pa.DataType) -> None:
    """Nulls are in none."""
    column = ParsedColumn("value", kind, KIND)
    table = _table(VALUES)
    table = table.set_column(0, "value", table.column("value").cast(kind))
    table = pa.concat_tables([table.slice(0, 2), table.slice(2)])
    found = column.added(table, None)
    assert found.schema.names == ["value", "offset", "value.json", "value.rest"]
    assert found.column("value.json").to_pylist() == [
        *({"n": 1, "k": "a"}, None, None),
        *({"n": None, "k": "b"}, {"n": None, "k": None}),
    ]
    rest = found.column("value.rest")
    assert rest.type == kind
    assert rest.cast(pa.binary()).to_pylist() == [None, None, VALUES[2], None, None]


def test_only_fields_that_are_read_are_made() -> None:
    """All are judged: a value whose other field is wrong stays Spark's."""
    column = ParsedColumn("value", pa.binary(), KIND)
    reads = {"value.json": frozenset({"k"}), "value.rest": None}
    found = column.added(_table(VALUES), reads).column("value.json")
    assert found.to_pylist() == [{"k": "a"}, None, None, {"k": "b"}, {"k": None}]
    assert column.added(_table(VALUES), {"offset": None}).schema.names == ["value", "offset"]
    alone = column.added(_table(VALUES), {"value.rest": None})
    assert alone.column("value.json").type.names == ["n"]


def test_long_values_are_left_to_spark() -> None:
    """Its parser has bounds for names."""
    name = "x" * 50_000
    values = [b'{"n": 1}', f'{{"{name}": 1}}'.encode()]
    found = ParsedColumn("value", pa.binary(), KIND).added(_table([*values]), None)
    assert found.column("value.rest").to_pylist() == [None, values[1]]
    assert found.column("value.json").to_pylist() == [{"n": 1, "k": None}, None]


def test_a_batch_needs_the_values_where_either_column_is_read() -> None:
    """As the columns are made of them."""
    column = ParsedColumn("value", pa.binary(), KIND)
    assert column.needs({"offset": None}) == {"offset": None}
    reads = {"offset": None, "value.json": frozenset({"n"}), "value.rest": None}
    assert column.needs(reads) == {"offset": None, "value": None}
    schema = pa.schema([("value", pa.binary())])
    assert widened(schema, ()) == schema
    assert widened(schema, (column,)).names == ["value", "value.json", "value.rest"]
