"""The third edition: flights are counted per airport too, by a repartition of the job's own."""

from __future__ import annotations

import json
from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc
from late_planes import LatePlanes

from homeport import KeyValueStore, TaskContext

REPARTITION, STORE, OUTPUT = "by-airport", "arrivals", "airport-flights"


class AirportFlights(LatePlanes):
    """Sends each flight on under the airport to which it went, and counts what comes back."""

    def init(self, context: TaskContext) -> None:
        """Take the stores."""
        super().init(context)
        self._own = context.repartition(REPARTITION)
        self._arrivals: KeyValueStore[str, int] = context.store(STORE)
        self._counted: dict[str, int] = {}

    def process_batch(self, table: pa.Table, context: TaskContext) -> None:
        """Add flights to their planes and send them on; count those that were sent on."""
        is_own = pc.equal(table["stream"], self._own)
        flights = table.filter(pc.invert(is_own))
        super().process_batch(flights, context)
        for airport in flights["dest"].to_pylist():
            context.send(REPARTITION, json.dumps({"dest": airport}).encode(), airport.encode())
        for airport, count in Counter(table.filter(is_own)["dest"].to_pylist()).items():
            before = self._counted.get(airport) or self._arrivals.get(airport, 0)
            self._counted[airport] = before + count
            self._arrivals.put(airport, before + count)

    def end_transaction(self, context: TaskContext) -> None:
        """Send each summary and each count that this transaction changed."""
        super().end_transaction(context)
        for airport, count in self._counted.items():
            context.send(OUTPUT, str(count).encode(), key=airport.encode())
        self._counted.clear()
