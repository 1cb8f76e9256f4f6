"""A serde for the objects of one class: a dataclass, a msgspec Struct or a TypedDict, as JSON.

An entry of ``serializers.registry`` names the class: ``module:Class``.
"""

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, TypeGuard, is_typeddict

import msgspec

from homeport.config.errors import ConfigError, WireError, in_one_line
from homeport.container.serde.class_columns import class_columns
from homeport.container.serde.serdes import Serde

_SHOWN = 80
UNFIT = (TypeError, NameError)
"""Errors for a class that JSON cannot become; NameError: of an annotation."""
_METHODS = ("to_bytes", "from_bytes")


def is_record_class(found: object) -> TypeGuard[type]:
    """Return whether the fields of ``found`` have types, so that JSON becomes its objects.

    A class with ``to_bytes`` and ``from_bytes`` is a serde itself, whatever its fields.
    """
    if not isinstance(found, type) or all(hasattr(found, name) for name in _METHODS):
        return False
    return is_dataclass(found) or is_typeddict(found) or issubclass(found, msgspec.Struct)


def unfit(key: str, name: str, error: BaseException) -> ConfigError:
    """Return the error of a class ``name`` that JSON cannot become."""
    rule = f"JSON cannot become its fields: {in_one_line(error)}"
    return ConfigError(key, name, rule, "give fields the types of JSON")


def class_serde(name: str, record: type) -> Serde:
    """Return the serde ``name`` for objects of ``record``, in one line of UTF-8.

    A field that JSON lacks has its default; one that the class lacks is passed over. Bytes that
    are not of the class are a bad record. What would not be read again is not written. A dict of
    its fields, such as a row of a table, is written as the object that it would be read as.

    Raises:
        TypeError: a field has a type that JSON cannot become.
    """
    msgspec.json.schema(record)  # refuses what a decoder would meet in a record alone
    decode: Callable[[bytes], Any] = msgspec.json.Decoder(record).decode
    kind = dict if is_typeddict(record) else record

    def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - what user code put
        if not isinstance(value, kind | dict):
            raise TypeError(f"the serde {name!r} carries {record.__name__}, not {_named(value)}")
        try:
            data = msgspec.json.encode(value)
            read = decode(data)
            if not isinstance(value, kind):
                data = msgspec.json.encode(read)
        except (msgspec.MsgspecError, TypeError, ValueError, RecursionError) as error:
            raise TypeError(f"the serde {name!r} cannot carry it: {error}") from None
        return data

    def from_bytes(data: bytes) -> Any:  # noqa: ANN401 - an object of the class
        try:
            return decode(data)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            raise WireError(f"no {record.__name__}: {data[:_SHOWN]!r} ({error})") from None

    return Serde(name, to_bytes, from_bytes, columns=lambda: class_columns(record, decode))


def _named(value: object) -> str:
    return type(value).__name__
