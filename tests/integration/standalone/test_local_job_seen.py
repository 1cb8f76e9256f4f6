"""Tools find a job of run-local by its coordinator stream, on a real broker."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from standalone_jobs import DEADLINE_S, StandaloneJob, standalone_job

CHANGES = (
    ("state", "convert", "counts", "--with=user_job:Counter"),
    ("delete-job", "--apply"),
    ("checkpoint", "set", "--task=Partition 0", "--ssp=kafka.{}-in.0", "--earliest"),
)


@pytest.fixture
def job(kafka: str, tmp_path: Path) -> Iterator[StandaloneJob]:
    """A job that needs no ZooKeeper."""
    with standalone_job(kafka, tmp_path, {}) as made:
        yield made


def run(job: StandaloneJob, *words: str) -> subprocess.CompletedProcess[str]:
    """What a tool does in a shell that knows the job's file and code, and no YARN."""
    environment = {**os.environ, "PYTHONPATH": str(job.folder / "package")}
    environment.pop("HADOOP_CONF_DIR", None)
    return job.tool(*(w.format(job.name) for w in words), environment=environment)


def url_of(job: StandaloneJob) -> str:
    """Where the newest processor answers, as it printed."""
    lines = (job.folder / "local.log").read_text("utf-8").splitlines()
    return [line.rpartition(" ")[2] for line in lines if "it answers at" in line][-1]


def test_what_changes_a_job_is_refused_while_run_local_runs_it(job: StandaloneJob) -> None:
    """The line has its URL; nothing of it is in the way after a SIGKILL, and it goes on exactly."""
    job.produce(10)
    first = job.run("run-local", "local")
    job.until_counted()
    shown = run(job, "status", "--json")
    assert json.loads(shown.stdout)["job"]["coordinator"] == "local", shown.stderr
    assert "processor 0" in run(job, "explain", "0").stdout
    for change in CHANGES:
        refused = run(job, *change)
        assert (refused.returncode, refused.stdout) == (1, ""), change
        (line,) = [text for text in refused.stderr.splitlines() if text.startswith("error: ")]
        assert "homeport run-local" in line, line
    assert f"it is the running job, homeport run-local at {url_of(job)}; stop it: " in (
        run(job, *CHANGES[0]).stderr
    )
    placed = run(job, "move", "0", "elsewhere")
    assert "job.coordinator.factory = 'local': homeport move and restart has no" in placed.stderr
    job.produce(10)
    job.until_counted()

    first.send_signal(signal.SIGKILL)
    first.wait(DEADLINE_S)
    gone = run(job, "status")
    assert (gone.returncode, "no processor of it answers" in gone.stderr) == (1, True), gone.stderr
    done = run(job, *CHANGES[0])
    assert (done.returncode, "nothing to convert" in done.stdout) == (0, True), done.stderr

    again = job.run("run-local", "local")
    job.produce(10)
    job.until_counted()
    assert url_of(job) in run(job, "delete-job", "--apply").stderr
    again.send_signal(signal.SIGKILL)
    again.wait(DEADLINE_S)
    deleted = run(job, "delete-job", "--apply")
    assert (deleted.returncode, "kafka." in deleted.stdout) == (0, True), deleted.stderr
