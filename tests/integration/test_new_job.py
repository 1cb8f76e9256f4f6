"""Jobs that ``homeport new`` makes, on real parts: Spark for their tests, a broker for a run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest
from clusters_under_test import LocalUnderTest
from new_jobs import HOMEPORT, await_value, made, produce, run_by_its_readme
from suites import long

_FILE = """\
from homeport import Job

job = Job({name!r}, kafka={kafka!r})
amounts = job.input({topic!r})


@job.each(amounts)
def seen(key, value):
    pass
"""


@pytest.mark.parametrize(
    "options",
    [
        ["--sql"],
        ["--pipeline"],
        long(["--properties", "--sql"]),
        long(["--properties", "--pipeline"]),
    ],
    ids=" ".join,
)
def test_the_test_of_a_job_with_spark_passes_as_it_is(options: list[str], tmp_path: Path) -> None:
    """As its user runs it: pytest, in the folder of the job."""
    made(tmp_path, "daily-totals", *options)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path / "daily-totals",
        env={k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("kind", ["--task", "--pipeline", long("--batch"), long("--sql")])
def test_a_new_job_runs_by_the_commands_of_its_readme(
    cluster: LocalUnderTest, kind: str, tmp_path: Path
) -> None:
    """On this machine first, then on YARN: the trial has taken nothing from the job itself."""
    name = f"totals-{uuid.uuid4().hex[:6]}"
    sends = {"amount": 150.0} if kind == "--sql" else {"total": 250.0}
    run_by_its_readme(made(tmp_path, name, kind), cluster, Path(sys.executable).parent, sends)


def test_a_new_job_with_properties_runs_on_this_machine_and_makes_its_output(
    kafka: str, tmp_path: Path
) -> None:
    """Without an end: SIGTERM ends it in order."""
    name = f"totals-{uuid.uuid4().hex[:6]}"
    folder = made(tmp_path, name, "--properties", f"--brokers={kafka}")
    produce(kafka, f"{name}-in", (5, 7))
    options = [f"--config-path={name}.properties", f"--work-dir={tmp_path / 'work'}"]
    with subprocess.Popen([*HOMEPORT, "run-local", *options], cwd=folder) as job:
        try:
            await_value(kafka, f"{name}-out", {"total": 12})
        finally:
            job.send_signal(signal.SIGTERM)
        assert job.wait(60) == 0


def test_another_file_that_takes_the_state_of_its_name_gets_a_warning_once(
    kafka: str, tmp_path: Path
) -> None:
    """It would find nothing to read, and end as if it had read all."""
    name = f"named-{uuid.uuid4().hex[:6]}"
    produce(kafka, f"{name}-in", (5, 7))
    text = _FILE.format(name=name, kafka=kafka, topic=f"{name}-in")
    warnings = []
    for file in ("first.py", "first.py", "second.py", "second.py"):
        (tmp_path / file).write_text(text, encoding="utf-8")
        run = ["run-local", "--trial", f"--config-path={file}", "--config=job.drain=true"]
        done = subprocess.run(
            [*HOMEPORT, *run], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        warnings.append([line for line in done.stderr.splitlines() if "has last run with" in line])
    (line,) = warnings.pop(2)
    assert f"the job {name!r} (job.id 1-trial) has last run with task.class = 'first:job'" in line
    assert warnings == [[], [], []]
