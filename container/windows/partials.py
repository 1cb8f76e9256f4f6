"""Rows of a table, added up by Arrow per window and key.

PURE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from homeport.container.progress.watermark import milliseconds
from homeport.container.windows.spans import Hopping
from homeport.container.windows.window_store import Place

_START = "__start"


@dataclass(frozen=True)
class Partials:
    """``windows``: {window: {column of Arrow's: its value}}, of those that are open.

    ``timed``: the rows, with the column of the time in ms. ``too_late``: those of them whose
    windows are all closed.
    """

    windows: Mapping[Place, Mapping[str, Any]]
    timed: pa.Table
    too_late: pa.Table
    key: str
    at: str

    def late(self) -> Iterator[tuple[str, Mapping[str, Any], int]]:
        """(key, row, time in ms) of each row that is too late."""
        for row in self.too_late.to_pylist():
            yield row[self.key], row, row[self.at]


def partials(
    table: pa.Table,
    span: Hopping,
    closed_ms: int,
    aggregates: Sequence[tuple[str, str]],
    key: str,
    at: str,
) -> Partials:
    """What each window gets of the table.

    Args:
        table: the rows.
        span: which windows there are.
        closed_ms: windows that end then or before are closed.
        aggregates: (column, function) of Arrow's group_by.
        key: the column of the key: text, or bytes that are UTF-8.
        at: the column of the time: a timestamp, or ms since 1970.

    Raises:
        ValueError: a row has no key or no time.
    """
    timed = _with_column(table, at, milliseconds(table.column(at)))
    timed = _with_column(timed, key, timed.column(key).cast(pa.string()))
    _require(timed, key, at)
    times = timed.column(at)
    slim = timed.select(list(dict.fromkeys([key, *(column for column, _ in aggregates)])))
    last = pc.subtract(times, _modulo(times, span.step_ms))
    parts = []
    for back_ms in range(0, span.size_ms, span.step_ms):
        starts = pc.subtract(last, back_ms)
        is_open = pc.and_(
            pc.greater(pc.add(starts, span.size_ms), closed_ms), pc.greater_equal(starts, 0)
        )
        parts.append(slim.append_column(_START, starts).filter(is_open))
    is_late = pc.less_equal(pc.add(last, span.size_ms), closed_ms)
    groups = pa.concat_tables(parts).group_by([_START, key]).aggregate(list(aggregates))
    windows = {}
    for row in groups.to_pylist():
        start_ms, own = row.pop(_START), row.pop(key)
        windows[Place(start_ms + span.size_ms, start_ms, own)] = row
    return Partials(windows, timed, timed.filter(is_late), key, at)


def _modulo(times: pa.ChunkedArray, step_ms: int) -> pa.ChunkedArray:
    """What is left of each time after whole steps; times are not negative."""
    return pc.subtract(times, pc.multiply(pc.divide(times, step_ms), step_ms))


def _with_column(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _require(table: pa.Table, key: str, at: str) -> None:
    if table.column(key).null_count:
        raise ValueError(f"a row has no {key!r}: filter such rows, or give them one")
    least = pc.min(table.column(at)).as_py()
    if table.column(at).null_count or (least is not None and least < 0):
        raise ValueError(f"a row has no time in {at!r}: filter such rows, or give them one")
