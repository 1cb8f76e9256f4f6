"""A pipeline's from_json has the values of Spark's own, whatever reads them."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from json_fuzz import LEAVES, any_type, any_value
from spark_batches import two_cores

from homeport.container.api import BATCH_SCHEMA
from homeport.container.spark.inputs import ALL, batch_schema
from homeport.container.spark.plan_once import PlanOnce

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    Pipeline = Callable[[DataFrame], DataFrame]

READ = tuple(
    kind
    for kind in LEAVES
    if kind != pa.float32() and not pa.types.is_date(kind) and not pa.types.is_timestamp(kind)
)
"""The kinds of fields that are read before Spark."""
SEEDS, ROWS = 12, 500
FORM = "n long, k string, x struct<y: int, z: string>, d double, b boolean"
KIND = pa.struct(
    [
        ("n", pa.int64()),
        ("k", pa.string()),
        ("x", pa.struct([("y", pa.int32()), ("z", pa.string())])),
        ("d", pa.float64()),
        ("b", pa.bool_()),
    ]
)


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """A session on two cores."""
    with two_cores(tmp_path_factory.mktemp("spark")) as found:
        yield found[0]


@pytest.fixture(scope="module")
def both(session: SparkSession) -> tuple[PlanOnce, PlanOnce]:
    """Plans over JSON that is read natively, and by Spark alone."""
    native = PlanOnce.connect(session)
    sparks = PlanOnce.connect(session, natively=False)
    assert native is not None
    assert sparks is not None
    return native, sparks


def _batch(values: list[bytes | None], kind: pa.DataType | None = None) -> pa.Table:
    same = {"task": "t", "system": "kafka", "stream": "s", "timestamp": 0}
    rows = [{**same, "partition": n % 2, "offset": n, "value": v} for n, v in enumerate(values)]
    schema = BATCH_SCHEMA if kind is None else batch_schema(kind)
    return pa.Table.from_pylist(rows, schema)


def _values(seed: int, kind: pa.StructType, count: int = ROWS) -> list[bytes | None]:
    random_ = random.Random(seed)  # noqa: S311 - of a test
    return [any_value(random_, kind) for _ in range(count)]


def _rows(once: PlanOnce, table: pa.Table, pipeline: Pipeline) -> list[str] | str:
    """Each row's text, in any order; or why Spark refuses the batch."""
    try:
        found = once.run({ALL: table}, lambda frames: pipeline(frames[ALL]))
    except Exception as error:  # noqa: BLE001 - whatever Spark has raised, both have to
        return type(error).__name__
    assert found is not None
    found.validate(full=True)
    return sorted(map(repr, found.to_pylist()))


def _parsed(form: str, text: str = "cast(value AS string)") -> Column:
    from pyspark.sql import functions as f  # noqa: PLC0415 - only where Spark runs

    return f.from_json(f.expr(text), form)


def _reads(once: PlanOnce) -> set[str]:
    """The columns that Spark gets of the last plan."""
    (*_, plan) = once._plans.values()
    assert plan is not None
    (source,) = plan.sources.values()
    return set(source.reads or ())


def _ddl(kind: pa.StructType) -> str:
    """The same struct in Spark's words."""
    words = {pa.string(): "string", pa.bool_(): "boolean", pa.float64(): "double"}
    words |= dict(zip(READ[2:6], ("byte", "short", "int", "long"), strict=True))

    def of(own: pa.DataType) -> str:
        if not pa.types.is_struct(own):
            return words[own]
        return f"struct<{', '.join(f'`{part.name}`: {of(part.type)}' for part in own)}>"

    return ", ".join(f"`{own.name}` {of(own.type)}" for own in kind)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_any_values_of_any_schema_are_those_of_spark(
    both: tuple[PlanOnce, PlanOnce], seed: int
) -> None:
    """Odd ones, too: damaged, of other types, too large, with other names; and nulls."""
    random_ = random.Random(seed)  # noqa: S311 - of a test
    kind = any_type(random_, leaves=READ)
    while len(set(kind.names)) < len(kind.names):
        kind = any_type(random_, leaves=READ)
    first = kind.names[0]
    table = _batch(_values(seed, kind))

    def whole(frame: DataFrame) -> DataFrame:
        return frame.select("offset", _parsed(_ddl(kind)).alias("v"))

    def field(frame: DataFrame) -> DataFrame:
        return whole(frame).where(f"v.`{first}` IS NOT NULL").select("offset", f"v.`{first}`")

    native, sparks = both
    for pipeline in (whole, field):
        native._plans.clear()
        sparks._plans.clear()
        for part in (table, table.slice(3, 100)):
            assert _rows(native, part, pipeline) == _rows(sparks, part, pipeline)
        is_read = len(kind.names) == len(set(map(str.lower, kind.names)))
        assert ("value.json" in _reads(native)) or not is_read


def _filtered(frame: DataFrame) -> DataFrame:
    kept = frame.withColumn("v", _parsed(FORM, "decode(value, 'UTF-8')")).where("v.n > 3")
    return kept.select("offset", "v.x.z")


def _in_steps(frame: DataFrame) -> DataFrame:
    text = frame.selectExpr("offset", "cast(value AS string) AS text")
    return text.select("offset", _parsed(FORM, "text").alias("v")).selectExpr("offset", "v.*")


def _grouped(frame: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f  # noqa: PLC0415 - only where Spark runs

    rows = frame.select(_parsed(FORM).alias("v")).where("v.b OR v.n > 0")
    return rows.groupBy("v.k").agg(f.count("*"), f.max("v.x.z"), f.min("v.d"))


def _united(frame: DataFrame) -> DataFrame:
    some = frame.where(_parsed(FORM)["n"] > 3).select("offset", "value")
    return some.union(frame.where("offset < 5").select("offset", "value"))


def _with_bytes(frame: DataFrame) -> DataFrame:
    return frame.where(_parsed("n long")["n"].isNotNull()).select("offset", "value")


def _with_filter_on_top(frame: DataFrame) -> DataFrame:
    return frame.where(_parsed(FORM)["b"])


@pytest.mark.parametrize(
    "pipeline", [_filtered, _in_steps, _grouped, _united, _with_bytes, _with_filter_on_top]
)
def test_pipelines_of_any_shape_have_their_json_read(
    both: tuple[PlanOnce, PlanOnce], pipeline: Pipeline
) -> None:
    """Small batches and large ones, those without rows, and those of nulls alone."""
    native, sparks = both
    native._plans.clear()
    sparks._plans.clear()
    plain = [b'{"n": %d, "k": "k%d", "b": true, "d": 1.5}' % (n % 9, n % 3) for n in range(200)]
    values: list[bytes | None] = [*plain, *_values(1, KIND, 100), b"{}", b"null", b"[]", b""]
    for part in (values, plain, [], [None, None], values * 20):
        table = _batch([*part])
        assert _rows(native, table, pipeline) == _rows(sparks, table, pipeline)
        if len(part) <= ROWS:
            assert {"value.json", "value.rest"} <= _reads(native)


def test_two_forms_of_one_value_share_what_is_read(both: tuple[PlanOnce, PlanOnce]) -> None:
    """Each has its own fields; where their types differ, Spark parses both."""
    table = _batch(_values(2, KIND))

    def agreeing(frame: DataFrame) -> DataFrame:
        forms = (_parsed("n long, k string").alias("a"), _parsed("n long, b boolean").alias("b"))
        return frame.select("offset", *forms)

    def differing(frame: DataFrame) -> DataFrame:
        return frame.select("offset", _parsed("n long").alias("a"), _parsed("n string").alias("b"))

    native, sparks = both
    for pipeline, is_read in ((agreeing, True), (differing, False)):
        native._plans.clear()
        sparks._plans.clear()
        assert _rows(native, table, pipeline) == _rows(sparks, table, pipeline)
        assert ("value.json" in _reads(native)) == is_read


@pytest.mark.parametrize(
    "form",
    [
        "n float",
        "n date",
        "n timestamp",
        "n array<int>",
        "n map<string, int>",
        "n decimal(9, 2)",
        "n long, _corrupt_record string",
    ],
)
def test_spark_parses_what_it_alone_knows(both: tuple[PlanOnce, PlanOnce], form: str) -> None:
    """Its dates and times have rules of their own, a corrupt record its own field."""
    native, _ = both
    native._plans.clear()
    _rows(native, _batch([b'{"n": 1}']), lambda frame: frame.select(_parsed(form)))
    assert "value" in _reads(native)


def test_options_are_spark_s(both: tuple[PlanOnce, PlanOnce]) -> None:
    """With any, its own parser has all values."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - only where Spark runs

    def strict(frame: DataFrame) -> DataFrame:
        return frame.select(
            f.from_json(f.expr("cast(value AS string)"), "n long", {"mode": "FAILFAST"})
        )

    native, _ = both
    native._plans.clear()
    _rows(native, _batch([b'{"n": 1}']), strict)
    assert "value" in _reads(native)
    assert isinstance(_rows(native, _batch([b"x"]), strict), str)
