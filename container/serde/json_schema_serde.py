"""The serde json with a schema: objects whose fields have declared types.

The decoder reads a missing field as null and ignores an undeclared field. It refuses a record with
a field of another type: it casts nothing. msgspec's JSON writer alone writes null for a number that
is not finite, and text for bytes and for any key. This serde refuses what JSON or the declared type
cannot carry. PURE.
"""

import datetime as dt
import decimal
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import attrgetter
from types import GenericAlias
from typing import Annotated, Any

import msgspec
import pyarrow as pa

from homeport.config.errors import WireError
from homeport.config.number_text import decimal_of
from homeport.container.serde.columns import (
    JSON,
    PARTS,
    REFUSALS,
    Columns,
    Layout,
    holds_times,
    is_taken,
    narrowed,
    part_type,
    reason_of,
    require_years,
)
from homeport.container.serde.exact_values import (
    FLOAT_LIMIT,
    Convert,
    double,
    is_float,
    map_of,
    of_class,
    or_null,
    single,
    text,
    truth,
    whole,
)
from homeport.container.serde.serdes import Serde


def json_schema_serde(kind: pa.StructType) -> Serde:
    """Return the serde of objects with the fields of ``kind``; each object is a dict in Python."""
    decode = _decoder(_record_type(kind))
    convert = _convert(kind, is_exact=True)
    assert convert is not None  # noqa: S101 - a struct always has one
    plain = to_json(kind)

    def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - a user's value
        if not isinstance(value, Mapping):
            raise TypeError(f"the serde 'json' carries a mapping, not {type(value).__name__}")
        try:
            data = msgspec.json.encode(plain(value))
            from_bytes(data)
        except REFUSALS as error:
            raise TypeError(
                f"the schema of the serde 'json' cannot carry it: {reason_of(error)}"
            ) from None
        return data

    def from_bytes(data: bytes) -> Any:  # noqa: ANN401 - a user's value
        try:
            return convert(decode(data))
        except REFUSALS as error:
            raise WireError(reason_of(error)) from None

    return Serde("json", to_bytes, from_bytes, columns=lambda: json_columns(kind))


def json_meaning(kind: pa.StructType) -> dict[str, str]:
    """Return {field name: type}; the name alone finds a field of an object, not the order."""
    return {name: str(kind.field(name).type) for name in sorted(f.name for f in kind)}


def json_columns(kind: pa.StructType) -> Columns:
    """Return the ``Columns`` that decode bytes of JSON objects to a column of ``kind``."""

    @lru_cache(PARTS)
    def part(only: frozenset[str]) -> Columns:
        wanted = part_type(kind, only)
        names = {own.name for own in wanted}
        # Build each field that Arrow may refuse, wanted or not; msgspec alone checks the others.
        skipped = [f for f in kind if f.name not in names and is_taken(f.type, are_exact=True)]
        made = _columns(kind, [own for own in kind if own not in skipped])
        return replace(made, type=wanted, column=lambda rows: narrowed(made.column(rows), wanted))

    return replace(_columns(kind, list(kind)), part=part)


def _columns(kind: pa.StructType, fields: Sequence[pa.Field]) -> Columns:
    decode = _decoder(_record_type(kind))
    numbers = {field.name: number for number, field in enumerate(kind)}
    getters = [attrgetter(f"f{numbers[field.name]}") for field in fields]
    converts = [_convert(field.type, is_exact=False) for field in fields]
    of_times = [place for place, field in enumerate(fields) if holds_times(field.type)]

    def column(rows: Sequence[Any]) -> pa.Array:
        arrays = []
        for field, getter, convert in zip(fields, getters, converts, strict=True):
            values = map(getter, rows)
            if convert is not None:
                values = map(convert, values)
            arrays.append(pa.array(list(values), field.type))
        for place in of_times:
            require_years(arrays[place])
        return pa.StructArray.from_arrays(arrays, fields=list(fields))

    return Columns(pa.struct(list(fields)), decode, column, layout=Layout(JSON))


def _record_type(kind: pa.StructType) -> type[msgspec.Struct]:
    fields = [(f"f{n}", _wire_type(field.type) | None, None) for n, field in enumerate(kind)]
    names = {f"f{number}": field.name for number, field in enumerate(kind)}
    return msgspec.defstruct("Record", fields, rename=names, gc=False)


def _wire_type(kind: pa.DataType) -> Any:  # noqa: ANN401 - a type of msgspec's
    """Return the type that msgspec requires of the JSON of a value of ``kind``.

    Arrow also refuses a whole number out of range, but if an object repeats a name, Arrow sees
    only the last value: a record that is bad by itself would pass in a batch.
    """
    if pa.types.is_struct(kind):
        return _record_type(kind)
    if pa.types.is_map(kind):
        return GenericAlias(dict, (_wire_type(kind.key_type), _wire_type(kind.item_type) | None))
    if pa.types.is_list(kind):
        return GenericAlias(list, (_wire_type(kind.value_type) | None,))
    if pa.types.is_float32(kind):  # Arrow, too, would make it infinite
        return Annotated[float, msgspec.Meta(gt=-FLOAT_LIMIT, lt=FLOAT_LIMIT)]
    if pa.types.is_integer(kind):
        limit = 1 << (kind.bit_width - 1)
        return Annotated[int, msgspec.Meta(ge=-limit, le=limit - 1)]
    return next(wire for is_kind, wire, _ in _LEAVES if is_kind(kind))


def _decoder(kind: Any) -> Callable[[bytes], Any]:  # noqa: ANN401 - a type of msgspec's
    """Return the decoder of ``kind``; it returns the number of a decimal as text."""
    return msgspec.json.Decoder(kind, float_hook=str).decode


def _convert(kind: pa.DataType, *, is_exact: bool) -> Convert | None:
    """Return the conversion of msgspec's objects to what Arrow takes; None: they need none.

    ``is_exact``: whether to return the very values that a column of ``kind`` returns.
    """
    if pa.types.is_struct(kind):
        return _convert_struct(kind, is_exact=is_exact)
    if pa.types.is_map(kind):
        item = _convert(kind.item_type, is_exact=is_exact)
        return None if item is None else or_null(lambda d: {k: item(v) for k, v in d.items()})
    if pa.types.is_list(kind):
        each = _convert(kind.value_type, is_exact=is_exact)
        return None if each is None else or_null(lambda items: [each(item) for item in items])
    leaf = _leaf(kind, is_exact=is_exact)
    return None if leaf is None else or_null(leaf)


def _leaf(kind: pa.DataType, *, is_exact: bool) -> Convert | None:
    if pa.types.is_decimal(kind):
        return _decimal_of(kind)
    if is_exact and pa.types.is_timestamp(kind):
        return _in_utc
    if is_exact and pa.types.is_float32(kind):
        return lambda number: pa.scalar(number, kind).as_py()
    return None


def _convert_struct(kind: pa.StructType, *, is_exact: bool) -> Convert:
    parts = [
        (field.name, attrgetter(f"f{number}"), _convert(field.type, is_exact=is_exact))
        for number, field in enumerate(kind)
    ]

    def convert(record: Any) -> dict[str, Any]:  # noqa: ANN401 - a struct of msgspec's
        return {
            name: getter(record) if of_part is None else of_part(getter(record))
            for name, getter, of_part in parts
        }

    return or_null(convert)


def _decimal_of(kind: pa.Decimal128Type) -> Convert:
    """Return a conversion that refuses a number with excess digits; Arrow may make it 0."""
    traps = [decimal.Inexact, decimal.InvalidOperation]
    context = decimal.Context(prec=kind.precision, traps=traps)
    unit = decimal.Decimal(1).scaleb(-kind.scale)

    def convert(value: Any) -> decimal.Decimal:  # noqa: ANN401 - of JSON
        number = decimal_of(str(value))
        try:
            return context.plus(context.quantize(number, unit))
        except decimal.DecimalException:
            raise ValueError(f"{str(value)[:80]} does not fit {kind}") from None

    return convert


def _in_utc(time: dt.datetime) -> dt.datetime:
    return time.replace(tzinfo=dt.UTC) if time.tzinfo is None else time.astimezone(dt.UTC)


_MINUTE = dt.timedelta(minutes=1)


def to_json(kind: pa.DataType) -> Convert:
    """Return the conversion of a value of ``kind`` to one that the JSON writer writes exactly.

    The conversion raises TypeError or ValueError. The reader checks ranges.
    """
    if pa.types.is_struct(kind):
        return _of_struct(kind)
    if pa.types.is_map(kind):
        is_whole = pa.types.is_integer(kind.key_type)
        of_key: Convert = (lambda key: str(whole(key))) if is_whole else text
        return or_null(map_of(of_key, to_json(kind.item_type)))
    if pa.types.is_list(kind):
        each = to_json(kind.value_type)
        return or_null(lambda items: [each(item) for item in of_class(items, list, tuple)])
    return or_null(next(convert for is_kind, _, convert in _LEAVES if is_kind(kind)))


def of_any(value: Any) -> Any:  # noqa: ANN401 - a user's value
    """Return a value without a declared type, its parts checked, times as ``_time`` has them.

    Raises:
        TypeError: a key in ``value`` is not text.
        ValueError: a number in ``value`` is not finite.
    """
    if isinstance(value, float):
        _finite(value)
    elif isinstance(value, Mapping):
        return {of_class(key, str): of_any(part) for key, part in value.items()}
    elif isinstance(value, list | tuple | set | frozenset):
        return [of_any(part) for part in value]
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


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"JSON has no number {value}")
    return value


def _decimal(value: Any) -> Any:  # noqa: ANN401 - a user's value
    if isinstance(value, decimal.Decimal | str):
        return value
    return _finite(float(value)) if is_float(value) else whole(value)


def _time(value: Any) -> Any:  # noqa: ANN401 - a user's value
    below = getattr(value, "nanosecond", 0)
    offset = value.utcoffset() if isinstance(value, dt.datetime) else None
    if offset is not None and offset % _MINUTE:  # RFC 3339 has no seconds in an offset
        value = value.astimezone(dt.UTC)
    if below:  # the writer leaves out nanoseconds
        written: str = dt.datetime.isoformat(value, timespec="microseconds")
        return f"{written[:26]}{below:03}{written[26:]}"
    return of_class(value, dt.datetime, str)


_LEAVES: tuple[tuple[Callable[[pa.DataType], bool], Any, Convert], ...] = (
    (pa.types.is_string, str, text),
    (pa.types.is_boolean, bool, truth),
    (pa.types.is_integer, int, whole),
    (pa.types.is_float32, float, lambda value: _finite(single(value))),
    (pa.types.is_floating, float, lambda value: _finite(double(value))),
    (pa.types.is_decimal, Any, _decimal),
    (pa.types.is_binary, bytes, lambda value: of_class(value, bytes, bytearray, memoryview, str)),
    (pa.types.is_date, dt.date, lambda value: of_class(value, dt.date, str)),
    (pa.types.is_timestamp, dt.datetime, _time),
)
"""(whether it is for a type, msgspec's type in the JSON, the conversion of a user's value)."""
