"""Protobuf's messages as dicts and columns: what is read is what is written, or it is refused."""

from __future__ import annotations

import datetime as dt
import decimal
import sys
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from descriptor_sets import CLOSED, KINDS, MESSAGE, WELL_KNOWN, flight_descriptors, odd_descriptors
from google.protobuf.message import Message

from homeport.config.errors import ConfigError, WireError
from homeport.container.serde.protobuf_serde import message_class, protobuf_serde
from homeport.container.serde.serdes import Serde

DESCRIPTORS = odd_descriptors()
KIND = message_class("key", "odd.desc", DESCRIPTORS, KINDS)
OLD = message_class("key", "odd.desc", DESCRIPTORS, CLOSED)


def _again(message: Message) -> Message:
    """What ``message`` is after it was read and sent on."""
    serde = protobuf_serde(type(message))
    found: Message = type(message).FromString(
        serde.to_bytes(serde.from_bytes(message.SerializeToString()))
    )
    return found


def _known(message: Any) -> None:  # noqa: ANN401 - a generated class
    """Fill each well-known type once."""
    message.struct.update({"colour": "red", "n": 1, "fields": {"no": None}, "l": [1, {}, []]})
    message.value.list_value.extend([True, None, {"a": 1}])
    message.listvalue.extend([[], {"string_value": 5}])
    message.any.Pack(message.struct)
    message.duration.FromNanoseconds(-1_000_000_001)
    message.fieldmask.paths.extend(["a.b", "c"])
    message.empty.SetInParent()
    message.timestamp.seconds, message.timestamp.nanos = -5, 123_456_789
    for name in WELL_KNOWN:
        if hasattr(getattr(message, name.lower()), "value") and name.endswith("Value"):
            getattr(message, name.lower()).SetInParent()


def test_well_known_types_are_kept_alone_in_lists_maps_and_oneofs() -> None:
    """A Struct is no dict of its content: only its fields are unmistakable."""
    message = KIND()
    _known(message)
    for name in map(str.lower, WELL_KNOWN):
        inner = getattr(message, name)
        getattr(message, f"{name}_all").extend([inner, type(inner)()])
        getattr(message, f"{name}_map")["k"].CopyFrom(inner)
        getattr(message, f"{name}_or").SetInParent()
    message.own.own_all.add().struct_one.update({"deep": 1})
    assert _again(message) == message
    value = protobuf_serde(KIND).from_bytes(message.SerializeToString())
    assert set(value["struct"]["fields"]) == {"colour", "n", "fields", "l"}
    with pytest.raises(TypeError, match=r"google\.protobuf\.Struct has no field 'colour'"):
        protobuf_serde(KIND).to_bytes({"struct": {"colour": "red"}})


def test_what_a_writer_of_a_newer_or_older_schema_sets_is_kept_or_refused() -> None:
    """An open enum has numbers without a name; a closed one refuses them, as a changed type."""
    message = KIND(colour=77, colour_all=[5, -9, 0], colour_map={"a": 6}, colour_or=-3)
    assert _again(message) == message
    assert protobuf_serde(KIND).from_bytes(message.SerializeToString())["colour"] == "77"
    assert KIND.FromString(protobuf_serde(KIND).to_bytes({"colour": 77})).colour == 77
    open_one = KIND(colour=77).SerializeToString()
    for field in ("colour", "colour_all", "colour_map", "colour_one"):
        number = OLD.DESCRIPTOR.fields_by_name[field].number
        is_map = field == "colour_map"
        data = _entry(number) if is_map else _varint_field(number, 77)
        with pytest.raises(WireError, match=field):
            protobuf_serde(OLD).from_bytes(_required() + data)
    text = KIND.DESCRIPTOR.fields_by_name["t9"].number
    with pytest.raises(WireError, match=r"the field t9 of odd.Kinds has another type"):
        protobuf_serde(KIND).from_bytes(_varint_field(text, 5))
    assert protobuf_serde(KIND).from_bytes(_varint_field(9999, 5) + open_one)["colour"] == "77"


def _required() -> bytes:
    return _varint_field(2000, 1)


def _entry(number: int) -> bytes:
    return _varint((number << 3) | 2) + b"\x04\x0a\x00\x10\x4d"


def _varint_field(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value & 127 | 128)
        value >>= 7
    return bytes([*found, value])


def test_presence_is_kept_and_required_fields_are_there() -> None:
    """A field of proto2 that is set to its default is set; one that is missing is refused."""
    message = OLD(required=0, t5=0, t9="", seven=7)
    message.own.required = 1
    again = _again(message)
    assert again == message
    assert again.HasField("t5")
    assert not again.HasField("t3")
    serde = protobuf_serde(OLD)
    assert serde.from_bytes(_required())["seven"] is None
    for _ in range(200):
        for data in (b"", bytes.fromhex("b20300ea1400"), OLD(required=1, own_all=[OLD()])):
            wire = data if isinstance(data, bytes) else data.SerializePartialToString()
            with pytest.raises(WireError, match="the required field required is missing"):
                serde.from_bytes(wire)
        for field, inner in (("own", {}), ("own_all", [{}]), ("own_map", {"a": {}})):
            with pytest.raises(TypeError, match=f"{field}: the required field required is missing"):
                serde.to_bytes({"required": 1, field: inner})
    one = KIND(own_one=KIND(), t5_or=0)
    assert _again(one) == one
    with pytest.raises(TypeError, match="t5_one and t9_one are both set, of choice one may be"):
        protobuf_serde(KIND).to_bytes({"t5_one": 0, "t9_one": "x", "t3_one": None})


def test_text_of_proto2_that_is_no_text_is_refused() -> None:
    """Its library hands out bytes for it, alone, in lists and in maps."""
    for field, data in (
        ("t9", b"\x01\xff"),
        ("t9_all", b"\x01\xff"),
        ("t9_map", b"\x03\x0a\x01\xff"),
    ):
        number = OLD.DESCRIPTOR.fields_by_name[field].number
        with pytest.raises(WireError, match=r"UTF-8|utf-8"):
            protobuf_serde(OLD).from_bytes(_required() + _varint((number << 3) | 2) + data)


@pytest.mark.parametrize(
    "value",
    [
        *({"t2": -(2.0**128)}, {"t2_all": [1.0, 1e39]}, {"t2_all": [2**53], "t2_one": 2**53 - 1}),
        *({"t5": decimal.Decimal("1.5")}, {"t5": decimal.Decimal("NaN")}, {"t5": np.bool_(1)}),
        *({"colour": "7_7"}, {"colour": "+77"}, {"colour": "\u0667"}),
        *(
            {"t9_map": {"\ud83d": "x"}},
            {"t9_map": {"a": None}},
            {"t9_map": [("a", "x"), ("a", "y")]},
        ),
        *({"t9_map": [("a",)]}, {"t9_map": "ab"}, {"t9_map": {5: "x"}}, {"t9_all": "ab"}),
        *({"t9_all": ["a", None]}, {"own_all": [None]}, {"own_map": {"a": None}}, {"own": 5}),
        *({"own": [("t9", "x")]}, {"t12": "x"}, {"duration": 5}, {"other": None}),
    ],
)
def test_what_the_message_cannot_carry_is_refused_and_never_cast(value: object) -> None:
    """A number that does not fit becomes no infinity, a null no missing entry."""
    with pytest.raises(TypeError, match=r"odd\.Kinds cannot carry it: ."):
        protobuf_serde(KIND).to_bytes(value)


def test_numbers_that_are_not_finite_are_kept() -> None:
    """A double may be so, and so may a float; the zero below nought keeps its sign."""
    message = KIND(t1=float("nan"), t2=float("inf"), t1_all=[-0.0, 2**53], t2_or=-0.0)
    assert _again(message).SerializeToString() == message.SerializeToString()
    assert KIND.FromString(protobuf_serde(KIND).to_bytes({"t2": np.float32(0.1), "t1": 3})).t1 == 3
    assert KIND.FromString(protobuf_serde(KIND).to_bytes({"t2": 3.4028235e38})).t2 < float("inf")


def test_a_closed_enum_takes_only_its_values() -> None:
    """By name, or by number."""
    serde = protobuf_serde(OLD)
    for value in (5, "Closed_BLUE", "Closed_AZURE", "5"):
        assert OLD.FromString(serde.to_bytes({"required": 1, "colour": value})).colour == 5
    with pytest.raises(TypeError, match="ClosedColour has no value 6"):
        serde.to_bytes({"required": 1, "colour": 6})


def test_times_outside_of_pythons_years_are_undecodable() -> None:
    """In a dict and in a column alike; digits below a microsecond are kept in a dict."""
    serde = protobuf_serde(message_class("k", "d", DESCRIPTORS, "google.protobuf.Timestamp"))
    assert serde.columns is not None
    at = message_class("k", "d", DESCRIPTORS, "google.protobuf.Timestamp")
    for seconds, nanos in ((10**12, 0), (-(10**12), 0), (1, 2_000_000_000), (253402300800, 0)):
        data = at(seconds=seconds, nanos=nanos).SerializeToString()
        with pytest.raises(WireError):
            serde.from_bytes(data)
        assert list(serde.columns().decode(pa.array([data], pa.binary())).bad) == [0]
    precise = at(seconds=253402300799, nanos=999_999_999)
    assert _again(precise) == precise
    column = serde.columns().decode(pa.array([precise.SerializeToString()], pa.binary())).column
    assert column.to_pylist() == [dt.datetime.max.replace(tzinfo=dt.UTC)]
    assert serde.from_bytes(precise.SerializeToString()) == column.to_pylist()[0]
    length = dt.timedelta(days=-1, microseconds=5)
    written = KIND.FromString(protobuf_serde(KIND).to_bytes({"duration": length}))
    assert written.duration.ToTimedelta() == length


def test_messages_are_nested_as_deep_as_they_can_be_read() -> None:
    """A deeper one is refused where it is written, and not where it is read."""
    serde = protobuf_serde(KIND)
    for inward in (
        lambda v: {"own": v},
        lambda v: {"own_map": {"": v}},
        lambda v: {"own_all": [v]},
    ):
        value: dict[str, Any] = {}
        for depth in range(120):
            try:
                data = serde.to_bytes(value)
            except TypeError:
                assert depth >= 50
                break
            value = inward(value)
        else:
            pytest.fail("no depth was refused")
        serde.from_bytes(data)  # the deepest one that was written


def test_rows_of_a_column_are_written_as_they_were_read() -> None:
    """Maps come as lists of pairs, numbers of 64 bits without a sign as decimals."""
    kind = message_class("k", "d", flight_descriptors(), MESSAGE)
    flight = kind(carrier="UA", colours=[1, 9], gate=0)
    flight.plane.seats = 2**64 - 1
    flight.stops["BOS"].seats = 2**63
    flight.at.seconds = -5
    serde = protobuf_serde(kind)
    assert serde.columns is not None
    column = serde.columns().decode(pa.array([flight.SerializeToString()], pa.binary())).column
    (row,) = column.to_pylist()
    assert isinstance(row["stops"], list)
    assert kind.FromString(serde.to_bytes(row)) == flight
    assert _again(flight) == flight


KEY = "serializers.registry.flights.schema.file"
AT = dt.datetime(2013, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
VALUE = {
    "carrier": "UA",
    "delay": -3,
    "gate": 0,
    "plane": {"tail": "N1", "seats": 2**64 - 1},
    "colours": ["BLUE", "RED"],
    "at": AT,
    "stops": {"BOS": {"tail": "N2", "seats": 0}},
    "raw": b"r",
}
NOTHING = {
    "carrier": "",
    "delay": 0,
    "gate": None,
    "plane": None,
    "colours": [],
    "at": None,
    "stops": {},
    "raw": b"",
}


def _serde(message: str = MESSAGE) -> Serde:
    return protobuf_serde(message_class(KEY, "flight.desc", flight_descriptors(), message))


def test_every_field_is_in_the_dict_and_the_column() -> None:
    """One that is not set is null where Protobuf can say so, and else has its default."""
    serde = _serde()
    data = serde.to_bytes(VALUE)
    assert serde.from_bytes(data) == VALUE
    assert serde.from_bytes(b"") == NOTHING
    assert serde.from_bytes(serde.to_bytes(NOTHING)) == NOTHING
    assert serde.columns is not None
    found = serde.columns().decode(pa.array([data, None, b"\xff\xff", b""], pa.binary()))
    assert list(found.bad) == [2]
    with pytest.raises(WireError, match="not of the serde 'protobuf'"):
        serde.from_bytes(b"\xff\xff")
    rows = found.column.to_pylist(maps_as_pydicts="strict")
    large = {"tail": "N1", "seats": decimal.Decimal(2**64 - 1)}
    assert rows[0] == VALUE | {"plane": large}
    assert rows[1:] == [None, None, NOTHING]
    assert found.column.type.field("at").type == pa.timestamp("us", "UTC")


@pytest.mark.parametrize("value", [5, {"carrier": 5}, {"other": 1}, {"delay": 2**31}])
def test_what_the_message_cannot_carry_is_refused(value: object) -> None:
    """At the send or put."""
    with pytest.raises(TypeError, match=r"Flight cannot carry it|carries a mapping"):
        _serde().to_bytes(value)


def test_a_message_that_holds_itself_is_no_column() -> None:
    """A StreamTask may have it."""
    serde = _serde("my.Tree")
    tree = {"left": {"left": {"left": None}}}
    assert serde.from_bytes(serde.to_bytes(tree)) == tree
    assert serde.columns is not None
    with pytest.raises(ValueError, match=r"the message my\.Tree holds itself"):
        serde.columns()


@pytest.mark.parametrize(
    ("data", "message"), [(b"no descriptors", MESSAGE), (flight_descriptors(), "my.Fligth")]
)
def test_no_such_message_is_one_line(data: bytes, message: str) -> None:
    """It says how to make the file."""
    with pytest.raises(ConfigError) as caught:
        message_class(KEY, "flight.desc", data, message)
    line = str(caught.value)
    assert line.startswith(f"{KEY} = 'flight.desc': it is no descriptor set with the message ")
    assert line.endswith("make it by protoc --include_imports --descriptor_set_out")


def test_without_the_library_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an extra."""
    monkeypatch.setitem(sys.modules, "google.protobuf", None)
    with pytest.raises(ConfigError, match=r"install homeport\[protobuf\]"):
        message_class(KEY, "flight.desc", b"", MESSAGE)
