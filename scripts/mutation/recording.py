"""Which lines of ours each unit test runs, and how long it takes: measured once, then looked up.

As a plugin of pytest (``-p mutation.recording``, below ``coverage run``) this module names each
test to coverage, and keeps the seconds of those that passed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
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
_BRANCHES = _FOLDER / "branches"
_BRANCHES_SECONDS = _FOLDER / "branches-seconds.json"
_ARCS = """\
select context.context, file.path, arc.fromno, arc.tono
from arc join context on context.id = arc.context_id join file on file.id = arc.file_id"""
_SECONDS_VARIABLE = "HOMEPORT_MUTATION_SECONDS"

_seconds: dict[str, float] = {}


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Let what runs from now on run for this test."""
    measuring = coverage.Coverage.current()
    if measuring is not None:
        measuring.switch_context(item.nodeid)
    return (yield)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Forget a test that did not pass: it can show nothing about a mutant."""
    if not report.passed:
        _seconds.pop(report.nodeid, None)
    elif report.when != "teardown":
        _seconds[report.nodeid] = _seconds.get(report.nodeid, 0.0) + report.duration


def pytest_sessionfinish() -> None:
    """Keep the seconds beside those of other tests."""
    path = os.environ.get(_SECONDS_VARIABLE)
    if path is not None:
        before = _seconds_of(Path(path))
        Path(path).write_text(json.dumps({**before, **_seconds}, indent=1), encoding="utf-8")


def record(paths: Sequence[str]) -> int:
    """Record the tests below ``paths``, else again all of them; return pytest's exit code."""
    if not paths:
        _SECONDS.unlink(missing_ok=True)
    append = ["--append"] if paths else []
    return _measure(_LINES, _SECONDS, append, "not search", paths or TESTS)


def record_branches(paths: Sequence[str]) -> Recorded:
    """Return what these tests run and how long they take, with the branches that each one takes.

    SystemExit: a test failed, so that nothing is known of it.
    """
    _BRANCHES_SECONDS.unlink(missing_ok=True)
    _BRANCHES.unlink(missing_ok=True)
    marks = "not search and not long"
    if _measure(_BRANCHES, _BRANCHES_SECONDS, ["--branch"], marks, paths):
        raise SystemExit(f"error: these tests fail on the unchanged tree: {' '.join(paths)}")
    return Recorded.read(_BRANCHES, _BRANCHES_SECONDS)


def _measure(
    lines: Path, seconds: Path, options: Sequence[str], marks: str, paths: Sequence[str]
) -> int:
    """Run the tests below coverage; return pytest's exit code."""
    _FOLDER.mkdir(parents=True, exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "scripts"),
        _SECONDS_VARIABLE: str(seconds),
    }
    measured = ["run", f"--data-file={lines}", f"--include={','.join(f'{c}/*' for c in CODE)}"]
    tests = ["-m", "pytest", "-q", "-p", "mutation.recording", "-p", "no:cacheprovider"]
    tests += ["-m", marks, f"--ignore-glob={_SEARCHES}"]
    command = [sys.executable, "-m", "coverage", *measured, *options, *tests, *paths]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode


def is_recorded() -> bool:
    """Return whether there is anything to look up."""
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
    def read(cls, lines: Path = _LINES, seconds: Path = _SECONDS) -> Recorded:
        """Return what ``record`` has left."""
        measured = coverage.CoverageData(basename=str(lines))
        measured.read()
        return cls(_seconds_of(seconds), measured)

    def branches(self) -> Iterator[tuple[str, str, int, int]]:
        """Yield (test, path of a source, from line, to line) for each branch that a test takes."""
        # The tables are those of https://coverage.readthedocs.io/en/latest/dbschema.html.
        with closing(sqlite3.connect(self.lines.data_filename())) as database:
            for test, name, start, end in database.execute(_ARCS):
                if test in self.seconds:
                    yield test, os.path.realpath(name), start, end

    @cached_property
    def _paths(self) -> dict[str, str]:
        """{path of a source: its name in what was measured}."""
        return {os.path.realpath(name): name for name in self.lines.measured_files()}

    def by_line(self, source: Path) -> dict[int, list[str]]:
        """Return {line of the source: the tests that run it}."""
        name = self._paths.get(os.path.realpath(source))
        if name is None:
            return {}
        if name not in self._known:
            self._known[name] = self.lines.contexts_by_lineno(name)
        return self._known[name]

    def of_lines(self, source: Path, first: int, last: int) -> list[str]:
        """Return the tests that run any of these lines, quickest first.

        What is run once, at the import, is run for all tests of the source.
        """
        by_line = self.by_line(source)
        found = {test for line in range(first, last + 1) for test in by_line.get(line, [])}
        if "" in found:
            found = {test for tests in by_line.values() for test in tests}
        return sorted(found & self.seconds.keys(), key=lambda t: (self.seconds[t], t))
