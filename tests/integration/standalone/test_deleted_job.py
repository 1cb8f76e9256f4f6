"""A job under ZooKeeper is ended by ``homeport delete-job``, killed at each step of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from forked_tool import MODULE
from json_answers import require_promised
from kazoo.client import KazooClient
from standalone_jobs import DEADLINE_S, StandaloneJob, on_zookeeper, standalone_job
from zookeeper_server import ZooKeeperServer

_OUTPUTS = {"task.outputs.create.partitions": "2"}


@pytest.fixture
def jobs(
    kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer
) -> Iterator[tuple[StandaloneJob, StandaloneJob]]:
    """Two jobs with state; the first one makes an output too."""
    (tmp_path / "other").mkdir()
    more = on_zookeeper(zookeeper.connect)
    with (
        standalone_job(kafka, tmp_path, {**more, **_OUTPUTS}) as job,
        standalone_job(kafka, tmp_path / "other", more) as other,
    ):
        outputs = f"task.outputs=kafka.{job.name}-out,kafka.{job.name}-made\n"
        job.config.write_text(job.config.read_text() + outputs)
        yield job, other


def topics(job: StandaloneJob) -> set[str]:
    """The job's topics, with what stands for its name."""
    names = AdminClient({"bootstrap.servers": job.servers}).list_topics(timeout=30).topics
    return {name.replace(job.name, "*") for name in names if job.name in name}


def trees(zookeeper: ZooKeeperServer, job: StandaloneJob) -> list[str]:
    """The job's trees."""
    client = KazooClient(zookeeper.connect)
    client.start(DEADLINE_S)
    try:
        return [name for name in client.get_children("/homeport") if job.name in name]
    finally:
        client.stop()
        client.close()


def directories(job: StandaloneJob) -> set[str]:
    """What the job has below the folders of its places."""
    return {str(path.relative_to(job.folder)) for path in job.folder.glob("stores-*/*")}


def lines(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    """What the command printed with --json."""
    require_promised(("delete-job",), done.stdout)
    return [json.loads(line) for line in done.stdout.splitlines()]


def killed_after(job: StandaloneJob, count: int) -> bool:
    """SIGKILL of a deletion after so many lines; whether it had not ended before."""
    words = ["delete-job", f"--config-path={job.config}", "--apply", "--host=here"]
    with subprocess.Popen(
        [sys.executable, "-m", MODULE, *words],
        env={**os.environ, "LOGGED_STORE_BASE_DIR": str(job.folder / "stores-here")},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        for _ in range(count):
            if not process.stdout.readline():
                return False
        process.send_signal(signal.SIGKILL)
    return True


@pytest.mark.long
def test_a_job_is_deleted_although_the_command_is_killed_at_every_step(
    jobs: tuple[StandaloneJob, StandaloneJob], zookeeper: ZooKeeperServer
) -> None:
    """Refused while it runs; then nothing of it is left, and another job has all it had."""
    job, other = jobs
    job.produce(10)
    other.produce(10)
    started = [job.processor("one", "here"), job.processor("two", "there")]
    theirs = other.processor("one")
    job.until_counted()
    other.until_counted()
    job.until(lambda: all(job.started_by(name) for name in ("one", "two")))
    refused = job.tool("delete-job", "--apply", "--host=here")
    assert refused.returncode == 1
    assert "the job runs: these processors are registered in ZooKeeper" in refused.stderr
    job.stop(*started)

    before, untouched = topics(job), (topics(other), directories(other))
    assert "*-made" in before
    shown = job.tool("delete-job", "--host=here", "--json")
    assert shown.returncode == 0, shown.stderr
    outcomes = {line["name"].replace(job.name, "*"): line["outcome"] for line in lines(shown)}
    kept = {name for name, outcome in outcomes.items() if outcome == "kept"}
    assert kept == {"kafka.*-out"}, shown.stdout
    assert outcomes["there"] == "left"
    assert (topics(job), len(trees(zookeeper, job))) == (before, 1)

    count = 0
    while killed_after(job, count):
        count += 2
        assert count < len(outcomes) + 6
    assert count > 3
    last = job.tool("delete-job", "--apply", "--host=here")
    assert last.returncode == 3, last.stdout + last.stderr
    assert "the job was deleted before" in last.stderr
    assert topics(job) == {"*-in", "*-out"}
    assert trees(zookeeper, job) == []
    (left,) = directories(job)
    assert left.startswith("stores-there/")
    place = {"LOGGED_STORE_BASE_DIR": str(job.folder / "stores-there")}
    cleaned = job.tool("clean", "--apply", "--host=there", environment=place)
    assert cleaned.returncode == 0, cleaned.stderr
    assert directories(job) == set()
    again = job.tool("delete-job", "--apply", "--host=here")
    assert (again.returncode, again.stdout) == (0, ""), again.stderr

    assert (topics(other), directories(other)) == untouched
    other.produce(10)
    other.until_counted()
    other.stop(theirs)
