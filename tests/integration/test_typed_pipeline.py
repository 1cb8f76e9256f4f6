"""Values with a schema before a pipeline in real Spark."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.frames import NO_FRAMES, StoreFrames
from homeport.container.api import BATCH_SCHEMA, BatchTask, MessageCollector
from homeport.container.spark.inputs import Rows, SplitRows
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.testing import TestRunner

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


def named_at_run_time(frame: DataFrame) -> DataFrame:
    """All columns, by the names that the frame has."""
    return frame.select(*frame.columns).where("value.delay > 10")


def of_two(flights: DataFrame, planes: DataFrame, notes: DataFrame) -> DataFrame:
    """Streams of three kinds of values in one: two with a schema each, one of bytes."""
    late = flights.where("value.delay > 10").select(*COLUMNS, "value.carrier")
    built = planes.selectExpr(*COLUMNS, "concat(value.maker, ' ', value.built) AS carrier")
    read = notes.selectExpr(*COLUMNS, "decode(value, 'UTF-8') AS carrier")
    return late.unionByName(built).unionByName(read)


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


GIVEN: list[Rows] = []
"""What the pipeline got after its start."""


@pytest.fixture(autouse=True)
def _given(monkeypatch: pytest.MonkeyPatch) -> None:
    run = SparkPipeline.run

    def seen(pipeline: SparkPipeline, given: Rows, stores: StoreFrames = NO_FRAMES) -> pa.Table:
        if given.num_rows:
            GIVEN.append(given)
        return run(pipeline, given, stores)

    GIVEN.clear()
    monkeypatch.setattr(SparkPipeline, "run", seen)


def _fields(table: pa.Table) -> list[str]:
    return [own.name for own in table.schema.field("value").type]


def _run(pipeline: str, values: list[bytes | None]) -> tuple[list[pa.Table], int, dict[str, int]]:
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


def test_only_fields_that_the_pipeline_reads_go_in() -> None:
    """From the first batch on; a record that is bad in another field is bad all the same."""
    values: list[bytes | None] = [VALUE % 11, VALUE % 12, VALUE.replace(b"1.50", b"x") % 13]
    tables, bad, _ = _run("late", values)
    assert [table.column("carrier").to_pylist() for table in tables] == [["UA", "UA"]]
    assert [_fields(given) for given in GIVEN] == [["carrier", "delay"]]
    assert bad == 1


def test_columns_named_at_run_time_all_go_in() -> None:
    """As with ``*``: the plan reads them."""
    tables, _, _ = _run("named_at_run_time", [VALUE % 11])
    (value,) = tables[0].column("value").to_pylist()
    assert value["plane"]["built"].isoformat() == "1999-12-31"
    assert len(_fields(GIVEN[0])) == 6


@dataclass
class Flight:
    """What a flight's JSON becomes."""

    carrier: str
    delay: int
    at: datetime | None = None
    stops: dict[str, list[int]] = field(default_factory=dict)
    price: Decimal = Decimal(5)


OF_CLASS = CONFIG | {
    "serializers.registry.flights.class": f"{__name__}:Flight",
    "serializers.registry.flights.schema": "",
}


class SendsRows(BatchTask):
    """Sends its rows as objects of the class."""

    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Each row is a dict, without what the class has by default."""
        for row in table.select(["carrier", "delay"]).to_pylist():
            collector.send("kafka.out", row)


def test_fields_of_a_class_are_columns() -> None:
    """As of a schema: by their names and types, with the defaults of the class."""
    with TestRunner(
        OF_CLASS | {"systems.kafka.streams.out.samza.msg.serde": "flights"},
        task=SendsRows,
        overrides={"task.pipeline.class": f"{__name__}:late_of_class"},
    ) as runner:
        for value in (VALUE % 11, b'{"carrier":"AA","delay":12}', b'{"carrier":1}', VALUE % 9):
            runner.send_bytes("kafka.in", value=value)
        runner.run()
        out = runner.output("kafka.out")
        assert [(r.value.carrier, r.value.delay) for r in out] == [("UA", 11), ("AA", 12)]
        assert len(runner.output("kafka.bad")) == 1
    assert {*_fields(GIVEN[0])} == {"carrier", "delay", "price"}


def late_of_class(frame: DataFrame) -> DataFrame:
    """Decimals are of the class: a missing one is five."""
    return (
        frame.where("value.delay > 10 AND value.price IN (1.5, 5)")
        .select("value.*")
        .drop("at", "stops")
    )


def test_a_batch_task_gets_fields_of_a_class_too() -> None:
    """Without a pipeline."""
    SEEN.clear()
    with TestRunner(OF_CLASS, task=Keep) as runner:
        runner.send_bytes("kafka.in", value=VALUE % 11)
        runner.run()
    (value,) = SEEN[0].column("value").to_pylist()
    assert value == {
        "carrier": "UA",
        "delay": 11,
        "at": datetime(2013, 1, 2, 3, 4, 5, tzinfo=UTC),
        "stops": [("x", [1])],
        "price": Decimal("1.5"),
    }


THREE = CONFIG | {
    "task.inputs": "kafka.flights,kafka.planes,kafka.notes",
    "systems.kafka.streams.flights.samza.msg.serde": "flights",
    "systems.kafka.streams.planes.samza.msg.serde": "planes",
    "serializers.registry.planes.class": "avro",
    "serializers.registry.planes.schema": '{"type": "record", "name": "p", "fields": ['
    '{"name": "maker", "type": "string"}, {"name": "built", "type": "long"}, '
    '{"name": "seats", "type": "int"}]}',
}
SQL = (  # noqa: S608 - of our own words
    "SELECT {0}, value.carrier FROM flights WHERE value.delay > 10 UNION ALL "
    "SELECT {0}, concat(value.maker, ' ', value.built) FROM planes UNION ALL "
    "SELECT {0}, decode(value, 'UTF-8') FROM notes"
).format(", ".join(COLUMNS))


@pytest.mark.parametrize(
    "pipeline",
    [{"task.pipeline.class": f"{__name__}:of_two"}, {"task.pipeline.sql": SQL}],
    ids=["function", "sql"],
)
def test_each_input_of_a_pipeline_has_its_own_serde(pipeline: dict[str, str]) -> None:
    """Its own schema, or none; bad records of all go to one stream, and the good ones count."""
    SEEN.clear()
    with TestRunner(THREE | pipeline, task=Keep) as runner:
        runner.send_bytes("kafka.flights", value=VALUE % 11)
        runner.send_bytes("kafka.flights", value=b"bad")
        runner.send("kafka.planes", value={"maker": "Airbus", "built": 1999, "seats": 180})
        runner.send_bytes("kafka.planes", value=b"\xff")
        runner.send_bytes("kafka.notes", value=b"a note")
        runner.run()
        assert len(runner.output("kafka.bad")) == 2
    found = {text for table in SEEN for text in table.column("carrier").to_pylist()}
    assert found == {"UA", "Airbus 1999", "a note"}
    split = [given for given in GIVEN if isinstance(given, SplitRows)]
    assert len(split) == len(GIVEN) > 0
    fields = {s.stream: _fields(t) for rows in split for s, t in rows.by_stream.items() if s != RAW}
    assert fields == {"flights": ["carrier", "delay"], "planes": ["maker", "built"]}


RAW = SystemStream("kafka", "notes")


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
