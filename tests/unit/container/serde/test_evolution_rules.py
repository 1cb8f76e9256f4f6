"""The rules for values of JSON, of classes and of Protobuf: what is accepted is read."""

from __future__ import annotations

import enum
import json
from dataclasses import dataclass, field, make_dataclass
from pathlib import Path
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar

import msgspec
import pytest
from google.protobuf import descriptor_pb2
from hypothesis import event, given
from hypothesis import strategies as st

from homeport.config.errors import WireError
from homeport.container.serde.class_serde import class_serde
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.evolution.class_rules import class_fault, class_meaning
from homeport.container.serde.evolution.json_rules import json_fault
from homeport.container.serde.evolution.protobuf_rules import protobuf_fault
from homeport.container.serde.json_schema_serde import json_meaning, json_schema_serde
from homeport.container.serde.protobuf_serde import (
    message_class,
    protobuf_meaning,
    protobuf_reading,
    protobuf_serde,
)


def _of_json(writer: str, reader: str) -> str | None:
    return json_fault(*(json_meaning(struct_of_ddl(text)) for text in (writer, reader)))


@pytest.mark.parametrize(
    ("writer", "reader", "fault"),
    [
        ("a INT", "a INT, b STRING", None),
        ("a INT, b STRING", "b STRING", None),
        ("a TINYINT", "a BIGINT", None),
        ("a BIGINT", "a INT", "field a: int64 is no int32"),
        ("a FLOAT", "a DOUBLE", None),
        ("a SMALLINT", "a FLOAT", None),
        ("a INT", "a DOUBLE", None),
        ("a BIGINT", "a DOUBLE", "field a: int64 is no double"),
        ("a DECIMAL(4,2)", "a DECIMAL(6,3)", None),
        ("a DECIMAL(4,2)", "a DECIMAL(4,3)", "field a: decimal128(4, 2) is no decimal128(4, 3)"),
        ("a STRUCT<x: INT, y: MAP<INT, STRING>>", "a STRUCT<y: MAP<BIGINT, STRING>, z: INT>", None),
        ("a STRUCT<x: INT>", "a STRUCT<x: STRING>", "field a.x: int32 is no string"),
        ("a ARRAY<STRUCT<x: INT>>", "a ARRAY<STRUCT<x: BIGINT, y: DATE>>", None),
        ("a ARRAY<INT>", "a ARRAY<DATE>", "field a.[]: int32 is no date32[day]"),
        ("a MAP<INT, INT>", "a MAP<INT, STRING>", "field a.{}: int32 is no string"),
        ("a ARRAY<INT>", "a INT", "field a: list<item: int32> is no int32"),
        ("a INT", "a ARRAY<INT>", "field a: int32 is no list<item: int32>"),
        ("a DECIMAL(4,2)", "a DECIMAL(6,2)", None),
        ("a DECIMAL(4,2)", "a DECIMAL(5,3)", None),
        ("a DECIMAL(4,2)", "a DECIMAL(6,1)", "field a: decimal128(4, 2) is no decimal128(6, 1)"),
        (
            "a STRUCT<x: DECIMAL(4,2), y: INT>",
            "a STRUCT<x: DECIMAL(4,2), y: DATE>",
            "field a.y: int32 is no date32[day]",
        ),
        (
            "a STRUCT<x: INT, y: INT>",
            "a STRUCT<x: STRING, y: INT>",
            "field a.x: int32 is no string",
        ),
    ],
)
def test_objects_of_json(writer: str, reader: str, fault: str | None) -> None:
    """By name; a missing one is null."""
    assert _of_json(writer, reader) == fault


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "TINYINT": st.integers(-(2**7), 2**7 - 1),
    "INT": st.integers(-(2**31), 2**31 - 1),
    "BIGINT": st.integers(-(2**63), 2**63 - 1),
    "FLOAT": st.floats(width=32, allow_nan=False, allow_infinity=False),
    "DOUBLE": st.floats(allow_nan=False, allow_infinity=False),
    "STRING": st.text(max_size=3),
    "BOOLEAN": st.booleans(),
    "DECIMAL(4,2)": st.decimals(-99, 99, places=2),
    "DECIMAL(7,3)": st.decimals(-9999, 9999, places=3),
}
FIELDS = st.dictionaries(st.sampled_from("abcd"), st.sampled_from(sorted(_VALUES)), min_size=1)


@given(FIELDS, FIELDS, st.data())
def test_objects_that_are_accepted_are_read_as_they_were_written(
    writer: dict[str, str], reader: dict[str, str], data: st.DataObject
) -> None:
    """Of random schemas: nothing is another value; what is refused is not read, for some value."""
    old, new = (", ".join(f"{n} {t}" for n, t in of.items()) for of in (writer, reader))
    value = {name: data.draw(_VALUES[kind]) for name, kind in writer.items()}
    was, now = (json_schema_serde(struct_of_ddl(text)) for text in (old, new))
    written = was.to_bytes(value)
    if _of_json(old, new) is not None:
        event("refused")
        return
    event("accepted")
    found, before = now.from_bytes(written), was.from_bytes(written)
    assert found.keys() == reader.keys()
    for name, kind in reader.items():
        same = before.get(name)
        is_float = writer.get(name) == "FLOAT" and kind == "DOUBLE"
        assert found[name] == (value[name] if is_float else same)


def _class(*fields: Any) -> type:  # noqa: ANN401 - as of make_dataclass
    return make_dataclass("Of", fields)


@dataclass
class Inner:
    """A class within others."""

    x: int


@dataclass
class More:
    """The same with one more field."""

    x: int
    y: int = 0


@dataclass
class Less:
    """A class without the field of the others."""

    y: int


class _Colour(enum.Enum):
    RED = "red"


class _Colours(enum.Enum):
    RED = "red"
    BLUE = "blue"


class _Maybe(TypedDict):
    a: NotRequired[int]


class _Must(TypedDict):
    a: int


class _Closed(msgspec.Struct, forbid_unknown_fields=True):
    a: int


class _Omits(msgspec.Struct, omit_defaults=True):
    a: int = 5


class _OmitsUnwritten(msgspec.Struct, omit_defaults=True):
    a: object = object  # which JSON cannot carry


class _OmitsOther(msgspec.Struct, omit_defaults=True):
    a: int = 6


class _Tagged(msgspec.Struct, tag="t"):
    a: int


class _Row(msgspec.Struct, array_like=True):
    a: int
    b: int = 0


class _OmitsTime(msgspec.Struct, omit_defaults=True):
    a: int
    at: float = msgspec.field(default_factory=iter(range(1000)).__next__)


class _Unset(msgspec.Struct):
    a: int | msgspec.UnsetType = msgspec.UNSET


class _TaggedToo(msgspec.Struct, tag="u"):
    a: int


T = TypeVar("T")


class _Point(NamedTuple):
    x: int
    y: int


class _TurnedPoint(NamedTuple):
    y: int
    x: int


class _Box(msgspec.Struct, Generic[T]):
    v: T


def _row_of(*fields: Any) -> type:  # noqa: ANN401 - as of defstruct
    return msgspec.defstruct("_Of", fields, array_like=True)


Bounded, Short = msgspec.Meta(ge=0), msgspec.Meta(max_length=2)


class _Keeps(msgspec.Struct):
    a: int = 5


class _KeepsOther(msgspec.Struct):
    a: int = 6


class _Numbers(enum.Enum):
    TWO = 2
    TEN = 10


class _Own:
    """A class that the job's own hook makes."""


@dataclass
class Node:
    """A class within itself."""

    next: Node | None
    x: int


@dataclass
class OtherNode:
    """The same with another field."""

    next: OtherNode | None
    x: str


class _OfAll(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True, tag=0):
    """Something of each kind."""

    must: dict[str, list[_Numbers]]
    some: Annotated[int, msgspec.Meta(ge=0, title="A")] | None = None
    many: list[Literal[2, "b"]] = []
    pair: tuple[_Own, Annotated[str, msgspec.Meta(max_length=3)]] | msgspec.UnsetType = (
        msgspec.UNSET
    )
    unwritten: object = object
    kept: Node | None = msgspec.field(default_factory=lambda: None)


RULES_OF_CLASSES: list[tuple[Any, Any, str | None]] = [
    (_class(("a", int)), _class(("a", int), ("b", int, field(default=1))), None),
    (_class(("a", int)), _class(("b", list[int], field(default_factory=list))), None),
    (_class(("a", int)), _class(("a", int), ("b", int)), "field b: it is missing in older"),
    (_class(("a", int), ("b", str)), _class(("a", int)), None),
    (_class(("a", int)), _class(("a", int | None)), None),
    (_class(("a", int | None)), _class(("a", int)), "field a: none is no int"),
    (_class(("a", int)), _class(("a", float)), "field a: int is no float"),
    (_class(("a", int)), _class(("a", int | str)), None),
    (_class(("a", Inner)), _class(("a", More)), None),
    (_class(("a", Inner)), _class(("a", Less)), "field a.y: it is missing in older values"),
    (_class(("a", list[Inner])), _class(("a", list[More])), None),
    (_class(("a", list[Inner])), _class(("a", list[Less])), "field a.[].y: it is missing"),
    (_class(("a", list[int])), _class(("a", set[int])), "field a: list is no set"),
    (_class(("a", dict[str, Inner])), _class(("a", dict[str, More])), None),
    (_class(("a", dict[str, int])), _class(("a", dict[str, str])), "field a.{}: int is no str"),
    (_class(("a", tuple[int, str])), _class(("a", tuple[int])), "field a: tuple is no tuple"),
    (_class(("a", _Colour)), _class(("a", _Colours)), None),
    (_class(("a", _Colours)), _class(("a", _Colour)), "field a: 'blue' is no value of it"),
    (_class(("a", Literal["red"])), _class(("a", _Colour)), None),
    (_class(("a", Annotated[int, Bounded])), _class(("a", int)), None),
    (_class(("a", int)), _class(("a", Annotated[int, Bounded])), "field a: int is no int"),
    (_Maybe, _Must, "field a: where older values lack it, it would be another value"),
    (_Must, _Maybe, None),
    (_class(("a", int), ("b", int)), _Closed, "field b: older values have it, and the class"),
    (_class(("a", int)), _Closed, None),
    (_Omits, _OmitsOther, "field a: where older values lack it"),
    (_Omits, _Omits, None),
    (_class(("a", int)), _Tagged, "tag_field None is no 'type'"),
    (_class(("a", int), ("b", int)), _Row, "an array_like class keeps its fields"),
    (_Row, _Row, None),
    (_row_of("a", "b"), _row_of("b", "a"), "an array_like class keeps its fields"),
    (
        _row_of(("a", _class(("x", int)))),
        _row_of(("a", _class(("x", str)))),
        "field a.x: int is no str",
    ),
    (_class(("a", _Point)), _class(("a", _TurnedPoint)), "field a: an array_like class"),
    (_class(("a", _Point)), _class(("a", _Point)), None),
    (
        _class(("a", _Box[int]), ("b", _Box[str])),
        _class(("a", _Box[int]), ("b", _Box[int])),
        "field b.v: str is no int",
    ),
    (_class(("a", tuple[int, str])), _class(("a", tuple[int, int])), "field a.{}: str is no int"),
    (_class(("a", Annotated[int, msgspec.Meta(title="A")])), _class(("a", int)), None),
    (_class(("a", Path)), _class(("a", str)), "field a: custom is no str"),
    (_Omits, _OmitsUnwritten, "field a: where older values lack it"),
    (_OmitsUnwritten, _OmitsUnwritten, None),
    (_OmitsTime, _OmitsTime, None),
    (_Unset, _class(("a", int, field(default=1))), "field a: where older values lack it"),
    (_Unset, _Unset, None),
    (_Keeps, _KeepsOther, None),
    (_class(("a", float)), _class(("a", int | str)), "field a: float is no int | str"),
    (_class(("a", list[int])), _class(("a", Annotated[list[int], Short])), "field a: list is no l"),
    (_class(("a", list[Annotated[int, Bounded]])), _class(("a", list[int])), None),
    (_class(("a", Literal[1, "red"])), _class(("a", Literal[1, "red", "b"])), None),
    (_class(("a", Path)), _class(("a", _Own)), "field a: custom is no custom"),
    (Node, Node, None),
    (Node, OtherNode, "field x: int is no str"),
    (_Row, _class(("a", int), ("b", int)), "an array_like class keeps its fields"),
    (
        _class(("a", _Tagged), ("b", _Tagged)),
        _class(("a", _TaggedToo | _Tagged), ("b", _TaggedToo)),
        "field b: tag 't' is no 'u'",
    ),
]


@pytest.mark.parametrize(("writer", "reader", "fault"), RULES_OF_CLASSES)
def test_objects_of_classes(writer: type, reader: type, fault: str | None) -> None:
    """The description goes through a record of the coordinator stream, as JSON."""
    was, now = (json.loads(json.dumps(class_meaning(of))) for of in (writer, reader))
    found = class_fault(was, now)
    assert found is None if fault is None else (found or "").startswith(fault)


def test_the_description_of_a_class_stays() -> None:
    """The coordinator stream has it: by another one each store would have another schema."""
    own, none = f"{__name__}.", {"type": "NoneType"}
    node = {"union": [{"record": f"{own}Node"}, none]}
    text = {"type": "StrType"}
    fields = {
        "must": {"type": {"dict": [text, {"ListType": {"values": [10, 2]}}]}, "required": True},
        "some": {"type": {"union": [{"type": "IntType", "ge": 0}, none]}, "omitted": "null"},
        "many": {"type": {"ListType": {"values": ["b", 2]}}, "omitted": "[]"},
        "pair": {
            "type": {"tuple": [{"custom": f"{own}_Own"}, text | {"max_length": 3}]},
            "omitted": "",
        },
        "unwritten": {"type": {"custom": "builtins.object"}, "omitted": "type"},
        "kept": {"type": node},
    }
    of_node = {
        "next": {"type": node, "required": True},
        "x": {"type": {"type": "IntType"}, "required": True},
    }
    traits = {"forbid_unknown_fields": True, "tag_field": "type", "tag": 0}
    wanted = {f"{own}_OfAll": {"fields": fields} | traits, f"{own}Node": {"fields": of_node}}
    assert json.dumps(class_meaning(_OfAll)) == json.dumps(wanted)


_TYPES: dict[str, tuple[Any, Any]] = {
    "int": (int, 5),
    "str": (str, "x"),
    "none": (int | None, None),
    "float": (float, 1.5),
    "inner": (Inner, Inner(3)),
    "more": (More, More(3, 4)),
    "list": (list[int], [1]),
}
CLASSES = st.dictionaries(
    st.sampled_from("abc"), st.tuples(st.sampled_from(sorted(_TYPES)), st.booleans())
)


def _maybe(kind: str, has_default: bool) -> Any:  # noqa: ANN401, FBT001 - a field of a dataclass
    return field(default_factory=lambda: _TYPES[kind][1]) if has_default else field()


@given(CLASSES, CLASSES)
def test_objects_of_a_class_that_is_accepted_become_those_of_the_other(
    writer: dict[str, tuple[str, bool]], reader: dict[str, tuple[str, bool]]
) -> None:
    """Of random classes; what is refused does not become one of it."""

    def made(fields: dict[str, tuple[str, bool]]) -> type:
        ordered = sorted(fields.items(), key=lambda item: item[1][1])
        return _class(*((name, _TYPES[kind][0], _maybe(kind, d)) for name, (kind, d) in ordered))

    was, now = made(writer), made(reader)
    value = was(**{n: _TYPES[t][1] for n, (t, _) in writer.items()})
    data = class_serde("m:Was", was).to_bytes(value)
    serde = class_serde("m:Now", now)
    fault = class_fault(class_meaning(was), class_meaning(now))
    event("refused" if fault else "accepted")
    if fault is None:
        found = serde.from_bytes(data)
        for name, (kind, _) in reader.items():
            if name in writer and "none" not in {kind, writer[name][0]}:
                part = getattr(found, name)
                assert part == _TYPES[kind][1] or part.x == 3
    elif "int is no float" not in fault and "none" not in str(writer):
        with pytest.raises(WireError):  # msgspec makes the nearest float of an int
            serde.from_bytes(data)


INT32, INT64, UINT32, STRING, BYTES, MESSAGE, ENUM, FLOAT, DOUBLE = 5, 3, 13, 9, 12, 11, 14, 2, 1
UINT64, FIXED32, BOOL, GROUP, SINT32, SINT64 = 4, 7, 8, 10, 17, 18


def _message(
    *fields: dict[str, Any], names: tuple[str, ...] = ("OFF", "ON"), syntax: str = "proto3"
) -> Any:  # noqa: ANN401 - a class of the library
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", package="p", syntax=syntax)
    message = file.message_type.add(name="M")
    for about in fields:
        message.field.add(**({"label": 1} | about))
    if any("oneof_index" in about for about in fields):
        message.oneof_decl.add(name="of")
    inner = file.message_type.add(name="I")
    inner.field.add(name="x", number=1, type=INT32, label=1)
    kinds = file.enum_type.add(name="E")
    for number, name in enumerate(names):
        kinds.value.add(name=name, number=number)
    data = descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()
    return message_class("key", "m.desc", data, "p.M")


def _f(name: str, number: int, kind: int, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - of a descriptor
    return {"name": name, "number": number, "type": kind, **more}


_IN_ONEOF = {"oneof_index": 0}
_I = {"type_name": ".p.I"}
_E = {"type_name": ".p.E"}


@pytest.mark.parametrize(
    ("writer", "reader", "fault"),
    [
        ([_f("a", 1, INT32)], [_f("a", 1, INT32), _f("b", 2, STRING)], None),
        ([_f("a", 1, INT32), _f("b", 2, STRING)], [_f("b", 2, STRING)], None),
        ([_f("a", 1, INT32)], [_f("a", 1, INT64)], None),
        ([_f("a", 1, UINT32)], [_f("a", 1, INT64)], None),
        ([_f("a", 1, INT64)], [_f("a", 1, INT32)], "field a: int64 is no int32"),
        ([_f("a", 1, FLOAT)], [_f("a", 1, DOUBLE)], "field a: float is no double"),
        ([_f("a", 1, STRING)], [_f("a", 1, BYTES)], None),
        ([_f("a", 1, BYTES)], [_f("a", 1, STRING)], "field a: bytes is no string"),
        ([_f("a", 1, INT32)], [_f("b", 1, INT32)], None),
        (
            [_f("a", 1, INT32), _f("b", 2, INT32)],
            [_f("b", 1, INT32), _f("a", 2, INT32)],
            "field b: it had the number 2, and has 1",
        ),
        ([_f("a", 1, INT32)], [_f("a", 1, INT32, label=3)], "field a: a repeated field is no"),
        ([_f("a", 1, MESSAGE, **_I)], [_f("a", 1, MESSAGE, **_I), _f("b", 2, INT32)], None),
        ([_f("a", 1, MESSAGE, **_I)], [_f("a", 1, BYTES)], "field a: a value that is not set"),
        ([_f("a", 1, ENUM, **_E)], [_f("a", 1, ENUM, **_E)], None),
        ([_f("a", 1, ENUM, **_E)], [_f("a", 1, INT32)], "field a: enum is no int32"),
        ([_f("a", 1, INT32)], [_f("a", 1, ENUM, **_E)], "field a: int32 is no enum"),
        ([_f("a", 1, UINT32)], [_f("a", 1, UINT64)], None),
        ([_f("a", 1, SINT32)], [_f("a", 1, SINT64)], None),
        ([_f("a", 1, SINT32)], [_f("a", 1, INT32)], "field a: type 17 is no int32"),
        ([_f("a", 2, INT32)], [_f("b", 1, INT32), _f("a", 2, STRING)], "field a: int32 is no str"),
    ],
)
def test_messages_of_protobuf(
    writer: list[dict[str, Any]], reader: list[dict[str, Any]], fault: str | None
) -> None:
    """By number and wire type; a name that moves to another number is no rename."""
    was, now = _message(*writer), _message(*reader)
    found = protobuf_fault(*json.loads(json.dumps([protobuf_meaning(was), protobuf_reading(now)])))
    assert found is None if fault is None else (found or "").startswith(fault)
    is_same = writer[0]["number"] == reader[0]["number"]
    if found is None and is_same and writer[0]["type"] != STRING:
        value = {MESSAGE: {"x": 7}, ENUM: "ON"}.get(writer[0]["type"], 7)
        old = protobuf_serde(was).to_bytes({writer[0]["name"]: value})
        assert value in protobuf_serde(now).from_bytes(old).values()


def test_values_of_an_enum_keep_their_names() -> None:
    """More of them may come; in a closed enum an older reader would not read them."""
    old, new, renamed = (
        protobuf_meaning(_message(_f("a", 1, ENUM, **_E), names=names))
        for names in (("OFF", "ON"), ("OFF", "ON", "X"), ("OFF", "BROKEN"))
    )
    assert protobuf_fault(old, new) is None
    assert protobuf_fault(new, old) == "field a: the enum's value 2 (X) is another one, or missing"
    assert protobuf_fault(old, renamed) is not None


def test_a_required_field_may_not_come() -> None:
    """Older values have none."""
    was = _message(_f("a", 1, INT32), syntax="proto2")
    now = _message(_f("a", 1, INT32), _f("b", 2, INT32, label=2), syntax="proto2")
    fault = protobuf_fault(protobuf_meaning(was), protobuf_reading(now))
    assert fault == "field b: older values may lack it, and it is required"


def test_a_field_that_values_may_lack_does_not_become_required() -> None:
    """The reading of the newest writer has it; a meaning alone has not."""
    optional, required = (
        _message(_f("a", 1, INT32, label=label), syntax="proto2") for label in (1, 2)
    )
    was, now = protobuf_reading(optional), protobuf_reading(required)
    assert protobuf_fault(was, now) == "field a: older values may lack it, and it is required"
    assert protobuf_fault(now, now) is None
    assert protobuf_fault(now, was) is None
    assert protobuf_fault(protobuf_meaning(required), now) is None


def test_fields_that_values_may_have_together_do_not_move_into_one_oneof() -> None:
    """A reader would keep the last of them, and lose the others in silence."""
    apart, one, more = (
        _message(_f("a", 1, INT32, **a), _f("b", 2, INT32, **b), syntax="proto2")
        for a, b in (({}, {}), (_IN_ONEOF, {}), (_IN_ONEOF, _IN_ONEOF))
    )
    data = protobuf_serde(apart).to_bytes({"a": 1, "b": 2})
    assert protobuf_serde(more).from_bytes(data) == {"a": None, "b": 2}
    apart, one, more = (protobuf_reading(kind) for kind in (apart, one, more))
    for was in (apart, one):
        assert protobuf_fault(was, more) == "field b: older values may have it beside a"
    for was, now in ((apart, one), (more, more), (more, apart), (apart, apart)):
        assert protobuf_fault(was, now) is None
    unknown = {"p.M": [field[:7] for field in apart["p.M"]]}  # as a former version recorded them
    assert protobuf_fault(unknown, more) is None


def test_a_well_known_message_is_no_other_one() -> None:
    """A Timestamp is a time in Python, and another message with its fields a dict."""
    fields = [[1, "seconds", INT64, False, False, ""]]
    was = {
        "p.M": [[1, "at", MESSAGE, False, True, "google.protobuf.Timestamp"]],
        "google.protobuf.Timestamp": fields,
    }
    now = {"p.M": [[1, "at", MESSAGE, False, True, "p.T"]], "p.T": fields}
    assert protobuf_fault(was, now) == "field at: google.protobuf.Timestamp is no p.T"
    assert protobuf_fault(was, was) is None


def test_the_kinds_of_fields_have_their_names() -> None:
    """And a message, or a group, is compared by its fields, not by its name."""

    def of(kind: int, inner: str = "", x: int = INT32) -> dict[str, Any]:
        inside = {inner: [[1, "x", x, False, False, ""]]} if inner else {}
        return {"p.M": [[1, "a", kind, False, False, inner]], **inside}

    names = {UINT64: "uint64", BOOL: "bool", BYTES: "bytes", UINT32: "uint32", MESSAGE: "message"}
    for kind, name in names.items():
        fault = protobuf_fault(of(kind, "p.T" if kind == MESSAGE else ""), of(FIXED32))
        assert fault == f"field a: {name} is no type 7"
    assert protobuf_fault(of(BYTES), of(MESSAGE, "p.T")) == "field a: bytes is no message"
    for kind in (MESSAGE, GROUP):
        assert protobuf_fault(of(kind, "p.T"), of(kind, "p.U")) is None
        fault = protobuf_fault(of(kind, "p.T"), of(kind, "p.U", STRING))
        assert fault == "field a.x: int32 is no string"


def test_a_message_within_itself_is_compared_once() -> None:
    """As a list of nodes, each of which has the next one."""
    node = _message(_f("next", 1, MESSAGE, type_name=".p.M"), _f("x", 2, INT32))
    wide = _message(_f("next", 1, MESSAGE, type_name=".p.M"), _f("x", 2, INT64))
    other = _message(_f("next", 1, MESSAGE, type_name=".p.M"), _f("x", 2, STRING))
    was, now, no = map(protobuf_meaning, (node, wide, other))
    assert protobuf_fault(was, now) is None
    assert "field x" in (protobuf_fault(was, no) or "")
