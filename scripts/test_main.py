"""The suites of scripts/test: scripts/check where it belongs to the suite, then pytest.

Integration tests often wait: for leases, for daemons, for YARN. So pytest has two workers more than
the machine has cores where they belong to the suite. tests/support/worker_groups.py has the groups
of tests that stay on one worker. What failed runs once more at the end, alone
(tests/support/once_more.py). Whole suites but ``unit`` count the branches of the pure packages
(tests/support/branch_coverage.py).
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
    "coverage": [*_PURE, "-m", "not long and not search"],
    "ci": [*_PURE, *_SEARCHES, "tests/integration", "tests/cluster", _TIDY, "-m", "not long"],
    "all": ["tests", _TIDY],
}
_WITHOUT_CLUSTERS = ("unit", "coverage")
_OF_WHOLE_SUITES = ("-q", "-s", "-v", "-vv")
"""Arguments that select no tests."""
_REPORT = ROOT / "build" / "tests.xml"


def main() -> int:
    """The exit code of the suite; tests/conftest.py turns a failed check into a failed run."""
    suite, *arguments = sys.argv[1:]
    os.chdir(ROOT)
    # Else each worker, and each pytest that a test starts, rewrites the asserts of all tests again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    check = [sys.executable, str(ROOT / "scripts" / "check_main.py")]
    if suite not in _WITHOUT_CLUSTERS and subprocess.run(check, check=False).returncode != 0:
        os.environ["HOMEPORT_CHECK_FAILED"] = "1"
    workers = (os.cpu_count() or 1) + (0 if suite in _WITHOUT_CLUSTERS else 2)
    xdist = ["-n", str(workers), "--dist", "loadscope", "--no-loadscope-reorder"]
    report = [f"--junit-xml={_REPORT}", "-o", "junit_family=xunit1"]
    also = ["--once-more"]
    if suite != "unit" and {*arguments} <= {*_OF_WHOLE_SUITES}:
        also.append("--count-branches")
    command = [sys.executable, "-m", "pytest", *_SUITES[suite], *xdist, *report, *also, *arguments]
    # Its signals and exit code are pytest's.
    os.execv(command[0], command)  # noqa: S606 - becoming that program is the purpose


if __name__ == "__main__":
    sys.exit(main())
