"""The job of scripts/bench standalone: counts keys."""

from __future__ import annotations

import pyarrow as pa

from homeport import BatchTask, MessageCollector, TaskContext

STORE = "counts"


class Counter(BatchTask):
    """{key: how often it came}, in its store."""

    def init(self, context: TaskContext) -> None:
        """The store."""
        self._counts = context.store(STORE)

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Each record counts."""
        del collector
        for key in table.column("key").to_pylist():
            name = key.decode()
            self._counts.put(name, (self._counts.get(name) or 0) + 1)
