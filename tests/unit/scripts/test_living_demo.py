"""scripts/demo --living: the job's editions, its flights, and how its results are judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from airport_flights import AirportFlights
from flights_demo.living.packages import make_package, schema, with_keys
from flights_demo.living.results import (
    by_first_edition,
    counts_differ,
    expected_planes,
    is_further,
    of_the_job,
    without_names,
    zone_faults,
)
from flights_demo.names import Output
from late_planes import LatePlanes
from zoned_planes import ZonedPlanes


def _flight(tail_number: str | None, delay: int | None, airport: str = "IAH") -> dict[str, Any]:
    return {
        "tailnum": tail_number,
        "carrier": "UA",
        "dep_time": None if delay is None else 517,
        "dep_delay": delay,
        "distance": 100,
        "dest": airport,
    }


FLIGHTS = [_flight("N1", 90), _flight("N1", 70), _flight(None, 80), _flight("N1", 60)]
ZONES = {"IAH": "America/Chicago", "STT": None}


def _output(partition: int = 0, **fields: object) -> Output:
    return partition, {"tailnum": "N1", "flights": 1, "last_airport": "IAH", **fields}


def test_a_plane_has_all_of_its_flights_in_one_input() -> None:
    """Flights without a plane are in the first one."""
    further = {n: is_further(_flight(f"N{n}", 0)) for n in range(400)}
    assert further == {n: is_further(_flight(f"N{n}", 9)) for n in range(400)}
    assert 50 < sum(further.values()) < 150
    assert not is_further(_flight(None, 0))


@pytest.mark.parametrize(("by_first", "late"), [(0, 2), (1, 1), (2, 0)])
def test_late_flights_count_from_the_second_edition_on(by_first: int, late: int) -> None:
    """An hour is not late; the other sums are of all flights."""
    planes = expected_planes(FLIGHTS, {"N1": by_first})
    assert planes == {
        "N1": {
            "tailnum": "N1",
            "flights": 3,
            "cancelled": 0,
            "dep_delay_min": 220,
            "miles": 300,
            "last_airport": "IAH",
            "carrier": "UA",
            "late": late,
        }
    }
    assert "late" not in expected_planes(FLIGHTS, {"N1": 3})["N1"]


def test_the_last_output_without_the_field_ends_the_first_edition() -> None:
    """Each plane is compared; an older output after a newer one is a fault."""
    outputs = [_output(flights=4), _output(flights=6), _output(flights=9, late=1)]
    assert by_first_edition(outputs) == ({"N1": 6}, [])
    outputs.append(_output(flights=10))
    assert by_first_edition(outputs)[1] == ["N1: an output without 'late' follows one that has it"]


@pytest.mark.parametrize(
    ("zone", "fault"),
    [
        ({"zone": "America/Chicago"}, None),
        ({"zone": None, "last_airport": "STT"}, None),
        ({"zone": None, "last_airport": None}, None),
        ({"zone": None}, "expected America/Chicago, found None"),
        ({"zone": "Mars", "last_airport": "XXX"}, "expected None, found Mars"),
        ({}, "no 'zone' any more"),
    ],
)
def test_each_output_of_a_task_has_its_zone_once_one_has(
    zone: dict[str, Any], fault: str | None
) -> None:
    """Another task gets the store at another time."""
    outputs = [_output(), _output(zone="America/Chicago"), _output(1), _output(**zone)]
    found = list(zone_faults(outputs, ZONES))
    assert len(found) == (fault is not None)
    assert all(line.endswith(str(fault)) for line in found)


def test_a_summary_is_an_output_without_names() -> None:
    """The zone is one of them; the late flights are not."""
    _, value = _output(zone="Z", late=2, model="737", batch=5)
    assert without_names(value) == {"tailnum": "N1", "flights": 1, "last_airport": "IAH", "late": 2}


def test_counts_and_topics_that_differ_are_named() -> None:
    """What Kafka has for itself is not of the job."""
    assert counts_differ({"IAH": 2, "MIA": 1}, {"IAH": 2, "MIA": 3, "BOS": 1}) == [
        "BOS: expected 1, found None",
        "MIA: expected 3, found 1",
    ]
    now = ["flights", "__consumer_offsets", "__homeport_deleted_jobs", "flights-log"]
    assert of_the_job(["flights"], now) == ["flights-log"]


def test_a_key_of_a_file_is_replaced() -> None:
    """Comments and other keys stay."""
    text = "# a=1\na=1\nab = 2\n"
    assert with_keys(text, {"a": "3", "c": "4"}) == "# a=1\nab = 2\na=3\nc=4\n"


def test_an_edition_has_those_before_it_and_their_schema(tmp_path: Path) -> None:
    """The field that comes has a default."""
    first, third = (make_package(tmp_path / str(n), n) for n in (1, 3))
    assert (
        first / "living_task.py"
    ).read_text() == "from zoned_planes import ZonedPlanes as Task\n"
    assert not (first / "late_planes.py").exists()
    assert (third / "late_planes.py").exists()
    before, after = (json.loads((p / "summary.avsc").read_text())["fields"] for p in (first, third))
    assert after == [*before, {"name": "late", "type": "long", "default": 0}]
    assert schema(3) == schema(2)


def test_the_editions_add_what_is_expected() -> None:
    """A summary of the first edition has no late flights yet."""
    columns = {name: [flight[name] for flight in FLIGHTS] for name in FLIGHTS[0]}
    table = pa.table(columns).filter(pa.array([True, True, False, True]))
    before = ZonedPlanes.by_plane(table.slice(0, 1))["N1"]
    seen = LatePlanes.by_plane(table.slice(1))["N1"]
    expected = expected_planes(FLIGHTS, {"N1": 1})["N1"]
    assert {"tailnum": "N1", **LatePlanes.added(before, seen)} == expected
    assert issubclass(AirportFlights, LatePlanes)
