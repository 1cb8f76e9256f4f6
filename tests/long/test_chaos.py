"""The demo under faults: a whole run, from nothing to the judged history."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

DEMO = Path(__file__).resolve().parents[2] / "scripts" / "demo"
LIMIT_S = 1500
SEED = 1


def test_a_job_survives_a_schedule_of_faults() -> None:
    """Ten faults and more, then calm: every plane is right and the history is sound."""
    done = subprocess.run(
        [str(DEMO), "--chaos", str(SEED)],
        env={**os.environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=LIMIT_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert f"seed {SEED}" in done.stdout
    assert done.stdout.splitlines()[-1] == "PASSED"
