"""Demos: whole runs, from nothing to the judged history."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[2] / "scripts" / "demo"
LIMIT_S = 1200


def _passes(*options: str) -> str:
    """Return what the demo printed; it has passed."""
    done = subprocess.run(
        [str(DEMO), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "PASSED"
    return done.stdout


@pytest.mark.long
def test_the_flights_job_survives_without_yarn() -> None:
    """One processor dies, one stands still, one joins, all restart: every plane is right."""
    printed = _passes("--standalone", "--form", "batch-task")
    for held in ("all 4,043 planes are exactly right", "4 processors 0 tasks have moved"):
        assert held in printed


@pytest.mark.long
def test_the_flights_job_is_changed_while_it_runs_and_leaves_nothing() -> None:
    """Inputs, schema, hosts and key change: every plane, and every airport, is right."""
    printed = _passes("--living")
    for held in ("both inputs are exactly right (0 differ)", "no directory of the job is left"):
        assert held in printed
