"""Run each test that failed once more, alone, at the end of a run; judge what then passes.

A test that fails and then passes is *flaky*: a fault of the product or of the test that this run
could not hold still. The run may be green with at most ``MOST`` of them; ``tests/FLAKY.md`` has
the cause of each, and one that stands there unmended makes the run red. No other retry exists.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

FLAKY = "flaky"
"""The kind of such a test in pytest's closing line."""
MOST = 3
"""So many flaky tests a green run may have."""
_TRIED = 10
"""With more failures than this the run is broken, and each again would take too long."""
_STOP_LIMIT_S = 180.0
_TABLE = Path(__file__).resolve().parents[1] / "FLAKY.md"
_ROW = re.compile(r"^\| (\d{4}-\d{2}-\d{2}) \| `([^`]+)` \| (.*?) \| (.*?) \|$")
_COMMIT = re.compile(r"`[0-9a-f]{8,40}`")


@dataclass(frozen=True)
class Row:
    """A line of the table: the day, the test's id, the cause found, the commit that mended it."""

    date: str
    test: str
    cause: str
    commit: str

    @property
    def is_mended(self) -> bool:
        """Whether a cause and a commit stand there."""
        return bool(self.cause and _COMMIT.fullmatch(self.commit))


@dataclass(frozen=True)
class Verdict:
    """What running again showed: test ids, and why the run is red; no reason: it may be green."""

    flaky: tuple[str, ...]
    reasons: tuple[str, ...]


_VERDICT = pytest.StashKey[Verdict]()


def rows(table: str) -> list[Row]:
    """Return the rows of the table in the text of FLAKY.md.

    Raises:
        ValueError: a line of the table is no row.
    """
    lines = [line for line in table.splitlines() if line.startswith("|")]
    found = []
    for line in lines[2:]:
        if (row := _ROW.match(line)) is None:
            raise ValueError(f"tests/FLAKY.md: no row of date, `test`, cause, `commit`: {line}")
        found.append(Row(*row.groups()))
    return found


def judge(outcomes: Mapping[str, bool | None], known: Iterable[Row]) -> Verdict:
    """Return which tests are flaky, and each reason why the run fails all the same.

    Args:
        outcomes: each test that failed, and whether it passed the second time; None: not run again.
        known: the rows of FLAKY.md.
    """
    flaky = tuple(test for test, passed in outcomes.items() if passed)
    reasons = [f"{test} failed twice" for test, passed in outcomes.items() if passed is False]
    left = sum(passed is None for passed in outcomes.values())
    if left:
        reasons.append(f"{left} tests failed: more than {_TRIED} are not run once more")
    if len(flaky) > MOST:
        reasons.append(f"{len(flaky)} tests are flaky: a run may have {MOST}")
    unmended = {row.test for row in known if not row.is_mended}
    reasons += [
        f"{test} is flaky again: tests/FLAKY.md has it without a commit that mended it"
        for test in flaky
        if test in unmended
    ]
    return Verdict(flaky, tuple(reasons))


def run_each(failed: Sequence[str], say: Callable[[str], None], options: Sequence[str]) -> Verdict:
    """Run the tests ``failed`` once more, one after the other; return the verdict."""
    outcomes: dict[str, bool | None] = dict.fromkeys(failed)
    if len(failed) <= _TRIED:
        for test in failed:
            say(f"once more, alone: {test}")
            outcomes[test] = _passes(test, say, options)
    return judge(outcomes, rows(_TABLE.read_text(encoding="utf-8")))


def _passes(test: str, say: Callable[[str], None], options: Sequence[str]) -> bool:
    """Whether the test passes in a process of its own; what it prints is shown where it fails."""
    own = ["-n", "0", "-m", "", "-p", "no:cacheprovider", "--color=no", *options]
    # No pipe: what a test that hung has left behind would hold it open.
    with tempfile.TemporaryFile("w+", errors="replace") as output:
        run = subprocess.Popen(
            [sys.executable, "-m", "pytest", test, *own],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            code = run.wait()
        except BaseException:  # interrupted: its fixtures stop what they started
            run.send_signal(signal.SIGINT)
            run.wait(timeout=_STOP_LIMIT_S)
            raise
        if code != 0:
            output.seek(0)
            say(output.read())
    return code == 0


def at_the_end(session: pytest.Session) -> None:
    """Run what failed once more, and give flaky tests a kind of their own in the summary.

    A run that was stopped early stays as it is.
    """
    stopped = session.shouldstop or session.shouldfail
    if session.exitstatus != pytest.ExitCode.TESTS_FAILED or stopped:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        raise AssertionError("pytest runs without its terminal reporter")
    kinds = ("failed", "error")
    reports = [report for kind in kinds for report in reporter.stats.get(kind, [])]
    options = [f"--{name}={session.config.getoption(name)}" for name in ("faults", "hosts")]
    reporter.ensure_newline()
    failed = list(dict.fromkeys(report.nodeid for report in reports))
    verdict = run_each(failed, reporter.write_line, options)
    for kind in kinds:
        kept = [r for r in reporter.stats.pop(kind, []) if r.nodeid not in verdict.flaky]
        if kept:  # an empty list would colour the closing line
            reporter.stats[kind] = kept
    first = {report.nodeid: report for report in reversed(reports)}
    if verdict.flaky:
        reporter.stats[FLAKY] = [first[test] for test in verdict.flaky]
    session.config.stash[_VERDICT] = verdict
    if not verdict.reasons:
        session.exitstatus = pytest.ExitCode.OK


def summarise(reporter: pytest.TerminalReporter) -> None:
    """Show each flaky test with its first failure, and why the run fails all the same."""
    verdict = reporter.config.stash.get(_VERDICT, None)
    if verdict is None:
        return
    today = time.strftime("%Y-%m-%d")
    for report in reporter.stats.get(FLAKY, []):
        reporter.section(f"FLAKY {report.nodeid}")
        reporter.line(report.longreprtext)
        for title, content in report.sections:
            reporter.line(f"-- {title}\n{content}")
        reporter.line(f"tests/FLAKY.md gets: | {today} | `{report.nodeid}` | cause | `commit` |")
    for reason in verdict.reasons:
        reporter.line(f"red: {reason}")
