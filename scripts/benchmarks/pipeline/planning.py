"""A batch through a plan that lasts, and one that Spark plans by itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from benchmarks.pipeline.runs import ROWS, one_spark, parsed
from benchmarks.report import Row, figure

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TITLE = (
    "JSON parsed and filtered: a batch by a plan that lasts, and by its own; one core, compiled"
)
_SIZES = (20, 1_000, ROWS)


def rows() -> Iterator[Row]:
    """Time by the clock and CPU of all processes, of one batch of each size."""
    with one_spark() as spark:
        for size in _SIZES:
            once = spark.measure(_parsed, rows=size)
            each = spark.measure(_parsed, rows=size, plans_once=False)
            for name, found in (("a plan that lasts", once), ("a plan of its own", each)):
                yield from found.rows(f"{size:,} records, {name}", "ms")
            yield figure(
                f"{size:,} records: CPU, own against lasting", each.cpu_s / once.cpu_s, "times"
            )


def _parsed(frame: DataFrame) -> DataFrame:
    return parsed(frame).where("price < 90")


SECTIONS = {"planning": (_TITLE, rows)}
