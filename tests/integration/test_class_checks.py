"""What run-job finds out about a job's code in a process of its own; needs no cluster."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from homeport.appmaster.cli.preflight import check_classes
from homeport.appmaster.environment.job_python import interpreter
from homeport.config.config import Config
from homeport.config.errors import ConfigError

TASK = """\
from homeport.container.api import BatchTask


class Task(BatchTask):
    def process_batch(self, table, collector):
        pass
"""
PYTHON = interpreter(sys.executable)


def _config(**more: str) -> Config:
    given = {
        "job.name": "j",
        "job.default.system": "kafka",
        "systems.kafka.consumer.bootstrap.servers": "nowhere:1",
        "task.inputs": "kafka.in",
        "task.class": "own:Task",
    }
    return Config({**given, **more})


def test_code_that_can_be_used_is_taken(tmp_path: Path) -> None:
    """Whatever it prints while it is imported."""
    (tmp_path / "own.py").write_text(TASK + "print('no end of line', end='')\n")
    check_classes(_config(), PYTHON, tmp_path)


@pytest.mark.parametrize("end", ["os._exit(0)", "print('checked'); os._exit(0)"])
def test_code_that_ends_the_process_is_refused(tmp_path: Path, end: str) -> None:
    """Exit code 0 of the process that loads it proves nothing; its containers would fail."""
    (tmp_path / "own.py").write_text(f"import os\n{TASK}\n{end}\n")
    with pytest.raises(ConfigError, match=r"^yarn\.package\.path = .* let no module exit while it"):
        check_classes(_config(), PYTHON, tmp_path)
