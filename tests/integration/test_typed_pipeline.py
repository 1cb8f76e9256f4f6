"""Values with a schema before a pipeline in real Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from homeport.container.api import BATCH_SCHEMA, BatchTask, MessageCollector
from homeport.container.testing import TestRunner

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

COLUMNS = ["task", "stream", "partition", "offset"]
SEEN: list[pa.Table] = []


class Keep(BatchTask):
    """Keeps what it gets."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Sends how many rows there were."""
        SEEN.append(table)
        collector.send("counts", str(table.num_rows).encode())


def late(frame: DataFrame) -> DataFrame:
    """Reads two of three fields, and no other column than those of the order."""
    return frame.where("value.delay > 10").select(*COLUMNS, "value.carrier")


def whole(frame: DataFrame) -> DataFrame:
    """Hands on all."""
    return frame.where("value is null or value.delay > 10")


CONFIG = {
    "task.inputs": "kafka.in",
    "task.drop.deserialization.errors": "true",
    "task.dead.letter.stream": "kafka.bad",
    "systems.kafka.streams.in.samza.msg.serde": "flights",
    "serializers.registry.flights.class": "json",
    "serializers.registry.flights.schema": "carrier STRING, delay INT, at TIMESTAMP, "
    "stops MAP<STRING, ARRAY<INT>>, price DECIMAL(6,2), plane STRUCT<built: DATE>",
}
VALUE = (
    b'{"carrier": "UA", "delay": %d, "at": "2013-01-02T03:04:05Z", "stops": {"x": [1]}, '
    b'"price": "1.50", "plane": {"built": "1999-12-31"}}'
)


def _run(pipeline: str, values: list[bytes | None]) -> tuple[list[pa.Table], int, dict[str, int]]:
    """The tables that the task got, the number of dead letters, and the checkpoint."""
    SEEN.clear()
    more = {"task.pipeline.class": f"{__name__}:{pipeline}"}
    with TestRunner(CONFIG | more, task=Keep) as runner:
        for value in values:
            runner.send_bytes("kafka.in", value=value)
        runner.run()
        return list(SEEN), len(runner.output("kafka.bad")), runner.checkpoint()


def test_a_pipeline_reads_fields_and_bad_records_go() -> None:
    """The good ones around it count."""
    values: list[bytes | None] = [VALUE % 11, b"bad", None, VALUE % 10, VALUE % 12]
    tables, bad, checkpoint = _run("late", values)
    (table,) = tables
    assert table.column("carrier").to_pylist() == ["UA", "UA"]
    assert table.column("offset").to_pylist() == [0, 4]
    assert (bad, checkpoint) == (1, {"kafka.in.0": 4})


def test_every_type_goes_through_spark_and_null_stays_null() -> None:
    """As struct of Spark's own types."""
    (table,), _, _ = _run("whole", [VALUE % 11, None])
    first, second = table.column("value").to_pylist(maps_as_pydicts="strict")
    assert second is None
    assert first["stops"] == {"x": [1]}
    assert str(first["price"]) == "1.50"
    assert first["plane"]["built"].isoformat() == "1999-12-31"
    assert first["at"].isoformat() == "2013-01-02T03:04:05+00:00"
    assert table.schema.names == BATCH_SCHEMA.names


def test_a_batch_of_bad_records_alone_is_passed_over() -> None:
    """Nothing goes into Spark, and the position moves."""
    assert _run("late", [b"bad", b"{"]) == ([], 2, {"kafka.in.0": 1})
