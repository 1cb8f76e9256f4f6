"""The work as tasks and a pipeline of Homeport."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from benchmarks.commit.tasks import OUTPUT, STORE, Changing
from benchmarks.throughput.work import LIMIT
from homeport import (
    IncomingMessage,
    KeyValueStore,
    MessageCollector,
    StreamTask,
    TaskContext,
    TaskCoordinator,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_READ = arrow_json.ReadOptions(use_threads=False, block_size=64 << 20)


class Sums(StreamTask):
    """``output``, record by record: the value is an object, the key bytes."""

    def init(self, context: TaskContext) -> None:
        """Takes the store."""
        self._sums: KeyValueStore = context.store(STORE)
        self._output = f"{context.config['job.name']}-{OUTPUT}"

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """Adds the record's number, and sends the sum."""
        del coordinator
        total = (self._sums.get(message.key) or 0) + message.value["n"]
        self._sums.put(message.key, total)
        collector.send(self._output, b"%d" % total, message.key)


class Counts(Changing):
    """``count`` of rows that a pipeline has filtered: one output per key and transaction."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:  # noqa: ARG002 - sends at the end
        """Adds how often each key is there."""
        seen = pc.value_counts(table["key"])
        keys, numbers = seen.field("values").to_pylist(), seen.field("counts").to_pylist()
        known = self._kept.get_all(keys)
        after = {key: known.get(key, 0) + n for key, n in zip(keys, numbers, strict=True)}
        self._kept.put_all(after)
        self._changed.update((key, b"%d" % count) for key, count in after.items())


class ParsedCounts(Counts):
    """``count`` of rows as they came from Kafka: parsed and filtered over Arrow."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Leaves out what is filtered."""
        lines = pa.BufferReader(b"\n".join(table["value"].to_pylist()))
        numbers = arrow_json.read_json(lines, read_options=_READ)["n"]
        super().process_batch(table.filter(pc.less(numbers, LIMIT)), collector)


class TypedCounts(Counts):
    """``count`` of rows whose values came as columns: filtered over Arrow."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Leaves out what is filtered."""
        numbers = pc.struct_field(table["value"], "n")
        super().process_batch(table.filter(pc.less(numbers, LIMIT)), collector)


class Sent(ParsedCounts):
    """``count``, sent with each batch."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Counts, and sends."""
        super().process_batch(table, collector)
        self.end_transaction(collector)


SCHEMA = "n LONG, kind STRING, price DOUBLE, x STRING"
"""Of the values."""


def keep(frame: DataFrame) -> DataFrame:
    """Rows whose number is below the limit; their values came as columns."""
    return frame.where(f"value.n < {LIMIT}").select("task", "key", "stream", "partition", "offset")


def parse(frame: DataFrame) -> DataFrame:
    """Rows whose number is below the limit."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - where there is a Spark

    parsed = f.from_json(f.decode("value", "UTF-8"), SCHEMA)
    kept = frame.withColumn("parsed", parsed).where(f.col("parsed.n") < LIMIT)
    return kept.select("task", "key", "stream", "partition", "offset")
