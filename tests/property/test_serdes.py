"""Each serde against another reader and writer: what is read and sent on stays, or is refused.

The others: Protobuf's own messages and its JSON, a writer of Avro's bytes from the specification,
Python's json. Samza's classes and Spark judge in ``tests/integration``.
"""

from __future__ import annotations

import datetime as dt
import functools
import json
import math
import os
import random
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from avro_bytes import TEXT, named_in, schema_of, wire_of
from descriptor_sets import CLOSED, KINDS, MESSAGE, flight_descriptors, odd_descriptors
from google.protobuf import json_format, text_format
from google.protobuf.message import DecodeError, Message
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from homeport.config.errors import WireError
from homeport.container.serde.avro_serde import avro_serde
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns, json_schema_serde
from homeport.container.serde.protobuf_serde import message_class, protobuf_serde
from homeport.container.serde.serdes import Serde, serde

SHORT_S = float(os.environ.get("HOMEPORT_FUZZ_S", "12"))
LONG_S = 3600.0
_EXAMPLES = 150
_CHECKS = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much]


def fuzz(check: Callable[[st.DataObject], None], seconds: float) -> None:
    """Call ``check`` with data of one seed after the other; the first one that fails is raised.

    Its smallest input is printed by hypothesis, the seed here. ``HOMEPORT_FUZZ_SEED`` runs one
    seed alone, ``HOMEPORT_FUZZ_S`` sets the seconds of a short run.
    """
    only = os.environ.get("HOMEPORT_FUZZ_SEED")
    ends = time.monotonic() + seconds
    rounds = 0
    while rounds == 0 or (time.monotonic() < ends and only is None):
        number = random.SystemRandom().randrange(2**32) if only is None else int(only)
        sys.stdout.write(f"HOMEPORT_FUZZ_SEED={number}\n")
        sys.stdout.flush()  # a library in C may end the process
        run = settings(
            max_examples=_EXAMPLES,
            deadline=None,
            database=None,
            suppress_health_check=_CHECKS,
            phases=[Phase.generate, Phase.shrink],
        )(given(st.data())(check))
        seed(number)(run)()
        rounds += 1
    sys.stdout.write(f"{rounds * _EXAMPLES} examples\n")


TIMES = pytest.mark.parametrize(
    "seconds", [SHORT_S, pytest.param(LONG_S, marks=pytest.mark.long)], ids=["short", "hour"]
)
ODD = odd_descriptors()
MESSAGES = [
    message_class("k", "d", ODD, KINDS),
    message_class("k", "d", ODD, CLOSED),
    message_class("k", "d", flight_descriptors(), MESSAGE),
]
PROTOBUF = {kind: protobuf_serde(kind) for kind in MESSAGES}
EDGES = [0, 1, -1, 2**7, 2**31 - 1, -(2**31), 2**32 - 1, 2**53 + 1, 2**63 - 1, -(2**63), 2**64 - 1]
NUMBERS = st.sampled_from(EDGES) | st.integers(-(2**63), 2**64 - 1)


# Protobuf


def _filled(draw: Any, message: Any, depth: int) -> None:  # noqa: ANN401 - of hypothesis, of a generated class
    """Some fields of ``message`` are set, by the library itself."""
    fields = list(message.DESCRIPTOR.fields)
    for field in draw(st.lists(st.sampled_from(fields), max_size=4)) if fields else ():
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        if is_map:
            key_field, value_field = field.message_type.fields
            entries = getattr(message, field.name)
            key = _scalar(draw, key_field)
            if value_field.message_type is not None:
                entries[key].SetInParent()
                if depth:
                    _filled(draw, entries[key], depth - 1)
            else:
                entries[key] = _scalar(draw, value_field)
        elif field.message_type is not None:
            inner = getattr(message, field.name)
            inner = inner.add() if field.is_repeated else inner
            inner.SetInParent()
            if depth:
                _filled(draw, inner, depth - 1)
        elif field.is_repeated:
            getattr(message, field.name).append(_scalar(draw, field))
        else:
            setattr(message, field.name, _scalar(draw, field))
    for field in fields:
        if field.is_required and not message.HasField(field.name) and draw(st.integers(0, 20)):
            setattr(message, field.name, 5)


def _scalar(draw: Any, field: Any) -> Any:  # noqa: ANN401 - as above
    if field.enum_type is not None:
        known = st.sampled_from([v.number for v in field.enum_type.values])
        return draw(
            known if field.enum_type.is_closed else known | st.integers(-(2**31), 2**31 - 1)
        )
    if field.type == field.TYPE_STRING:
        return draw(TEXT)
    if field.type == field.TYPE_BYTES:
        return draw(st.binary(max_size=4))
    if field.cpp_type == field.CPPTYPE_BOOL:
        return draw(st.booleans())
    if field.cpp_type in {field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT}:
        return draw(st.floats(width=32 if field.cpp_type == field.CPPTYPE_FLOAT else 64))
    bits = 32 if field.cpp_type in {field.CPPTYPE_INT32, field.CPPTYPE_UINT32} else 64
    signed = field.cpp_type in {field.CPPTYPE_INT32, field.CPPTYPE_INT64}
    low, high = (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1)
    edges = st.sampled_from([n for n in EDGES if low <= n <= high])
    return draw(edges | st.integers(low, high))


def _bytes_of(message: Message) -> bytes:
    data: bytes = message.SerializePartialToString(deterministic=True)
    return data


def _is_same(one: Message, other: Message) -> bool:
    """Whether both have the same bytes; of a NaN, which processors make quiet, the same text."""
    if _bytes_of(one) == _bytes_of(other):
        return True
    text = str(text_format.MessageToString(other))
    return "nan" in text and text_format.MessageToString(one) == text


@TIMES
def test_protobuf(seconds: float) -> None:
    """Sent on, a message has the same bytes and the same JSON; its columns' rows too."""
    fuzz(_protobuf, seconds)


def _protobuf(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(MESSAGES), "message")
    message = kind()
    _filled(data.draw, message, 2)
    wire = message.SerializePartialToString()
    is_damaged = data.draw(st.integers(0, 4), "damage") == 0
    if is_damaged:
        wire = _damaged(data, wire)
    try:
        message = kind.FromString(wire)
    except DecodeError:
        message = None
    ours = PROTOBUF[kind]
    try:
        value = ours.from_bytes(wire)
    except WireError:
        # A field of another type is one that its library does not know, and so no JSON shows it.
        is_whole = message is not None and message.IsInitialized() and not is_damaged
        assert not (is_whole and _is_sound(message)), f"refused: {wire.hex()}"
        return
    assert message is not None
    message.DiscardUnknownFields()
    again = kind.FromString(ours.to_bytes(value))
    assert _is_same(again, message), wire.hex()
    if _is_sound(message):
        assert _as_json(again) == _as_json(message)
    if kind is MESSAGES[2]:
        assert ours.columns is not None
        found = ours.columns().decode(pa.array([wire], pa.binary()))
        assert not found.bad
        row = found.column.to_pylist()[0]
        if message.HasField("at"):
            message.at.nanos -= message.at.nanos % 1000
        assert _is_same(kind.FromString(ours.to_bytes(row)), message)


def _as_json(message: Message) -> str:
    return str(json_format.MessageToJson(message, sort_keys=True))


def _is_sound(message: Message) -> bool:
    """Whether the library can show it as JSON, as it cannot for times out of range."""
    try:
        text = _as_json(message)
    except (ValueError, TypeError, KeyError, json_format.SerializeToJsonError, DecodeError):
        return False
    return bool(text)


def _damaged(data: st.DataObject, wire: bytes) -> bytes:
    at = data.draw(st.integers(0, len(wire)), "at")
    return wire[:at] + data.draw(st.binary(max_size=2), "bytes") + wire[at + 1 :]


@TIMES
def test_avro(seconds: float) -> None:
    """Bytes of the specification are the same once they were read and written."""
    fuzz(_avro, seconds)


def _avro(data: st.DataObject) -> None:
    schema = schema_of(data, [], 2)
    if not isinstance(schema, dict) or schema["type"] != "record":
        schema = {"type": "record", "name": "Root", "fields": [{"name": "f", "type": schema}]}
    ours = avro_serde("key", json.dumps(schema))
    wire = wire_of(data, schema, named_in(schema, {}))
    value = ours.from_bytes(wire)
    written = ours.to_bytes(value)
    if written != wire:
        # Of two branches that carry the same number the first is written.
        assert _same_numbers(schema), (schema, wire.hex(), value, written.hex())
        assert ours.from_bytes(written) == value
    assert ours.columns is not None
    try:
        columns = ours.columns()
    except ValueError:
        return  # a union of several types
    found = columns.decode(pa.array([wire], pa.binary()))
    assert not found.bad, (schema, wire.hex(), found.bad)
    assert ours.to_bytes(found.column.to_pylist()[0]) == wire, (schema, wire.hex())


def _same_numbers(schema: Any) -> bool:  # noqa: ANN401 - JSON
    text = json.dumps(schema)
    return (
        text.count('"int"') + text.count('"long"') + text.count('"float"') + text.count('"double"')
        > 1
    )


# JSON

LEAVES = (
    "string", "tinyint", "smallint", "int", "bigint", "float", "double", "boolean", "binary",
    "date", "timestamp", "decimal(5,2)", "decimal(38,18)",
)  # fmt: skip
ATOMS = (
    "null", "true", "0", "-0", "1", "1.0", "1e2", "128", "-32769", "2147483648",
    "9223372036854775807", "9223372036854775808", "1e400", "1e39", "3.4028235e38", "1.005", "0.1",
    "123.45", '""', '"x"',
    '"\\ud800"', '"\\ud83d\\ude00"', '"YQ=="', '"@"', '"2020-02-29"', '"2020-02-30"',
    '"0001-01-01"',
    '"2020-01-01T00:00:00Z"', '"2020-01-01T00:00:00"', '"2020-01-01 00:00:00.5+05:30"',
    '"0001-01-01T00:00:00+05:00"', '"9999-12-31T23:59:59.999999-05:00"', '"2020-06-30T23:59:60Z"',
    '"2020-01-01T24:00:00Z"', '"2020-01-01T00:00:00+00"', '"2020-01-01T00:00:00.123456789Z"',
    '"1.5"', '"NaN"', "NaN", "Infinity", "[]", "[1]", "[null]", "{}", '{"a":1}',
    '{"1":"x","1":"y"}',
    '{"a":null}', '{"1":1}', '[{"a":1}]',
)  # fmt: skip


def _ddl(data: st.DataObject, depth: int) -> str:
    kind = data.draw(st.sampled_from([*LEAVES, "array", "map", "struct"] if depth else LEAVES))
    if kind == "array":
        return f"array<{_ddl(data, depth - 1)}>"
    if kind == "map":
        key = data.draw(st.sampled_from(["string", "int", "bigint"]))
        return f"map<{key}, {_ddl(data, depth - 1)}>"
    return f"struct<a: {_ddl(data, depth - 1)}>" if kind == "struct" else kind


@TIMES
def test_json_with_a_schema(seconds: float) -> None:
    """A task and a column say the same; what they say is what Python's json reads, and is kept."""
    fuzz(_json_of_schema, seconds)


def _json_of_schema(data: st.DataObject) -> None:
    types = [_ddl(data, 2) for _ in range(data.draw(st.integers(1, 3)))]
    kind = struct_of_ddl(", ".join(f"f{n} {text}" for n, text in enumerate(types)))
    ours = json_schema_serde(kind)
    _sent(data, ours, kind)
    fields = [*kind, pa.field(f"f{len(types)}", pa.string())]  # the last is not declared
    parts = [f'"{f.name}":{_text(data, f.type)}' for f in fields if data.draw(st.integers(0, 4))]
    wire = ("{" + ",".join(parts) + "}").encode()
    if data.draw(st.integers(0, 9)) == 0:
        wire = _damaged(data, wire)
    found = json_columns(kind).decode(pa.array([wire], pa.binary()))
    try:
        value = ours.from_bytes(wire)
    except WireError:
        assert found.bad, (types, wire)
        return
    assert not found.bad, (types, wire, found.bad)
    row = found.column.to_pylist(maps_as_pydicts="strict")[0]
    assert repr(row).replace(_ARROWS_UTC, repr(dt.UTC)) == repr(value), (types, wire)
    for sent in (value, found.column.to_pylist()[0]):
        assert repr(ours.from_bytes(ours.to_bytes(sent))) == repr(value), (types, wire)
    # Text of members that the schema does not name is passed over, whatever its bytes.
    _judge(kind, json.loads(wire.decode(errors="replace"), parse_float=Decimal), value)


def _text(data: st.DataObject, kind: pa.DataType) -> str:
    """JSON for a value of ``kind``, and now and then for one of another."""
    if data.draw(st.integers(0, 9)) == 0:
        return data.draw(_nested(ATOMS))
    if pa.types.is_struct(kind):
        return "{" + ",".join(f'"{f.name}":{_text(data, f.type)}' for f in kind) + "}"
    if pa.types.is_list(kind):
        count = data.draw(st.integers(0, 2))
        return "[" + ",".join(_text(data, kind.value_type) for _ in range(count)) + "]"
    if pa.types.is_map(kind):
        keys = data.draw(st.lists(st.sampled_from(["1", "2", "x", "007"]), max_size=2))
        return "{" + ",".join(f'"{key}":{_text(data, kind.item_type)}' for key in keys) + "}"
    return data.draw(st.sampled_from(_fitting(kind)))


@functools.cache
def _fitting(kind: pa.DataType) -> list[str]:
    """Those of the atoms that are taken for a value of ``kind``."""
    ours = json_schema_serde(pa.struct([("f", kind)]))
    found = ["null"]
    for atom in ATOMS:
        try:
            ours.from_bytes(f'{{"f":{atom}}}'.encode())
        except WireError:
            continue
        found.append(atom)
    return found


def _sent(data: st.DataObject, ours: Serde, kind: pa.StructType) -> None:
    """What a task may send: it is read as it was, or refused."""
    odd = st.sampled_from(ODD_VALUES) | st.floats() | NUMBERS
    value = {f.name: data.draw(odd | st.lists(odd, max_size=2)) for f in kind}
    try:
        wire = ours.to_bytes(value)
    except TypeError:
        return
    found = ours.from_bytes(wire)
    for name, own in value.items():
        field = kind.field(name).type
        if pa.types.is_floating(field) and own is not None:
            assert type(own) is not int or found[name] == own
            assert math.isclose(found[name], float(str(own)), rel_tol=1e-6, abs_tol=1e-45)
        elif own is None or any(is_kind(field) for is_kind in _KEPT) or isinstance(own, bytes):
            assert (type(found[name]), found[name]) == (type(own), own)


_ARROWS_UTC = "zoneinfo.ZoneInfo(key='UTC')"
_KEPT = (pa.types.is_string, pa.types.is_integer, pa.types.is_boolean)
ODD_VALUES = (
    *(None, True, "", "a", "YQ==", "\ud83d", b"", b"a", 1.0, -0.0, 1e39, Decimal("1.5")),
    *(Decimal("NaN"), dt.date(2013, 1, 2), dt.datetime(2013, 1, 2, tzinfo=dt.UTC)),
    *({"a": 1}, {1: 1}, [(1, 1), (1, 2)], [("a", None)], {"a": float("nan")}),
)


def _nested(atoms: tuple[str, ...]) -> st.SearchStrategy[str]:
    one = st.sampled_from(atoms)
    return one | one | st.builds("[{}]".format, one) | st.builds('{{"a":{}}}'.format, one)


def _judge(kind: pa.DataType, read: Any, value: Any) -> None:  # noqa: ANN401, C901 - JSON; one line per kind
    """``value`` is what Python's json has ``read``, as a value of ``kind``."""
    if read is None or value is None:
        assert value is None is read
    elif pa.types.is_struct(kind):
        for field in kind:
            _judge(field.type, read.get(field.name), value[field.name])
    elif pa.types.is_list(kind):
        for inner, own in zip(read, value, strict=True):
            _judge(kind.value_type, inner, own)
    elif pa.types.is_map(kind):
        for key, own in value.items():
            _judge(kind.item_type, read[str(key)], own)
    elif pa.types.is_timestamp(kind):
        at = dt.datetime.fromisoformat(read)
        at = at.replace(tzinfo=at.tzinfo or dt.UTC)
        assert abs(value - at) <= dt.timedelta(microseconds=1)
    elif pa.types.is_date(kind):
        assert value == dt.date.fromisoformat(read)
    elif pa.types.is_decimal(kind):
        assert value == Decimal(read)
    elif pa.types.is_floating(kind):
        assert math.isfinite(value)
        assert math.isclose(value, float(read), rel_tol=1e-6, abs_tol=1e-45)
    elif not pa.types.is_binary(kind):
        assert (type(value), value) == (type(read), read)


_ANY = st.recursive(
    st.none()
    | st.booleans()
    | NUMBERS
    | st.floats()
    | st.text(max_size=3)
    | st.integers(-(10**30), 10**30),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=2) | st.integers() | st.none(), inner, max_size=3)
    ),
    max_leaves=6,
)


@TIMES
def test_json_and_the_numbers(seconds: float) -> None:
    """What is written is read as it was, also by Python's json; what is read can be written."""
    fuzz(_built_in, seconds)


def _built_in(data: st.DataObject) -> None:
    ours = serde("json")
    value = data.draw(_ANY)
    try:
        wire = ours.to_bytes(value)
    except TypeError:
        assert json_text_differs(value), value
        return
    assert repr(ours.from_bytes(wire)) == repr(value) == repr(json.loads(wire))
    for each in (_damaged(data, wire), data.draw(_nested(ATOMS)).encode()):
        _kept(ours, each)
    for name in ("string", "integer", "long", "double", "bytes"):
        _kept(serde(name), data.draw(st.binary(max_size=9)), exact=True)


def json_text_differs(value: object) -> bool:
    """Whether Python's json reads something else than the ``value`` that it wrote."""
    text = json.dumps(value)
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return True
    return repr(json.loads(text)) != repr(value)


def _kept(ours: Serde, wire: bytes, *, exact: bool = False) -> None:
    try:
        value = ours.from_bytes(wire)
    except WireError:
        return
    again = ours.to_bytes(value)
    assert again == wire or not exact, (ours.name, wire)
    assert repr(ours.from_bytes(again)) == repr(value), (ours.name, wire)
