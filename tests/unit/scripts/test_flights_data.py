"""The reference data of the flights job, as the example's producer writes it."""

from __future__ import annotations

import json

from data import EDITIONS, airline_names
from reference_streams import AIRLINES, Row, airline_records, airport_records, plane_records


def test_no_name_of_an_airline_is_in_two_editions() -> None:
    """By that the demo knows which version of the data set an output has seen."""
    first, second = (airline_names(edition) for edition in EDITIONS)
    assert first["UA"] == "United Air Lines Inc."
    assert second["UA"] == "United Air Lines Inc. (UA)"
    assert first.keys() == second.keys()
    assert not {*first.values()} & {*second.values()}


def test_an_edition_stands_between_its_markers() -> None:
    """No airline is outside of them."""
    begin, *names, end = airline_records(2)
    assert begin == Row(AIRLINES, None, None, {"version": "begin"})
    assert end == Row(AIRLINES, None, None, {"version": "end"})
    assert {row.key: row.value for row in names} == airline_names(2)
    assert all(row.headers == {} for row in names)


def test_planes_and_airports_are_whole_rows() -> None:
    """The job keeps a part of each."""
    planes, airports = plane_records(), airport_records()
    assert (len(planes), len(airports)) == (3_322, 1_458)
    plane = json.loads(planes[0].value or "")
    assert (planes[0].key, len(plane), plane["speed"]) == (plane["tailnum"], 9, None)
    airport = json.loads(airports[0].value or "")
    assert (airports[0].key, len(airport)) == (airport["faa"], 8)
