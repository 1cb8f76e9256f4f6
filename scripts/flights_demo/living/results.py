"""What the living job must have sent, by the flights alone; PURE.

Planes are exact whichever edition has added a flight: outputs without ``late`` are of the first
one, and show how many flights of a plane it has added.
"""

from __future__ import annotations

import sys
import zlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from flights_demo.job import EXAMPLE
from flights_demo.names import NAMES, Output

sys.path.insert(0, str(EXAMPLE))
from data import expected_summaries

Flight = dict[str, Any]
ZONE, LATE = "zone", "late"
LATE_MIN = 60
_SHARE = 4


def is_further(flight: Flight) -> bool:
    """Return whether the flight is one of the further input: each plane's are all in one."""
    tail_number = flight["tailnum"]
    return tail_number is not None and zlib.crc32(tail_number.encode()) % _SHARE == 0


def expected_planes(
    flights: Iterable[Flight], by_first: Mapping[str, int]
) -> dict[str, dict[str, Any]]:
    """Return the summary of each plane: {tail number: it}.

    ``by_first``: how many flights of a plane the first edition has added, {tail number: flights}.
    """
    of_planes: dict[str, list[Flight]] = defaultdict(list)
    for flight in flights:
        if flight["tailnum"] is not None:
            of_planes[flight["tailnum"]].append(flight)
    expected = expected_summaries(flight for each in of_planes.values() for flight in each)
    for tail_number, each in of_planes.items():
        added = each[by_first.get(tail_number, 0) :]
        if added:  # else its summary has not been sent since
            late = sum((flight["dep_delay"] or 0) > LATE_MIN for flight in added)
            expected[tail_number][LATE] = late
    return expected


def by_first_edition(outputs: Iterable[Output]) -> tuple[dict[str, int], list[str]]:
    """Return how many flights of each plane the first edition added, and a line for each fault.

    A fault: an output of the first edition after one of a later edition.
    """
    counts: dict[str, int] = {}
    later: set[str] = set()
    faults = []
    for _, value in outputs:
        tail_number = value["tailnum"]
        if LATE in value:
            later.add(tail_number)
        elif tail_number in later:
            faults.append(f"{tail_number}: an output without {LATE!r} follows one that has it")
        else:
            counts[tail_number] = value["flights"]
    return counts, faults


def zone_faults(outputs: Iterable[Output], zones: Mapping[str, str | None]) -> Iterator[str]:
    """Yield a line for each output with a wrong zone, or with none after the task had the store.

    ``zones``: {code of the airport: its zone, None where it has none}.
    """
    have: set[int] = set()
    for partition, value in outputs:
        if ZONE not in value:
            if partition in have:
                yield f"{value['tailnum']}, partition {partition}: no {ZONE!r} any more"
            continue
        have.add(partition)
        airport = value["last_airport"]
        right = None if airport is None else zones.get(airport)
        if value[ZONE] != right:
            found = value[ZONE]
            yield f"{value['tailnum']}: zone of {airport}: expected {right}, found {found}"


def without_names(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the summary of an output."""
    return {name: value[name] for name in value if name not in {*NAMES, ZONE}}


def counts_differ(found: Mapping[str, int], expected: Mapping[str, int]) -> list[str]:
    """Return a line for each key whose counts differ."""
    return [
        f"{key}: expected {expected.get(key)}, found {found.get(key)}"
        for key in sorted(found.keys() | expected.keys())
        if found.get(key) != expected.get(key)
    ]


def of_the_job(before: Sequence[str], now: Sequence[str]) -> list[str]:
    """Return the topics since, without those of Kafka itself and of deletions."""
    kept = {*before, "__homeport_deleted_jobs", "__consumer_offsets", "__transaction_state"}
    return sorted({*now} - kept)
