"""Values of many records as one Arrow column; each is as if decoded by itself. PURE."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.errors import WireError

REFUSALS = (msgspec.MsgspecError, WireError, ValueError, TypeError, OverflowError, RecursionError)
"""The exceptions of a decoder, or of Arrow, for bytes or objects that are not of the schema."""
PARTS = 16
"""So many sets of fields stay ready; a pipeline needs another one only for a new plan."""
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""In microseconds since 1970."""
_CHUNK = 1000
"""So many records are decoded together: their objects stay in the processor's cache."""


@dataclass(frozen=True)
class Decoded:
    """``column`` has an element for each value: null for a null, and for each in ``bad``.

    ``bad``: {place among the values: why it is not of the schema}.
    """

    column: pa.Array
    bad: dict[int, str]


JSON, AVRO = "json", "avro"
NEEDED, OPTIONAL, NULL_SECOND, MILLIS = 1, 2, 4, 8
"""Forms of fields, as bits: JSON without it, or with null, may be bad; Avro's union with null, with
null as its second type; Avro's time in milliseconds."""


@dataclass(frozen=True)
class Layout:
    """How bytes of some language, ``JSON`` or ``AVRO``, are laid out: ``forms`` {path: bits}.

    The path of a field has the names from the record down. A field without a form has no bits.
    """

    language: str
    forms: Mapping[tuple[str, ...], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Columns:
    """How a serde makes a column of ``type``.

    ``row`` makes an object of bytes, ``column`` a column of such objects. Both raise one of
    ``REFUSALS`` for what is not of the schema; another exception is no fault of the bytes.
    ``part`` returns the ``Columns`` of some fields alone, by their names: they cost less, and
    refuse whatever these do. None: the fields are taken from the whole column.

    ``layout``: of the bytes; none that fit it and ``type`` are bad. None: it is another one, or
    more decides. ``has_layout``: whether it is that of values with these first bytes, which stand
    before it; None: nothing does. ``read`` returns the column of values, of a struct of some fields
    in their order, and the places whose elements have no meaning: ``row`` decodes these.
    """

    type: pa.DataType
    row: Callable[[bytes], Any]
    column: Callable[[Sequence[Any]], pa.Array]
    part: Callable[[frozenset[str]], Columns] | None = None
    layout: Layout | None = None
    has_layout: Callable[[bytes], bool] | None = None
    read: Callable[[pa.Array, pa.StructType], tuple[pa.StructArray, Sequence[int]]] | None = None

    def decode(self, values: pa.Array, only: frozenset[str] | None = None) -> Decoded:
        """Return the column of ``values``, an array of binary.

        ``only``: the names of the fields to return, None for all. The same values are ``bad``, for
        the same reasons, with any fields.
        """
        kind, quick = self.type, self
        if only is not None and pa.types.is_struct(kind):
            kind = part_type(kind, only)
            quick = self if self.part is None else self.part(only)
        if self.read is None:
            return self._in_python(values, quick, kind)
        column, left = self.read(values, kind)
        if not left:
            return Decoded(column, {})
        rest = self._in_python(values.take(pa.array(left, pa.int32())), quick, kind)
        places = np.arange(len(values))
        places[left] = len(values) + np.arange(len(left))
        column = pa.concat_arrays([column, rest.column]).take(pa.array(places))
        return Decoded(column, {left[place]: reason for place, reason in rest.bad.items()})

    def _in_python(self, values: pa.Array, quick: Columns, kind: pa.DataType) -> Decoded:
        parts: list[pa.Array] = []
        bad: dict[int, str] = {}
        for start in range(0, len(values), _CHUNK):
            part, refused = self._chunk(values.slice(start, _CHUNK), quick)
            parts.append(part if part.type.equals(kind) else narrowed(part, kind))
            bad.update((start + place, reason) for place, reason in refused.items())
        column = pa.chunked_array(parts, kind).combine_chunks()
        return Decoded(column, bad)

    def _chunk(self, values: pa.Array, quick: Columns) -> tuple[pa.Array, dict[int, str]]:
        data = values.to_pylist()
        if values.null_count == 0:
            try:
                return quick.column(list(map(quick.row, data))), {}
            except REFUSALS:
                pass  # at least one of them is bad; the next step finds it
        return self._one_by_one(data)

    def _one_by_one(self, data: Sequence[bytes | None]) -> tuple[pa.Array, dict[int, str]]:
        rows: dict[int, Any] = {}
        bad: dict[int, str] = {}
        for place, value in enumerate(data):
            if value is not None:
                try:
                    rows[place] = self.row(value)
                except REFUSALS as error:
                    bad[place] = reason_of(error)
        indices: list[int | None] = [None] * len(data)
        for index, place in enumerate(rows):
            indices[place] = index
        dense = pa.concat_arrays([pa.nulls(0, self.type), *self._fitting([*rows.items()], bad)])
        return dense.take(pa.array(indices, pa.int32())), bad

    def _fitting(self, rows: Sequence[tuple[int, Any]], bad: dict[int, str]) -> Iterator[pa.Array]:
        """Yield the columns of ``rows``; a row that does not fit its type is null, and ``bad``.

        Shapes: ``rows`` (place among the values, object). If the whole fails, try its halves.
        """
        if not rows:
            return
        try:
            yield self.column([row for _, row in rows])
        except REFUSALS as error:
            if len(rows) == 1:
                bad[rows[0][0]] = reason_of(error)
                yield pa.nulls(1, self.type)
                return
            middle = len(rows) // 2
            yield from self._fitting(rows[:middle], bad)
            yield from self._fitting(rows[middle:], bad)


def object_columns(kind: pa.DataType, row: Callable[[bytes], Any]) -> Columns:
    """Return the ``Columns`` of ``kind`` for objects of ``row``: dicts, where it is a struct."""

    @lru_cache(PARTS)
    def part(only: frozenset[str]) -> Columns:
        # Fields that Arrow may refuse are made even if they are not asked for.
        made = [f for f in kind if f.name in only or not is_taken(f.type, are_exact=False)]
        wide, wanted = pa.struct(made), part_type(kind, only)

        def column(rows: Sequence[Any]) -> pa.Array:
            return narrowed(pa.array(rows, wide), wanted)

        return Columns(wanted, row, column)

    return Columns(kind, row, lambda rows: pa.array(rows, kind), part)


def part_type(kind: pa.StructType, only: frozenset[str]) -> pa.StructType:
    """Return a struct of the fields of ``kind`` with these names; else of its first field."""
    found = [own for own in kind if own.name in only]
    return pa.struct(found or list(kind)[:1])


def is_taken(kind: pa.DataType, *, are_exact: bool) -> bool:
    """Return whether Arrow takes each object that a decoder makes for ``kind``.

    ``are_exact``: whether the decoder checks the ranges of whole numbers.
    """
    if pa.types.is_struct(kind):
        return all(is_taken(own.type, are_exact=are_exact) for own in kind)
    if pa.types.is_map(kind):
        parts = (kind.key_type, kind.item_type)
        return all(is_taken(part, are_exact=are_exact) for part in parts)
    if pa.types.is_list(kind):
        return is_taken(kind.value_type, are_exact=are_exact)
    if pa.types.is_integer(kind):
        return are_exact
    return kind in _ALWAYS_TAKEN


_ALWAYS_TAKEN = (pa.string(), pa.bool_(), pa.float64(), pa.binary())


def narrowed(structs: pa.StructArray, kind: pa.StructType) -> pa.StructArray:
    """Return the column with the fields of ``kind`` alone; null stays null."""
    names = [own.name for own in structs.type]
    # ``flatten`` heeds slices and null structs, ``field`` does not.
    parts = structs.flatten()
    kept = [parts[names.index(own.name)] for own in kind]
    mask = structs.is_null() if structs.null_count else None
    return pa.StructArray.from_arrays(kept, fields=list(kind), mask=mask)


def holds_times(kind: pa.DataType) -> bool:
    """Return whether values of ``kind`` are times, or contain times."""
    if pa.types.is_nested(kind):
        return any(holds_times(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind))


def require_years(array: pa.Array) -> None:
    """Require that Python can carry each time in ``array``.

    Raises:
        ValueError: one is outside of the years 1 to 9999; its zone may have moved it there.
    """
    kind = array.type
    if pa.types.is_timestamp(kind):
        found = pc.min_max(array)
        first, last = found["min"].value, found["max"].value
        if first is not None and not (first >= _FIRST_TIME and last <= _LAST_TIME):
            raise ValueError("in UTC a time is outside of the years 1 to 9999")
    elif pa.types.is_map(kind):
        require_years(array.items)  # the keys are text or numbers
    elif pa.types.is_nested(kind) and holds_times(kind):
        parts = array.flatten()
        for part in parts if isinstance(parts, list) else [parts]:
            require_years(part)


def reason_of(error: BaseException) -> str:
    """Return the message of ``error`` in one line."""
    text = " ".join(str(error).split())
    return text or type(error).__name__
