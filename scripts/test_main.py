"""The suites of scripts/test: scripts/check where it belongs to the suite, then pytest.

Integration tests often wait: for leases, for daemons, for YARN. So pytest has two workers more than
the machine has cores where they belong to the suite. tests/support/worker_groups.py has the groups
of tests that stay on one worker. What failed runs once more at the end, alone
(tests/support/once_more.py). Coverage is a program of its own, ``coverage_main``.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_PURE = ["tests/unit", "tests/spec", "tests/transcripts"]
_SEARCHES = ["tests/exhaustive", "tests/property"]
_TIDY = "--ignore=tests/unit/test_tidy.py"
"""For suites before which scripts/check has run that test."""
_SUITES = {
    "unit": [*_PURE, "-m", "not long and not search"],
    "ci": [*_PURE, *_SEARCHES, "tests/integration", "tests/cluster", _TIDY, "-m", "not long"],
    "all": ["tests", _TIDY],
}
_REPORT = ROOT / "build" / "tests.xml"


def main() -> int:
    """The exit code of the suite; tests/conftest.py turns a failed check into a failed run."""
    suite, *arguments = sys.argv[1:]
    os.chdir(ROOT)
    # Else each worker, and each pytest that a test starts, rewrites the asserts of all tests again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if suite == "coverage":
        command = [sys.executable, str(ROOT / "scripts" / "coverage_main.py"), *arguments]
        os.execv(command[0], command)  # noqa: S606 - becoming that program is the purpose
    check = [sys.executable, str(ROOT / "scripts" / "check_main.py")]
    if suite != "unit" and subprocess.run(check, check=False).returncode != 0:
        os.environ["HOMEPORT_CHECK_FAILED"] = "1"
    workers = (os.cpu_count() or 1) + (0 if suite == "unit" else 2)
    xdist = ["-n", str(workers), "--dist", "loadscope", "--no-loadscope-reorder"]
    report = [f"--junit-xml={_REPORT}", "-o", "junit_family=xunit1"]
    again = ["--once-more"]
    command = [sys.executable, "-m", "pytest", *_SUITES[suite], *xdist, *report, *again, *arguments]
    os.execv(command[0], command)  # noqa: S606 - as above: its signals and exit code are pytest's


if __name__ == "__main__":
    sys.exit(main())
