"""JSON of a pipeline's from_json: parsed by Spark alone, or read before it."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.pipeline.runs import Way, in_turns, pipeline_of, planned_once, ratio
from benchmarks.report import Row, figure
from homeport import BATCH_SCHEMA
from homeport.container.spark.inputs import ALL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


BATCHES = 10
ROWS = 100_000
_ROUNDS_BEFORE = 3
_DDL = "carrier STRING, delay INT, tailnum STRING, distance BIGINT"
_COLUMNS = "task, stream, partition, offset"
_TITLE = (
    f"A pipeline of 4 fields and a filter in Spark's local[1], {BATCHES * ROWS:,} JSON records, "
    f"{ROWS:,} a batch, both ways in turns"
)


def rows() -> Iterator[Row]:
    """CPU seconds of this process and of Spark's JVM, for all records."""
    tables = [_table(number) for number in range(BATCHES)]
    size = sum(len(v) for v in tables[0].column("value").to_pylist()) / ROWS
    yield figure("bytes of a record, mean", size, "bytes")
    alone, before = in_turns(_ways, tables[:_ROUNDS_BEFORE], tables)
    yield from alone.rows(1, "s")
    yield from before.rows(1, "s")
    yield ratio("Spark alone against before Spark", alone, before)


def _ways(session: SparkSession) -> tuple[Way, Way]:
    def way(what: str, *, natively: bool) -> Way:
        once = planned_once(session, natively=natively)
        return Way(what, pipeline_of(session, lambda frames: _parsing(frames[ALL]), once), None)

    return (
        way("from_json by Spark alone", natively=False),
        way("from_json, read before Spark", natively=True),
    )


def _parsing(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark is imported when it runs

    record = f.from_json(f.col("value").cast("string"), _DDL)
    parsed = frame.select("task", "stream", "partition", "offset", record.alias("value"))
    return parsed.selectExpr(*_COLUMNS.split(", "), "value.*").where("delay > 0")


def _table(number: int) -> pa.Table:
    numbers = random.Random(number)  # noqa: S311 - for a measurement
    return pa.table(
        [
            pa.repeat(pa.scalar("Partition 0"), ROWS),
            pa.array([b"N%05d" % numbers.randrange(10_000) for _ in range(ROWS)], pa.binary()),
            pa.array([_record(numbers) for _ in range(ROWS)], pa.binary()),
            pa.repeat(pa.scalar("kafka"), ROWS),
            pa.repeat(pa.scalar("flights"), ROWS),
            pa.repeat(pa.scalar(0, pa.int32()), ROWS),
            pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64()),
            pa.repeat(pa.scalar(1_357_000_000_000, pa.int64()), ROWS),
            pa.nulls(ROWS, BATCH_SCHEMA.field("headers").type),
        ],
        schema=BATCH_SCHEMA,
    )


def _record(numbers: random.Random) -> bytes:
    choose: Callable[[int], int] = numbers.randrange
    return (
        b'{"year":2013,"month":%d,"carrier":"%s","flight":%d,"delay":%d,"tailnum":"N%05d",'
        b'"distance":%d}'
        % (
            choose(12) + 1,
            (b"UA", b"AA", b"DL", b"B6")[choose(4)],
            choose(9999),
            choose(400) - 100,
            choose(10_000),
            choose(5000),
        )
    )


SECTIONS = {"parsing": (_TITLE, rows)}
