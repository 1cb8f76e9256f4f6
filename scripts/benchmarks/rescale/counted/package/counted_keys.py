"""The job: counts the records of each key, and sends each count with the run that made it.

A record with the key ``grow`` has the value ``FIRST COUNT``: that many keys more come into the
store, which no other record has.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pyarrow as pa

from homeport import BatchTask, KeyValueStore, MessageCollector, TaskContext

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

OUTPUT = "counted-out"
GROW = b"grow"
_VALUE_BYTES = 100


def parse(frame: DataFrame) -> DataFrame:
    """Return the rows that have a key: all."""
    return frame.where("key IS NOT NULL")


class CountedKeys(BatchTask):
    """Counts are numbers of 8 bytes, what grows beside them random bytes.

    An output is ``COUNT RUN``. A run is a task from its init to its close: a pid and a time.
    """

    def init(self, context: TaskContext) -> None:
        """Take the store."""
        self._counts: KeyValueStore = context.store("counts")
        self._run = b"%d.%d" % (os.getpid(), time.time_ns())

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Send one output for each record, to the partition that it came from."""
        columns = (table[name].to_pylist() for name in ("key", "value", "partition"))
        for key, value, partition in zip(*columns, strict=True):
            if key == GROW:
                first, count = map(int, value.split())
                numbers = range(first, first + count)
                self._counts.put_all({b"%016d" % n: os.urandom(_VALUE_BYTES) for n in numbers})
            count = int.from_bytes(self._counts.get(key) or b"", "big") + 1
            self._counts.put(key, count.to_bytes(8, "big"))
            collector.send(OUTPUT, b"%d %s" % (count, self._run), key, partition=partition)
