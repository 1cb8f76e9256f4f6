"""Pipelines that fail at their rows, in a real Spark: one line, the documented effect, no hang."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from stream_containers import COUNTER, DEADLINE_S, Job, Make, living, make_job

PIPELINES = (
    COUNTER
    + """
def multiplies(frame):
    from pyspark.sql import functions as f
    many = f.explode(f.sequence(f.lit(1), f.lit(1000)))
    return frame.withColumn("n", many)

def dies(frame):
    import os, signal
    from pyspark.sql import functions as f
    @f.udf("binary")
    def killed(key):
        os.kill(os.getpid(), signal.SIGKILL)
    return frame.withColumn("key", killed("key"))

def raises(frame):
    from pyspark.sql import functions as f
    @f.udf("binary")
    def raised(key):
        raise ValueError("poison " + key.decode())
    return frame.withColumn("key", raised("key"))

def ansi(frame):
    from pyspark.sql import functions as f
    return frame.withColumn("n", f.expr("cast(decode(key, 'utf-8') as int)"))

def fills(frame):
    from pyspark.sql import functions as f
    return frame.withColumn("large", f.expr("repeat(decode(key, 'utf-8'), 300000000)"))
"""
)


@pytest.fixture
def make(kafka: str, tmp_path: Path) -> Iterator[Make]:
    """Makes a job with one of the pipelines."""
    made: list[Job] = []

    def make_one(pipeline: str, **more: str) -> Job:
        keys = {key.replace("_", "."): value for key, value in more.items()}
        keys["task.pipeline.class"] = f"user_job:{pipeline}"
        made.append(make_job(kafka, tmp_path, PIPELINES, keys))
        return made[-1]

    yield make_one
    for job in made:
        job.close()


MEMORY = "raise task.spark.driver.memory.mb or cluster-manager.container.memory.mb"


@pytest.mark.long
@pytest.mark.parametrize(
    ("pipeline", "records", "expected"),
    [
        ("dies", 1, ("a Python worker of Spark's died over 1 rows (",)),
        ("raises", 1, ("failed over 1 rows (", ": ValueError: poison good; correct the func")),
        (
            "ansi",
            1,
            (": [CAST_INVALID_INPUT] The value 'good' of the type", "; correct the function"),
        ),
        ("fills", 1, ("Spark's JVM ran out of memory over 1 rows (", MEMORY)),
        (
            "multiplies",
            20_000,
            ("its rows are larger than 64 MiB over ", "maxResultSize with task.spark"),
        ),
    ],
)
def test_a_pipeline_that_fails_at_its_rows_is_one_line(
    make: Make, pipeline: str, records: int, expected: tuple[str, ...]
) -> None:
    """It names key, rows, place and cause; nothing is committed, and no process is left."""
    job = make(pipeline)
    job.produce([(0, b"good", b"v" * (1000 if records > 1 else 1))] * records)
    container = job.start(1)
    assert container.process.wait(DEADLINE_S) == 1
    line = container.last_line()
    assert line.startswith(f"error: task.pipeline.class = 'user_job:{pipeline}': ")
    assert f" from kafka.{job.topic('in')} partition 0 offset 0 on" in line
    for part in expected:
        assert part in line
    assert living(container.process.pid) == []
    assert job.read(job.topic("out")) == []
    assert job.processed() == 0
