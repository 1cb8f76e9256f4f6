"""Branch coverage of the pure packages by their own tests, counted where these tests run anyway.

The packages are those that setup.cfg calls PURE; the tests are those of tests/unit that mirror
them, and those of ``_BOTH``, which reach them by public calls alone. Searches do not count: what
only a search reaches, no test states. Each process counts for itself; the one that shows the
summary adds them up.
"""

from __future__ import annotations

import configparser
import importlib
import io
import os
import pkgutil
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage

OPTION = "--count-branches"
ROOT = Path(__file__).resolve().parents[2]
_FOLDER = ROOT / "build" / "branches"
_VARIABLE = "HOMEPORT_COUNT_BRANCHES"
"""In the environment of a process that counts; processes of its tests count nothing."""
_PURE = "importlinter:contract:pure"
_BOTH = ("tests/spec", "tests/transcripts", "tests/unit/job_coordinator/metadata")
_SEARCHES = "*_world.py"
"""Searches that are quick enough for every run, but not when each line is traced."""


def pure_modules() -> list[str]:
    """Return the packages and modules that setup.cfg calls PURE, by import names."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return config[_PURE]["source_modules"].split()


def mirrors_of(modules: list[str]) -> list[str]:
    """Return the tests that mirror these modules, sorted, and those of whole flows.

    They are a folder; of a module of a package's root a file, as its folder has all of the package.
    """
    mirrored = set()
    for module in modules:
        _, package, *inner = module.split(".")
        folder = ROOT.joinpath("tests", "unit", package, *inner)
        if not folder.is_dir():
            folder = folder.parent if len(inner) > 1 else folder.with_name(f"test_{inner[0]}.py")
        if folder.exists():
            mirrored.add(str(folder.relative_to(ROOT)))
    return [*sorted(mirrored), *(folder for folder in _BOTH if (ROOT / folder).is_dir())]


def _files_of(modules: list[str]) -> list[str]:
    """Return the files of these packages and modules."""
    links = ROOT / "build" / "ns"
    places = [Path(os.path.realpath(links.joinpath(*module.split(".")))) for module in modules]
    return [
        str(file)
        for place in places
        for file in (place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")])
    ]


class BranchCount:
    """What one process counts: while it imports the packages, and while a test of theirs runs."""

    def __init__(self) -> None:
        self._modules = pure_modules()
        self._mirrors = tuple(ROOT / mirror for mirror in mirrors_of(self._modules))
        self._coverage = Coverage(
            data_file=str(_FOLDER / "count"),
            data_suffix=True,
            branch=True,
            include=_files_of(self._modules),
            config_file=str(ROOT / "setup.cfg"),
        )
        self._coverage.start()
        self._counts_now = False

    def end_of_imports(self) -> None:
        """Import what no test has imported so far, and pause."""
        for name in self._modules:
            module = importlib.import_module(name)
            for inner in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
                importlib.import_module(inner.name)
        self._coverage.stop()

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Pause when all tests are imported."""
        try:
            return (yield)
        finally:
            self.end_of_imports()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(
        self, item: pytest.Item, nextitem: pytest.Item | None
    ) -> Generator[None, object, object]:
        """Count while tests of the packages run, with their fixtures.

        There is no pause between two of them: a thread that a fixture keeps would stay out of it.
        """
        if self.counts(item) and not self._counts_now:
            self._coverage.start()
            self._counts_now = True
        try:
            return (yield)
        finally:
            if self._counts_now and (nextitem is None or not self.counts(nextitem)):
                self._coverage.stop()
                self._counts_now = False

    def counts(self, item: pytest.Item) -> bool:
        """Return whether it is a test of the packages, and no search."""
        if item.get_closest_marker("search") or item.path.match(_SEARCHES):
            return False
        return any(item.path.is_relative_to(mirror) for mirror in self._mirrors)

    def pytest_sessionfinish(self) -> None:
        """Keep what was counted."""
        self._coverage.save()


COUNT = BranchCount() if os.environ.pop(_VARIABLE, None) else None
"""What this process counts, from before the packages are imported; None: it does not count."""


def order() -> None:
    """Make the processes count that pytest starts from here on; delete earlier counts."""
    shutil.rmtree(_FOLDER, ignore_errors=True)
    _FOLDER.mkdir(parents=True)
    os.environ[_VARIABLE] = "1"


def missing() -> str:
    """Return the lines and branches that no counting test has taken, as a table; empty: none."""
    total = Coverage(data_file=str(_FOLDER / "count"), config_file=str(ROOT / "setup.cfg"))
    total.combine([str(_FOLDER)])
    unknown = {*_files_of(pure_modules())} - {*total.get_data().measured_files()}
    table = io.StringIO()
    percent = total.report(file=table)
    lines = [f"{file}: imported by no test" for file in sorted(unknown)]
    return "\n".join([*lines, table.getvalue()] if lines or percent < 100 else [])
