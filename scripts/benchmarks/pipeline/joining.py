"""A pipeline that joins with an adjunct store, and the same one without the join."""

from __future__ import annotations

import time
from collections.abc import Iterator
from itertools import count, repeat
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.pipeline.runs import ROWS, one_spark, parsed
from benchmarks.report import Row, at_most, figure
from homeport.container.adjunct.frames import EntryColumns, FrameRows, StoreFrame
from homeport.container.serde.arrow_serdes import arrow_form
from homeport.container.spark.inputs import ALL

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from homeport.container.spark.work import Frames

_TITLE = (
    f"JSON parsed and filtered, {ROWS:,} records of 10,000 keys a batch, with and without a left "
    "join with an adjunct store; one core, by a plan that lasts"
)
_STORES = (10_000, 100_000)
_CHANGED = 100
_CHANGES = 20
_LIMIT = 1 << 30
_MOST = 25.0
"""Percent that a join may add to the pipeline's time."""


def rows() -> Iterator[Row]:
    """Time by the clock and CPU of all processes of a batch, and what a change of a store adds."""
    text = arrow_form("string")
    assert text is not None  # noqa: S101 - for the type checker
    schema = pa.schema({"key": pa.string(), "value": pa.string()})
    columns = EntryColumns("names", schema, text.from_bytes, text.from_bytes)
    with one_spark() as spark:
        none = StoreFrame(1, schema.empty_table())
        bare = spark.measure_join(lambda frames: _parsed(frames[ALL]), columns, repeat(none))
        yield from bare.rows("without a join", "ms a batch")
        for size in _STORES:
            entries = [(b"k%d" % n, b"the name of what has the number %d" % n) for n in range(size)]
            held = FrameRows.of(columns, entries, _LIMIT)
            still = StoreFrame(1, held.rows)
            join = spark.measure_join(_joined, columns, repeat(still))
            what = f"a store of {size:,} entries"
            yield from join.rows(what, "ms a batch")
            added_s, added = join.clock_s / bare.clock_s - 1, join.cpu_s / bare.cpu_s - 1
            yield at_most(f"{what}: the join adds, by the clock", 100 * added_s, _MOST, "%")
            yield at_most(f"{what}: the join adds, CPU", 100 * added, _MOST, "%")
            changing = (StoreFrame(number, held.rows) for number in count(1))
            each = spark.measure_join(_joined, columns, changing)
            more = (each.clock_s - join.clock_s) * 1e3
            yield figure(f"{what} that changes with each batch: added in Spark", more, "ms a batch")
            yield figure(f"  {_CHANGED} changed entries: in Python", _change_s(held) * 1e3, "ms")
            began = time.monotonic()
            FrameRows.of(columns, entries, _LIMIT)
            yield figure(
                "  all entries made again: in Python", (time.monotonic() - began) * 1e3, "ms"
            )


def _change_s(held: FrameRows) -> float:
    began = time.monotonic()
    for n in range(_CHANGES):
        held = held.changed({b"k%d" % (n * _CHANGED + k): b"changed" for k in range(_CHANGED)})
    return (time.monotonic() - began) / _CHANGES


def _parsed(frame: DataFrame) -> DataFrame:
    return parsed(frame, "CAST(key AS STRING) AS id").where("price < 90")


def _joined(frames: Frames) -> DataFrame:
    names = frames["names"].selectExpr("key AS id", "value AS name")
    return _parsed(frames[ALL]).join(names, "id", "left")


SECTIONS = {"joining": (_TITLE, rows)}
