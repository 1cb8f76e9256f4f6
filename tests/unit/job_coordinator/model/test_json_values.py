"""Reading JSON that others wrote."""

from __future__ import annotations

import pytest

from homeport.config.errors import WireError
from homeport.job_coordinator.model.json_values import (
    compact_json,
    optional_field,
    optional_number,
    parse_object,
    required_field,
    required_number,
    shown,
)
from homeport.job_coordinator.model.wire_form import decoded
from homeport.job_coordinator.status.shape import ShownStatus


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"\xff{}",
        b"[1]",
        b"null",
        b"7",
        b'{"a":NaN}',
        b'{"a":-Infinity}',
        b'{"a":' + b"9" * 5000 + b"}",
        b"[" * 200_000,
    ],
)
def test_a_text_that_is_no_json_object_is_refused_by_name(data: bytes) -> None:
    """Broken UTF-8 or JSON, other kinds, NaN, endless numbers and nesting: one error, one line."""
    with pytest.raises(WireError, match=r"^the body is not ") as caught:
        parse_object(data, "the body")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("value", [None, "1", True, 1.0, [1]])
def test_a_number_is_nothing_else(value: object) -> None:
    """A text, a boolean, a fraction, a list or nothing is not taken for a whole number."""
    with pytest.raises(WireError, match="'n'"):
        required_field({"n": value}, "n", int)


def test_an_optional_field_may_be_missing_or_null_but_not_wrong() -> None:
    """Missing and null are None; a value of another type is refused."""
    assert optional_field({}, "n", int) is None
    assert optional_field({"n": None}, "n", int) is None
    assert optional_field({"n": 3}, "n", int) == 3
    with pytest.raises(WireError):
        optional_field({"n": "3"}, "n", int)


def test_json_is_compact_utf_8() -> None:
    """No spaces, the order given, non-ASCII unescaped, half a surrogate pair as a question mark."""
    assert compact_json({"b": ["ä"], "a": 1}) == '{"b":["ä"],"a":1}'.encode()
    assert compact_json({"a": "\ud800"}) == b'{"a":"?"}'


def test_a_long_value_is_cut_in_messages() -> None:
    """A message shows at most the beginning of a value."""
    assert shown("x") == "'x'"
    assert len(shown("x" * 10_000)) < 100


def test_a_value_that_is_nested_too_deeply_is_named_by_its_type() -> None:
    """Python cannot show it: the message that refuses it must not fail itself."""
    deep: object = {}
    for _ in range(100_000):
        deep = [deep]
    assert shown(deep) == "a list that is nested too deeply"


@pytest.mark.parametrize("number", [-1, 8, 10**400, -(10**400)])
def test_a_number_has_a_range(number: int) -> None:
    """Both ends are in it; whatever is beyond is refused, and shown in brief."""
    assert [required_number({"n": n}, "n", 0, 7) for n in (0, 7)] == [0, 7]
    assert optional_number({"n": 7}, "n", 0, 7) == 7
    assert optional_number({"n": None}, "n", 0, 7) is None
    with pytest.raises(WireError, match="'n' is not from 0 to 7: ") as refused:
        optional_number({"n": number}, "n", 0, 7)
    assert len(str(refused.value)) < 150


@pytest.mark.parametrize(
    "data", [b'{"a":"\\ud800"}', b'{"\\uDFFF":1}', b'{"a":[{"b":"\\ud800x"}]}']
)
def test_text_that_is_not_unicode_is_refused(data: bytes) -> None:
    """A whole pair, and any other escape, is fine."""
    assert parse_object(b'{"a":"\\ud83d\\ude00\\u0001"}', "the body") == {"a": "\U0001f600\x01"}
    with pytest.raises(WireError, match="the body holds text that is not Unicode"):
        parse_object(data, "the body")


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", "is not JSON: .* truncated"),
        (b"{]", "is not JSON: JSON is malformed"),
        (b"[]", r"Expected `object`, got `array`"),
        (b'{"job":{"attempt":"1"}}', r"Expected `int \| null`, got `str` - at `\$\.job\.attempt`"),
        (b'{"job":{"name":"\\ud800"}}', "truncated"),
        (b'{"job":{"name":"\xff"}}', "can't decode byte 0xff"),
        (b'{"configuration":{"inputs_begun_anew":%s' % (b"[" * 100_000), "recursion"),
        (b'{"job":{"attempt":NaN}}', "JSON is malformed"),
    ],
)
def test_other_bytes_are_one_line(data: bytes, fault: str) -> None:
    """It begins with what was read, and has the path of the field."""
    with pytest.raises(WireError, match=f"^the status.*{fault}") as caught:
        decoded(ShownStatus, data, "the status")
    assert "\n" not in str(caught.value)
