"""Bytes of the built-in serdes, beyond the rows of docs/serdes.md (``test_serdes_page``)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.errors import WireError
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
    assert json_.to_bytes(json_.from_bytes(deep)) == deep
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
