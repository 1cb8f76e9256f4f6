"""A Spark on two cores for tests, and micro-batches of JSON records."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import ALL
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.prepared import set_up_workers
from homeport.container.spark.session import LocalSpark, SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMED = Named("task.pipeline.class", "m:f")


@contextmanager
def two_cores(work: Path) -> Iterator[tuple[SparkSession, LocalSpark]]:
    """A session on two cores; what it leaves on the disk is below ``work``."""
    sessions: list[SparkSession] = []

    def prepare(session: SparkSession) -> SparkPipeline:
        set_up_workers(session)
        sessions.append(session)
        return SparkPipeline(session, lambda frames: frames[ALL], NAMED, unordered=True)

    local = LocalSpark(SparkSettings("plan-once", 2, 512, work, {}, 100_000), prepare)
    try:
        local.pipeline(lambda: None)
        yield sessions[0], local
    finally:
        local.stop()


def batch(rows: int, first: int = 0) -> pa.Table:
    """So many JSON records of two tasks."""
    numbers = range(first, first + rows)
    columns = {
        "task": [f"t{n % 2}" for n in numbers],
        "key": [b"k%d" % (n % 3) for n in numbers],
        "value": [b'{"id": %d, "x": %d.5, "name": "n%d"}' % (n, n % 7, n % 5) for n in numbers],
        "system": ["kafka"] * rows,
        "stream": ["s"] * rows,
        "partition": [n % 2 for n in numbers],
        "offset": list(numbers),
        "timestamp": [1_700_000_000_000 + n for n in numbers],
        "headers": [[("h", b"%d" % n)] if n % 2 else None for n in numbers],
    }
    return pa.table(columns, BATCH_SCHEMA)
