"""Spark gets of each batch only what its plan reads, and the rows are the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from spark_batches import NAMED, batch, two_cores
from suites import long

from homeport.container.api import BATCH_SCHEMA
from homeport.container.serde.columns import narrowed, part_type
from homeport.container.spark.inputs import ALL, Given
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.plan_once import PlanOnce

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Frames = Callable[[DataFrame], DataFrame]

KEPT = ["task", "stream", "partition", "offset"]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """On two cores."""
    with two_cores(tmp_path_factory.mktemp("spark")) as (found, _):
        yield found


def named_at_run_time(frame: DataFrame) -> DataFrame:
    """What the frame's own list of columns says."""
    return frame.select(*frame.columns)


def fields_read(frame: DataFrame) -> DataFrame:
    """Two fields of a struct, in a condition and in a row."""
    return frame.where("value.x > 1").select(*KEPT, "value.name")


def struct_tested(frame: DataFrame) -> DataFrame:
    """Whether there is a value, and no field of it."""
    return frame.where("value is not null").select(*KEPT)


def in_two_places(frame: DataFrame) -> DataFrame:
    """One source, read twice, each time another field."""
    built = frame.where("value.id > 1").selectExpr(*KEPT, "string(value.plane.built) AS name")
    return frame.select(*KEPT, "value.name").unionAll(built)


def numbers_of_names(frame: DataFrame) -> DataFrame:
    """A function of Python's over one field."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    return frame.select(*KEPT, f.udf(lambda text: len(text or ""), "int")("value.name").alias("n"))


def counted_values(frame: DataFrame) -> DataFrame:
    """Sums over a field, which a window and an aggregate read."""
    ranked = frame.selectExpr(*KEPT, "value.x", "rank() over (partition by task order by offset) r")
    return (
        ranked.where("r > 1")
        .groupBy("task", "stream", "partition")
        .agg({"offset": "max", "x": "sum"})
        .withColumnRenamed("max(offset)", "offset")
    )


VALUE = pa.struct(
    [
        ("id", pa.int64()),
        ("x", pa.float64()),
        ("name", pa.string()),
        ("plane", pa.struct([("built", pa.date32()), ("seats", pa.list_(pa.int32()))])),
    ]
)


def typed(table: pa.Table) -> pa.Table:
    """The same rows, with values as columns, of which each seventh is null."""
    values = [
        None
        if n % 7 == 3
        else {"id": n, "x": n % 5 / 2, "name": f"n{n}", "plane": {"built": n, "seats": [n]}}
        for n in table["offset"].to_pylist()
    ]
    at = BATCH_SCHEMA.get_field_index("value")
    return table.set_column(at, pa.field("value", VALUE), pa.array(values, VALUE))


READ: list[Any] = [
    (fields_read, frozenset({"x", "name"})),
    (named_at_run_time, None),
    long(struct_tested, frozenset({"id"})),
    (in_two_places, frozenset({"id", "name", "plane"})),
    long(numbers_of_names, frozenset({"name"})),
    long(counted_values, frozenset({"x"})),
]


@pytest.mark.parametrize(("function", "fields"), READ)
def test_a_batch_needs_only_what_the_plan_reads(
    session: SparkSession, function: Frames, fields: frozenset[str] | None
) -> None:
    """The rows are those of a plan of each batch's own over all columns."""
    given = Given(types={ALL: VALUE})
    once = PlanOnce.connect(session)

    def work(frames: Mapping[str, DataFrame]) -> DataFrame:
        return function(frames[ALL])

    new = SparkPipeline(session, work, NAMED, given=given, unordered=False, plan_once=once)
    old = SparkPipeline(session, work, NAMED, given=given, unordered=False)
    assert new.wanted(100) is None
    new.warm_up()
    assert new.wanted(100) == {None: fields}
    for table in (batch(0), batch(30), batch(5), batch(0)):
        whole = typed(table)
        column = whole["value"].combine_chunks()
        if isinstance(column, pa.ChunkedArray):
            column = pa.concat_arrays(column.chunks)
        part = column if fields is None else narrowed(column, part_type(VALUE, fields))
        at = BATCH_SCHEMA.get_field_index("value")
        lacking = whole.set_column(at, pa.field("value", part.type), part)
        assert new.run(lacking).equals(old.run(whole))


def test_a_large_batch_has_all_until_its_own_plan_stands(session: SparkSession) -> None:
    """It runs on several cores by another plan, which the function makes once more."""
    given = Given(types={ALL: VALUE})
    once = PlanOnce.connect(session)

    def work(frames: Mapping[str, DataFrame]) -> DataFrame:
        return fields_read(frames[ALL])

    pipeline = SparkPipeline(session, work, NAMED, given=given, unordered=False, plan_once=once)
    pipeline.warm_up()
    large = typed(batch(6000))
    assert pipeline.wanted(6000) is None
    rows = pipeline.run(large)
    assert pipeline.wanted(6000) == {None: frozenset({"x", "name"})}
    assert pipeline.run(large).equals(rows)
