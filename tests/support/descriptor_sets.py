"""Descriptor sets as protoc makes them, without protoc."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, timestamp_pb2
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
    _add(
        flight,
        "at",
        6,
        Field.TYPE_MESSAGE,
        type_name=".google.protobuf.Timestamp",
    )
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
