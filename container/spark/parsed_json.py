"""Objects that a pipeline's ``from_json`` makes, read before Spark where that gives the same.

A plan whose JSON is read so gets two columns more for a column such as ``value``. ``value.json``
has the objects that the native reader was sure about; ``value.rest`` the other values, which Spark
parses itself (``java/ParsedJson.java``).
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from homeport.container.native.column_reader import ColumnReader
from homeport.container.serde.columns import JSON, PARTS, Layout, part_type
from homeport.container.spark.reads import Reads

_KINDS: Mapping[str, pa.DataType] = {
    "string": pa.string(),
    "boolean": pa.bool_(),
    "byte": pa.int8(),
    "short": pa.int16(),
    "integer": pa.int32(),
    "long": pa.int64(),
    "double": pa.float64(),
}
"""{name of a type of Spark's whose values the reader reads as Spark does: its type in Arrow}.

Spark has dates and times by its own rules. Its parser makes a ``float`` of a ``double``.
"""
_MOST_FIELDS = 64
_MOST_BYTES = 50_000
"""Spark's parser refuses longer names: it gets each longer value."""


class Parse(NamedTuple):
    """Objects of ``kind`` that a plan parses from ``column`` of the source ``source``."""

    source: int
    column: str
    kind: pa.StructType
    line: str


def parses(lines: str, corrupt: str) -> list[Parse]:
    """Return what can be read before Spark of ``lines``, the text of ``Plans.parses``.

    ``corrupt``: the field in which Spark has values that are no JSON.
    """
    found = []
    for line in lines.splitlines():
        source, column, text = line.split("\t", 2)
        kind = _struct(json.loads(text))
        if kind is not None and corrupt not in kind.names:
            found.append(Parse(int(source), column, kind, line))
    return found


def _struct(kind: Mapping[str, Any]) -> pa.StructType | None:
    """Return a struct of Spark's, as its JSON has it, for Arrow; None: the reader lacks it."""
    fields = {own["name"]: _kind(own["type"]) for own in kind["fields"]}
    is_plain = len(fields) == len(kind["fields"]) <= _MOST_FIELDS and None not in fields.values()
    return pa.struct(list(fields.items())) if fields and is_plain else None


def _kind(kind: str | Mapping[str, Any]) -> pa.DataType | None:
    if isinstance(kind, str):
        return _KINDS.get(kind)
    return _struct(kind) if kind["type"] == "struct" else None


@dataclass(frozen=True)
class ParsedColumn:
    """``column`` of ``type``, bytes or text, has JSON objects of ``kind``."""

    column: str
    type: pa.DataType
    kind: pa.StructType

    @property
    def fields(self) -> tuple[pa.Field, pa.Field]:
        """Return the two columns: the objects, and the values that Spark parses."""
        return pa.field(f"{self.column}.json", self.kind), pa.field(
            f"{self.column}.rest", self.type
        )

    def needs(self, reads: Reads) -> Reads:
        """Return ``reads`` with the column in place of the two."""
        names = {own.name for own in self.fields}
        if not names & reads.keys():
            return reads
        return {n: f for n, f in reads.items() if n not in names} | {self.column: None}

    def added(self, table: pa.Table, reads: Reads | None) -> pa.Table:
        """Return ``table`` with the two columns; ``reads``: what is read of them, None for all."""
        objects, rest = self.fields
        if reads is not None and not {objects.name, rest.name} & reads.keys():
            return table
        only = None if reads is None else reads.get(objects.name, frozenset())
        wanted = self.kind if only is None else part_type(self.kind, only)
        read = [self._read(chunk, wanted) for chunk in table.column(self.column).chunks]
        for own, place in ((objects.with_type(wanted), 0), (rest, 1)):
            parts = [found[place] for found in read]
            table = table.append_column(own, pa.chunked_array(parts, own.type))
        return table

    def _read(self, values: pa.Array, wanted: pa.StructType) -> tuple[pa.Array, pa.Array]:
        found, places = _reader(self.kind, wanted).read(values.view(pa.binary()))
        left = np.zeros(len(values), bool)
        left[places] = True
        lengths = pc.binary_length(values)
        if (pc.max(lengths).as_py() or 0) > _MOST_BYTES:
            left |= pc.fill_null(pc.greater(lengths, _MOST_BYTES), False).to_numpy(False)  # noqa: FBT003 - Arrow's
        if not left.any():
            return found, pa.nulls(len(values), self.type)
        is_left = pa.array(left)
        mask = pc.or_(found.is_null(), is_left)
        objects = pa.StructArray.from_arrays(found.flatten(), fields=list(wanted), mask=mask)
        return objects, pc.if_else(is_left, values, pa.scalar(None, self.type))


@lru_cache(PARTS)
def _reader(kind: pa.StructType, wanted: pa.StructType) -> ColumnReader:
    return ColumnReader(kind, wanted, Layout(JSON))


def widened(schema: pa.Schema, columns: Collection[ParsedColumn]) -> pa.Schema:
    """Return ``schema`` with the two columns for each of ``columns``."""
    for column in columns:
        for own in column.fields:
            schema = schema.append(own)
    return schema
