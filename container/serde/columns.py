"""Values of many records at once as one Arrow column, record by record exact.

PURE.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa

from homeport.config.errors import WireError

REFUSALS = (
    msgspec.MsgspecError,
    WireError,
    ValueError,
    TypeError,
    OverflowError,
    RecursionError,
)
"""What a decoder, or Arrow, raises for bytes or objects that are not of the schema."""
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
    """

    type: pa.DataType
    row: Callable[[bytes], Any]
    column: Callable[[Sequence[Any]], pa.Array]

    def decode(self, values: pa.Array) -> Decoded:
        """The column of ``values``, an array of binary."""
        parts: list[pa.Array] = []
        bad: dict[int, str] = {}
        for start in range(0, len(values), _CHUNK):
            part, refused = self._chunk(values.slice(start, _CHUNK))
            parts.append(part)
            bad.update((start + place, reason) for place, reason in refused.items())
        column = pa.chunked_array(parts, self.type).combine_chunks()
        if isinstance(column, pa.ChunkedArray):  # which Arrow leaves so where it has no chunk
            column = pa.concat_arrays(column.chunks) if column.chunks else pa.nulls(0, self.type)
        return Decoded(column, bad)

    def _chunk(self, values: pa.Array) -> tuple[pa.Array, dict[int, str]]:
        data = values.to_pylist()
        if values.null_count == 0:
            try:
                return self.column(list(map(self.row, data))), {}
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
        """Columns that are that of ``rows``; one that does not fit its type is null, and ``bad``.

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


def reason_of(error: BaseException) -> str:
    """What ``error`` says, in one line."""
    text = " ".join(str(error).split())
    return text or type(error).__name__
