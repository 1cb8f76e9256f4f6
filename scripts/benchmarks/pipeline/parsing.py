"""JSON through a pipeline: parsed in Spark, or decoded into columns before it."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.pipeline.runs import planned_once
from benchmarks.processes import cpu_s
from benchmarks.report import BenchmarkError, Row, figure
from homeport.container.api import BATCH_SCHEMA
from homeport.container.serde.columns import Columns
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import ALL, Given
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.session import LocalSpark, SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from homeport.container.spark.work import Frames

BATCHES = 10
ROWS = 100_000
_ROUNDS_BEFORE = 3
_DDL = "carrier STRING, delay INT, tailnum STRING, distance BIGINT"
_COLUMNS = "task, stream, partition, offset"
_HEAP_MB = 2048
TITLE = (
    f"A pipeline of 4 fields and a filter in Spark's local[1], {BATCHES * ROWS:,} JSON records, "
    f"{ROWS:,} a batch, both ways in turns"
)


@dataclass
class _Way:
    """One way from bytes to the pipeline's rows, and what it took."""

    what: str
    pipeline: SparkPipeline
    columns: Columns | None
    decoding_s: float = 0.0
    python_s: float = 0.0
    jvm_s: float = 0.0
    kept: int = 0

    def run(self, table: pa.Table, jvm: int) -> None:
        """``table`` has gone through."""
        own, java = time.process_time(), cpu_s(jvm)
        if self.columns is not None:
            values = table.column("value").combine_chunks()
            decoded = self.columns.decode(values)
            at = BATCH_SCHEMA.get_field_index("value")
            table = table.set_column(at, "value", decoded.column)
            self.decoding_s += time.process_time() - own
        self.kept += self.pipeline.run(table).num_rows
        self.python_s += time.process_time() - own
        self.jvm_s += cpu_s(jvm) - java

    def forget(self) -> None:
        """What it took so far does not count."""
        self.decoding_s = self.python_s = self.jvm_s = 0.0
        self.kept = 0


def rows() -> Iterator[Row]:
    """CPU seconds of this process and of Spark's JVM, for all records."""
    tables = [_table(number) for number in range(BATCHES)]
    size = sum(len(v) for v in tables[0].column("value").to_pylist()) / ROWS
    yield figure("bytes of a record, mean", size, "bytes")
    with _ways() as (ways, jvm):
        for table in tables[:_ROUNDS_BEFORE]:
            for way in ways:
                way.run(table, jvm)
        for way in ways:
            way.forget()
        for table in tables:
            for way in ways:
                way.run(table, jvm)
    raw, typed = ways
    if raw.kept != typed.kept:
        raise BenchmarkError(f"the ways kept {raw.kept} and {typed.kept} rows of the same records")
    for way in ways:
        total = way.python_s + way.jvm_s
        yield figure(f"{way.what}: CPU of both processes", total, "s")
        yield figure("  of it Spark's JVM", way.jvm_s, "s")
        if way.columns is not None:
            yield figure("  of it decoding", way.decoding_s, "s")
    ratio = (raw.python_s + raw.jvm_s) / (typed.python_s + typed.jvm_s)
    yield figure("raw against typed", ratio, "times")


@contextmanager
def _ways() -> Iterator[tuple[list[_Way], int]]:
    """Both ways in one Spark, and the pid of its JVM."""
    kind = struct_of_ddl(_DDL)
    made: list[_Way] = []

    def prepare(session: SparkSession) -> SparkPipeline:
        named = Named("none", "none")
        raw = SparkPipeline(
            session, _on_all(_parsing), named, unordered=False, plan_once=planned_once(session)
        )
        typed = SparkPipeline(
            session,
            _on_all(_reading),
            named,
            given=Given(types={ALL: kind}),
            unordered=False,
            plan_once=planned_once(session),
        )
        made.append(_Way("raw bytes, from_json in Spark", raw, None))
        made.append(_Way("typed, decoded before Spark", typed, json_columns(kind)))
        raw.warm_up()
        typed.warm_up()
        return raw

    with tempfile.TemporaryDirectory() as folder:
        settings = SparkSettings("bench", 1, _HEAP_MB, Path(folder) / "spark", {}, ROWS)
        spark = LocalSpark(settings, prepare)
        try:
            spark.pipeline(lambda: None)
            yield made, spark.pid
        finally:
            spark.stop()


def _on_all(function: Callable[[DataFrame], DataFrame]) -> Callable[[Frames], DataFrame]:
    return lambda frames: function(frames[ALL])


def _parsing(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f  # noqa: PLC0415 - pyspark is imported when it runs

    record = f.from_json(f.col("value").cast("string"), _DDL)
    parsed = frame.select("task", "stream", "partition", "offset", record.alias("value"))
    return _reading(parsed)


def _reading(frame: DataFrame) -> DataFrame:
    return frame.selectExpr(*_COLUMNS.split(", "), "value.*").where("delay > 0")


def _table(number: int) -> pa.Table:
    """One batch as it comes from Kafka."""
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
