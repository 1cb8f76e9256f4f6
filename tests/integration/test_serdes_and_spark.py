"""Spark's own from_json and to_json judge the serde json, on real Spark."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from homeport.container.api import BatchTask, MessageCollector
from homeport.container.serde.ddl import struct_of_ddl
from homeport.container.serde.json_schema_serde import json_schema_serde
from homeport.testing import TestRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

INNER = (
    "s STRING, t TINYINT, i INT, n BIGINT, f FLOAT, x DOUBLE, b BOOLEAN, raw BINARY, d DATE, "
    "at TIMESTAMP, c DECIMAL(10,2), list ARRAY<INT>, map MAP<STRING, INT>, st STRUCT<a: INT>"
)
DDL = (
    "v STRUCT<s: STRING, t: TINYINT, i: INT, n: BIGINT, f: FLOAT, x: DOUBLE, b: BOOLEAN, "
    "raw: BINARY, d: DATE, at: TIMESTAMP, c: DECIMAL(10,2), list: ARRAY<INT>, "
    "map: MAP<STRING, INT>, st: STRUCT<a: INT>>, text STRING"
)
NAIVE = datetime(2013, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001 - which a pipeline may give
MICROSECONDS = {"timestampFormat": "yyyy-MM-dd'T'HH:mm:ss.SSSSSSXXX"}
"""Without it Spark writes milliseconds."""
TEXTS = [
    '{"s":"a\\u00fc\\ud83d\\ude00\\u0000","t":-128,"i":2147483647,"n":-9223372036854775808}',
    '{"n":9223372036854775807,"f":0.1,"x":1e308,"b":true,"raw":"AP8=","c":12345678.91}',
    '{"x":-0.0,"f":-0.0,"i":-0,"c":-0.01,"b":false,"raw":"","s":""}',
    '{"x":5,"f":16777216,"c":5,"x":4.9e-324}',
    '{"d":"0001-01-01","at":"0001-01-01T00:00:00Z"}',
    '{"d":"9999-12-31","at":"9999-12-31T23:59:59.999999Z"}',
    '{"d":"1582-10-04","at":"1582-10-04T23:59:59.5+05:30"}',
    '{"at":"1900-01-01T00:19:32.000001Z"}',
    '{"list":[1,null,-1],"map":{"a":1,"":null},"st":{"a":1,"more":[{}]},"other":{}}',
    '{"list":[],"map":{},"st":{}}',
    '{"list":null,"map":null,"st":null,"s":null}',
    "{}",
]
SEEN: list[dict[str, Any]] = []


def judged(frame: DataFrame) -> DataFrame:
    """The value, as JSON of Spark's, and what Spark reads of the same text."""
    from pyspark.sql import functions as F  # noqa: N812, PLC0415 - as the pages have it

    return frame.select(
        *("task", "stream", "partition", "offset", "value"),
        F.to_json("value.v", MICROSECONDS).alias("written"),
        F.from_json("value.text", INNER).alias("read"),
        F.lit(NAIVE).alias("naive"),
        F.lit(NAIVE).cast("timestamp").alias("at"),
    )


class Judge(BatchTask):
    """Keeps the rows, and sends each value on."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """As the page of serdes has it."""
        for row in table.to_pylist():
            SEEN.append(row)
            collector.send("out", row["value"])


def test_spark_reads_and_writes_the_same_json() -> None:
    """What it reads of a text is what the serde reads; what it writes the serde reads as it was."""
    job = {
        "task.inputs": "kafka.in",
        "task.pipeline.class": f"{__name__}:judged",
        "systems.kafka.streams.in.samza.msg.serde": "own",
        "systems.kafka.streams.out.samza.msg.serde": "own",
        "serializers.registry.own.class": "json",
        "serializers.registry.own.schema": DDL,
    }
    ours = json_schema_serde(struct_of_ddl(INNER))
    SEEN.clear()
    with TestRunner(job, task=Judge) as runner:
        for text in TEXTS:
            value = f'{{"v":{text},"text":{json.dumps(text)}}}'
            runner.send_bytes("kafka.in", value=value.encode())
        runner.run()
        sent = [record.value["v"] for record in runner.output("kafka.out")]
    rows = sorted(SEEN, key=lambda row: row["offset"])
    assert [row["value"]["text"] for row in rows] == TEXTS
    for text, row, out in zip(TEXTS, rows, sent, strict=True):
        value = ours.from_bytes(text.encode())
        assert _plain(out) == _plain(value), text
        assert _plain(row["value"]["v"]) == _plain(value), text
        assert _plain(row["read"]) == _plain(value), text
        assert _plain(ours.from_bytes(row["written"].encode())) == _plain(value), text
        assert row["naive"].replace(tzinfo=UTC) == NAIVE.replace(tzinfo=UTC)
        assert row["at"] == NAIVE.replace(tzinfo=UTC)


def _plain(value: Any) -> Any:  # noqa: ANN401 - a value of any type
    """The value with maps as dicts, as pairs of a column stand for one; zeros keep their signs."""
    if isinstance(value, dict):
        # An empty map of a column is an empty list of pairs.
        return {name: _plain(part) for name, part in value.items()} or []
    if isinstance(value, list):
        is_map = bool(value) and all(isinstance(part, tuple) for part in value)
        return _plain(dict(value)) if is_map else [_plain(part) for part in value]
    if isinstance(value, float):
        return (math.copysign(1, value), value)
    return value
