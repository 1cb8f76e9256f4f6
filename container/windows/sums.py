"""What Arrow adds up per group, and what it would add up wrongly, exactly.

PURE. Arrow's sums and products of whole numbers and decimals wrap round without a word.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from decimal import Context, Decimal, localcontext
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

_WHOLE_BITS = 63
_DECIMAL_DIGITS = 38
_ORDERED = frozenset({"first", "last", "first_last"})
_SUM, _PRODUCT, _MEAN, _LIST = "sum", "product", "mean", "list"
_DIGITS_AT_WORK = 2000


def grouped(
    table: pa.Table, by: Sequence[str], aggregates: Sequence[tuple[str, str]]
) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Yield (values of ``by``, {column of Arrow's: its value}) of each group of the rows.

    Args:
        table: the rows; "first" and "last" go by their order.
        by: the columns whose values make a group.
        aggregates: (column, function) of Arrow's group_by.

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
        said = ", ".join(f"({c!r}, {f!r}) of {table.column(c).type}" for c, f in asked)
        raise ValueError(f"Arrow cannot aggregate {said}: {error}") from None
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
    """Return whether the result could need more places than Arrow's has."""
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
    """Return the sum, product or mean of the values; nulls are left out, as Arrow does."""
    given = [value for value in values if value is not None]
    if not given:
        return None
    with localcontext(Context(prec=_DIGITS_AT_WORK)):
        found: Any = math.prod(given) if function == _PRODUCT else sum(given)
        if function == _MEAN:
            found /= len(given)
        # A sum has this scale already.
        return found.quantize(given[0]) if isinstance(found, Decimal) else found
