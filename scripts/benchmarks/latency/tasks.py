"""The task and the pipeline that scripts/bench latency runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.commit.tasks import OUTPUT, STORE
from homeport.container.api import BatchTask, KeyValueStore, MessageCollector, TaskContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Echo(BatchTask):
    """Sends each record on as it came, and counts the records of each key."""

    def init(self, context: TaskContext) -> None:
        """Takes the store."""
        self._counts: KeyValueStore = context.store(STORE)
        self._output = f"{context.config['job.name']}-{OUTPUT}"

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """One output for each row."""
        rows = zip(table["key"].to_pylist(), table["value"].to_pylist(), strict=True)
        for key, value in rows:
            count = int.from_bytes(self._counts.get(key) or b"", "big") + 1
            self._counts.put(key, count.to_bytes(8, "big"))
            collector.send(self._output, value, key)


def parse(frame: DataFrame) -> DataFrame:
    """Rows whose JSON has a number that counts."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - where there is a Spark

    parsed = f.from_json(f.decode("value", "UTF-8"), "n LONG, at DOUBLE")
    return frame.withColumn("parsed", parsed).where("parsed.n >= 0").drop("parsed")
