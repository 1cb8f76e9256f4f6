"""A pipeline that Spark plans once gives each batch the rows that a plan of its own gives it."""

from __future__ import annotations

import contextlib
import gc
import importlib
import logging
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pyarrow as pa
import pytest
from spark_batches import NAMED, batch, two_cores
from suites import long
from waiting import until

from homeport.container.spark import java_classes
from homeport.container.spark.faults import PipelineFailedError
from homeport.container.spark.inputs import ALL
from homeport.container.spark.micro_batch import SparkPipeline
from homeport.container.spark.plan_once import PlanOnce
from homeport.container.spark.session import LocalSpark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    Frames = Callable[[DataFrame], DataFrame]

FORM = "id long, x double, name string"
KEPT = ["task", "stream", "partition", "offset"]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SparkSession, LocalSpark]]:
    """A session on two cores."""
    with two_cores(tmp_path_factory.mktemp("spark")) as found:
        yield found


@pytest.fixture
def session(spark: tuple[SparkSession, LocalSpark]) -> SparkSession:
    """The session alone."""
    return spark[0]


def identity(frame: DataFrame) -> DataFrame:
    """All as it came."""
    return frame


def selected(frame: DataFrame) -> DataFrame:
    """Filter, select and a new column."""
    kept = frame.where("offset % 3 = 1").select(*KEPT, "key", "headers")
    return kept.withColumns({"double": kept["offset"] * 2})


def parsed(frame: DataFrame) -> DataFrame:
    """What most pipelines do."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - only where Spark runs

    read = frame.withColumn("json", f.from_json(f.col("value").cast("string"), FORM))
    return read.where("json.x > 1").select(*KEPT, "json.*")


def counted(frame: DataFrame) -> DataFrame:
    """An aggregation, which shuffles where there are several partitions."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    sums = frame.groupBy("task", "stream", "partition")
    return sums.agg(f.max("offset").alias("offset"), f.count("*").alias("n"))


def joined(frame: DataFrame) -> DataFrame:
    """With a frame that is the same for all batches."""
    names = [(n, f"name {n}") for n in range(2)]
    static = frame.sparkSession.createDataFrame(names, "partition int, named string")
    return frame.join(static, "partition").select(*KEPT, "named")


def joined_at_once(frame: DataFrame) -> DataFrame:
    """With one that Spark sends to all, once."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    names = [(n, f"name {n}") for n in range(2)]
    static = frame.sparkSession.createDataFrame(names, "partition int, named string")
    return frame.join(f.broadcast(static), "partition").select(*KEPT, "named")


def joined_twice(frame: DataFrame) -> DataFrame:
    """With one that is sent once and joined with in two places."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    names = [(n, f"name {n}") for n in range(3)]
    static = frame.sparkSession.createDataFrame(names, "number long, named string")
    one = f.broadcast(static).toDF("number1", "named1")
    two = f.broadcast(static).toDF("number2", "named2")
    rows = frame.selectExpr(*KEPT, "offset % 3 AS a", "offset % 2 AS b")
    joined = rows.join(one, rows["a"] == one["number1"]).join(two, rows["b"] == two["number2"])
    return joined.select(*KEPT, "named1", "named2")


def windowed(frame: DataFrame) -> DataFrame:
    """The rank of each row in its task."""
    return frame.selectExpr(*KEPT, "row_number() over (partition by task order by offset) as r")


def of_python(frame: DataFrame) -> DataFrame:
    """One function of Python's, row by row."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    return frame.select(*KEPT, f.udf(lambda n: n * 3, "long")("offset").alias("three"))


def of_pandas(frame: DataFrame) -> DataFrame:
    """One over a series of pandas."""
    from pyspark.sql import functions  # noqa: PLC0415 - as above

    f: Any = functions
    series = importlib.import_module("pandas").Series

    def plus(numbers: Any) -> Any:  # noqa: ANN401 - replaced below
        return numbers + 1

    plus.__annotations__ = {"numbers": series, "return": series}
    return frame.select(*KEPT, f.pandas_udf(plus, "long")("offset").alias("plus"))


def of_arrow(frame: DataFrame) -> DataFrame:
    """Over record batches."""

    def kept(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for one in batches:
            yield one.filter(pa.array([n % 2 == 0 for n in one["offset"].to_pylist()]))

    return frame.select(*KEPT).mapInArrow(kept, frame.select(*KEPT).schema)


def timed(frame: DataFrame) -> DataFrame:
    """With the time of the batch."""
    return frame.selectExpr(*KEPT, "current_timestamp() as at")


def now_by_text(frame: DataFrame) -> DataFrame:
    """The same, as text that Spark understands."""
    return frame.selectExpr(*KEPT, "cast('now' as timestamp) as at")


def by_moment(text: str) -> Frames:
    """A column of that SQL, whose value is settled when it is planned."""

    def function(frame: DataFrame) -> DataFrame:
        return frame.selectExpr(*KEPT, f"{text} as at")

    function.__name__ = text
    return function


def random(frame: DataFrame) -> DataFrame:
    """With a seed, which is drawn when the function is called."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    return frame.select(*KEPT, f.rand().alias("r"))


def looking(frame: DataFrame) -> DataFrame:
    """With something that the function itself finds out about the batch."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    return frame.select(*KEPT, f.lit(frame.count()).alias("n"))


def subquery(frame: DataFrame) -> DataFrame:
    """A plan in a plan."""
    frame.createOrReplaceTempView("batch")
    last = frame.sparkSession.sql(
        "select * from batch where offset = (select max(offset) from batch)"
    )
    return last.select(*KEPT)


def sent(frame: DataFrame) -> DataFrame:
    """Rows of the batch are sent to all."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    firsts = frame.groupBy("task").agg(f.min("offset").alias("first"))
    return frame.join(f.broadcast(firsts), "task").select(*KEPT, "first")


def cached(frame: DataFrame) -> DataFrame:
    """Rows that Spark keeps."""
    return frame.select(*KEPT).cache()


def by_rdd(frame: DataFrame) -> DataFrame:
    """By way of an RDD of the job's own."""
    return frame.select(*KEPT).rdd.map(tuple).toDF(frame.select(*KEPT).schema)


def pair(session: SparkSession, function: Frames) -> tuple[SparkPipeline, SparkPipeline, PlanOnce]:
    """The pipeline planned once, the same planned for each batch, and the plans of the first."""
    once = PlanOnce.connect(session)
    assert once is not None, "the set-up has made no classes"

    def work(frames: Mapping[str, DataFrame]) -> DataFrame:
        return function(frames[ALL])

    new = SparkPipeline(session, work, NAMED, unordered=False, plan_once=once)
    return new, SparkPipeline(session, work, NAMED, unordered=False), once


def plans(once: PlanOnce) -> list[bool]:
    """For each schema and number of partitions: whether there is a plan that lasts."""
    return [plan is not None for plan in once._plans.values()]


SOUND = [
    identity,
    parsed,
    counted,
    joined_twice,
    *map(long, [selected, of_python, joined, joined_at_once, windowed, of_pandas, of_arrow]),
]


@pytest.mark.parametrize("function", SOUND)
def test_the_same_rows_batch_by_batch(session: SparkSession, function: Frames) -> None:
    """None, one, many; and none of a batch before."""
    new, old, once = pair(session, function)
    for table in (batch(0), batch(1), batch(20, 100), batch(0), batch(300, 7)):
        assert new.run(table).equals(old.run(table))
    assert plans(once) == [True]


UNSOUND = [
    (looking, "the pipeline's function itself looks at rows"),
    (cached, "its node InMemoryTableScan"),
    long(subquery, "it has a subquery"),
    long(sent, "it sends rows of a batch to all"),
    long(by_rdd, "it reads rows that were made for one run"),
]


@pytest.mark.parametrize(("function", "reason"), UNSOUND)
def test_what_is_for_one_batch_is_planned_for_each(
    session: SparkSession, function: Frames, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    """And one line says why."""
    new, old, once = pair(session, function)
    with caplog.at_level(logging.WARNING):
        for table in (batch(0), batch(20, 100), batch(30)):
            assert new.run(table).equals(old.run(table))
    assert plans(once) == [False]
    (line,) = [r.getMessage() for r in caplog.records if "plans each batch" in r.getMessage()]
    assert line.startswith(f"Spark plans each batch: {reason}")
    session.catalog.clearCache()


@pytest.mark.parametrize("function", [timed, long(now_by_text)])
def test_the_time_goes_on(session: SparkSession, function: Frames) -> None:
    """Each batch has its own."""
    new, _, once = pair(session, function)
    first = new.run(batch(1))["at"][0].as_py()
    while time.time() <= first.timestamp():
        pass
    assert new.run(batch(1))["at"][0].as_py() > first
    assert plans(once) == [False]


MOMENTS = [
    "to_date('today')",
    "cast('today Europe/Berlin' as date)",
    "DATE /* of */\n 'Today'",
    "1 + CASE WHEN timestamp_ntz\"now\" > timestamp'2020-01-01' THEN 1 END",
    "timestamp -- 'x'\n r'today UTC'",
    "date'\\u0074oday'",
    long("array(timestamp_ltz'yesterday UTC')[0]"),
    long("transform(array(1), x -> date_add(date'tomorrow', x))"),
    long("'\U0001f600' || date'today'"),
    long("to_timestamp('now')"),
    long("cast('today UTC' as timestamp)"),
    long("cast(' Tomorrow' as timestamp_ntz)"),
    long("coalesce(try_to_timestamp('yesterday+01:00'), current_timestamp)"),
]


@pytest.mark.parametrize("text", MOMENTS)
def test_text_that_is_a_moment_is_planned_for_each(session: SparkSession, text: str) -> None:
    """Also where another expression stands for the cast, and with a time zone behind it."""
    new, _, once = pair(session, by_moment(text))
    new.run(batch(1))
    assert plans(once) == [False]


def test_text_of_a_fixed_time_is_planned_once(session: SparkSession) -> None:
    """A date, and what only looks like a moment."""
    fixed = (
        "struct(to_date('2013-01-02'), cast('epoch' as date), try_to_date('nowhere'), "
        "date'2013-01-02', timestamp'epoch', 'today', timestamp'1970-01-01 00:00:01' AS now)"
    )
    new, old, once = pair(session, by_moment(fixed))
    for table in (batch(1), batch(3)):
        assert new.run(table).equals(old.run(table))
    assert plans(once) == [True]


def test_random_numbers_differ_from_batch_to_batch(session: SparkSession) -> None:
    """As each call of the function draws a seed."""
    new, _, once = pair(session, random)
    drawn = {tuple(new.run(batch(3))["r"].to_pylist()) for _ in range(3)}
    assert len(drawn) == 3
    assert plans(once) == [False]


@pytest.mark.parametrize(("function", "lasts"), [(identity, [True, True]), (random, [False])])
def test_the_exercise_goes_the_way_of_the_batches(
    session: SparkSession, function: Frames, lasts: list[bool]
) -> None:
    """By a plan of its own that lasts where the pipeline's does; the function sees none of it."""
    called = []

    def noted(frame: DataFrame) -> DataFrame:
        called.append(frame)
        return function(frame)

    new, _, once = pair(session, noted)
    new.warm_up()
    times = len(called)
    for _ in range(2):
        new.exercise()
    assert plans(once) == lasts
    assert len(called) == times
    assert new.run(batch(3))["offset"].to_pylist() == [0, 2, 1]


def test_the_function_is_called_once_for_a_schema(session: SparkSession) -> None:
    """A second schema gets a second plan, and the first one stays."""
    called = []

    def noted(frame: DataFrame) -> DataFrame:
        called.append(frame.columns)
        return frame

    new, old, once = pair(session, noted)
    wide = batch(3).append_column("more", pa.array([{"a": n} for n in range(3)]))
    for table in (batch(2), wide, batch(4), wide):
        assert new.run(table).num_rows == table.num_rows
    assert [len(columns) for columns in called] == [9, 10]
    assert new.run(wide).equals(old.run(wide))
    assert plans(once) == [True, True]


@pytest.mark.parametrize(
    ("function", "lasts"), [long(parsed, [True]), long(of_arrow, [True]), long(counted, [False])]
)
def test_large_batches_use_all_cores(
    session: SparkSession, function: Frames, lasts: list[bool]
) -> None:
    """With a plan of their own; where they would shuffle, each batch has one."""
    new, old, once = pair(session, function)
    for table in (batch(20_000), batch(10), batch(30_001, 5)):
        assert new.run(table).equals(old.run(table))
    assert plans(once) == [*lasts, True]


def refused(frame: DataFrame) -> DataFrame:
    """A function of Spark's own that fails."""
    return frame.selectExpr(*KEPT, "assert_true(offset != 5)")


def divided(frame: DataFrame) -> DataFrame:
    """One of Python's that does."""
    from pyspark.sql import functions as f  # noqa: PLC0415 - as above

    return frame.select(*KEPT, f.udf(lambda n: 1 / (n - 5), "double")("offset"))


@pytest.mark.parametrize(
    ("function", "stated"), [(refused, "USER_RAISED_EXCEPTION"), long(divided, "division by zero")]
)
def test_a_failure_is_that_of_its_batch(
    session: SparkSession, function: Frames, stated: str
) -> None:
    """As without a plan that lasts, and the next batch is well."""
    new, old, _ = pair(session, function)
    for pipeline in (new, old):
        assert pipeline.run(batch(5)).num_rows == 5
        with pytest.raises(PipelineFailedError, match=stated):
            pipeline.run(batch(6))
        assert pipeline.run(batch(5)).num_rows == 5


def test_a_plan_whose_first_run_fails_is_dropped(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its sources; the next batch gets another one."""
    new, _, once = pair(session, refused)
    noted = Mock(wraps=once._drop)
    monkeypatch.setattr(once, "_drop", noted)
    with pytest.raises(PipelineFailedError, match="USER_RAISED_EXCEPTION"):
        new.run(batch(6))
    assert (noted.call_count, plans(once)) == (1, [])
    assert new.run(batch(5)).num_rows == 5
    assert plans(once) == [True]


def heap(session: SparkSession) -> int:
    """Bytes in use, after a collection."""
    jvm: Any = session._jvm
    gc.collect()
    jvm.java.lang.System.gc()
    runtime = jvm.java.lang.Runtime.getRuntime()
    return int(runtime.totalMemory() - runtime.freeMemory())


@pytest.mark.parametrize(("batches", "rows"), [(100, 2000), long(10_000, 20)])
def test_batches_leave_nothing_in_the_heap(session: SparkSession, batches: int, rows: int) -> None:
    """More than 10 MB go in and out: what is kept of them would show beside 4 MB of the JVM's.

    Spark lets go of some after a collection, in a thread of its own; what is kept stays.
    """
    new, _, _ = pair(session, parsed)
    table = batch(rows)
    for _ in range(20):
        new.run(table)
    before = heap(session)
    for _ in range(batches):
        new.run(table)
    assert batches * table.nbytes > 10 * 2**20
    until(lambda: heap(session) - before < 4 * 2**20)


def test_a_stranger_on_the_port_is_not_served(session: SparkSession) -> None:
    """Without the secret no answer comes, with a part of it neither; with it one does."""
    jvm: Any = session._jvm
    helper = jvm.homeport.spark.Plans(session._jsparkSession)
    port = helper.serve(b"right")
    with socket.create_connection(("127.0.0.1", port)) as one:
        one.sendall(b"ri")
    for word, is_served in ((b"wrong", False), (b"right", True)):
        with socket.create_connection(("127.0.0.1", port), timeout=60) as one:
            one.sendall(word + (2).to_bytes(4, "big") + (7).to_bytes(8, "big"))
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                answer = one.recv(1)
            assert bool(answer) is is_served


def test_what_is_left_of_an_answer_is_no_later_batchs(
    session: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where something ends the reading, no further batch is taken."""
    new, _, once = pair(session, identity)
    new.run(batch(3))
    read = once._read

    def interrupted(size: int) -> pa.Buffer:
        if size > 4:
            raise KeyboardInterrupt
        return read(size)

    with monkeypatch.context() as patched:
        patched.setattr(once, "_read", interrupted)
        with pytest.raises(KeyboardInterrupt):
            new.run(batch(3))
    with pytest.raises(PipelineFailedError, match="ConnectionError"):
        new.run(batch(1))


def test_without_the_classes_each_batch_is_planned(
    session: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    """And one line says what is missing."""
    monkeypatch.setattr(java_classes, "jar_name", lambda: "none.jar")
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    monkeypatch.setenv("HOMEPORT_CACHE_DIR", str(tmp_path))
    with caplog.at_level(logging.WARNING):
        assert PlanOnce.connect(session) is None
    expected = "Spark plans each batch: it has no Java classes of ours: JAVA_HOME=/nowhere has no"
    assert expected in caplog.text


def test_a_jvm_that_ends_is_named(spark: tuple[SparkSession, LocalSpark]) -> None:
    """The last test here: the session is gone afterwards."""
    new, _, _ = pair(spark[0], identity)
    new.run(batch(1))
    spark[1].stop()
    with pytest.raises(PipelineFailedError, match="JVM ended while it had a batch"):
        new.run(batch(1))
