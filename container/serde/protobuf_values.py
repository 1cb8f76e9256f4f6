"""Conversions between messages of Protobuf and dicts of Python, field by field.

Each message is a dict of its fields, well-known types too; only ``google.protobuf.Timestamp`` is a
time. Protobuf's own constructors would take a dict for the content of a Struct, and the last of
several fields of a oneof: they would write another message than was read.
"""

from __future__ import annotations

import datetime as dt
import decimal
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from homeport.config.errors import WireError
from homeport.container.serde.columns import reason_of
from homeport.container.serde.exact_values import (
    Convert,
    double,
    octets,
    pairs_of,
    single,
    text,
    truth,
    whole,
)

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

TIMESTAMP = "google.protobuf.Timestamp"
_DURATION = "google.protobuf.Duration"
_DEEPEST = 100
"""Protobuf reads no message with more levels of messages within it."""
_NUMBER = re.compile("-?[0-9]{1,10}")
_Set = Callable[[Any, Any, int], None]


class PreciseTime(dt.datetime):
    """A time with the digits below a microsecond that a Timestamp had, in ``nanosecond``."""

    nanosecond: int = 0


def is_map(field: FieldDescriptor) -> bool:
    """Return whether ``field`` is a map."""
    return field.message_type is not None and field.message_type.GetOptions().map_entry


def dict_of(kind: type[Message]) -> Convert:
    """Return a conversion of a message to a dict of all its fields.

    It raises WireError for a message that could not be written as it was read.
    """
    convert = _of_message(kind.DESCRIPTOR, {})

    def read(message: Any) -> Any:  # noqa: ANN401 - a user's value
        try:
            return convert(message)
        except (ValueError, OverflowError, RecursionError) as error:
            raise WireError(reason_of(error)) from None

    return read


def message_of(kind: type[Message]) -> Callable[[Any], Message]:
    """Return a conversion of a mapping of fields to a message; a field that is None is not set.

    It raises TypeError for what the message cannot carry.
    """
    write = _into_message(kind.DESCRIPTOR, {})
    name = kind.DESCRIPTOR.full_name

    def made(value: Any) -> Message:  # noqa: ANN401 - a user's value
        message = kind()
        try:
            write(message, value, 0)
        except Exception as error:  # noqa: BLE001 - whatever the library has against it
            raise TypeError(f"the message {name} cannot carry it: {reason_of(error)}") from None
        return message

    return made


def _of_message(descriptor: Descriptor, known: dict[str, Convert]) -> Convert:
    """Return the conversion. ``known``: {full name: conversion}: a message may contain itself."""
    if descriptor.full_name in known:
        return known[descriptor.full_name]
    if descriptor.full_name == TIMESTAMP:
        return _time_of
    from google.protobuf.unknown_fields import UnknownFieldSet  # noqa: PLC0415 - an extra

    parts: list[tuple[str, bool, Convert | None]] = []
    required = _required(descriptor)
    numbers = {field.number: field.name for field in descriptor.fields}

    def convert(message: Any) -> dict[str, Any]:  # noqa: ANN401 - of a generated class
        for unknown in UnknownFieldSet(message):
            if unknown.field_number in numbers:
                raise ValueError(
                    f"the field {numbers[unknown.field_number]} of {descriptor.full_name} has "
                    "another type, or a value that its enum has not"
                )
        _require_set(message, required)
        found: dict[str, Any] = {}
        for name, has_presence, part in parts:
            if has_presence and not message.HasField(name):
                found[name] = None
            else:
                value = getattr(message, name)
                found[name] = value if part is None else part(value)
        return found

    known[descriptor.full_name] = convert
    parts.extend((f.name, f.has_presence, _of_field(f, known)) for f in descriptor.fields)
    return convert


def _required(descriptor: Descriptor) -> list[str]:
    return [field.name for field in descriptor.fields if field.is_required]


def _require_set(message: Any, required: Iterable[str]) -> None:  # noqa: ANN401 - of a generated class
    # FindInitializationErrors damages memory where the field is in a message.
    for name in required:
        if not message.HasField(name):
            raise ValueError(f"the required field {name} is missing")


def _of_field(field: FieldDescriptor, known: dict[str, Convert]) -> Convert | None:
    if is_map(field):
        of_key, of_value = (_of_single(part, known) for part in field.message_type.fields)
        return lambda items: {
            key if of_key is None else of_key(key): value if of_value is None else of_value(value)
            for key, value in items.items()
        }
    each = _of_single(field, known)
    if not field.is_repeated:
        return each
    return lambda items: [item if each is None else each(item) for item in items]


def _of_single(field: FieldDescriptor, known: dict[str, Convert]) -> Convert | None:
    if field.message_type is not None:
        return _of_message(field.message_type, known)
    if field.enum_type is not None:
        names = {value.number: value.name for value in reversed(field.enum_type.values)}
        return lambda number: names.get(number, str(number))
    if field.type == field.TYPE_STRING:
        return _text_of
    return None


def _text_of(value: Any) -> str:  # noqa: ANN401 - of the library
    if not isinstance(value, str):  # a proto2 message may have bytes
        raise ValueError(f"not UTF-8: {bytes(value)[:80]!r}")  # noqa: TRY004 - data, and no bug
    return value


def _time_of(message: Any) -> dt.datetime:  # noqa: ANN401 - a Timestamp
    time: dt.datetime = message.ToDatetime(tzinfo=dt.UTC)
    if message.nanos % 1000:
        time = PreciseTime.fromisoformat(time.isoformat())
        time.nanosecond = message.nanos % 1000
    return time


def _into_message(descriptor: Descriptor, known: dict[str, _Set]) -> _Set:
    if descriptor.full_name in known:
        return known[descriptor.full_name]
    if descriptor.full_name == TIMESTAMP:
        return _set_time
    setters: dict[str, tuple[_Set, str]] = {}
    required = _required(descriptor)

    def write(message: Any, value: Any, depth: int) -> None:  # noqa: ANN401 - a user's value
        if descriptor.full_name == _DURATION and isinstance(value, dt.timedelta):
            message.FromTimedelta(value)
            return
        if not isinstance(value, Mapping):
            raise TypeError(f"{descriptor.full_name} is a mapping, not {type(value).__name__}")
        if depth > _DEEPEST:
            raise ValueError(f"messages are nested deeper than {_DEEPEST}")
        chosen: dict[str, str] = {}
        for name, part in value.items():
            if name not in setters:
                raise ValueError(f"{descriptor.full_name} has no field {name!r}")
            if part is not None:
                into, oneof = setters[name]
                _require_alone(name, oneof, chosen)
                _set_named(name, into, message, part, depth)
        _require_set(message, required)

    known[descriptor.full_name] = write
    setters.update((f.name, (_into_field(f, known), _oneof_of(f))) for f in descriptor.fields)
    return write


def _oneof_of(field: FieldDescriptor) -> str:
    return "" if field.containing_oneof is None else str(field.containing_oneof.name)


def _require_alone(name: str, oneof: str, chosen: dict[str, str]) -> None:
    if oneof and chosen.setdefault(oneof, name) != name:
        raise ValueError(f"{chosen[oneof]} and {name} are both set, of {oneof} one may be")


def _set_named(name: str, into: _Set, message: Any, part: Any, depth: int) -> None:  # noqa: ANN401 - a user's value
    try:
        into(message, part, depth)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name}: {error}") from None


def _into_field(field: FieldDescriptor, known: dict[str, _Set]) -> _Set:
    name = field.name
    if is_map(field):
        return _into_map(field, known)
    if field.message_type is not None:
        write = _into_message(field.message_type, known)
        if field.is_repeated:
            return lambda message, value, depth: _each_added(
                getattr(message, name).add, _elements(value), write, depth + 1
            )
        return lambda message, value, depth: _made_present(
            getattr(message, name), value, write, depth + 1
        )
    taken = _taken(field)
    if field.is_repeated:
        return lambda message, value, _: getattr(message, name).extend(
            [taken(_present(part)) for part in _elements(value)]
        )
    return lambda message, value, _: setattr(message, name, taken(value))


def _into_map(field: FieldDescriptor, known: dict[str, _Set]) -> _Set:
    name = field.name
    key_field, value_field = field.message_type.fields
    of_key = _taken(key_field)
    write = (
        None if value_field.message_type is None else _into_message(value_field.message_type, known)
    )
    of_value = None if write is not None else _taken(value_field)

    def into(message: Any, value: Any, depth: int) -> None:  # noqa: ANN401 - a user's value
        entries = getattr(message, name)
        for key, part in pairs_of(value):
            own = of_key(key)
            if own in entries:
                raise ValueError(f"{name} has the key {own!r} twice")
            if of_value is not None:
                entries[own] = of_value(_present(part))
            elif write is not None:
                _made_present(entries[own], _present(part), write, depth + 2)  # the entry is one

    return into


def _each_added(add: Callable[[], Any], elements: Iterable[Any], write: _Set, depth: int) -> None:
    for part in elements:
        write(add(), _present(part), depth)


def _made_present(message: Any, value: Any, write: _Set, depth: int) -> None:  # noqa: ANN401 - of a generated class
    message.SetInParent()
    write(message, value, depth)


def _present(part: Any) -> Any:  # noqa: ANN401 - a user's value
    if part is None:
        raise TypeError("Protobuf has no null among the elements of a list or map")
    return part


def _elements(value: Any) -> Iterable[Any]:  # noqa: ANN401 - a user's value
    if not isinstance(value, list | tuple):
        raise TypeError(f"a repeated field is a list, not {type(value).__name__}")
    return value


def _set_time(message: Any, value: Any, _: int) -> None:  # noqa: ANN401 - a user's value
    if not isinstance(value, dt.datetime):
        raise TypeError(f"a time is a datetime, not {type(value).__name__}")
    message.FromDatetime(value)
    message.nanos += getattr(value, "nanosecond", 0)


def _taken(field: FieldDescriptor) -> Convert:
    if field.enum_type is not None:
        return _enum_number(field)
    if field.type == field.TYPE_STRING:
        return text
    if field.type == field.TYPE_BYTES:
        return octets
    if field.cpp_type == field.CPPTYPE_BOOL:
        return truth
    if field.cpp_type == field.CPPTYPE_FLOAT:
        return single
    return double if field.cpp_type == field.CPPTYPE_DOUBLE else _whole


def _whole(value: Any) -> int:  # noqa: ANN401 - a user's value
    if isinstance(value, decimal.Decimal) and value.is_finite() and value == int(value):
        return int(value)  # a column has unsigned numbers of 64 bits as decimals
    return whole(value)


def _enum_number(field: FieldDescriptor) -> Convert:
    numbers = {value.name: value.number for value in field.enum_type.values}
    is_closed, name = field.enum_type.is_closed, field.enum_type.full_name

    def number_of(value: Any) -> int:  # noqa: ANN401 - a user's value
        found = numbers.get(value) if isinstance(value, str) else _whole(value)
        if found is None and _NUMBER.fullmatch(value):
            found = int(value)  # a number without a name is read as such a text
        if found is None or (is_closed and found not in numbers.values()):
            raise ValueError(f"the enum {name} has no value {value!r}")
        return found

    return number_of
