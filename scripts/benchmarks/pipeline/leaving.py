"""Rows that leave by themselves: JSON that Spark writes, and JSON of a serde in Python."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

import pyarrow as pa

from benchmarks.pipeline.runs import ROWS, one_spark, parsed
from benchmarks.report import Row, figure
from homeport.config.system_stream import SystemStream
from homeport.container.processing.task_factory import encoded
from homeport.container.processing.task_instance import Outputs
from homeport.container.serde.serdes import serde
from homeport.container.spark.faults import Named
from homeport.container.spark.output_rows import Leaving, leaving_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_TITLE = f"{ROWS:,} rows of three fields a batch leave as JSON; one core, all compiled, no Kafka"
_STREAM = SystemStream("kafka", "out")


def rows() -> Iterator[Row]:
    """CPU of a row, parsed and written, of all processes; and of the same that stays a table."""
    with one_spark() as spark:
        kept = spark.measure(_parsed)
        yield figure("parsed, and handed to a task as columns", kept.cpu_s / ROWS * 1e6, "us")
        for name, msg_serde in (("Spark", "json"), ("Python", "own:Json")):
            leaving = Leaving(_STREAM, None, msg_serde)
            named = Named("bench", name)
            shaped = partial(leaving_rows, leaving=leaving, named=named)
            found = spark.measure(_parsed, partial(_send, leaving=leaving), shaped)
            yield figure(f"parsed, written by {name}, sent", found.cpu_s / ROWS * 1e6, "us")


def _parsed(frame: DataFrame) -> DataFrame:
    return parsed(frame, "key")


def _send(table: pa.Table, leaving: Leaving) -> None:
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
    encode = None if leaving.is_json else serde("json").to_bytes
    for key, value in zip(
        encoded(table, "key", None), encoded(table, "value", encode), strict=True
    ):
        outputs.send("kafka.out", value, key)


SECTIONS = {"leaving": (_TITLE, rows)}
