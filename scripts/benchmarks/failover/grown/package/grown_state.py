"""The job: a state of a size that its input asks for, and a change of one key per record after.

A record of the input is ``grow FIRST COUNT`` or ``touch NUMBER``.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pyarrow as pa

from homeport import BatchTask, KeyValueStore, MessageCollector, TaskContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTPUT = "grown-out"
VALUE_BYTES = 1024


def parse(frame: DataFrame) -> DataFrame:
    """The text of each record."""
    from pyspark.sql import functions as sql  # noqa: PLC0415 - tasks import this module where there is no Spark

    text = sql.col("value").cast("string").alias("value")
    return frame.select("task", "stream", "partition", "offset", text)


class GrownState(BatchTask):
    """Keys are numbers of 16 digits, values random bytes, which do not compress.

    Each transaction sends, per partition, the last offset that it has done.
    """

    def init(self, context: TaskContext) -> None:
        """Takes the store."""
        self._state: KeyValueStore = context.store("state")
        self._done: dict[int, int] = {}

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:  # noqa: ARG002 - sends at the end
        """Does what the records say."""
        columns = (table[name].to_pylist() for name in ("value", "partition", "offset"))
        for value, partition, offset in zip(*columns, strict=True):
            text = value if isinstance(value, str) else value.decode()
            first, count = numbers_of(text)
            numbers = range(first, first + count)
            self._state.put_all({key(n): os.urandom(VALUE_BYTES) for n in numbers})
            self._done[partition] = offset

    def end_transaction(self, collector: MessageCollector) -> None:
        """Sends the offset that each partition has reached."""
        for partition, offset in self._done.items():
            collector.send(OUTPUT, b"%d" % offset, partition=partition)
        self._done.clear()


def numbers_of(text: str) -> tuple[int, int]:
    """(first key that a record writes, how many)."""
    verb, *numbers = text.split()
    return (int(numbers[0]), int(numbers[1])) if verb == "grow" else (int(numbers[0]), 1)


def key(number: int) -> bytes:
    """The key of that number."""
    return b"%016d" % number
