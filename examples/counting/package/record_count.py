"""A job that counts the records of each input partition in a store and sends each new count.

Counting is what shows a fault: a record processed twice, or never, makes a count wrong for good,
where a sum that is written over may hide it. There is no pipeline, so no JVM starts.
"""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.compute as pc

from homeport import BatchTask, KeyValueStore, TaskContext

OUTPUT = "flights-counted"


class RecordCount(BatchTask):
    """Keeps ``records`` and ``offsets``, the sum of their offsets, of each partition.

    Each transaction sends which offsets it has counted: ``first``, ``last``, ``records``.
    """

    def init(self, context: TaskContext) -> None:
        """Takes the store."""
        self._counts: KeyValueStore[str, dict[str, int]] = context.store("counts")
        self._spans: dict[str, dict[str, int]] = {}

    def process_batch(self, table: pa.Table, context: TaskContext) -> None:  # noqa: ARG002 - sends at the end
        """Counts the batch's records."""
        for partition in pc.unique(table["partition"]).to_pylist():
            offsets = table.filter(pc.equal(table["partition"], partition))["offset"]
            key = f"partition-{partition}"
            self._count(key, len(offsets), pc.sum(offsets).as_py())
            first, last = pc.min(offsets).as_py(), pc.max(offsets).as_py()
            span = self._spans.setdefault(key, {"first": first, "last": last, "records": 0})
            span["first"] = min(span["first"], first)
            span["last"] = max(span["last"], last)
            span["records"] += len(offsets)

    def end_transaction(self, context: TaskContext) -> None:
        """Sends what this transaction has counted."""
        for key, span in self._spans.items():
            context.send(OUTPUT, json.dumps(span).encode(), key=key.encode())
        self._spans.clear()

    def _count(self, key: str, records: int, offsets: int) -> None:
        known = self._counts.get(key) or {"records": 0, "offsets": 0}
        self._counts.put(
            key, {"records": known["records"] + records, "offsets": known["offsets"] + offsets}
        )
