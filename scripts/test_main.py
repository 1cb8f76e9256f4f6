"""The suites of scripts/test: scripts/check where it belongs to the suite, then pytest.

Integration tests mostly wait: for leases, for daemons, for a YARN that has one cluster. So where
they belong to the suite there are two pytests side by side (``lanes``): one runs the tests that
need the cluster, the other all that do not. Of unit tests one runs those of the AM, to have both
of two cores busy. Coverage is a program of its own, ``coverage_main``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from lanes import Lane, run_side_by_side

ROOT = Path(__file__).resolve().parents[1]
_PURE = ["tests/unit", "tests/spec", "tests/transcripts"]
_SUITES = {
    "unit": [*_PURE, "-m", "not long and not search"],
    "ci": [*_PURE, "tests/exhaustive", "tests/property", "tests/integration", "-m", "not long"],
    "all": ["tests"],
}


def main() -> int:
    """The exit code of the suite; tests/conftest.py turns a failed check into a failed run."""
    suite, *arguments = sys.argv[1:]
    os.chdir(ROOT)
    if suite == "coverage":
        command = [sys.executable, str(ROOT / "scripts" / "coverage_main.py"), *arguments]
        os.execv(command[0], command)  # noqa: S606 - becoming that program is the purpose
    command = [sys.executable, "-m", "pytest", *_SUITES[suite], *arguments]
    env = dict(os.environ)
    check = [sys.executable, str(ROOT / "scripts" / "check_main.py")]
    if suite != "unit" and subprocess.run(check, check=False).returncode != 0:
        env["HOMEPORT_CHECK_FAILED"] = "1"
    lane = "appmaster" if suite == "unit" else "cluster"
    lanes = [Lane(name, [*command, f"--lane={name}"]) for name in (lane, f"no-{lane}")]
    return run_side_by_side(lanes, env)


if __name__ == "__main__":
    sys.exit(main())
