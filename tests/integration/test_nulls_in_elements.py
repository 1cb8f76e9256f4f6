"""A pipeline over values with arrays, maps and structs of them meets nulls there as Spark does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from spark_batches import two_cores

from homeport.container.spark.plan_once import PlanOnce
from homeport.container.spark.standing import frame_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import DataFrame, SparkSession

_VALUE = pa.struct(
    [
        ("i", pa.int64()),
        ("whole", pa.list_(pa.int32())),
        ("text", pa.list_(pa.string())),
        ("price", pa.list_(pa.decimal128(10, 2))),
        ("deep", pa.list_(pa.list_(pa.int64()))),
        ("rows", pa.list_(pa.struct([("a", pa.int32()), ("b", pa.list_(pa.float64()))]))),
        ("named", pa.map_(pa.string(), pa.int64())),
        ("inner", pa.struct([("whole", pa.list_(pa.int64()))])),
    ]
)
_FULL = {
    "i": 1,
    "whole": [1, None, 3],
    "text": ["a", None],
    "price": [None],
    "deep": [[1, None], None, []],
    "rows": [{"a": None, "b": [None, 1.5]}, None, {"a": 2, "b": None}],
    "named": [("a", None), ("b", 2)],
    "inner": {"whole": [None, 5]},
}
_VALUES = [_FULL, None, dict.fromkeys(_FULL), {**_FULL, "inner": None, "whole": []}]

_EXPRESSIONS = [
    "transform(value.whole, x -> x + value.i)",
    "aggregate(value.whole, 0, (sum, x) -> sum + coalesce(x, 10))",
    "filter(value.text, x -> x IS NULL)",
    "transform(value.price, x -> x * 2)",
    "transform(value.deep, x -> transform(x, y -> y + 1))",
    "transform(value.rows, x -> struct(x.a + 1, exists(x.b, y -> y > 1)))",
    "transform(value.rows, x -> x IS NULL)",
    "transform_values(value.named, (k, v) -> v + value.i)",
    "map_filter(value.named, (k, v) -> v IS NULL)",
    "transform(value.inner.whole, x -> x + 1)",
    "array_sort(value.whole, (a, b) -> coalesce(a, 0) - coalesce(b, 0))",
    "zip_with(value.whole, value.text, (a, b) -> struct(a, b))",
    "transform_values(headers, (k, v) -> length(v))",
]


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores."""
    with two_cores(tmp_path_factory.mktemp("spark")) as (found, _):
        yield found


def _table(count: int) -> pa.Table:
    values = [_VALUES[n % len(_VALUES)] for n in range(count)]
    headers = [[("h", None), ("i", b"12")]] * count
    return pa.table(
        {
            "offset": pa.array(range(count), pa.int64()),
            "value": pa.array(values, _VALUE),
            "headers": pa.array(headers, pa.map_(pa.string(), pa.binary())),
        }
    )


def _by_spark(session: SparkSession, table: pa.Table, expression: str) -> list[object]:
    """What Spark makes of the same rows where they are its own from the start."""
    form = frame_of(session, table).schema
    rows = session.createDataFrame([tuple(row.values()) for row in _python_rows(table)], form)
    return [row["found"] for row in _of(expression, {"f": rows}).toArrow().to_pylist()]


def _python_rows(table: pa.Table) -> list[dict[str, object]]:
    return [
        {
            "offset": row["offset"],
            "value": row["value"] and {**row["value"], "named": _dict(row["value"]["named"])},
            "headers": _dict(row["headers"]),
        }
        for row in table.to_pylist()
    ]


def _dict(pairs: list[tuple[str, object]] | None) -> dict[str, object] | None:
    return None if pairs is None else dict(pairs)


def _of(expression: str, frames: Mapping[str, DataFrame]) -> DataFrame:
    return frames["f"].selectExpr("offset", f"{expression} AS found").orderBy("offset")


@pytest.mark.parametrize("expression", _EXPRESSIONS)
def test_a_null_within_a_value_is_a_null(session: SparkSession, expression: str) -> None:
    """By a plan that lasts, over batches of any size, and by a plan of each batch."""
    once = PlanOnce.connect(session)
    assert once is not None, "the set-up has made no classes"
    for count in (0, 1, 4, 9):
        table = _table(count)
        expected = _by_spark(session, table, expression)
        lasting = once.run({"f": table}, lambda frames: _of(expression, frames))
        assert lasting is not None
        assert lasting["found"].to_pylist() == expected
        each = _of(expression, {"f": frame_of(session, table)}).toArrow()
        assert each["found"].to_pylist() == expected


def test_rows_without_elements_stay_as_arrow_has_them(session: SparkSession) -> None:
    """Also with structs; nothing is made of them twice."""
    table = pa.table({"a": [1, None], "s": pa.array([{"x": 1}, None])})
    assert frame_of(session, table).toArrow().to_pylist() == table.to_pylist()


def test_spark_itself_fails_at_a_null_that_arrow_has(session: SparkSession) -> None:
    """Which is why rows take Spark's own form first; once it does not, they need not."""
    frame = session.createDataFrame(_table(1))
    with pytest.raises(Exception, match="Value at index is null"):
        _of(_EXPRESSIONS[0], {"f": frame}).toArrow()
