"""An operator with the tool ``homeport``, on the host where a job's containers run."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from forked_tool import run_about
from json_answers import require_promised
from stream_containers import Job

from homeport.config.settings.sections import JobConfig


@dataclass
class Operator:
    """The tool, called about a job whose state is on "nm1"."""

    job: Job
    file: Path

    @property
    def stores(self) -> Path:
        """The base of the state directories."""
        return self.job.folder / "stores"

    @property
    def directory(self) -> Path:
        """The job's folder."""
        return self.stores / JobConfig.of(self.job.config).directory_name

    def call(self, *words: str) -> subprocess.CompletedProcess[str]:
        """The tool's exit code and words."""
        environment = {
            "LOGGED_STORE_BASE_DIR": str(self.stores),
            "NM_HOST": "NM1",
            "PATH": os.environ["PATH"],
        }
        return run_about(self.job.config, self.file, words, environment, limit_s=120)

    def answer(self, *words: str) -> list[str]:
        """What it prints, line by line; it succeeds."""
        done = self.call(*words)
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout.splitlines()

    def objects(self, *words: str) -> list[dict[str, Any]]:
        """What it prints with --json; it succeeds."""
        lines = self.answer(*words, "--json")
        require_promised(words, "\n".join(lines))
        return [json.loads(line) for line in lines]

    def refusal(self, *words: str) -> str:
        """Its one line of error."""
        done = self.call(*words)
        assert done.returncode == 1, done.stdout
        error = done.stderr.splitlines()[-1]
        assert error.startswith("error: ")
        return error
