"""Values of a record, by the types of a dataclass's fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

import pytest

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream.record_values import decoded, record_of
from homeport.job_coordinator.model.wire_form import LARGEST, Number, Text


class _Kind(StrEnum):
    HOT = "hot"


@dataclass(frozen=True)
class _Place:
    host: Text
    in_rack: Number


@dataclass(frozen=True)
class _Whole:
    place: _Place
    other: str | None
    kind: _Kind = _Kind.HOT
    size_mb: Number | None = None
    more: tuple[_Place, ...] = ()
    former: Mapping[str, str | None] | None = None


_WHOLE = _Whole(_Place("h", 1), "x", _Kind.HOT, 5, (_Place("i", 2),), {"a": None})
_VALUES = {
    "host": "h",
    "in-rack": "1",
    "other": "x",
    "kind": "hot",
    "size-mb": "5",
    "more": '[{"host":"i","in_rack":2}]',
    "former": '{"a":null}',
}
_LEAST = {"host": "h", "in-rack": "1"}


def test_each_field_has_a_value_and_comes_back() -> None:
    """In the order of the fields; those of an inner dataclass stand beside the others."""
    record = record_of("t", "k", _WHOLE)
    assert list((record.values or {}).items()) == list(_VALUES.items())
    assert decoded(_Whole, record) == _WHOLE
    assert record_of("t", "k", _Whole(_Place("h", 1), None)).values == {
        **_LEAST,
        "kind": "hot",
        "more": "[]",
    }


def test_a_missing_value_is_the_default_and_an_unknown_one_is_passed_over() -> None:
    """An empty text is None, where None is a value."""
    record = record_of("t", "k", _WHOLE)
    least = {**_LEAST, "other": "", "of-later-release": "7"}
    assert decoded(_Whole, record._replace(values=least)) == _Whole(_Place("h", 1), None)
    given = record._replace(values={"in-rack": "007"})
    assert decoded(_Place, given, {"host": "h", "in-rack": "9"}) == _Place("h", 7)


@pytest.mark.parametrize(
    ("name", "value", "fault"),
    [
        ("host", "", "length >= 1"),
        *(("in-rack", odd, "in_rack") for odd in ("", "x", "-1", "1.0", " 1", str(LARGEST + 1))),
        ("kind", "cold", "'cold'"),
        ("size-mb", "", "size_mb"),
        ("more", "", "the value more is not JSON"),
        ("more", "{}", "Expected `array`"),
        ("more", '[{"host":"i","in_rack":true}]', "more"),
        ("former", '{"a":1}', "former"),
    ],
)
def test_a_wrong_value_names_the_record_and_the_field(name: str, value: str, fault: str) -> None:
    """So that a user finds it in the topic."""
    record = record_of("t", "k", _WHOLE)._replace(values={**_VALUES, name: value})
    with pytest.raises(WireError, match=r"^t 'k': ") as caught:
        decoded(_Whole, record)
    assert fault in str(caught.value)
