"""The job: what each plane did in 2013, kept per tail number and emitted whenever it changes.

``parse`` is the pipeline (Spark turns the JSON text into columns); ``PlaneSummary`` is the task
(state and output). What the job sends also names plane, airport and airline (``reference_data``).
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from reference_data import ReferenceData

from homeport import BatchTask, KeyValueStore, TaskContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LOG = logging.getLogger("flights")
OUTPUT = "plane-summary"
FIELDS = "tailnum string, carrier string, dep_time int, dep_delay int, distance int, dest string"
NOTHING: dict[str, Any] = {
    "flights": 0,
    "cancelled": 0,
    "dep_delay_min": 0,
    "miles": 0,
    "last_airport": None,
    "carrier": None,
}
"""The summary of a plane that has not flown."""


def parse(frame: DataFrame) -> DataFrame:
    """One row per flight: where it came from, and the six fields that a summary needs."""
    from pyspark.sql import functions as sql  # noqa: PLC0415 - tasks import this module where there is no Spark

    flight = sql.from_json(sql.col("value").cast("string"), FIELDS)
    return frame.select("task", "stream", "partition", "offset", flight.alias("flight")).select(
        "task", "stream", "partition", "offset", "flight.*"
    )


class PlaneSummary(BatchTask):
    """Keeps a summary per tail number in the store ``summaries``; sends changed ones at the end.

    The names that it sends with a summary are those of the last batch that changed it.

    Flights without a tail number belong to no plane: they are logged, counted per partition in the
    store ``skipped``, and left out.
    """

    def init(self, context: TaskContext) -> None:
        """Takes the stores."""
        self._summaries: KeyValueStore = context.store("summaries")
        self._skipped: KeyValueStore[str, int] = context.store("skipped")
        self._reference = ReferenceData(context)
        self._changed: dict[str, dict[str, Any]] = {}
        self._described: dict[str, dict[str, Any]] = {}

    def process_batch(self, table: pa.Table, context: TaskContext) -> None:  # noqa: ARG002 - sends at the end
        """Adds the batch's flights to the summaries of their planes."""
        nameless = pc.is_null(table["tailnum"])
        self._skip(table.filter(nameless))
        changed = {
            tail_number: self.added(self._before(tail_number), seen)
            for tail_number, seen in self.by_plane(table.filter(pc.invert(nameless))).items()
        }
        self._summaries.put_all(changed)
        self._changed |= changed
        batch = pc.min(table["offset"]).as_py()
        self._described |= self._reference.described(changed, batch)

    def end_transaction(self, context: TaskContext) -> None:
        """Sends each summary that this transaction changed."""
        for tail_number, summary in self._described.items():
            send(context, tail_number, summary)
        self._changed.clear()
        self._described.clear()

    @staticmethod
    def by_plane(flights: pa.Table) -> dict[str, dict[str, Any]]:
        """Return what a batch has of its planes; ``last_airport``: None where none of them left."""
        flown = pc.is_valid(flights["dep_time"])
        flights = flights.append_column("cancelled", pc.cast(pc.invert(flown), pa.int64()))
        flights = flights.append_column(
            "miles", pc.if_else(flown, pc.cast(flights["distance"], pa.int64()), 0)
        )
        # "last" needs the order of the rows, hence one thread; it skips nulls: that flight left.
        flights = flights.append_column(
            "airport", pc.if_else(flown, flights["dest"], pa.scalar(None, pa.string()))
        )
        rows = (
            flights.group_by("tailnum", use_threads=False)
            .aggregate(
                [
                    ([], "count_all"),
                    ("cancelled", "sum"),
                    ("dep_delay", "sum"),
                    ("miles", "sum"),
                    ("airport", "last"),
                    ("carrier", "last"),
                ]
            )
            .to_pylist()
        )
        return {
            row["tailnum"]: {
                "flights": row["count_all"],
                "cancelled": row["cancelled_sum"],
                "dep_delay_min": row["dep_delay_sum"] or 0,
                "miles": row["miles_sum"],
                "last_airport": row["airport_last"],
                "carrier": row["carrier_last"],
            }
            for row in rows
        }

    @staticmethod
    def added(before: dict[str, Any], seen: dict[str, Any]) -> dict[str, Any]:
        """Return a summary with what a batch has of its plane."""
        sums = {
            name: before[name] + seen[name]
            for name in ("flights", "cancelled", "dep_delay_min", "miles")
        }
        last = {name: seen[name] or before[name] for name in ("last_airport", "carrier")}
        return {**sums, **last}

    def _before(self, tail_number: str) -> dict[str, Any]:
        return self._changed.get(tail_number) or self._summaries.get(tail_number) or NOTHING

    def _skip(self, nameless: pa.Table) -> None:
        for partition in pc.unique(nameless["partition"]).to_pylist():
            offsets = nameless.filter(pc.equal(nameless["partition"], partition))[
                "offset"
            ].to_pylist()
            LOG.info(
                "%d flights without a tail number skipped: partition %d offsets %s",
                len(offsets),
                partition,
                offsets,
            )
            key = f"partition-{partition}"
            self._skipped.put(key, self._skipped.get(key, 0) + len(offsets))


def send(context: TaskContext, tail_number: str, summary: dict[str, Any]) -> None:
    """The plane's summary as it is now leaves, under the plane's key."""
    value = json.dumps({"tailnum": tail_number, **summary}, separators=(",", ":")).encode()
    context.send(OUTPUT, value, key=tail_number.encode())
