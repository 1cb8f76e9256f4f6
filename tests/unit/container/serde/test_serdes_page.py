"""docs/serdes.md says what the serdes do: each row of its tables is run on them."""

from __future__ import annotations

import json
import re
from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest
from descriptor_sets import KINDS, WELL_KNOWN, odd_descriptors
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

from homeport.config.errors import WireError
from homeport.container.serde.avro_serde import avro_serde, column_type
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns, json_schema_serde
from homeport.container.serde.protobuf_serde import _field_type, message_class, protobuf_serde
from homeport.container.serde.serdes import Serde, serde

_PAGE = (Path(__file__).parents[4] / "docs" / "serdes.md").read_text(encoding="utf-8")
_NAMES = {
    "UTC": UTC,
    "date": date,
    "datetime": datetime,
    "time": time,
    "Decimal": Decimal,
    "UUID": UUID,
    "nan": float("nan"),
    "inf": float("inf"),
}


def _rows(section: str) -> list[list[list[str]]]:
    """The rows of the section's table, the code in each cell."""
    text = _PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0]
    lines = [line for line in text.splitlines() if line.startswith("| ") and "`" in line]
    return [[re.findall(r"`([^`]+)`", cell) for cell in line[1:-1].split("|")] for line in lines]


def _value(code: str) -> Any:  # noqa: ANN401 - as the page has it
    return eval(code, dict(_NAMES))  # noqa: S307 - of our own page


def _written(serde_: Serde, value: object, *, otherwise: list[str], around: str | None) -> None:
    data = serde_.to_bytes(value)
    assert repr(serde_.from_bytes(data)) == repr(value)
    for code in otherwise:
        wrong = _value(code) if around is None else {around: _value(code)}
        with pytest.raises(TypeError):
            serde_.to_bytes(wrong)


@pytest.mark.parametrize("row", _rows("Without a schema"), ids=lambda row: row[0][0])
def test_without_a_schema(row: list[list[str]]) -> None:
    """Bytes, value, what is not read, what is not written."""
    (name,), (data,), (value,), unread, unwritten = row
    ours = serde(name)
    assert ours.from_bytes(_value(data)) == _value(value)
    _written(ours, _value(value), otherwise=unwritten, around=None)
    for code in unread:
        with pytest.raises(WireError):
            ours.from_bytes(_value(code))


@pytest.mark.parametrize("row", _rows("json with a schema"), ids=lambda row: row[0][0])
def test_json(row: list[list[str]]) -> None:
    """In Python and in a column."""
    (ddl,), texts, (value,), (column,), unread, unwritten = row
    kind = struct_of_ddl(f"a {ddl}")
    ours = json_schema_serde(kind)
    assert str(kind.field("a").type) == column
    for text in texts:
        data = b'{"a":%s}' % text.encode()
        assert repr(ours.from_bytes(data)) == repr({"a": _value(value)})
        found = json_columns(kind).decode(pa.array([data], pa.binary()))
        assert found.column.to_pylist(maps_as_pydicts="strict") == [{"a": _value(value)}]
    _written(ours, {"a": _value(value)}, otherwise=unwritten, around="a")
    for text in unread:
        data = b'{"a":%s}' % text.encode()
        assert list(json_columns(kind).decode(pa.array([data], pa.binary())).bad) == [0]
        with pytest.raises(WireError):
            ours.from_bytes(data)


@pytest.mark.parametrize("row", _rows("avro"), ids=lambda row: row[0][0])
def test_avro(row: list[list[str]]) -> None:
    """A union of several types has no column."""
    (schema,), (value,), column, unwritten = row
    ours = avro_serde("key", schema)
    _written(ours, _value(value), otherwise=unwritten, around=None)
    if column:
        assert str(column_type(json.loads(schema))) == column[0]
        return
    with pytest.raises(ValueError, match="a union of 2 types is no column"):
        column_type(json.loads(schema))


@pytest.mark.parametrize("row", _rows("protobuf"), ids=lambda row: row[0][0])
def test_protobuf(row: list[list[str]]) -> None:
    """Fields of messages too."""
    names, values, column, unwritten = row
    kind = message_class("key", "odd.desc", odd_descriptors(), KINDS)
    ours = protobuf_serde(kind)
    for name in names:
        own = name.removeprefix("google.protobuf.")
        if own in WELL_KNOWN:
            field = f"{own.lower()}_or"
        else:
            number = Field.Type.Value(f"TYPE_{name.upper()}")
            field = "colour_or" if name == "enum" else f"t{number}_or"
        for code in values:
            found = ours.from_bytes(ours.to_bytes({field: _value(code)}))[field]
            assert repr(found) == repr(_value(code))
        for code in unwritten:
            with pytest.raises(TypeError):
                ours.to_bytes({field: _value(code)})
        descriptor = kind.DESCRIPTOR.fields_by_name[field]
        if column:
            assert str(_field_type(descriptor, ())) == column[0]
        else:
            with pytest.raises(ValueError, match="holds itself"):
                _field_type(descriptor, ())
