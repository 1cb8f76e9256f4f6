"""Runs a container's loop until its standard input ends; says when it begins.

All of a container's data path, as ``scripts/bench commit``, with a Spark where there is a pipeline.
"""

from __future__ import annotations

import json
import sys
import threading
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.bed import scratch
from benchmarks.commit.job import job_of
from benchmarks.commit.tasks import OUTPUT, STORE
from benchmarks.throughput.job import with_spark
from homeport import BatchTask, KeyValueStore, MessageCollector, TaskContext
from homeport.container.host.stop_flag import StopFlag
from homeport.container.incarnation.stream_container import spare_collections
from homeport.job_coordinator.history.writer import HistoryWriter

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


def _until_input_ends(stop: StopFlag) -> None:
    sys.stdin.read()
    stop.set()


def main() -> None:
    """``SERVERS NAME KEYS``: keys as a JSON object."""
    servers, name, keys = sys.argv[1:]
    stop, job = StopFlag(), job_of(servers, name, json.loads(keys))
    with scratch() as folder, with_spark(job, Echo, folder, stop) as (run, pipeline):
        history = HistoryWriter(folder / "history", "container", "bench", 64)
        positions = run.positions()
        spare_collections()
        threading.Thread(target=_until_input_ends, args=(stop,), daemon=True).start()
        print("begins", flush=True)
        run.run(positions, stop, history.event, pipeline)


if __name__ == "__main__":
    main()
