"""Which lines of ours each unit test runs, and how long it takes: measured once, then looked up.

As a plugin of pytest (``-p mutation.recording``, below ``coverage run``) this module names each
test to coverage, and keeps the seconds of those that passed.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import coverage
import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = ("appmaster", "config", "container", "job_coordinator")
TESTS = (
    "tests/transcripts",
    "tests/unit/appmaster",
    "tests/unit/container",
    "tests/unit/job_coordinator",
    "tests/unit/world",
)
"""What is recorded unless other paths are named: the folders that run what is mutated."""
_SEARCHES = "*_world.py"
"""Searches, too slow where each line is traced, and beyond what is run on a mutant."""
_FOLDER = ROOT / "build" / "mutation"
_LINES = _FOLDER / "lines"
_SECONDS = _FOLDER / "seconds.json"
_SECONDS_VARIABLE = "HOMEPORT_MUTATION_SECONDS"

_seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """What runs from now on runs for this test."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A test that did not pass can show nothing about a mutant."""
    if not report.passed:
        _seconds.pop(report.nodeid, None)
    elif report.when != "teardown":
        _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    """The seconds are kept beside those of other tests."""
    path = os.environ.get(_SECONDS_VARIABLE)
    if path is not None:
        before = _seconds_of(Path(path))
        Path(path).write_text(json.dumps({**before, **_seconds}, indent=1), encoding="utf-8")


def record(paths: Sequence[str]) -> int:
    """The tests below ``paths`` are recorded; those recorded before are kept where paths are named.

    Returns:
        pytest's exit code.
    """
    _FOLDER.mkdir(parents=True, exist_ok=True)
    if not paths:
        _SECONDS.unlink(missing_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "scripts"),
        _SECONDS_VARIABLE: str(_SECONDS),
    }
    measured = ["run", f"--data-file={_LINES}", f"--include={','.join(f'{c}/*' for c in CODE)}"]
    tests = ["-m", "pytest", "-q", "-p", "mutation.recording", "-p", "no:cacheprovider"]
    tests += ["-m", "not search", f"--ignore-glob={_SEARCHES}"]
    append = ["--append"] if paths else []
    command = [sys.executable, "-m", "coverage", *measured, *append, *tests, *(paths or TESTS)]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def is_recorded() -> bool:
    """Whether there is anything to look up."""
    return _LINES.exists() and _SECONDS.exists()


def _seconds_of(path: Path) -> dict[str, float]:
    return dict(json.loads(path.read_text(encoding="utf-8"))) if path.exists() else {}


@dataclass(frozen=True)
class Recorded:
    """What was measured. ``seconds``: {test: how long it takes}, of those that passed."""

    seconds: Mapping[str, float]
    lines: coverage.CoverageData
    _known: dict[str, dict[int, list[str]]] = field(default_factory=dict, repr=False)

    @classmethod
    def read(cls) -> Recorded:
        """What ``record`` has left."""
        lines = coverage.CoverageData(basename=str(_LINES))
        lines.read()
        return cls(_seconds_of(_SECONDS), lines)

    @cached_property
    def _paths(self) -> dict[str, str]:
        """{path of a source: its name in what was measured}."""
        return {os.path.realpath(name): name for name in self.lines.measured_files()}

    def by_line(self, source: Path) -> dict[int, list[str]]:
        """{line of the source: the tests that run it}."""
        name = self._paths.get(os.path.realpath(source))
        if name is None:
            return {}
        if name not in self._known:
            self._known[name] = self.lines.contexts_by_lineno(name)
        return self._known[name]

    def of_lines(self, source: Path, first: int, last: int) -> list[str]:
        """The tests that run any of these lines, quickest first.

        What is run once, at the import, is run for all tests of the source.
        """
        by_line = self.by_line(source)
        found = {test for line in range(first, last + 1) for test in by_line.get(line, [])}
        if "" in found:
            found = {test for tests in by_line.values() for test in tests}
        return sorted(found & self.seconds.keys(), key=lambda t: (self.seconds[t], t))
