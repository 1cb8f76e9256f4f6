"""The rows of a table, aggregated by Arrow per window and key. PURE."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from homeport.container.progress.watermark import times_of
from homeport.container.windows.spans import LIMIT_MS, Hopping
from homeport.container.windows.window_store import Place

_START = "__start"


@dataclass(frozen=True)
class Partials:
    """``windows``: {open window: {column of Arrow's: its value}}.

    ``timed``: the rows that advance event time; the column ``at`` has ms. ``too_late``: the rows
    whose windows are all closed. ``ahead``: the rows whose time is beyond the last one.
    """

    windows: Mapping[Place, Mapping[str, Any]]
    timed: pa.Table
    too_late: pa.Table
    ahead: pa.Table
    key: str
    at: str

    def late(self) -> Iterator[tuple[str, Mapping[str, Any], int, bool]]:
        """Yield (key, row, time in ms, whether it is ahead) of each row that is in no window."""
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
    """Return the aggregates of the table's rows per window; arguments as of ``Windows.add_table``.

    ``closed_ms``: windows that end then or before are closed. ``last_ms``: rows with a later time
    are ahead, and in no window.

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
    """Return each time modulo ``step_ms``: never negative, also before 1970."""
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


_WHOLE_BITS = 63
_DECIMAL_DIGITS = 38
_ORDERED = frozenset({"first", "last", "first_last"})
_SUM, _PRODUCT, _MEAN, _LIST = "sum", "product", "mean", "list"
_DIGITS_AT_WORK = 2000


def grouped(
    table: pa.Table, by: Sequence[str], aggregates: Sequence[tuple[str, str]]
) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield (values of ``by``, {column of Arrow's: its value}) of each group of the rows.

    ``aggregates``: (column, function) of Arrow's group_by; "first" and "last" go by the row order.

    Raises:
        ValueError: Arrow has no such column or function, or not for its type.
    """
    asked = [(column, function.removeprefix("hash_")) for column, function in aggregates]
    for column, function in asked:
        if column not in table.column_names:
            raise ValueError(f"the aggregate {(column, function)!r}: the table has no such column")
    exact = [item for item in asked if _may_overflow(table.column(item[0]), item[1])]
    of_arrow = dict.fromkeys((c, _LIST) if (c, f) in exact else (c, f) for c, f in asked)
    is_ordered = any(function in _ORDERED for _, function in asked)
    try:
        # Arrow's threads take rows in any order.
        groups = table.group_by(list(by), use_threads=not is_ordered).aggregate(list(of_arrow))
    except (pa.ArrowException, NotImplementedError) as error:
        named = ", ".join(f"({c!r}, {f!r}) of {table.column(c).type}" for c, f in asked)
        raise ValueError(f"Arrow cannot aggregate {named}: {error}") from None
    for row in groups.to_pylist():
        found = {}
        for column, function in asked:
            name = f"{column}_{function}"
            if (column, function) in exact:
                found[name] = _exactly(row[f"{column}_{_LIST}"], function)
            else:
                found[name] = row[name]
        yield [row[name] for name in by], found


def _may_overflow(column: pa.ChunkedArray, function: str) -> bool:
    is_decimal = pa.types.is_decimal(column.type)
    if is_decimal and function not in (_SUM, _PRODUCT, _MEAN):
        return False
    if not is_decimal and not (pa.types.is_integer(column.type) and function in (_SUM, _PRODUCT)):
        return False
    ends = [end for end in pc.min_max(column).as_py().values() if end is not None]
    count = len(column)
    if not is_decimal:
        most = max(map(abs, ends), default=0)
        if function == _PRODUCT:
            return bool(most.bit_length() * count > _WHOLE_BITS)
        return bool(most * count >= 1 << _WHOLE_BITS)
    # Not by abs: it rounds a decimal.
    digits = max((len(end.as_tuple().digits) for end in ends), default=0)
    digits += max(0, column.type.scale)
    places = digits * count if function == _PRODUCT else digits + len(str(count))
    return bool(places > _DECIMAL_DIGITS)


def _exactly(values: Sequence[Any], function: str) -> Any:  # noqa: ANN401 - as the values are
    given = [value for value in values if value is not None]
    if not given:
        return None
    with localcontext(Context(prec=_DIGITS_AT_WORK)):
        found: Any = math.prod(given) if function == _PRODUCT else sum(given)
        if function == _MEAN:
            found /= len(given)
        # A sum has this scale already.
        return found.quantize(given[0]) if isinstance(found, Decimal) else found
