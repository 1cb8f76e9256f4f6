"""An operator with the tool ``homeport``, before a job that a coordinator stream has."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from forked_tool import run_about
from json_answers import require_promised

from homeport.config.config import Config
from homeport.job_coordinator.kafka.coordinator_stream_store import CoordinatorStreamStore
from homeport.job_coordinator.metadata.configuration import ConfigManager
from homeport.job_coordinator.model.job_model import JobModel

SECRET = "hunter2"  # noqa: S105 - of these tests only


@dataclass
class Operator:
    """A job that has run with state in two containers, and the tool called about it."""

    config: Config
    file: Path
    store: CoordinatorStreamStore
    model: JobModel
    token: str = ""

    def call(
        self, *words: str, typed: str = "", **overrides: str
    ) -> subprocess.CompletedProcess[str]:
        """The tool's exit code and words; ``overrides`` stand above the properties file."""
        values = self.config.merged({k.replace("__", "."): v for k, v in overrides.items()})
        return run_about(values, self.file, words, self._token_file(), typed=typed)

    def _token_file(self) -> dict[str, str]:
        if not self.token:
            return {}
        path = self.file.with_name("token")
        path.write_text(self.token, encoding="utf-8")
        return {"HOMEPORT_TOKEN_FILE": str(path)}

    def answer(self, *words: str, **overrides: str) -> str:
        """What it prints; it succeeds, and shows no secret."""
        done = self.call(*words, **overrides)
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout + done.stderr
        if "--json" in words:
            require_promised(words, done.stdout)
        return done.stdout

    def refusal(self, *words: str, **overrides: str) -> str:
        """Its one line; nothing is printed, and nothing written."""
        before = self.recorded()
        done = self.call(*words, **overrides)
        assert (done.returncode, done.stdout) == (1, "")
        *notes, error = done.stderr.splitlines()
        assert error.startswith("error: ")
        assert all(note.startswith("from ") for note in notes)
        assert self.recorded() == before
        return error

    def recorded(self) -> Config:
        """What the coordinator stream says now."""
        self.store.catch_up()
        return ConfigManager(self.store).read()
