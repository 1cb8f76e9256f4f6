"""The values of a record, written and read by the types of a dataclass's fields.

PURE. The field ``model_version`` is the value ``model-version``: a text as it stands, a number in
digits, anything else as JSON. The fields of a dataclass inside another one stand beside those of
the other. A field that is None has no value; where a text may be None, an empty one is None. A
reader passes over values that it does not know.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.inspect import DataclassType, EnumType, IntType, NoneType, StrType, Type, UnionType

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage, list_text
from homeport.job_coordinator.coordinator_stream.message_bytes import parse_json, whole_number
from homeport.job_coordinator.model.wire_form import LARGEST, value_of

_T = TypeVar("_T")


def record_of(message_type: str, key: str, value: Any) -> CoordinatorStreamMessage:  # noqa: ANN401 - a dataclass
    """Return the record of that type and key whose values are the fields of ``value``."""
    return CoordinatorStreamMessage(message_type, key, _values(value))


def _values(value: Any) -> dict[str, str]:  # noqa: ANN401 - a dataclass
    values: dict[str, str] = {}
    for field in dataclasses.fields(value):
        each = getattr(value, field.name)
        if dataclasses.is_dataclass(each):
            values |= _values(each)
        elif isinstance(each, str | int):
            values[_name(field.name)] = str(each)
        elif each is not None:
            values[_name(field.name)] = list_text(msgspec.to_builtins(each))
    return values


def decoded(
    kind: type[_T], message: CoordinatorStreamMessage, defaults: Mapping[str, str] | None = None
) -> _T:
    """Return the ``kind`` that the values of ``message`` make; ``defaults`` where one is missing.

    WireError: a value is missing or wrong.
    """
    what = f"{message.type} {message.key!r:.200}"
    try:
        body = _body(kind, {**(defaults or {}), **(message.values or {})})
    except WireError as error:
        raise WireError(f"{what}: {error}") from None
    return value_of(kind, body, what)


def _body(kind: type, values: Mapping[str, str]) -> dict[str, object]:
    body: dict[str, object] = {}
    for field, of, may_be_none in _fields(kind):
        text = values.get(_name(field))
        if isinstance(of, DataclassType):
            body[field] = _body(of.cls, values)
        elif may_be_none and (text is None or (not text and isinstance(of, StrType))):
            body[field] = None
        elif text is not None:
            body[field] = _read(text, field, of)
    return body


@functools.cache
def _fields(kind: type) -> list[tuple[str, Type, bool]]:
    """Return (name, type, whether it may be None) of each field."""
    info: Any = msgspec.inspect.type_info(kind)
    found = []
    for field in info.fields:
        types = field.type.types if isinstance(field.type, UnionType) else (field.type,)
        (of,) = (each for each in types if not isinstance(each, NoneType))
        found.append((field.name, of, len(types) > 1))
    return found


def _read(text: str, field: str, of: Type) -> object:
    if isinstance(of, StrType | EnumType):
        return text
    if not isinstance(of, IntType):
        return parse_json(text, f"value {_name(field)}")
    number = whole_number(text, LARGEST)
    return text if number is None else number  # no field of numbers takes a text


@functools.cache
def _name(field: str) -> str:
    return field.replace("_", "-")
