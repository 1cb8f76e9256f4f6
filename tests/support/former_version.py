"""The former minor version of homeport, built from its commit, in an environment of its own."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import tarfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
import shared_clusters
from clusters_under_test import ClusterUnderTest
from installations import ROOT, Installation, wheel_of
from yarn_jobs import Job

from homeport.job_coordinator.file_locks import exclusive

COMMIT = "ceb95ceacd7b05aa4af7d972a813f6adc453044d"
"""The last one of 0.1: the tag v0.1.0. A clone without tags has it too."""


def former_wheel() -> Path:
    """Return the wheel of that commit: one for all workers of the run, by the first that asks.

    The test is skipped in a clone without history, as ``git clone --depth 1`` makes one.
    """
    has_commit = ["git", "cat-file", "-e", f"{COMMIT}^{{commit}}"]
    if subprocess.run(has_commit, cwd=ROOT, capture_output=True, check=False).returncode:
        pytest.skip(f"this clone lacks commit {COMMIT[:8]}: git fetch --unshallow")
    folder = Path(os.environ[shared_clusters.VARIABLE]) / "former.made"
    with exclusive(folder.with_suffix(".lock")):
        if not folder.exists():
            partial = folder.with_suffix(".partial")
            shutil.rmtree(partial, ignore_errors=True)  # of a worker that has crashed
            sources = partial / "sources"
            archive = subprocess.run(
                ["git", "archive", "--format=tar", COMMIT],  # noqa: S607 - on PATH on purpose
                cwd=ROOT,
                check=True,
                capture_output=True,
            )
            with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
                files.extractall(sources, filter="data")
            wheel_of(sources, partial)
            partial.rename(folder)
    (wheel,) = folder.glob("homeport-0.1.*.whl")
    return wheel


class VersionedJob(Job):
    """A job whose commands and processes are those of one installation, which may change."""

    def __init__(self, cluster: ClusterUnderTest, folder: Path, name: str) -> None:
        super().__init__(cluster, folder, name)
        self._python = ""

    def uses(self, installation: Installation) -> None:
        """From now on, commands and what they start are those of this installation."""
        self._python = str(installation.python)
        self.values["yarn.python.executable"] = self._python

    def _ended(
        self, module: str, words: Sequence[str], environment: Mapping[str, str], limit_s: float
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self._python, "-I", "-m", module, *words],
            env=environment,
            capture_output=True,
            text=True,
            timeout=limit_s,
            check=False,
        )
