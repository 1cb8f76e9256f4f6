"""What a user's value is in JSON, by its type: what JSON or the type cannot carry is refused.

The writer of JSON by itself makes null of a number that is not finite, and text of bytes and of any
key, so that a reader gets something else. PURE.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any

import pyarrow as pa

from homeport.container.serde.exact_values import (
    Convert,
    double,
    is_float,
    of_class,
    or_null,
    pairs_of,
    single,
    truth,
    whole,
)

_MINUTE = dt.timedelta(minutes=1)


def to_json(kind: pa.DataType) -> Convert:
    """Return what makes of a value of ``kind`` one that the writer of JSON takes for exactly that.

    Ranges are the reader's to check. It raises TypeError or ValueError.
    """
    if pa.types.is_struct(kind):
        return _of_struct(kind)
    if pa.types.is_map(kind):
        return _of_map(kind)
    if pa.types.is_list(kind):
        each = to_json(kind.value_type)
        return or_null(lambda items: [each(item) for item in of_class(items, list, tuple)])
    return or_null(next(convert for is_kind, convert in _LEAVES if is_kind(kind)))


def of_any(value: Any) -> Any:  # noqa: ANN401 - a user's value
    """Return a value without a declared type: ``value`` itself.

    Raises:
        TypeError, ValueError: a key in it is no text, or a number is not finite.
    """
    if isinstance(value, float):
        _finite(value)
    elif isinstance(value, Mapping):
        for key, part in value.items():
            of_class(key, str)
            of_any(part)
    elif isinstance(value, list | tuple | set | frozenset):
        for part in value:
            of_any(part)
    return _time(value) if isinstance(value, dt.datetime) else value


def _of_struct(kind: pa.StructType) -> Convert:
    known = {field.name: to_json(field.type) for field in kind}

    def convert(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a user's value
        found: dict[str, Any] = {}
        for name, part in of_class(value, Mapping).items():
            try:
                found[of_class(name, str)] = known.get(name, of_any)(part)
            except (TypeError, ValueError) as error:
                raise TypeError(f"{name}: {error}") from None
        return found

    return or_null(convert)


def _of_map(kind: pa.MapType) -> Convert:
    of_key = str if pa.types.is_integer(kind.key_type) else None
    of_item = to_json(kind.item_type)

    def convert(value: Any) -> dict[str, Any]:  # noqa: ANN401 - a user's value
        found: dict[str, Any] = {}
        for key, part in pairs_of(value):
            name = of_class(key, str) if of_key is None else of_key(whole(key))
            if name in found:
                raise ValueError(f"it has the key {key!r} twice")
            found[name] = of_item(part)
        return found

    return or_null(convert)


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"JSON has no number {value}")
    return value


def _decimal(value: Any) -> Any:  # noqa: ANN401 - a user's value
    if isinstance(value, Decimal | str):
        return value
    return _finite(float(value)) if is_float(value) else whole(value)


def _time(value: Any) -> Any:  # noqa: ANN401 - a user's value
    below = getattr(value, "nanosecond", 0)
    offset = value.utcoffset() if isinstance(value, dt.datetime) else None
    if offset is not None and offset % _MINUTE:  # which RFC 3339 does not have
        value = value.astimezone(dt.UTC)
    if below:  # which the writer leaves out
        text: str = dt.datetime.isoformat(value, timespec="microseconds")
        return f"{text[:26]}{below:03}{text[26:]}"
    return of_class(value, dt.datetime, str)


_LEAVES: tuple[tuple[Callable[[pa.DataType], bool], Convert], ...] = (
    (pa.types.is_string, lambda value: of_class(value, str)),
    (pa.types.is_boolean, truth),
    (pa.types.is_integer, whole),
    (pa.types.is_float32, lambda value: _finite(single(value))),
    (pa.types.is_floating, lambda value: _finite(double(value))),
    (pa.types.is_decimal, _decimal),
    (pa.types.is_binary, lambda value: of_class(value, bytes, bytearray, memoryview, str)),
    (pa.types.is_date, lambda value: of_class(value, dt.date, str)),
    (pa.types.is_timestamp, _time),
)
