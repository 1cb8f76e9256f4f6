"""Values of many records at once as one Arrow column, record by record exact.

PURE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.errors import WireError

REFUSALS = (msgspec.MsgspecError, WireError, ValueError, TypeError, OverflowError, RecursionError)
"""What a decoder, or Arrow, raises for bytes or objects that are not of the schema."""
PARTS = 16
"""So many sets of fields are kept ready; a pipeline needs another one only for a new plan."""
_FIRST_TIME, _LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999
"""In microseconds since 1970."""
_CHUNK = 1000
"""Records that are decoded together: their objects stay in the processor's cache."""


@dataclass(frozen=True)
class Decoded:
    """``column`` has an element for each value: null for null, and for each that is in ``bad``.

    ``bad``: {place among the values: why it is not of the schema}.
    """

    column: pa.Array
    bad: dict[int, str]


@dataclass(frozen=True)
class Columns:
    """How a serde makes a column of ``type``.

    ``row``: bytes to an object. ``column``: such objects to a column. Both raise one of
    ``REFUSALS`` for what is not of the schema; any other exception says nothing of the bytes.
    ``part``: from names of fields to what makes a column of these alone, at less cost, and refuses
    wherever this does; None: the whole column is made, and they are taken of it.
    """

    type: pa.DataType
    row: Callable[[bytes], Any]
    column: Callable[[Sequence[Any]], pa.Array]
    part: Callable[[frozenset[str]], Columns] | None = None

    def decode(self, values: pa.Array, only: frozenset[str] | None = None) -> Decoded:
        """Return the column of ``values``, an array of binary.

        ``only``: names of the fields that it is to have, None for all. Which values are ``bad``,
        and why, is the same whatever it says.
        """
        kind, quick = self.type, self
        if only is not None and pa.types.is_struct(kind):
            kind = part_type(kind, only)
            quick = self if self.part is None else self.part(only)
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
                pass  # one of them at least; which, the next step says
        return self._one_by_one(data)

    def _one_by_one(self, data: Sequence[bytes | None]) -> tuple[pa.Array, dict[int, str]]:
        rows: list[Any] = []
        places: list[int | None] = []
        bad: dict[int, str] = {}
        for place, value in enumerate(data):
            row = None
            if value is not None:
                try:
                    row = self.row(value)
                except REFUSALS as error:
                    bad[place] = reason_of(error)
            if row is None:
                places.append(None)
            else:
                places.append(len(rows))
                rows.append(row)
        of_row = [place for place, at in enumerate(places) if at is not None]
        parts = list(self._fitting(rows, of_row, bad))
        dense = pa.concat_arrays(parts) if parts else pa.nulls(0, self.type)
        return dense.take(pa.array(places, pa.int32())), bad

    def _fitting(
        self, rows: Sequence[Any], of_row: Sequence[int], bad: dict[int, str]
    ) -> Iterator[pa.Array]:
        """Yield the columns of ``rows``; one that does not fit its type is null, and ``bad``.

        ``of_row``: the place of each row among the values. Halves are tried where a whole fails.
        """
        if not rows:
            return
        try:
            whole = self.column(rows)
        except REFUSALS as error:
            if len(rows) == 1:
                bad[of_row[0]] = reason_of(error)
                yield pa.nulls(1, self.type)
                return
            middle = len(rows) // 2
            yield from self._fitting(rows[:middle], of_row[:middle], bad)
            yield from self._fitting(rows[middle:], of_row[middle:], bad)
        else:
            yield whole


def object_columns(kind: pa.DataType, row: Callable[[bytes], Any]) -> Columns:
    """Return the column of ``kind`` of what ``row`` makes: dicts, where ``kind`` is a struct."""

    @lru_cache(PARTS)
    def part(only: frozenset[str]) -> Columns:
        # Of what is not asked for, what Arrow may refuse is made all the same.
        made = [f for f in kind if f.name in only or not is_taken(f.type, are_exact=False)]
        wide, wanted = pa.struct(made), part_type(kind, only)

        def column(rows: Sequence[Any]) -> pa.Array:
            return narrowed(pa.array(rows, wide), wanted)

        return Columns(wanted, row, column)

    return Columns(kind, row, lambda rows: pa.array(rows, kind), part)


def part_type(kind: pa.StructType, only: frozenset[str]) -> pa.StructType:
    """Return the fields of ``kind`` with these names; the first where there is none."""
    found = [own for own in kind if own.name in only]
    return pa.struct(found or list(kind)[:1])


def is_taken(kind: pa.DataType, *, are_exact: bool) -> bool:
    """Return whether Arrow makes a column of ``kind`` of any objects that a decoder makes for it.

    ``are_exact``: whether the decoder holds whole numbers to their ranges.
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
    """Return the fields of ``kind`` alone, which the column of structs has; null stays null."""
    names = [own.name for own in structs.type]
    # ``flatten`` knows of slices and of null structs, ``field`` does not.
    parts = structs.flatten()
    kept = [parts[names.index(own.name)] for own in kind]
    mask = structs.is_null() if structs.null_count else None
    return pa.StructArray.from_arrays(kept, fields=list(kind), mask=mask)


def holds_times(kind: pa.DataType) -> bool:
    """Return whether values of ``kind`` are or hold times."""
    if pa.types.is_nested(kind):
        return any(holds_times(kind.field(place).type) for place in range(kind.num_fields))
    return bool(pa.types.is_timestamp(kind))


def require_years(array: pa.Array) -> None:
    """Check that Python has each time in ``array``, as each task with this column needs it.

    Raises:
        ValueError: one is outside of the years 1 to 9999, as only its zone may make it.
    """
    kind = array.type
    if pa.types.is_timestamp(kind):
        found = pc.min_max(array)
        first, last = found["min"].value, found["max"].value
        if first is not None and not (first >= _FIRST_TIME and last <= _LAST_TIME):
            raise ValueError("in UTC a time is outside of the years 1 to 9999")
    elif pa.types.is_map(kind):
        require_years(array.items)  # whose keys are text or numbers
    elif pa.types.is_nested(kind) and holds_times(kind):
        parts = array.flatten()
        for part in parts if isinstance(parts, list) else [parts]:
            require_years(part)


def reason_of(error: BaseException) -> str:
    """Return the message of ``error`` in one line."""
    text = " ".join(str(error).split())
    return text or type(error).__name__
