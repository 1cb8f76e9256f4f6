"""The demo of standalone processors: a whole run, from nothing to the judged history."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

DEMO = Path(__file__).resolve().parents[3] / "scripts" / "demo"
LIMIT_S = 1200


@pytest.mark.long
def test_the_flights_job_survives_without_yarn() -> None:
    """One processor dies, one stands still, one joins, all restart: every plane is right."""
    done = subprocess.run(
        [str(DEMO), "--standalone", "--form", "batch-task"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == "PASSED"
    for held in ("all 4,043 planes are exactly right", "4 processors 0 tasks have moved"):
        assert held in done.stdout
