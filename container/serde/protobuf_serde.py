"""The serde protobuf: messages of one type, which a descriptor set defines; in Python dicts.

A field that is not set is null, if it is a message or ``optional``; else it has its default, as in
Protobuf. An enum is the name of its value, or its number as text if the value has no name. A
``google.protobuf.Timestamp`` is a time. The library is an extra of homeport, imported only here and
in ``protobuf_values``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from homeport.config.errors import ConfigError, WireError
from homeport.config.settings.serde_names import PROTOBUF
from homeport.container.serde.columns import Columns, object_columns, reason_of
from homeport.container.serde.protobuf_values import TIMESTAMP, dict_of, is_map, message_of
from homeport.container.serde.serdes import Serde, not_installed

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor, FieldDescriptor
    from google.protobuf.message import Message

_TYPES = {
    "CPPTYPE_INT32": pa.int32(),
    "CPPTYPE_INT64": pa.int64(),
    "CPPTYPE_UINT32": pa.int64(),
    "CPPTYPE_UINT64": pa.decimal128(20, 0),
    "CPPTYPE_DOUBLE": pa.float64(),
    "CPPTYPE_FLOAT": pa.float32(),
    "CPPTYPE_BOOL": pa.bool_(),
    "CPPTYPE_ENUM": pa.string(),
}


def message_class(key: str, path: str, descriptors: bytes, message: str) -> type[Message]:
    """Return the class of ``message`` from ``descriptors``, the content of ``path``.

    Raises:
        ConfigError: the library is not installed, or has no such message; the line names ``key``.
    """
    try:
        from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: PLC0415 - an extra: only for a job with protobuf
    except ImportError:
        raise not_installed(key, PROTOBUF, "protobuf", "protobuf") from None
    pool = descriptor_pool.DescriptorPool()
    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
        for file in files.file:
            pool.Add(file)
        found = pool.FindMessageTypeByName(message)
    except Exception as error:  # noqa: BLE001 - whatever the library has against it
        rule = f"it is no descriptor set with the message {message!r} ({reason_of(error)})"
        remedy = "make it by protoc --include_imports --descriptor_set_out"
        raise ConfigError(key, path, rule, remedy) from None
    made: type[Message] = message_factory.GetMessageClass(found)
    return made


def protobuf_serde(kind: type[Message]) -> Serde:
    """Return the serde of messages of ``kind``."""
    convert, made = dict_of(kind), message_of(kind)

    def to_bytes(value: Any) -> bytes:  # noqa: ANN401 - a user's value
        data: bytes = made(value).SerializeToString()
        return data

    def from_bytes(data: bytes) -> Any:  # noqa: ANN401 - a user's value
        try:
            message = kind.FromString(data)
        except Exception as error:  # noqa: BLE001 - damaged bytes may raise anything
            raise WireError(f"not of the serde 'protobuf': {reason_of(error)}") from None
        return convert(message)

    return Serde(PROTOBUF, to_bytes, from_bytes, columns=lambda: message_columns(kind, from_bytes))


def protobuf_meaning(kind: type[Message]) -> dict[str, Any]:
    """Return {message or enum that the bytes may contain: its fields or values, by number}."""
    found: dict[str, Any] = {}
    _add_meaning(kind.DESCRIPTOR, found, is_whole=False)
    return found


def protobuf_reading(kind: type[Message]) -> dict[str, Any]:
    """Return ``protobuf_meaning`` with, of each field, whether it is required, and its oneof."""
    found: dict[str, Any] = {}
    _add_meaning(kind.DESCRIPTOR, found, is_whole=True)
    return found


def _add_meaning(descriptor: Descriptor, found: dict[str, Any], *, is_whole: bool) -> None:
    if descriptor.full_name in found:
        return
    fields: list[Any] = []
    found[descriptor.full_name] = fields
    for field in sorted(descriptor.fields, key=lambda f: f.number):
        named = field.message_type or field.enum_type
        fields.append(
            [
                *(field.number, field.name, field.type, bool(field.is_repeated)),
                *(bool(field.has_presence), named.full_name if named is not None else ""),
                *([bool(field.is_required), _oneof(field)] if is_whole else []),
            ]
        )
        if field.message_type is not None:
            _add_meaning(field.message_type, found, is_whole=is_whole)
        elif field.enum_type is not None:
            values = field.enum_type.values
            found[field.enum_type.full_name] = sorted([v.number, v.name] for v in values)


def _oneof(field: FieldDescriptor) -> str:
    return "" if field.containing_oneof is None else str(field.containing_oneof.name)


def message_columns(kind: type[Message], row: Callable[[bytes], Any]) -> Columns:
    """Return the ``Columns`` of messages of ``kind``; ``row`` makes a dict of the bytes of one.

    Raises:
        ValueError: a message holds itself, and so is no column.
    """
    return object_columns(_message_type(kind.DESCRIPTOR, ()), row)


def _message_type(descriptor: Descriptor, within: tuple[str, ...]) -> pa.DataType:
    name = descriptor.full_name
    if name == TIMESTAMP:
        return pa.timestamp("us", "UTC")
    if name in within:
        raise ValueError(f"the message {name} holds itself, and so is no column")
    inside = (*within, name)
    return pa.struct([(field.name, _field_type(field, inside)) for field in descriptor.fields])


def _field_type(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if is_map(field):
        key, value = field.message_type.fields
        return pa.map_(_single_type(key, within), _single_type(value, within))
    single = _single_type(field, within)
    return pa.list_(single) if field.is_repeated else single


def _single_type(field: FieldDescriptor, within: tuple[str, ...]) -> pa.DataType:
    if field.message_type is not None:
        return _message_type(field.message_type, within)
    if field.type == field.TYPE_BYTES:
        return pa.binary()
    if field.type == field.TYPE_STRING:
        return pa.string()
    return next(kind for name, kind in _TYPES.items() if field.cpp_type == getattr(field, name))
