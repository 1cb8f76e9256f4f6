"""Adjunct stores as frames of a pipeline: real Spark, Kafka in memory."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from homeport.config.errors import ConfigError
from homeport.container.adjunct.frames import FrameError
from homeport.testing import TestRunner, shared_spark

_KEYS = {
    "task.inputs": "kafka.flights, kafka.planes",
    "task.broadcast.inputs": "kafka.airlines#0",
    "task.pipeline.output": "kafka.out",
    "cluster-manager.container.memory.mb": "1536",
    "cluster-manager.container.cpu.cores": "1",
    "systems.kafka.samza.offset.default": "oldest",
    "systems.kafka.streams.planes.samza.bootstrap": "true",
    "stores.planes.factory": "rocksdb",
    "stores.planes.key.serde": "string",
    "stores.planes.msg.serde": "plane",
    "stores.planes.adstore.input": "kafka.planes",
    "stores.airlines.factory": "in-memory",
    "stores.airlines.key.serde": "string",
    "stores.airlines.msg.serde": "string",
    "stores.airlines.adstore.input": "kafka.airlines",
    "serializers.registry.plane.class": "json",
    "serializers.registry.plane.schema": "model STRING, seats INT",
}
_VERSIONS = {
    "task.inputs": "kafka.flights",
    "stores.planes.adstore.input": "",
    "stores.airlines.factory": "rocksdb",
    "stores.airlines.adstore.version.marker.header": "version",
}
_MODULE = """
PLACE = ("task", "stream", "partition", "offset")


def left(flights, planes):
    from pyspark.sql import functions as F

    planes = planes.selectExpr("key AS tail", "value.model AS model")
    joined = flights.join(planes, F.col("key").cast("string") == F.col("tail"), "left")
    return joined.select(*PLACE, F.coalesce("model", F.lit("-")).alias("name"))


def timed(flights, planes):
    from pyspark.sql import functions as F

    return left(flights, planes).withColumn("at", F.current_timestamp())


def counting(flights, airlines):
    from pyspark.sql import functions as F

    return flights.select(*PLACE, F.lit(str(airlines.count())).alias("name"))


def twice(tables):
    airlines = tables["airlines"]
    one = airlines.selectExpr("key AS key1", "value AS name1")
    two = airlines.selectExpr("key AS key2", "value AS name2")
    text = ("CAST(key AS STRING) AS a", "CAST(value AS STRING) AS b")
    flights = tables["flights"].selectExpr(*PLACE, *text)
    joined = flights.join(one, flights["a"] == one["key1"]).join(two, flights["b"] == two["key2"])
    return joined.selectExpr(*PLACE, "concat(name1, '/', name2) AS name")


def alone(planes):
    return planes


def alone_too(planes, airlines):
    return planes


def late(tables):
    late.calls = getattr(late, "calls", 0) + 1
    return left(tables["flights"], tables["planes"]) if late.calls > 1 else tables["flights"]
"""


@pytest.fixture(scope="module", autouse=True)
def spark() -> Iterator[None]:
    """One for all tests of this module."""
    yield
    shared_spark.stop()


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The job's own functions, on the path as a package is."""
    (tmp_path / "joining.py").write_text(_MODULE, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield
    sys.modules.pop("joining", None)


def _runner(pipeline: str, *more: Mapping[str, str], partitions: int = 1) -> TestRunner:
    form = "class" if ":" in pipeline and " " not in pipeline else "sql"
    keys = {**_KEYS, f"task.pipeline.{form}": pipeline}
    for others in more:
        keys |= others
    return TestRunner({k: v for k, v in keys.items() if v}, partitions=partitions)


def _plane(job: TestRunner, tail: str, model: str | None, **more: Any) -> None:  # noqa: ANN401 - of send
    value = None if model is None else json.dumps({"model": model, "seats": 9}).encode()
    job.send("kafka.planes", key=tail.encode(), value=value, **more)


def _airline(job: TestRunner, code: str, name: str | None) -> None:
    value = None if name is None else name.encode()
    job.send("kafka.airlines", key=code.encode(), value=value, partition=0)


def _fly(job: TestRunner, tail: str, airline: str = "", **more: Any) -> None:  # noqa: ANN401 - of send
    job.send("kafka.flights", key=tail.encode(), value=airline.encode(), **more)


def _names(job: TestRunner) -> list[str]:
    return [json.loads(record.value)["name"] for record in job.output("kafka.out")]


def _mark(job: TestRunner, text: bytes) -> None:
    job.send("kafka.airlines", partition=0, headers={"version": text})


@pytest.mark.parametrize("pipeline", ["joining:left", "joining:timed"])
def test_each_batch_is_joined_with_what_its_tasks_find(
    pipeline: str, caplog: pytest.LogCaptureFixture
) -> None:
    """New, changed and deleted entries, by one plan or one for each batch; also after a crash."""
    with caplog.at_level(logging.INFO), _runner(pipeline) as job:
        _fly(job, "N1")
        job.run()
        _plane(job, "N1", "737")
        _plane(job, "N2", "747")
        _fly(job, "N1")
        job.run()
        _fly(job, "N2")
        job.run()
        _plane(job, "N1", "A320")
        _plane(job, "N2", None)
        _fly(job, "N1")
        _fly(job, "N2")
        job.run()
        assert _names(job) == ["-", "737", "747", "A320", "-"]
        job.crash()
        job.restart()
        _fly(job, "N1")
        job.run()
        assert _names(job)[5:] == ["A320"]
    lines = [record.getMessage() for record in caplog.records]
    assert any("plans each batch" in line for line in lines) is (pipeline == "joining:timed")
    if pipeline == "joining:left":
        gets = "of each batch Spark gets flights: task, key, stream, partition, offset"
        assert sum(line == gets for line in lines) == 2  # one for each start


INNER = """
SELECT f.key, a.value AS name FROM flights f JOIN airlines a ON CAST(f.value AS STRING) = a.key
"""


def test_a_version_takes_the_place_of_another_between_batches() -> None:
    """An inner join in SQL: nothing before there is a whole one, and never a mix."""
    with _runner(INNER, _VERSIONS) as job:

        def fly() -> list[str]:
            before = len(_names(job))
            for code in ("AA", "UA", "AA"):
                _fly(job, "N1", code)
            job.run()
            return _names(job)[before:]

        assert fly() == []
        _mark(job, b"begin")
        _airline(job, "AA", "American 1")
        assert fly() == []
        _airline(job, "UA", "United 1")
        _mark(job, b"end")
        assert fly() == ["American 1", "United 1", "American 1"]
        _mark(job, b"begin")
        _airline(job, "UA", "United 2")
        assert fly() == ["American 1", "United 1", "American 1"]
        _airline(job, "AA", "American 2")
        _mark(job, b"end")
        assert fly() == ["American 2", "United 2", "American 2"]
        job.crash()
        job.restart()
        assert fly() == ["American 2", "United 2", "American 2"]


def test_a_store_may_be_joined_twice_and_is_sent_to_all_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Both places see each change."""
    with caplog.at_level(logging.WARNING), _runner("joining:twice") as job:
        for round_ in ("1", "2"):
            for code in ("AA", "UA"):
                _airline(job, code, code + round_)
            _fly(job, "AA", "UA")
            job.run()
        assert _names(job) == ["AA1/UA1", "AA2/UA2"]
    assert not [r for r in caplog.records if "plans each batch" in r.getMessage()]


AS_OF = """
SELECT f.task, f.stream, f.partition, f.offset, max_by(p.value.model, p.value.seats) AS name
FROM flights f LEFT JOIN planes p
ON p.key LIKE concat(CAST(f.key AS STRING), '@%') AND p.value.seats <= CAST(f.value AS STRING)
GROUP BY ALL
"""


def test_a_join_as_of_a_time_takes_what_held_then() -> None:
    """The newest entry that is not younger than the row; by a plan that lasts."""
    with _runner(AS_OF) as job:
        for since, model in ((10, "737"), (20, "747"), (30, "A320")):
            value = json.dumps({"model": model, "seats": since}).encode()
            job.send("kafka.planes", key=b"N1@%d" % since, value=value)
        for time in ("9", "10", "25", "99"):
            _fly(job, "N1", time)
        job.run()
        assert _names(job) == [None, "737", "747", "A320"]


def test_a_container_sees_the_stores_of_all_its_tasks() -> None:
    """As rows of one frame."""
    with _runner("joining:left", partitions=2) as job:
        _plane(job, "N1", "737", partition=0)
        _plane(job, "N2", "747", partition=1)
        for tail in ("N1", "N2"):
            for partition in (0, 1):
                _fly(job, tail, partition=partition)
        job.run()
        assert sorted(_names(job)) == ["737", "737", "747", "747"]


def test_a_function_that_looks_at_a_store_is_called_for_each_batch() -> None:
    """What it finds out may be another thing for the next one."""
    with _runner("joining:counting") as job:
        for n in range(3):
            _airline(job, f"A{n}", "x")
            _fly(job, "N1")
            job.run()
        assert _names(job) == ["1", "2", "3"]


_OTHER_NAME = {"stores.flights.factory": "in-memory", "stores.flights.adstore.input": "kafka.late"}
_WITHOUT = "task.pipeline.sql = 'SELECT * FROM planes': it takes adjunct stores alone (planes)"
_REFUSED = [
    ("joining:left", {"stores.planes.msg.serde": "json"}, "stores.planes.msg.serde = 'json': the"),
    (
        "SELECT f.key FROM flights f JOIN planes p ON f.key = p.key",
        {"stores.planes.key.serde": "json"},
        "'json': the pipeline takes the store as a frame, and this serde has no columns: it has",
    ),
    ("SELECT * FROM planes", {}, _WITHOUT),
    ("joining:alone", {}, "task.pipeline.class = 'joining:alone': it takes adjunct stores alone"),
    ("joining:alone_too", {}, "it takes adjunct stores alone (planes, airlines)"),
    (
        "SELECT key FROM flights",
        {
            "stores.Flights.factory": "in-memory",
            "stores.Flights.key.serde": "string",
            "stores.Flights.msg.serde": "string",
            "stores.Flights.adstore.input": "kafka.more",
            "task.inputs": "kafka.flights, kafka.planes, kafka.more",
        },
        "the input flights and the adjunct store Flights would be one table of the pipeline",
    ),
    (
        "SELECT key FROM flights",
        {"task.pipeline.output": "kafka.airlines"},
        "task.pipeline.output = 'kafka.airlines': the stream fills the adjunct store airlines",
    ),
]


@pytest.mark.parametrize(("pipeline", "keys", "line"), _REFUSED)
def test_what_no_frame_can_be_made_of_is_refused(
    pipeline: str, keys: dict[str, str], line: str
) -> None:
    """In one line, before any input is read."""
    with pytest.raises(ConfigError) as caught, _runner(pipeline, keys):
        pass
    assert line in str(caught.value)
    assert "\n" not in str(caught.value)


def test_frames_that_are_not_asked_for_need_no_columns() -> None:
    """A function of all tables may leave some alone, and a task reads them as ever."""
    with _runner("joining:twice", {"stores.planes.msg.serde": "json"}) as job:
        job.send("kafka.planes", key=b"N1", value=b"{}")
        _airline(job, "AA", "1")
        _fly(job, "AA", "AA")
        job.run()
        assert _names(job) == ["1/1"]


def test_a_function_asks_for_the_same_stores_at_the_start() -> None:
    """By then the container knows what it has to keep at hand."""
    with _runner("joining:late", {"task.pipeline.plan": "always"}) as job:
        _fly(job, "N1")
        with pytest.raises(ConfigError, match="did not do so at the"):
            job.run()


def test_stores_too_large_for_frames_end_the_container() -> None:
    """In one line, rather than with the JVM's memory."""
    with _runner("joining:left", {"adstore.frames.max.bytes": "2000"}) as job:
        for n in range(30):
            _plane(job, f"N{n}", "m" * 100)
        _fly(job, "N1")
        with pytest.raises(FrameError, match=r"adstore\.frames\.max\.bytes = 2000: as "):
            job.run()
