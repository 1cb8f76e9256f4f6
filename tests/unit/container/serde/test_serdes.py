"""Bytes of the built-in serdes beyond the rows of docs/serdes.md, and their columns."""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import json
import math
import uuid
from collections import OrderedDict
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.errors import WireError
from homeport.config.system_stream import SystemStream
from homeport.container.serde.arrow_serdes import ArrowForm, arrow_form
from homeport.container.serde.serdes import serde


@pytest.mark.parametrize(
    "value", [{"\ud83d": 1}, [({"a": {None: 1}},)], {True: 1}, {1.5: 1}], ids=repr
)
def test_a_key_that_json_would_make_text_of_is_refused(value: object) -> None:
    """At any depth, at the put."""
    with pytest.raises(TypeError):
        serde("json").to_bytes(value)


def test_what_json_reads_it_can_write() -> None:
    """Brackets within text are none; what is nested within the limit, a deep task writes too."""
    json_ = serde("json")
    deep = b"[" * 500 + b'"' + b"[" * 600 + b'\\"{"' + b"]" * 500
    for text in (deep, b"[" + b"1," * 600 + b"1]"):
        assert json_.to_bytes(json_.from_bytes(text)) == text
    with pytest.raises(TypeError, match="nested deeper than 500"):
        json_.to_bytes(json.loads(b"[" * 501 + b"]" * 501))
    loop: list[object] = []
    loop.append(loop)
    with pytest.raises(TypeError, match="Circular reference"):
        json_.to_bytes(loop)


def test_what_can_be_changed_is_copied() -> None:
    """The bytes in a store stay as they were put."""
    given = bytearray(b"ab")
    put = serde("bytes").to_bytes(given)
    given[0] = 0
    assert (put, serde("bytes").to_bytes(memoryview(b"ab"))) == (b"ab", b"ab")


def test_an_unknown_serde_is_named_with_those_there_are() -> None:
    """The message lists them."""
    with pytest.raises(KeyError, match="known: bytes, double, integer, json, long, string"):
        serde("avro")


ODD_JSON = [
    *(b"18446744073709551616", b"-9223372036854775809", b"1" * 40, b"-0", b"-0.0", b"1E5"),
    *(b"-1e-400", b"5e-324", b"0.1", b"123456789012345678.123456789", b"NaN"),
    *(b"1e309", b"[-1e999]", b'"\\ud800"', b"-Infinity", b'"\\u0000"', b'{"a":1,"a":2}', b" 1\n"),
    *(b"\xef\xbb\xbf1", '"é"'.encode("utf-16"), '{"a":1}'.encode("utf-32-le")),
    *(b"[1,]", b'"\xff"', b'"a\tb"', b"", b"01", b"1 2", b"{'a':1}", b'{"a"}', b"[" * 100_000),
]
"""Where parsers of JSON differ."""


def _outcome(read: Callable[[bytes], object], data: bytes) -> str:
    try:
        return repr(read(data))
    except (ValueError, RecursionError, WireError):
        return "refused"


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(text)
    return number


def _reference(data: bytes) -> object:
    """As Python's own parser, without numbers beyond a double and text that no writer takes."""
    value = json.loads(data, parse_float=_finite)
    json.dumps(value, ensure_ascii=False).encode()
    return value


@pytest.mark.parametrize("data", ODD_JSON, ids=lambda data: repr(data[:12]))
def test_json_is_read_as_pythons_own_parser_reads_it(data: bytes) -> None:
    """Numbers of any size, not-a-number, every encoding."""
    assert _outcome(serde("json").from_bytes, data) == _outcome(_reference, data)
    _require_alike_in_bulk(data)


def _require_alike_in_bulk(data: bytes) -> None:
    """Many elements are read as each alone, or not at all."""
    many = serde("json").from_many
    assert many is not None
    with contextlib.suppress(ValueError, RecursionError):
        assert repr(many([data, b"1"])) == repr([serde("json").from_bytes(data), 1])


_TEXT = st.text(st.characters(codec="utf-8"))
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: st.lists(inner) | st.dictionaries(_TEXT, inner),
    max_leaves=5,
)


@given(_JSON, st.data())
@settings(max_examples=200, deadline=None)
def test_any_json_and_any_damage_to_it_is_read_alike(value: object, data: st.DataObject) -> None:
    """By the serde and by Python's own parser; and what the serde wrote is what it reads."""
    text = serde("json").to_bytes(value)
    assert text == json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(st.binary(max_size=2)) + text[at + 1 :]
    for each in (text, damaged):
        assert _outcome(serde("json").from_bytes, each) == _outcome(_reference, each)
        _require_alike_in_bulk(each)


class _Colour(enum.StrEnum):
    RED = "red"


class _Rank(enum.IntEnum):
    FIRST = 1


_ODD_VALUES: list[object] = [
    *({1}, b"x", bytearray(b"x"), _Colour.RED, _Rank.FIRST, Decimal(1), uuid.UUID(int=1)),
    *(dt.date(2026, 1, 1), dt.timedelta(1), ValueError(), OrderedDict(a=(1, None)), "\ud800"),
    *(9.9e-5, 1e-4, -1e16, 9999999999999998.0, -0.0, math.nan, math.inf, 2**64, -(2**63) - 1),
    *(SystemStream("a", "b"), {_Colour.RED: 1}),
]
"""Which encoders of JSON write in different ways, or not at all."""


@pytest.mark.parametrize("value", _ODD_VALUES, ids=repr)
def test_json_is_written_as_pythons_own_encoder_writes_it(value: object) -> None:
    """At the top, and within others."""
    for each in (value, {"a": value}, [0, value], ({"a": [value]},)):
        try:
            expected = json.dumps(each, separators=(",", ":"), ensure_ascii=False).encode()
        except (TypeError, ValueError):
            with pytest.raises(TypeError):
                serde("json").to_bytes(each)
        else:
            assert serde("json").to_bytes(each) == expected


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "bytes": st.binary(max_size=4),
    "string": st.text(max_size=4),
    "integer": st.integers(-(2**31), 2**31 - 1),
    "long": st.integers(-(2**63), 2**63 - 1),
    "double": st.floats(allow_nan=False),
}


def _form(name: str) -> ArrowForm:
    form = arrow_form(name)
    assert form is not None
    return form


@pytest.mark.parametrize("name", VALUES)
@given(data=st.data())
def test_a_column_is_encoded_like_its_elements(name: str, data: st.DataObject) -> None:
    """Both ways, with nulls, also of a part of a column and of one in pieces."""
    values = data.draw(st.lists(st.none() | VALUES[name], max_size=8))
    form = _form(name)
    expected = [None if value is None else serde(name).to_bytes(value) for value in values]
    column = pa.array(values, form.type)
    assert form.to_bytes(column) == expected
    assert form.to_bytes(column[1:]) == expected[1:]
    assert form.to_bytes(pa.chunked_array([column, column])) == expected * 2
    back = form.from_bytes(expected)
    back.validate(full=True)
    assert back.equals(column)


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("bytes", pa.array(["a"])),
        ("string", pa.array([b"a"])),
        ("integer", pa.array([2**31])),
        ("long", pa.array([1.0])),
        ("long", pa.array([2**63], pa.uint64())),
        ("double", pa.array([2**53 + 1])),
        ("double", pa.array(["1"])),
        ("double", pa.array([True])),
    ],
)
def test_a_value_that_a_serde_cannot_carry_is_refused(name: str, column: pa.Array) -> None:
    """A column of another type, or a number that does not fit."""
    with pytest.raises(TypeError, match=f"serde {name!r}"):
        _form(name).to_bytes(column)


@pytest.mark.parametrize("value", [2**53 + 1, 2**1024 - 1, 2**1024, True, "1"], ids=range(5))
def test_an_integer_that_is_no_double_is_refused(value: object) -> None:
    """In one form, however large it is."""
    assert serde("double").to_bytes(2**1023) == serde("double").to_bytes(2.0**1023)
    with pytest.raises(TypeError, match="the serde 'double'"):
        serde("double").to_bytes(value)


def test_narrower_and_wider_columns_are_taken() -> None:
    """Whatever Spark or a file made of numbers and texts."""
    assert _form("long").to_bytes(pa.array([1], pa.int8())) == [serde("long").to_bytes(1)]
    for kind in (pa.float32(), pa.int64()):
        assert _form("double").to_bytes(pa.array([1], kind)) == [serde("double").to_bytes(1.0)]
    assert _form("string").to_bytes(pa.array(["a"], pa.large_string())) == [b"a"]
    assert _form("bytes").to_bytes(pa.array([b"ab"], pa.binary(2))) == [b"ab"]


def test_equal_elements_are_encoded_once() -> None:
    """And each element's place among the different ones is known."""
    found, places = _form("string").distinct(pa.chunked_array([["a", "b"], ["a"]]))
    assert (found, places.to_pylist()) == ([b"a", b"b"], [0, 1, 0])


@pytest.mark.parametrize(("name", "data"), [("string", b"\xff"), ("integer", b"1"), ("long", b"")])
def test_bytes_of_another_serde_are_refused(name: str, data: bytes) -> None:
    """Never a wrong value in silence."""
    with pytest.raises(WireError):
        _form(name).from_bytes([None, data])
