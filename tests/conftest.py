"""What holds for every test: markers, workers and their groups, an orderly end, durations.

A run has workers side by side (pytest-xdist, ``scripts/test_main.py``), or is one process. The
tests of a module run on one worker, in their order; a group of modules does too.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import inspect
import logging
import os
import signal
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from types import FrameType
from typing import Any

import branch_coverage  # first: it counts what the packages do while they are imported
import hanging_tests
import hypothesis
import once_more
import pytest
import shared_clusters
from hanging_tests import (  # noqa: F401 - hooks
    pytest_exception_interact,
    pytest_timeout_cancel_timer,
    pytest_timeout_set_timer,
)
from run_summary import BACK_END, SEARCHED
from worker_groups import GroupScheduling, ends_clusters, precedes_clusters, turn_of

from homeport.local_cluster.cluster import remove_abandoned

_MARKERS = {
    "unit": "unit",
    "spec": "unit",
    "transcripts": "unit",
    "exhaustive": "search",
    "property": "search",
    "integration": "integration",
    "cluster": "cluster",
    "long": "long",
}
"""Folder of tests -> the marker of everything in it."""
_LIMITS_S = {"cluster": 2_400, "long": 14_400}
"""Marker -> a test's time with its fixtures, in place of ``timeout`` of setup.cfg.

The first test on a cluster in containers builds its image and environment.
"""


@pytest.fixture(autouse=True)
def level_of_logs_as_before() -> Iterator[None]:
    """A process of a job sets the level of its logs, and in a unit test that is this process."""
    root = logging.getLogger()
    before = root.level
    yield
    root.setLevel(before)


_CHECK_FAILED = "HOMEPORT_CHECK_FAILED"
_KEPT_LOGS = "kept_logs"
_WORKER_LIMIT_S = 180.0
"""How long workers may take to stop what their tests started, when the run is interrupted."""
_LOOP_LIMIT_S = 10.0
_SHOWN = 60
_IN_CONTAINERS = "tests/cluster/"

_MISSING = pytest.StashKey[str]()
"""The lines and branches of the pure packages that no test takes, or why that is not known."""
_searched: list[str] = []
_back_ends: set[str] = set()
"""What tests of the cluster in containers ran on, or why they did not run."""
_seconds: defaultdict[str, float] = defaultdict(float)


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
    about = "run each test that failed once more, alone, at the end: see tests/FLAKY.md"
    parser.addoption("--once-more", action="store_true", default=False, help=about)
    about = "tests/integration/disturbed: write the pictures of docs/dashboard.md into this folder"
    parser.addoption("--pictures", metavar="FOLDER", help=about)
    about = "workers count the branches of pure packages that their tests take: all, or it fails"
    parser.addoption(branch_coverage.OPTION, action="store_true", default=False, help=about)


def pytest_configure(config: pytest.Config) -> None:
    """SIGTERM ends a run as Ctrl-C does: fixtures stop what they started. No test asserts times.

    A shell starts what it puts into the background with Ctrl-C ignored, and what tests start would
    inherit that.
    """
    signal.signal(signal.SIGTERM, _terminated)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    too_slow = [hypothesis.HealthCheck.too_slow]  # would assert a time, of a machine under load
    hypothesis.settings.register_profile("homeport", deadline=None, suppress_health_check=too_slow)
    hypothesis.settings.load_profile("homeport")
    config.stash[shared_clusters.KEPT_LOGS] = []
    hanging_tests.begin(config)
    if branch_coverage.COUNT is not None:
        config.pluginmanager.register(branch_coverage.COUNT)
    if _is_worker(config):
        shared_clusters.join()
    else:
        shared_clusters.begin()
        if config.getoption(branch_coverage.OPTION):
            branch_coverage.order()


def _is_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without the garbage collector, which would look at all tests again and again.

    What is collected stays until the end, so the collector leaves it out of its later passes too.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test by its folder; what takes longest is first."""
    for item in items:
        if marker := _MARKERS.get(item.nodeid.removeprefix("tests/").partition("/")[0]):
            item.add_marker(marker)
        for marker, limit_s in _LIMITS_S.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.timeout(limit_s))
    items.sort(key=lambda item: turn_of(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> GroupScheduling:  # noqa: ANN401 - xdist has no type for it
    """Workers get whole groups of tests."""
    return GroupScheduling(config, log)


@pytest.fixture
def announce(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Shows a line in the summary of the run: how much was searched, and what was found."""

    def say(what: str) -> None:
        request.node.user_properties.append((SEARCHED, f"{request.node.name}: {what}"))

    return say


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function on an event loop of its own."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    names = inspect.signature(pyfuncitem.obj).parameters

    async def limited() -> None:
        async with asyncio.timeout(_LOOP_LIMIT_S):
            await pyfuncitem.obj(**{name: pyfuncitem.funcargs[name] for name in names})

    asyncio.run(limited())
    return True


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call() -> Iterator[None]:
    """The handler of ``caplog`` keeps its format."""
    _let_spark_propagate()
    yield


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """The handler of ``caplog`` keeps its format; clusters that no test needs any more end."""
    _let_spark_propagate()
    yield
    following = None if nextitem is None else nextitem.nodeid
    if ends_clusters(item.nodeid, following):
        item.session._setupstate.teardown_exact(None)  # those of fixtures, whose scope is the run
    if not precedes_clusters(following):
        shared_clusters.release()


def _let_spark_propagate() -> None:
    """The tests' own handler is attached to each logger that does not propagate.

    PySpark's loggers of errors do not, and set a format of their own on what is attached to them.
    """
    known = logging.root.manager.loggerDict  # only those that PySpark has made: of its own class
    for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
        if isinstance(logger := known.get(name), logging.Logger):
            logger.propagate = True


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """The process that shows the summary has what each test took, and what it has to show."""
    _seconds[report.nodeid.partition("::")[0]] += report.duration
    if report.nodeid.startswith(_IN_CONTAINERS):
        _back_ends.update(str(v) for name, v in report.user_properties if name == BACK_END)
        if report.skipped and isinstance(report.longrepr, tuple):
            _back_ends.add(f"not run: {report.longrepr[2].removeprefix('Skipped: ')}")
    if report.when == "teardown":
        _searched.extend(str(v) for name, v in report.user_properties if name == SEARCHED)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ANN401 - xdist has no type for it
    """A worker has ended; clusters of one that crashed, or whose test hung, stop."""
    if error:
        node.config.stash[_MISSING] = "not judged: a worker ended with its counts"
        remove_abandoned(shared_clusters.PREFIX, progress=print)
    logs = getattr(node, "workeroutput", {}).get(_KEPT_LOGS, [])
    node.config.stash[shared_clusters.KEPT_LOGS].extend(logs)


def pytest_keyboard_interrupt() -> None:
    """Workers stop what their tests started before the run ends; xdist would kill them."""
    for worker in shared_clusters.workers():
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.pid, signal.SIGINT)
    deadline = time.monotonic() + _WORKER_LIMIT_S
    while time.monotonic() < deadline and shared_clusters.workers():
        time.sleep(0.1)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Shared clusters stop after all fixtures; then what failed runs once more.

    A run whose scripts/check failed has failed.
    """
    config = session.config
    logs = config.stash[shared_clusters.KEPT_LOGS]
    if _is_worker(config):
        config.workeroutput[_KEPT_LOGS] = logs  # type: ignore[attr-defined]  # xdist's
        shared_clusters.leave()
        return
    logs.extend(shared_clusters.end(keep_logs=bool(session.testsfailed)))
    if config.getoption("once_more"):
        once_more.at_the_end(session)
    if session.exitstatus == pytest.ExitCode.OK and config.getoption(branch_coverage.OPTION):
        _judge_branches(session)
    if os.environ.get(_CHECK_FAILED) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def _judge_branches(session: pytest.Session) -> None:
    if _MISSING in session.config.stash:
        return
    session.config.stash[_MISSING] = missing = branch_coverage.missing()
    if missing:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Show it where it is read: just above the closing line."""
    if _searched:
        terminalreporter.section("searched")
        for line in sorted(_searched):
            terminalreporter.line(line)
    for line in sorted(_back_ends):
        terminalreporter.line(f"cluster in containers: {line}")
    if sum(_seconds.values()) > _SHOWN:
        terminalreporter.section(f"slowest {_SHOWN} of {len(_seconds)} modules")
        slowest = sorted(_seconds.items(), key=lambda item: item[1], reverse=True)[:_SHOWN]
        for module, seconds in slowest:
            terminalreporter.line(f"{seconds:7.1f} s  {module}")
    for folder in terminalreporter.config.stash[shared_clusters.KEPT_LOGS]:
        terminalreporter.line(f"logs of the local cluster: {folder}")
    once_more.summarise(terminalreporter)
    if missing := terminalreporter.config.stash.get(_MISSING, ""):
        terminalreporter.section("branches of the pure packages that no test of theirs takes")
        terminalreporter.line(missing)
    if os.environ.get(_CHECK_FAILED):
        terminalreporter.section("scripts/check failed, see the top of this output", sep="!")
