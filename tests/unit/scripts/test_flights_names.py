"""The judgement of names in the demo's outputs: each fault that is planted is found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from flights_demo.names import Judged, Output, Reference, judge

REFERENCE = Reference(
    planes={"N1": {"tailnum": "N1", "manufacturer": "BOEING", "model": "737-800", "seats": 149}},
    airports={"IAH": {"faa": "IAH", "name": "George Bush Intercontinental", "tz": -6}},
    airlines=({"UA": "United", "AA": "American"}, {"UA": "United (UA)", "AA": "American (AA)"}),
)
NAMED = {
    "tailnum": "N1",
    "flights": 3,
    "last_airport": "IAH",
    "carrier": "UA",
    "manufacturer": "BOEING",
    "model": "737-800",
    "last_airport_name": "George Bush Intercontinental",
    "airline": "United",
    "batch": 0,
}
UNKNOWN = {"manufacturer": None, "model": None, "last_airport_name": None}
NEW = "United (UA)"
SOUND: list[Output] = [(0, NAMED), (0, {**NAMED, "batch": 7, "airline": NEW}), (1, NAMED)]


def _judged(*more: Output) -> Judged:
    return judge([*SOUND, *more], REFERENCE)


def _output(partition: int = 0, **fields: object) -> Output:
    return partition, {**NAMED, **fields}


def test_old_names_and_then_new_ones_are_right() -> None:
    """Also where a plane and an airport are in no table, and a plane has not left yet."""
    found = _judged(
        _output(1, tailnum="N2", last_airport="BQN", **UNKNOWN),
        _output(1, tailnum="N2", last_airport=None, **UNKNOWN, carrier="AA", airline="American"),
    )
    assert [held for _, held in found.verdicts()] == [True, True]
    assert (found.outputs, found.editions) == (5, {0: 4, 1: 1})
    right, swapped = (text for text, _ in found.verdicts())
    assert right.startswith("each of 5 outputs")
    assert "(0 wrong names)" in right
    assert swapped.startswith("4 outputs have the airline's old name, 1 the new one: 0 batches")


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"manufacturer": "AIRBUS"}, "manufacturer: expected 'BOEING', found 'AIRBUS'"),
        ({"model": None}, "model: expected '737-800', found None"),
        ({"last_airport_name": "IAH"}, "last_airport_name: expected 'George"),
        ({"last_airport": "BQN"}, "last_airport_name: expected None, found 'George"),
        ({"airline": "American"}, "airline: 'American' is no name of UA"),
        ({"airline": None}, "airline: None is no name of UA"),
        ({"carrier": "ZZ", "airline": None}, "airline: None is no name of ZZ"),
        ({"tailnum": "N2"}, "manufacturer: expected None, found 'BOEING'"),
    ],
)
def test_a_wrong_name_is_found(fields: Mapping[str, Any], line: str) -> None:
    """And named with its plane and batch; the other promise holds."""
    found = _judged(_output(**{"batch": 7, "airline": NEW, **fields}))
    assert found.wrong[0].startswith(f"{fields.get('tailnum', 'N1')}, partition 0, batch 7: {line}")
    assert [held for _, held in found.verdicts()] == [False, True]


def test_an_output_without_its_names_is_found() -> None:
    """As of a job that does not join."""
    plain = {name: NAMED[name] for name in ("tailnum", "last_airport", "carrier")}
    found = _judged((0, plain))
    assert len(found.wrong) == 4


def test_a_batch_with_names_of_two_editions_is_found() -> None:
    """In its own partition alone: another one's batch of that number is another batch."""
    found = _judged(_output(1, batch=7), _output(0, batch=7, carrier="AA", airline="American"))
    assert found.mixed == ["partition 0, batch 7: names of 2 editions"]
    assert [held for _, held in found.verdicts()] == [True, False]


def test_old_names_after_new_ones_are_found() -> None:
    """By the batches' places in the input, in whatever order the outputs come."""
    found = judge([_output(batch=9), *SOUND], REFERENCE)
    assert (found.mixed, found.back) == ([], ["partition 0, batch 9: older names than before"])
    assert [held for _, held in found.verdicts()] == [True, False]


@pytest.mark.parametrize("outputs", [SOUND[:1], SOUND[1:2], []])
def test_both_editions_must_have_been_seen(outputs: list[Output]) -> None:
    """A run without a swap proves nothing of it."""
    assert judge(outputs, REFERENCE).verdicts()[1][1] is False


def test_the_newest_summary_of_a_plane_is_compared_without_its_names() -> None:
    """The names are judged in each output."""
    found = judge([*SOUND[:2], _output(0, batch=7, flights=4)], REFERENCE).summaries
    right = {"tailnum": "N1", "flights": 4, "last_airport": "IAH", "carrier": "UA"}
    assert found == {"N1": right}
