"""What holds for every test: markers by folder, an orderly end, the verdict of scripts/check."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import hypothesis
import pytest

_HERE = Path(__file__).parent
_MARKERS = {
    "unit": "unit",
    "spec": "unit",
    "transcripts": "unit",
    "exhaustive": "search",
    "property": "search",
    "integration": "integration",
    "long": "long",
}
"""Folder of tests -> the marker of everything in it."""

_CLUSTERS = {"cluster", "network_cluster"}
"""The fixtures that are a YARN cluster: whoever uses one is of the lane ``cluster``."""
_APPMASTER = ("unit/world", "unit/appmaster")
"""The folders of the lane ``appmaster``: about half of what the unit tests take."""


def _needs_cluster(item: pytest.Item) -> bool:
    return bool(_CLUSTERS & set(getattr(item, "fixturenames", ())))


def _is_of_appmaster(item: pytest.Item) -> bool:
    return any(item.path.is_relative_to(_HERE / folder) for folder in _APPMASTER)


_LANES = {"cluster": _needs_cluster, "appmaster": _is_of_appmaster}

_CHECK_FAILED = "HOMEPORT_CHECK_FAILED"
_TOLD: list[str] = []


def _terminated(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of single folders are known in every run: the first conftest must declare them."""
    about = "tests/transcripts: write what the allocator answers now into the transcripts"
    parser.addoption("--rewrite", action="store_true", default=False, help=about)
    about = "tests/exhaustive: how many faults there are at most in the searched worlds"
    parser.addoption("--faults", type=int, default=2, help=about)
    about = "tests/exhaustive: how many hosts the searched worlds have"
    parser.addoption("--hosts", type=int, default=3, help=about)
    about = "only the tests of that lane, or (no-) all the others; see scripts/test_main.py"
    lanes = [f"{no}{lane}" for lane in _LANES for no in ("", "no-")]
    parser.addoption("--lane", choices=lanes, help=about)


def pytest_configure() -> None:
    """SIGTERM ends a run as Ctrl-C does: fixtures stop what they started. No test asserts times.

    A shell starts what it puts into the background with Ctrl-C ignored, and what tests start would
    inherit that.
    """
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    too_slow = [hypothesis.HealthCheck.too_slow]  # would assert a time, of a machine under load
    hypothesis.settings.register_profile("homeport", deadline=None, suppress_health_check=too_slow)
    hypothesis.settings.load_profile("homeport")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test by the folder it stands in; those of another lane are not of this run."""
    lane = config.getoption("--lane")
    if lane is not None:
        is_of_lane, is_wanted = _LANES[lane.removeprefix("no-")], not lane.startswith("no-")
        left_out = [item for item in items if is_of_lane(item) is not is_wanted]
        items[:] = [item for item in items if is_of_lane(item) is is_wanted]
        config.hook.pytest_deselected(items=left_out)
    for item in items:
        for folder, marker in _MARKERS.items():
            if item.path.is_relative_to(_HERE / folder):
                item.add_marker(marker)


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Says something in the summary of the run: how much was searched, and what was found."""

    def say(what: str) -> None:
        _TOLD.append(f"{request.node.name}: {what}")

    return say


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A run whose scripts/check failed has failed."""
    if os.environ.get(_CHECK_FAILED) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say it where it is read: just above the closing line."""
    if _TOLD:
        terminalreporter.section("searched")
        for line in _TOLD:
            terminalreporter.line(line)
    if os.environ.get(_CHECK_FAILED):
        terminalreporter.section("scripts/check failed, see the top of this output", sep="!")
