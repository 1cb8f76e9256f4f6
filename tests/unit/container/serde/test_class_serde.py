"""Serdes of classes whose fields have types, as a configuration names them."""

from __future__ import annotations

from dataclasses import dataclass, make_dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NotRequired, TypedDict

import msgspec
import pytest

from homeport.config.errors import ConfigError, WireError
from homeport.container.classes import load_serde
from homeport.container.serde.serdes import Serde

KEY = "stores.s.msg.serde"


class Line(msgspec.Struct):
    """What an order has."""

    item: str
    count: int = 1


@dataclass
class Order:
    """Nested, with a time, a decimal, and what may be missing."""

    lines: list[Line]
    at: datetime
    price: Decimal
    note: str | None = None


class Total(TypedDict):
    """A dict whose members have types."""

    total: float
    of: NotRequired[str]


@dataclass
class Scaled:
    """A serde of the job's own, which has a field."""

    by: int = 10

    def to_bytes(self, value: int) -> bytes:
        """Write the value times ``by``."""
        return b"%d" % (value * self.by)

    def from_bytes(self, data: bytes) -> int:
        """Read what ``to_bytes`` has written."""
        return int(data) // self.by


class Broken(msgspec.Struct):
    """A field that JSON cannot become."""

    field: complex


AT = datetime(2013, 1, 2, 3, 4, 5, tzinfo=UTC)


def _serde(name: str) -> Serde:
    return load_serde(KEY, f"{__name__}:{name}")


@pytest.mark.parametrize(
    ("name", "value", "data"),
    [
        ("Line", Line("a", 2), b'{"item":"a","count":2}'),
        (
            "Order",
            Order([Line("a")], AT, Decimal("1.5")),
            b'{"lines":[{"item":"a","count":1}],"at":"2013-01-02T03:04:05Z","price":"1.5","note":null}',
        ),
        ("Total", {"total": 1.5}, b'{"total":1.5}'),
    ],
)
def test_objects_of_a_class_are_json(name: str, value: object, data: bytes) -> None:
    """They are read as they were written."""
    serde = _serde(name)
    assert serde.to_bytes(value) == data
    assert serde.from_bytes(data) == value
    assert not serde.is_own


def test_a_class_with_the_methods_of_a_serde_is_one_whatever_its_fields() -> None:
    """Its values are of any class, and not its own objects."""
    serde = _serde("Scaled")
    assert serde.is_own
    assert serde.to_bytes(5) == b"50"
    assert serde.from_bytes(b"50") == 5


def test_a_dict_of_the_fields_is_written_as_the_object() -> None:
    """As the rows of a table are dicts."""
    assert _serde("Line").to_bytes({"item": "a", "colour": "red"}) == b'{"item":"a","count":1}'
    assert _serde("Total").to_bytes({"total": 1, "more": 2}) == b'{"total":1,"more":2}'


def test_missing_fields_have_defaults_and_others_are_passed_over() -> None:
    """A writer may be older or newer."""
    assert _serde("Line").from_bytes(b'{"item":"a","colour":"red"}') == Line("a", 1)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b'{"item":5}', b'{"count":1}', b'{"item":"\xff"}', b"[" * 5000]
)
def test_bytes_that_are_not_of_the_class_are_bad_records(data: bytes) -> None:
    """The line names the class and the beginning of the bytes."""
    with pytest.raises(WireError, match=r"^no Line: b'"):
        _serde("Line").from_bytes(data)


@pytest.mark.parametrize(
    ("name", "value", "line"),
    [
        ("Line", ["a"], "carries Line, not list"),
        ("Line", {"count": 1}, "cannot carry it: Object missing required field `item`"),
        ("Line", Line(5), "cannot carry it: Expected `str`, got `int`"),  # type: ignore[arg-type]  # the fault
        ("Line", Line("\ud83d"), "cannot carry it: "),
        ("Total", {"of": "a"}, "cannot carry it: Object missing required field `total`"),
        ("Total", {"total": object()}, "cannot carry it: Encoding objects of type object"),
    ],
)
def test_what_would_not_be_read_again_is_not_written(name: str, value: Any, line: str) -> None:  # noqa: ANN401 - of any type
    """A store never holds what its serde cannot read."""
    with pytest.raises(TypeError, match="the serde '.*' " + line):
        _serde(name).to_bytes(value)


Unknown = make_dataclass("Unknown", [("field", "Nothing")])
"""An annotation that names nothing."""


@pytest.mark.parametrize("name", ["Broken", "Unknown"])
def test_a_class_that_json_cannot_become_is_refused(name: str) -> None:
    """Before a record is read; the line names the key."""
    with pytest.raises(ConfigError, match=f"^{KEY} = .*: JSON cannot become its fields"):
        _serde(name)
