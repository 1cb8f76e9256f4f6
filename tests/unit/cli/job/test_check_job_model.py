"""The check of a job's own groupers, as run-job starts it."""

from __future__ import annotations

import io

import pytest

from homeport.cli.job.check_job_model import main, question
from homeport.config.config import Config
from homeport.job_coordinator.model.job_model import SystemStream

CONFIG = Config(
    {"job.name": "jöb", "job.default.system": "kafka", "task.inputs": "kafka.a.b,kafka.c"}
)


def _asked(config: Config) -> io.StringIO:
    counts = {SystemStream("kafka", "a.b"): 2, SystemStream("kafka", "c"): 1}
    return io.StringIO(question(config, counts).decode())


def test_a_job_that_can_be_grouped() -> None:
    """Exit code 0."""
    assert main(_asked(CONFIG)) == 0


def test_a_job_that_cannot_be_grouped(capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 1 and the one line on stderr that run-job shows."""
    key, name = "task.name.grouper.factory", "no_such_package_of_a_job:G"
    assert main(_asked(CONFIG.merged({key: name}))) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"error: {key} = '{name}': the module cannot be imported: ")
