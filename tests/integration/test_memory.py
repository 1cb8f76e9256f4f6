"""Containers under YARN's physical-memory check: the memory rule keeps them, greed does not."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

import psutil
import pytest
from yarn_jobs import Job, alive, parent_of, pids_of, wait_for

RECORDS = 30_000
GREEDY = """
from homeport.container.api import BatchTask

class Greedy(BatchTask):
    def process_batch(self, table, collector):
        self.held = bytearray(b"x") * (700 * 1024 * 1024)
"""
PIPELINE = """
from pyspark.sql import functions as f

def shout(frame):
    text = f.upper(f.decode("value", "utf-8")).alias("text")
    return frame.select("task", "stream", "partition", "offset", "key", text)
"""


@pytest.mark.long
def test_a_pipeline_lives_within_the_memory_of_the_rule(make_job: Callable[[str], Job]) -> None:
    """1280 MB, the least that the rule adds up for, hold JVM, stores and Python; none is killed."""
    job = make_job("modest")
    logs = "".join(path.read_text() for path in job.cluster.log_dir.glob("nm*.log"))
    assert logs.count("Physical memory check enabled: true") >= 3
    (job.package / "shouting.py").write_text(PIPELINE, encoding="utf-8")
    job.values |= {
        "job.container.count": "1",
        "task.pipeline.class": "shouting:shout",
        "cluster-manager.container.memory.mb": "1280",
    }
    job.produce(RECORDS)
    job.run()
    job.wait_until_running()
    job.expects(RECORDS)
    assert job.containers()["0"]["epoch"] == 1
    assert job.get("v1/status")["failures"] == []
    job.kill()


@pytest.mark.long
def test_a_container_that_is_killed_comes_home_to_the_spark_that_waits(
    make_job: Callable[[str], Job],
) -> None:
    """2816 MB, the least that is taken, hold two JVMs; the second is the next incarnation's."""
    job = make_job("prewarmed")
    (job.package / "shouting.py").write_text(PIPELINE, encoding="utf-8")
    job.values |= {
        "job.container.count": "1",
        "job.container.prewarm": "true",
        "task.pipeline.class": "shouting:shout",
        "cluster-manager.container.memory.mb": "2816",
    }
    job.produce(RECORDS)
    job.run()
    first = _prewarmed(job)
    (spare,) = (p for p, line in pids_of(job.application_id).items() if "--ready warm" in line)
    (jvm,) = (child.pid for child in psutil.Process(spare).children())
    job.produce(RECORDS, RECORDS)
    os.kill(first, signal.SIGKILL)
    job.expects(2 * RECORDS)
    assert _prewarmed(job) == spare
    assert (alive(jvm), parent_of(jvm)) == (True, spare)
    assert job.containers()["0"]["epoch"] == 2
    assert [f["cause"] for f in job.get("v1/status")["failures"]] == ["killed"]
    job.judge_history()
    job.kill()


def _prewarmed(job: Job) -> int:
    """The container runs and a Spark is ready beside it; the container's pid."""
    ready = {"kind": "warm", "ready": True}
    wait_for(lambda: bool(job.pids()) and job.containers()["0"]["spare"] == ready, job)
    return job.pids()["0"]


def test_a_container_over_its_memory_is_killed_and_the_job_says_so(
    make_job: Callable[[str], Job],
) -> None:
    """Each kill is charged, so the job ends; the cause names memory, the limit and the key."""
    job = make_job("greedy")
    (job.package / "greedy_task.py").write_text(GREEDY, encoding="utf-8")
    job.values |= {
        "task.class": "greedy_task:Greedy",
        "job.container.count": "1",
        "cluster-manager.container.retry.count": "1",
        "cluster-manager.container.preferred-host.last.retry.delay.ms": "0",
    }
    job.produce(10)
    job.run()
    wait_for(lambda: [c["failures"] for c in job.containers().values()] == [1], job)
    assert "YARN killed it for its memory" in job.containers()["0"]["last_failure"]
    job.produce(10)  # YARN looks every few seconds: the first ones may have been committed by then
    done = job.call("wait")
    assert done.returncode == 1
    ended = job.application()
    assert ended.final_status == "FAILED"
    for stated in (done.stderr, ended.diagnostics):
        assert "processor 0 failed 2 times" in stated
        assert "0@2 on " in stated
        assert "B of 512 MB physical memory used" in stated
        assert "cluster-manager.container.memory.mb" in stated
