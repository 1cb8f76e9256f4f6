"""Descriptor sets as protoc makes them, without protoc."""

from __future__ import annotations

from google.protobuf import (
    any_pb2,
    descriptor_pb2,
    duration_pb2,
    empty_pb2,
    field_mask_pb2,
    struct_pb2,
    timestamp_pb2,
    wrappers_pb2,
)
from google.protobuf.descriptor_pb2 import FieldDescriptorProto as Field

MESSAGE = "my.Flight"


def flight_descriptors() -> bytes:
    """A set with the message ``my.Flight``, of each kind of field."""
    file = descriptor_pb2.FileDescriptorProto(
        name="flight.proto",
        package="my",
        syntax="proto3",
        dependency=["google/protobuf/timestamp.proto"],
    )
    colour = file.enum_type.add(name="Colour")
    colour.value.add(name="RED", number=0)
    colour.value.add(name="BLUE", number=1)
    plane = file.message_type.add(name="Plane")
    _add(plane, "tail", 1, Field.TYPE_STRING)
    _add(plane, "seats", 2, Field.TYPE_UINT64)
    flight = file.message_type.add(name="Flight")
    _add(flight, "carrier", 1, Field.TYPE_STRING)
    _add(flight, "delay", 2, Field.TYPE_SINT32)
    flight.oneof_decl.add(name="_gate")
    _add(flight, "gate", 3, Field.TYPE_INT64, proto3_optional=True, oneof_index=0)
    _add(flight, "plane", 4, Field.TYPE_MESSAGE, type_name=".my.Plane")
    _add(flight, "colours", 5, Field.TYPE_ENUM, type_name=".my.Colour", label=Field.LABEL_REPEATED)
    _add(flight, "at", 6, Field.TYPE_MESSAGE, type_name=".google.protobuf.Timestamp")
    entry = flight.nested_type.add(name="StopsEntry")
    entry.options.map_entry = True
    _add(entry, "key", 1, Field.TYPE_STRING)
    _add(entry, "value", 2, Field.TYPE_MESSAGE, type_name=".my.Plane")
    _add(
        flight,
        "stops",
        7,
        Field.TYPE_MESSAGE,
        type_name=".my.Flight.StopsEntry",
        label=Field.LABEL_REPEATED,
    )
    _add(flight, "raw", 8, Field.TYPE_BYTES)
    tree = file.message_type.add(name="Tree")
    _add(tree, "left", 1, Field.TYPE_MESSAGE, type_name=".my.Tree")
    known = descriptor_pb2.FileDescriptorProto()
    timestamp_pb2.DESCRIPTOR.CopyToProto(known)
    data: bytes = descriptor_pb2.FileDescriptorSet(file=[known, file]).SerializeToString()
    return data


def _add(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    kind: Field.Type.ValueType,
    **more: object,
) -> None:
    more.setdefault("label", Field.LABEL_OPTIONAL)
    message.field.add(name=name, number=number, type=kind, **more)


KINDS = "odd.Kinds"
CLOSED = "odd.Closed"
_KNOWN = ("Struct", "Value", "ListValue", "Any", "Duration", "FieldMask", "Empty", "Timestamp")
_WRAPPERS = ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
WELL_KNOWN = (*_KNOWN, *(f"{name}Value" for name in _WRAPPERS))
SCALARS = tuple(
    kind for kind in range(1, 19) if kind not in {Field.TYPE_GROUP, Field.TYPE_MESSAGE, 14}
)


def odd_descriptors() -> bytes:
    """A set with ``odd.Kinds``, of proto3, and ``odd.Closed``, of proto2.

    Each type of field is there alone, ``optional``, repeated, as a map's value, in a oneof and,
    where it may be, as a map's key; so is each well-known type.
    """
    known = [
        struct_pb2,
        any_pb2,
        duration_pb2,
        field_mask_pb2,
        empty_pb2,
        timestamp_pb2,
        wrappers_pb2,
    ]
    files = []
    for module in known:
        files.append(descriptor_pb2.FileDescriptorProto())
        module.DESCRIPTOR.CopyToProto(files[-1])
    dependency = [file.name for file in files]
    for name, syntax in ((KINDS, "proto3"), (CLOSED, "proto2")):
        package, _, short = name.partition(".")
        file = descriptor_pb2.FileDescriptorProto(
            name=f"{short}.proto", package=package, syntax=syntax, dependency=dependency
        )
        enum = file.enum_type.add(name=f"{short}Colour")
        enum.options.allow_alias = True
        for value, number in (("RED", 0), ("BLUE", 5), ("AZURE", 5), ("BELOW", -3)):
            enum.value.add(name=f"{short}_{value}", number=number)
        message = file.message_type.add(name=short)
        message.oneof_decl.add(name="choice")
        types = [(f"t{kind}", kind, "") for kind in SCALARS]
        types.append(("colour", 14, f".{package}.{short}Colour"))
        types += [(t.lower(), 11, f".google.protobuf.{t}") for t in WELL_KNOWN]
        types.append(("own", 11, f".{name}"))
        for number, (field, kind, type_name) in enumerate(types):
            _of_each_form(message, field, kind, type_name, number * 10 + 1)
        for number, kind in enumerate(SCALARS):
            if kind not in {Field.TYPE_DOUBLE, Field.TYPE_FLOAT, Field.TYPE_BYTES}:
                _add_map(message, f"by{kind}", 1001 + number, kind, 5, "")
        if syntax == "proto2":
            _add(message, "required", 2000, 5, label=Field.LABEL_REQUIRED)
            _add(message, "seven", 2001, 5, default_value="7")
        else:
            for number, (field, kind, type_name) in enumerate(types):
                at = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field}_or")
                _add(
                    message,
                    f"{field}_or",
                    3000 + number,
                    kind,
                    proto3_optional=True,
                    oneof_index=at,
                    **_named(type_name),
                )
        files.append(file)
    data: bytes = descriptor_pb2.FileDescriptorSet(file=files).SerializeToString()
    return data


def _of_each_form(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    kind: Field.Type.ValueType,
    type_name: str,
    number: int,
) -> None:
    named = _named(type_name)
    _add(message, name, number, kind, **named)
    _add(message, f"{name}_all", number + 1, kind, label=Field.LABEL_REPEATED, **named)
    _add(message, f"{name}_one", number + 2, kind, oneof_index=0, **named)
    _add_map(message, f"{name}_map", number + 3, Field.TYPE_STRING, kind, type_name)


def _add_map(
    message: descriptor_pb2.DescriptorProto,
    name: str,
    number: int,
    key: Field.Type.ValueType,
    value: Field.Type.ValueType,
    type_name: str,
) -> None:
    entry = message.nested_type.add(name="".join(p.title() for p in name.split("_")) + "Entry")
    entry.options.map_entry = True
    _add(entry, "key", 1, key)
    _add(entry, "value", 2, value, **_named(type_name))
    _add(
        message,
        name,
        number,
        Field.TYPE_MESSAGE,
        label=Field.LABEL_REPEATED,
        type_name=f".odd.{message.name}.{entry.name}",
    )


def _named(type_name: str) -> dict[str, str]:
    return {"type_name": type_name} if type_name else {}
