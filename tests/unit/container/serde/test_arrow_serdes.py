"""Columns to bytes and back: as the serdes of the same names, element by element."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.config.errors import WireError
from homeport.container.serde.arrow_serdes import ArrowForm, arrow_form
from homeport.container.serde.serdes import serde

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
        ("double", pa.array([1])),
    ],
)
def test_a_value_that_a_serde_cannot_carry_is_refused(name: str, column: pa.Array) -> None:
    """A column of another type, or a number that does not fit."""
    with pytest.raises(TypeError, match=f"serde {name!r}"):
        _form(name).to_bytes(column)


def test_narrower_and_wider_columns_are_taken() -> None:
    """Whatever Spark or a file made of numbers and texts."""
    assert _form("long").to_bytes(pa.array([1], pa.int8())) == [serde("long").to_bytes(1)]
    assert _form("double").to_bytes(pa.array([1], pa.float32())) == [serde("double").to_bytes(1.0)]
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
