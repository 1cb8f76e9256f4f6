"""Bytes of the built-in serdes."""

from __future__ import annotations

import pytest

from homeport.config.errors import WireError
from homeport.container.serde.serdes import serde


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("bytes", b"\x00\xff", b"\x00\xff"),
        ("string", "zürich", "zürich".encode()),
        ("json", {"a": [1, None, "ü"]}, '{"a":[1,null,"ü"]}'.encode()),
        ("integer", -2, b"\xff\xff\xff\xfe"),
        ("long", 258, b"\0\0\0\0\0\0\1\2"),
        ("double", 1.5, b"\x3f\xf8\0\0\0\0\0\0"),
    ],
)
def test_the_bytes_are_those_of_javas_serdes(name: str, value: object, data: bytes) -> None:
    """Both ways, big-endian numbers and UTF-8."""
    assert serde(name).to_bytes(value) == data
    assert serde(name).from_bytes(data) == value


@pytest.mark.parametrize(
    ("name", "value"),
    [("bytes", "x"), ("string", b"x"), ("integer", 2**31), ("long", True), ("double", 1)],
)
def test_a_value_that_a_serde_cannot_carry_is_refused(name: str, value: object) -> None:
    """A wrong type, or a number that does not fit, is an error at the put."""
    with pytest.raises(TypeError):
        serde(name).to_bytes(value)


@pytest.mark.parametrize(
    ("name", "data"), [("string", b"\xff"), ("json", b"{"), ("integer", b"1"), ("long", b"")]
)
def test_bytes_of_another_serde_are_refused(name: str, data: bytes) -> None:
    """Never a wrong value in silence."""
    with pytest.raises(WireError):
        serde(name).from_bytes(data)


def test_an_unknown_serde_is_named_with_those_there_are() -> None:
    """The message lists them."""
    with pytest.raises(KeyError, match="known: bytes, double, integer, json, long, string"):
        serde("avro")
