"""Rows of a table, added up by Arrow per window and key.

PURE.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from homeport.container.progress.watermark import times_of
from homeport.container.windows.spans import LIMIT_MS, Hopping
from homeport.container.windows.sums import grouped
from homeport.container.windows.window_store import Place

_START = "__start"


@dataclass(frozen=True)
class Partials:
    """``windows``: {window: {column of Arrow's: its value}}, of those that are open.

    ``timed``: the rows that bring event time on, with the column of the time in ms. ``too_late``:
    those whose windows are all closed. ``ahead``: those whose time is beyond the last one.
    """

    windows: Mapping[Place, Mapping[str, Any]]
    timed: pa.Table
    too_late: pa.Table
    ahead: pa.Table
    key: str
    at: str

    def late(self) -> Iterator[tuple[str, Mapping[str, Any], int, bool]]:
        """(key, row, time in ms, whether it is ahead) of each row that is in no window."""
        for rows, is_ahead in ((self.too_late, False), (self.ahead, True)):
            for row in rows.to_pylist():
                yield row[self.key], row, row[self.at], is_ahead


def partials(
    table: pa.Table,
    span: Hopping,
    closed_ms: int,
    last_ms: int,
    aggregates: Sequence[tuple[str, str]],
    key: str,
    at: str,
) -> Partials:
    """What each window gets of the table.

    Args:
        table: the rows.
        span: which windows there are.
        closed_ms: windows that end then or before are closed.
        last_ms: what is later is ahead of its time, and in no window.
        aggregates: (column, function) of Arrow's group_by.
        key: the column of the key: text, or bytes that are UTF-8.
        at: the column of the time: a timestamp, or ms since 1970.

    Raises:
        ValueError: a row has no key or no time, or Arrow cannot aggregate so.
    """
    whole = _with_column(table, at, times_of(table, at))
    whole = _with_column(whole, key, whole.column(key).cast(pa.string()))
    _require(whole, key, at)
    first_ms, times = span.reach_ms - LIMIT_MS, whole.column(at)
    is_ahead, is_old = pc.greater(times, last_ms), pc.less(times, first_ms)
    timed = whole.filter(pc.invert(pc.or_(is_ahead, is_old)))
    times = timed.column(at)
    columns = dict.fromkeys([key, *(column for column, _ in aggregates)])
    slim = timed.select([name for name in columns if name in timed.column_names])
    last = pc.subtract(times, _modulo(times, span.step_ms))
    parts = []
    for back_ms in range(0, span.size_ms, span.step_ms):
        starts = pc.subtract(last, back_ms)
        is_open = pc.greater(pc.add(starts, span.size_ms), closed_ms)
        parts.append(slim.append_column(_START, starts).filter(is_open))
    is_late = pc.less_equal(pc.add(last, span.size_ms), closed_ms)
    windows = {
        Place(start_ms + span.size_ms, start_ms, own): found
        for (start_ms, own), found in grouped(pa.concat_tables(parts), [_START, key], aggregates)
    }
    late = pa.concat_tables([timed.filter(is_late), whole.filter(is_old)])
    return Partials(windows, timed, late, whole.filter(is_ahead), key, at)


def _modulo(times: pa.ChunkedArray, step_ms: int) -> pa.ChunkedArray:
    """What each time is beyond the last whole step, before 1970 too; never negative."""
    # Arrow divides towards 0.
    rest = pc.subtract(times, pc.multiply(pc.divide(times, step_ms), step_ms))
    return pc.if_else(pc.less(rest, 0), pc.add(rest, step_ms), rest)


def _with_column(table: pa.Table, name: str, column: pa.ChunkedArray) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, column)


def _require(table: pa.Table, key: str, at: str) -> None:
    if table.column(key).null_count:
        raise ValueError(f"a row has no {key!r}: filter such rows, or give them one")
    if table.column(at).null_count:
        raise ValueError(f"a row has no time in {at!r}: filter such rows, or give them one")
