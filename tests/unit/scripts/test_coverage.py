"""Branch coverage of the pure packages, and what it is measured of."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from coverage_main import mirrors_of, pure_modules

ROOT = Path(__file__).resolve().parents[3]


def test_the_measured_packages_are_the_pure_ones() -> None:
    """The allocator among it, with the folders that mirror the packages."""
    modules = pure_modules()
    assert "homeport.appmaster.allocation" in modules
    folders = mirrors_of(modules)
    assert {"tests/unit/appmaster/allocation", "tests/unit/config", "tests/transcripts"} <= {
        *folders
    }
    assert "tests/unit/job_coordinator/metadata" in folders
    assert all((ROOT / folder).exists() for folder in folders)


@pytest.mark.search
def test_every_branch_of_the_pure_packages_is_taken_by_a_test() -> None:
    """``scripts/test coverage``: 100 %, through public calls; else the missing lines are named."""
    command = [sys.executable, str(ROOT / "scripts" / "coverage_main.py")]
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
