"""Records of many fields, of which a pipeline reads two: only these made columns, or all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.pipeline.runs import PLACES, Way, in_turns, pipeline_of, ratio
from benchmarks.report import Row, figure
from homeport import BATCH_SCHEMA
from homeport.container.processing.records import BadRecords
from homeport.container.processing.task_instance import Outputs
from homeport.container.processing.typed_input import TypedInput, Typing
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_columns
from homeport.container.spark import java_classes
from homeport.container.spark.inputs import ALL, Given
from homeport.container.spark.plan_once import PlanOnce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from homeport.container.spark.standing import Source

BATCHES = 6
ROWS = 50_000
_BEFORE = 4
_TYPES = ("STRING", "INT", "BIGINT", "DOUBLE", "BOOLEAN")
_FIELDS = 20
_TITLE = (
    f"{BATCHES * ROWS:,} JSON records of {_FIELDS} fields, of which a pipeline in Spark's local[1] "
    f"reads two, {ROWS:,} a batch, both ways in turns"
)


class _AllColumns(PlanOnce):
    """Sends Spark all columns of each batch, whatever its plan reads."""

    def _narrowed(
        self, frame: DataFrame, sources: Mapping[str, Source], standing: object
    ) -> Mapping[str, Source]:
        del frame, standing
        return sources


def rows() -> Iterator[Row]:
    """CPU of this process and of Spark's JVM, per record."""
    table = _table()
    part, whole = in_turns(_ways, [table] * _BEFORE, [table] * BATCHES)
    yield figure("bytes of a record, mean", table.column("value").nbytes / ROWS, "bytes")
    for way in (part, whole):
        yield from way.rows(1e6 / (BATCHES * ROWS), "µs a record")
    yield ratio("all columns against those that are read", whole, part)


def _table() -> pa.Table:
    places = {"task": "t", "system": "kafka", "stream": "in", "partition": 0, "timestamp": 0}
    found = []
    for n in range(ROWS):
        fields = [f"text {n}", n % 1000, n * 10**6, n / 7, n % 2 == 0]
        value = {f"c{c}": fields[c % len(fields)] for c in range(_FIELDS)}
        found.append({**places, "offset": n, "value": json.dumps(value).encode()})
    return pa.Table.from_pylist(found, BATCH_SCHEMA)


def _ways(session: SparkSession) -> tuple[Way, Way]:
    java_classes.load(session)
    kind = struct_of_ddl(", ".join(f"c{n} {_TYPES[n % len(_TYPES)]}" for n in range(_FIELDS)))

    def way(what: str, once: PlanOnce) -> Way:
        given = Given(types={ALL: kind})
        pipeline = pipeline_of(session, lambda frames: _reading(frames[ALL]), once, given=given)
        bad = BadRecords(Outputs({"kafka"}, set(), "kafka"), None, drop=False)
        typing = Typing(json_columns(kind), "json")
        typed = TypedInput({None: typing}, bad, pipeline.wanted)
        return Way(what, pipeline, lambda table: typed.of(table)[0])

    return (
        way("columns that are read", PlanOnce(session)),
        way("all columns", _AllColumns(session)),
    )


def _reading(frame: DataFrame) -> DataFrame:
    return frame.where("value.c1 < 900").selectExpr(*PLACES, "value.c5 AS text")


SECTIONS = {"wide": (_TITLE, rows)}
