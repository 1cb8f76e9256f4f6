"""Pipelines as SQL, over several inputs, alone with an output: real Spark, Kafka in memory."""

from __future__ import annotations

import json
import os
import select
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import data
import psutil
import pyarrow as pa
import pytest
from flights_demo.common import reference
from flights_demo.job import file_of
from flights_demo.names import judge
from flights_demo.options import APP
from reference_streams import Row, airline_records, airport_records, plane_records

from homeport.config.errors import ConfigError
from homeport.container.spark.faults import PipelineFailedError
from homeport.testing import Record, TestRunner, shared_spark

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights" / "flights.properties"
ALONE = "sql-alone"
FORMS = ("app", "stream-task", "batch-task", "flights", "sql-and-task", ALONE)
PARTITIONS = 8
SOME = 400
BASE = {
    "task.inputs": "kafka.orders",
    "task.pipeline.output": "kafka.out",
    "cluster-manager.container.memory.mb": "1536",
    "cluster-manager.container.cpu.cores": "1",
}
END_S = 20.0
TWO = {"task.inputs": "kafka.orders,kafka.late-orders"}
PLAIN = "SELECT key, get_json_object(CAST(value AS STRING), '$.item') AS item FROM orders"
MODULE = """
from homeport.container.api import BatchTask


class Keep(BatchTask):
    rows = []

    def process_batch(self, table, collector):
        Keep.rows += table.to_pylist()


def both(frames):
    late = frames["late-orders"].withColumnRenamed("key", "late")
    return frames["orders"].unionByName(late, allowMissingColumns=True)


def by_name(orders, late_orders):
    return orders.join(late_orders.select("key"), "key", "left_semi")


def items(orders):
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    text = sql.get_json_object(sql.decode("value", "UTF-8"), "$.item")
    words = orders.select("key", sql.explode(sql.split(text, " ")).alias("word"))
    rank = sql.row_number().over(Window.partitionBy("key").orderBy("word"))
    ranked = words.where("word != 'x'").withColumn("rank", rank).alias("r")
    names = orders.sparkSession.createDataFrame([("a", "first")], "word string, name string")
    return ranked.join(sql.broadcast(names), "word", "left").select("r.word", "name", "rank")


def grouped(frame):
    return frame.groupBy("key").count()


def crossed(orders, late_orders):
    return orders.alias("o").crossJoin(late_orders.alias("l")).select("o.key", "l.value")


def unknown(orders, payments):
    return orders


def wrong(frame):
    return "no frame"


def failing(frame):
    return frame.nothing()


def shouted(text):
    return text.decode().upper() + "!"


def shouting(frame):
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyspark.sql.functions import arrow_udf, pandas_udf, udf

    @pandas_udf("string")
    def by_pandas(values: pd.Series) -> pd.Series:
        return values.map(shouted)

    @arrow_udf("string")
    def by_arrow(values: pa.Array) -> pa.Array:
        return pc.binary_join_element_wise(pc.utf8_upper(values.cast("string")), "!", "")

    plain = udf(shouted, "string")
    columns = [made("value").alias(made.__name__) for made in (by_pandas, by_arrow)]
    return frame.select("task", "stream", "partition", "offset", "key", *columns,
                        plain("value").alias("plain"))


def hours(frame):
    import pandas as pd
    from pyspark.sql.functions import hour, pandas_udf, timestamp_seconds, udf

    @pandas_udf("int")
    def by_pandas(times: pd.Series) -> pd.Series:
        return times.dt.hour

    at = timestamp_seconds("offset")
    return frame.select("task", "stream", "partition", "offset", hour(at).alias("sql"),
                        by_pandas(at).alias("pandas"),
                        udf(lambda time: time.hour, "int")(at).alias("plain"))


def dividing(frame):
    from pyspark.sql.functions import udf

    return frame.select("task", "stream", "partition", "offset",
                        udf(lambda offset: 1 // (offset - 1), "int")("offset").alias("n"))


def dying(frame):
    import os
    from pyspark.sql.functions import udf

    return frame.select("task", "stream", "partition", "offset",
                        udf(lambda offset: os._exit(9), "int")("offset").alias("n"))
"""


@pytest.fixture(scope="module", autouse=True)
def spark() -> Iterator[None]:
    """One for all tests of this module, on a host whose clock is not in UTC."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "America/New_York")
        time.tzset()
        yield
        shared_spark.stop()
    time.tzset()


@pytest.fixture(autouse=True)
def own_pipelines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:  # noqa: ANN401 - a module
    """The module of the job's own functions, which is on the path as a package is."""
    (tmp_path / "own_pipelines.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("own_pipelines", None)


def runner(*more: Mapping[str, str], partitions: int = 1) -> TestRunner:
    """A runner of the job that ``BASE`` and what comes after it make."""
    merged: dict[str, str] = {}
    for keys in (BASE, *more):
        merged |= keys
    given = {key: value for key, value in merged.items() if value}
    return TestRunner(given, partitions=partitions)


def sql(text: str) -> dict[str, str]:
    """The key of a statement."""
    return {"task.pipeline.sql": text}


def order(runner: TestRunner, key: str, item: str, stream: str = "orders", **more: Any) -> None:  # noqa: ANN401 - of send
    """One order."""
    runner.send(
        f"kafka.{stream}", key=key.encode(), value=json.dumps({"item": item}).encode(), **more
    )


def test_one_statement_is_a_job() -> None:
    """Its rows leave as JSON, by key, in the order of the input, once; their places do not."""
    with runner(sql(PLAIN), partitions=4) as job:
        for n in range(40):
            order(job, f"k{n % 5}", f"i{n}")
        job.run()
        order(job, "k1", "last")
        job.crash_before("commit")
        assert len(job.output("kafka.out")) == 40
        job.restart()
        job.run()
        found = job.output("kafka.out")
        assert len(found) == 41
        for key in range(5):
            mine = [r for r in found if r.key == b"k%d" % key]
            wanted = [f"i{n}" for n in range(40) if n % 5 == key] + ["last"] * (key == 1)
            assert [json.loads(r.value) for r in mine] == [{"item": item} for item in wanted]
        # As Java's producers place them: keys lie where the inputs, placed alike, had them.
        inputs = job.output("kafka.orders")
        assert {(r.key, r.partition) for r in found} == {(r.key, r.partition) for r in inputs}


def test_the_job_of_the_page_is_whole(tmp_path: Path) -> None:
    """What docs/pipelines.md shows needs no more than brokers."""
    page = (FLIGHTS.parents[2] / "docs" / "pipelines.md").read_text(encoding="utf-8")
    (tmp_path / "page.properties").write_text(page.split("```")[1].removeprefix("properties"))
    size = {key: value for key, value in BASE.items() if key.startswith("cluster-manager.")}
    with TestRunner(tmp_path / "page.properties", overrides=size) as job:
        job.send("kafka.orders", key=b"k", value=b'{"price":3}')
        job.run()
        assert job.output("kafka.prices") == [Record(b"k", b'{"price":"3"}')]


def test_a_statement_may_come_from_a_file_of_the_package(tmp_path: Path) -> None:
    """Found where modules are; its semicolon is no fault."""
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "plain.sql").write_text(f"-- a comment\n{PLAIN}\n;\n", encoding="utf-8")
    with runner(sql("file:deep/plain.sql")) as job:
        order(job, "k", "i")
        job.run()
        assert job.output("kafka.out") == [Record(b"k", b'{"item":"i"}')]


def test_a_task_gets_the_rows_of_a_statement() -> None:
    """With the task and what orders them, which the statement need not select."""
    keys = {"task.pipeline.output": "", "task.class": "own_pipelines:Keep"}
    with runner(sql(PLAIN), keys, partitions=2) as job:
        order(job, "k", "i", partition=1)
        job.run()
        keep = sys.modules["own_pipelines"].Keep
        row = {"task": "Partition 1", "stream": "orders", "partition": 1, "offset": 0}
        assert keep.rows == [{**row, "key": b"k", "item": "i"}]


def test_an_aggregate_is_one_of_its_batch() -> None:
    """It needs no task; each micro-batch has rows of its own, as nothing is kept."""
    text = "SELECT key, count(*) AS orders FROM orders GROUP BY ALL"
    with runner(sql(text), {"task.pipeline.unordered": "true"}, partitions=2) as job:
        for _ in range(3):
            order(job, "k", "i")
        job.run()
        order(job, "k", "i")
        job.run()
        assert job.output("kafka.out") == [
            Record(b"k", b'{"orders":3}'),
            Record(b"k", b'{"orders":1}'),
        ]


def test_each_stream_is_a_table() -> None:
    """One without rows in a batch is empty; a name that is no identifier stands in backquotes."""
    text = (
        "SELECT o.task, o.stream, o.partition, o.offset, o.key, l.offset AS late FROM orders o "
        "LEFT JOIN `late-orders` l ON o.key = l.key"
    )
    with runner(TWO, sql(text)) as job:
        order(job, "a", "x")
        job.run()
        order(job, "a", "x")
        order(job, "a", "y", "late-orders")
        job.run()
        values = [r.value for r in job.output("kafka.out")]
        assert values == [b'{"late":null}', b'{"late":0}']
    with runner(TWO, sql("SELECT key, stream AS name FROM input")) as job:
        order(job, "a", "x")
        order(job, "b", "y", "late-orders")
        job.run()
        names = {r.key: json.loads(r.value)["name"] for r in job.output("kafka.out")}
        assert names == {b"a": "orders", b"b": "late-orders"}


def test_a_function_gets_a_frame_per_stream() -> None:
    """As ``frames``, or as parameters of the streams' names."""
    with runner(TWO, {"task.pipeline.class": "own_pipelines:both"}) as job:
        order(job, "b", "y", "late-orders")
        job.run()
        (record,) = job.output("kafka.out")
        assert json.loads(record.value)["late"] is not None
        assert record.key is None
    with runner(TWO, {"task.pipeline.class": "own_pipelines:by_name"}) as job:
        order(job, "a", "x")
        order(job, "b", "x")
        order(job, "b", "y", "late-orders")
        job.run()
        assert [r.key for r in job.output("kafka.out")] == [b"b"]


def test_columns_that_tasks_need_are_added_to_rows_that_each_come_from_one() -> None:
    """A function need not select them, whatever it does with the rows one by one."""
    keys = {"task.pipeline.output": "", "task.class": "own_pipelines:Keep"}
    with runner(keys, {CLASS: "own_pipelines:items"}) as job:
        order(job, "k", "b x a")
        order(job, "l", "a")
        job.run()
        keep = sys.modules["own_pipelines"].Keep
        found, keep.rows = keep.rows, []
    places = [(row.pop("task"), row.pop("stream"), row.pop("partition")) for row in found]
    assert {*places} == {("Partition 0", "orders", 0)}
    assert sorted(found, key=lambda row: (row["offset"], row["rank"])) == [
        {"offset": 0, "word": "a", "name": "first", "rank": 1},
        {"offset": 0, "word": "b", "name": None, "rank": 2},
        {"offset": 1, "word": "a", "name": "first", "rank": 1},
    ]


CLASS = "task.pipeline.class"
FAULTS: list[tuple[dict[str, str], str]] = [
    (
        sql("SELECT nope FROM orders"),
        (
            r"^task\.pipeline\.sql = 'SELECT nope FROM orders': \[UNRESOLVED_COLUMN.*`nope` cannot "
            r"be resolved.* line 1 pos 7; correct the statement; its tables are input, orders$"
        ),
    ),
    (sql("SELEC key FROM orders"), r"\[PARSE_SYNTAX_ERROR\] Syntax error at or near 'SELEC'"),
    (sql("DROP VIEW orders"), r"\[PARSE_SYNTAX_ERROR\]"),
    (sql("SELECT key FROM nowhere"), r"\[TABLE_OR_VIEW_NOT_FOUND\] .*its tables are input"),
    (sql("SELECT DISTINCT key, value AS v FROM orders"), "drops stream, partition, offset"),
    (sql("SELECT key FROM orders"), "no column is left that could leave of task, stream"),
    (sql("SELECT offset AS key, value AS v FROM orders"), "the column 'key' is bigint, and"),
    (sql("SELECT key AS headers, value AS v FROM orders"), "'headers' is binary, and headers"),
    (sql("file:../x.sql"), "it must name a file of the job's package; write the file's path"),
    (sql("file:x.sql"), "there is no file 'x.sql' in the job's package; see that it is in"),
    (sql("-- nothing"), "there is no statement in it; write one SELECT"),
    ({CLASS: "own_pipelines:wrong"}, "must return a DataFrame, not str; return"),
    ({CLASS: "own_pipelines:failing"}, "`nothing` is not supported.*; correct the function$"),
    ({CLASS: "own_pipelines:unknown"}, "the streams are orders$"),
    ({CLASS: "own_pipelines:grouped"}, "drops stream, partition, offset"),
    ({**TWO, CLASS: "own_pipelines:crossed"}, "drops stream, partition, offset"),
    (
        {**sql(PLAIN), "systems.kafka.streams.out.samza.msg.serde": "string"},
        "by the serde string a row leaves as its column 'value' of binary or string, its rows",
    ),
]


@pytest.mark.parametrize(("keys", "line"), FAULTS)
def test_what_is_wrong_is_one_line_before_any_input(keys: Mapping[str, str], line: str) -> None:
    """It names key and value, has Spark's reason, and says what to do."""
    with pytest.raises(ConfigError, match=line) as caught, runner(keys):
        pass
    assert "\n" not in str(caught.value)


def test_a_statement_for_a_task_that_groups_must_select_the_task() -> None:
    """Only for rows that are taken as they come the column can be added."""
    keys = {"task.pipeline.output": "", "task.class": "own_pipelines:Keep"}
    text = "SELECT key, count(*) AS n FROM orders GROUP BY ALL"
    with (
        pytest.raises(ConfigError, match="must keep the column 'task', its rows have key, n"),
        runner(keys, sql(text)),
    ):
        pass


def test_a_row_of_no_task_of_the_container_names_the_statement() -> None:
    """The key that is set, and its value."""
    keys = {"task.pipeline.output": "", "task.class": "own_pipelines:Keep"}
    text = "SELECT 'x' AS task, stream, partition, offset FROM orders"
    with runner(keys, sql(text)) as job:
        order(job, "k", "i")
        with pytest.raises(ConfigError, match=r"^task\.pipeline\.sql = .*for task 'x', which"):
            job.run()


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "line"),
    [
        (
            "dividing",
            (
                r"failed over 3 rows \(\d+ KB\) from kafka\.orders partition 0 offset 0 on: "
                r"ZeroDivisionError: integer division or modulo by zero; correct the function$"
            ),
        ),
        ("dying", r"a Python worker of Spark's died over 3 rows \(.*; its words are above$"),
    ],
)
def test_a_function_that_fails_in_its_worker_is_one_line(function: str, line: str) -> None:
    """What is raised there, or that the worker is gone; nothing is committed, and Spark goes on."""
    with runner({CLASS: f"own_pipelines:{function}"}) as job:
        for _ in range(3):
            order(job, "k", "i")
        with pytest.raises(PipelineFailedError, match=line) as caught:
            job.run()
        assert "\n" not in str(caught.value)
        assert job.output("kafka.out") == []
        assert not job.is_running


def test_rows_leave_by_the_serdes_of_their_stream() -> None:
    """Avro, a key of another kind, headers; a column as it is; an empty one is a null."""
    stream = "systems.kafka.streams.out.samza"
    avro = {
        f"{stream}.key.serde": "long",
        f"{stream}.msg.serde": "order",
        "serializers.registry.order.class": "avro",
        "serializers.registry.order.schema": json.dumps(
            {"type": "record", "name": "o", "fields": [{"name": "item", "type": "string"}]}
        ),
    }
    text = "SELECT offset AS key, upper(CAST(value AS STRING)) AS item, headers FROM orders"
    with runner(sql(text), avro) as job:
        job.send("kafka.orders", value=b"a", headers={"h": b"1"})
        job.send("kafka.orders", value=b"b")
        job.run()
        found = job.output("kafka.out")
        assert found == [Record(0, {"item": "A"}), Record(1, {"item": "B"})]
        assert [r.headers for r in found] == [{"h": b"1"}, {}]
    plain = {f"{stream}.msg.serde": "bytes"}
    with runner(sql("SELECT key, value FROM orders"), plain) as job:
        job.send("kafka.orders", key=b"k", value=b"\x00\xff")
        job.send("kafka.orders", key=b"k")
        job.run()
        assert job.output("kafka.out") == [Record(b"k", b"\x00\xff"), Record(b"k", None)]


@pytest.fixture
def some_flights(monkeypatch: pytest.MonkeyPatch) -> pa.Table:
    """Some hundred flights with and without a tail number; the right answer is of these alone."""
    table = data.read_flights()
    nameless = table.filter(table["tailnum"].is_null()).slice(0, 5)
    some = pa.concat_tables([table.slice(0, SOME), nameless])
    monkeypatch.setattr(data, "read_flights", lambda: some)
    return some


def test_the_flights_job_has_its_known_answer(some_flights: pa.Table) -> None:
    """In each of its forms, in one real Spark; a crash in between changes nothing."""
    jvms = set()
    for form in FORMS:
        with TestRunner(file_of(form), partitions=_partitions(form)) as runner:
            found, names = _flown(runner, some_flights, form)
            assert found == data.expected_summaries(), form
            assert [text for text, held in names if not held] == [], form
            if form != ALONE:
                assert runner.store("skipped", task="Partition 0").get("partition-0") == 5
        jvms |= {running.spark.pid for running in shared_spark._running}
    assert len(jvms) == 1, "one for all"
    wrong = {"task.pipeline.class": "plane_summary:pars"}
    with pytest.raises(ConfigError, match="has no 'pars'"), TestRunner(FLIGHTS, overrides=wrong):
        pass


def _partitions(form: str) -> dict[str, int]:
    inputs = {} if form == ALONE else {"kafka.planes": PARTITIONS}
    return {"kafka.flights": PARTITIONS, "kafka.plane-summary": PARTITIONS, **inputs}


def _flown(
    runner: TestRunner, some: pa.Table, form: str
) -> tuple[Mapping[str, Mapping[str, Any]], list[tuple[str, bool]]]:
    """{tail number: its summary} as the output has it after a crash in the midst, and verdicts.

    Between the halves the airlines get new names.
    """
    records = list(data.records(some))
    if form != ALONE:
        _send_rows(runner, [*plane_records(), *airport_records(), *airline_records(1)])
    for flight in records[: SOME // 2]:
        _send(runner, flight)
    runner.run()
    if form != ALONE:
        _send_rows(runner, airline_records(2))
    for flight in records[SOME // 2 :]:
        _send(runner, flight)
    runner.crash_before("commit")
    runner.restart()
    runner.run()
    if form == ALONE:
        return data.added_up(json.loads(r.value) for r in runner.output("plane-changes")), []
    read = json.loads if form != APP else dict[str, Any]  # its output has a serde
    outputs = [(r.partition, read(r.value)) for r in runner.output("plane-summary")]
    judged = judge(outputs, reference())
    return judged.summaries, judged.verdicts()


def _send_rows(runner: TestRunner, rows: Sequence[Row]) -> None:
    for topic, key, value, headers in rows:
        runner.send_bytes(
            f"kafka.{topic}",
            key=None if key is None else key.encode(),
            value=None if value is None else value.encode(),
            headers={name: text.encode() for name, text in headers.items()},
        )


def _send(runner: TestRunner, flight: Mapping[str, Any]) -> None:
    tail_number = flight["tailnum"]
    value = json.dumps(flight, separators=(",", ":")).encode()
    key = None if tail_number is None else tail_number.encode()
    runner.send_bytes("kafka.flights", key=key, value=value)


def test_a_function_sees_times_of_utc_whatever_zone_its_host_is_in() -> None:
    """Row by row as in SQL and over pandas: the result does not depend on the host."""
    with runner({CLASS: "own_pipelines:hours"}) as job:
        order(job, "k", "i")
        job.run()
        (record,) = job.output("kafka.out")
        assert json.loads(record.value) == {"sql": 0, "pandas": 0, "plain": 0}


@pytest.mark.long
def test_functions_in_python_run_in_workers_of_the_containers_own() -> None:
    """Over pandas, Arrow and row by row, with what their module has; none outlives the JVM."""
    with runner({CLASS: "own_pipelines:shouting"}) as job:
        job.send("kafka.orders", key=b"k", value="é".encode())
        job.run()
        (record,) = job.output("kafka.out")
        assert json.loads(record.value) == dict.fromkeys(("by_pandas", "by_arrow", "plain"), "É!")
        jvm = shared_spark._running[0].spark.pid
        below = psutil.Process(jvm).children(recursive=True)
        assert len(below) > 1  # the daemon and its workers
        handles = [os.pidfd_open(process.pid) for process in below]
        shared_spark.stop()
        try:
            assert all(select.select([handle], [], [], END_S)[0] for handle in handles)
        finally:
            for handle in handles:
                os.close(handle)
