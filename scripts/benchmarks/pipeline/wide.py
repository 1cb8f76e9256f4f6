"""Records of many fields, of which a pipeline reads two: only these made columns, or all."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.processes import cpu_s
from benchmarks.report import BenchmarkError, Row, figure
from homeport.container.api import BATCH_SCHEMA
from homeport.container.processing.records import BadRecords
from homeport.container.processing.task_instance import Outputs
from homeport.container.processing.typed_input import TypedInput, Typing
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns
from homeport.container.spark import java_classes
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import ALL, Given
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.plan_once import PlanOnce
from homeport.container.spark.session import LocalSpark, SparkSettings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from homeport.container.spark.plan_once import _Source

BATCHES = 6
ROWS = 50_000
_BEFORE = 4
_TYPES = ("STRING", "INT", "BIGINT", "DOUBLE", "BOOLEAN")
_FIELDS = 20
_HEAP_MB = 2048
TITLE = (
    f"{BATCHES * ROWS:,} JSON records of {_FIELDS} fields, of which a pipeline in Spark's local[1] "
    f"reads two, {ROWS:,} a batch, both ways in turns"
)


class _AllColumns(PlanOnce):
    """Sends Spark all columns of each batch, whatever its plan reads."""

    def _narrowed(
        self, frame: DataFrame, sources: Mapping[str, _Source], standing: object
    ) -> Mapping[str, _Source]:
        del frame, standing
        return sources


@dataclass
class _Way:
    """One way from bytes to the pipeline's rows, and the CPU seconds that it took."""

    what: str
    pipeline: SparkPipeline
    typed: TypedInput
    decoding_s: float = 0.0
    python_s: float = 0.0
    jvm_s: float = 0.0
    kept: int = 0

    def run(self, table: pa.Table, jvm: int) -> None:
        """``table`` has gone through."""
        own, java = time.process_time(), cpu_s(jvm)
        rows, _ = self.typed.of(table)
        self.decoding_s += time.process_time() - own
        self.kept += self.pipeline.run(rows).num_rows
        self.python_s += time.process_time() - own
        self.jvm_s += cpu_s(jvm) - java


def rows() -> Iterator[Row]:
    """CPU of this process and of Spark's JVM, per record."""
    table = _table()
    with _ways() as (ways, jvm):
        for _ in range(_BEFORE):
            for way in ways:
                way.run(table, jvm)
        for way in ways:
            way.decoding_s = way.python_s = way.jvm_s = 0.0
            way.kept = 0
        for _ in range(BATCHES):
            for way in ways:
                way.run(table, jvm)
    part, whole = ways
    if part.kept != whole.kept:
        raise BenchmarkError(f"the ways kept {part.kept} and {whole.kept} rows of the same records")
    per_us = 1e6 / (BATCHES * ROWS)
    yield figure("bytes of a record, mean", table.column("value").nbytes / ROWS, "bytes")
    for way in ways:
        total_s = way.python_s + way.jvm_s
        yield figure(f"{way.what}: CPU of both processes", total_s * per_us, "µs a record")
        yield figure("  of it decoding", way.decoding_s * per_us, "µs a record")
        yield figure("  of it Spark's JVM", way.jvm_s * per_us, "µs a record")
    ratio = (whole.python_s + whole.jvm_s) / (part.python_s + part.jvm_s)
    yield figure("all columns against those that are read", ratio, "times")


def _table() -> pa.Table:
    places = {"task": "t", "system": "kafka", "stream": "in", "partition": 0, "timestamp": 0}
    found = []
    for n in range(ROWS):
        fields = [f"text {n}", n % 1000, n * 10**6, n / 7, n % 2 == 0]
        value = {f"c{c}": fields[c % len(fields)] for c in range(_FIELDS)}
        found.append({**places, "offset": n, "value": json.dumps(value).encode()})
    return pa.Table.from_pylist(found, BATCH_SCHEMA)


@contextmanager
def _ways() -> Iterator[tuple[list[_Way], int]]:
    """Both ways in one Spark, and the pid of its JVM."""
    ddl = ", ".join(f"c{n} {_TYPES[n % len(_TYPES)]}" for n in range(_FIELDS))
    kind = struct_of_ddl(ddl)
    made: list[_Way] = []

    def way(session: SparkSession, what: str, once: PlanOnce) -> _Way:
        pipeline = SparkPipeline(
            session,
            lambda frames: _reading(frames[ALL]),
            Named("none", "none"),
            given=Given(types={ALL: kind}),
            unordered=False,
            plan_once=once,
        )
        pipeline.warm_up()
        bad = BadRecords(Outputs({"kafka"}, set(), "kafka"), None, drop=False)
        typing = Typing(json_columns(kind), "json")
        return _Way(what, pipeline, TypedInput({None: typing}, bad, pipeline.wanted))

    def prepare(session: SparkSession) -> SparkPipeline:
        if not java_classes.load(session):
            raise BenchmarkError("the set-up has made no Java classes")
        made.append(way(session, "columns that are read", PlanOnce(session)))
        made.append(way(session, "all columns", _AllColumns(session)))
        return made[0].pipeline

    with tempfile.TemporaryDirectory() as folder:
        settings = SparkSettings("bench", 1, _HEAP_MB, Path(folder) / "spark", {}, ROWS)
        spark = LocalSpark(settings, prepare)
        try:
            spark.pipeline(lambda: None)
            yield made, spark.pid
        finally:
            spark.stop()


def _reading(frame: DataFrame) -> DataFrame:
    places = ("task", "stream", "partition", "offset")
    return frame.where("value.c1 < 900").selectExpr(*places, "value.c5 AS text")
