"""The launcher as a process: a real server answers it, a small program stands for the container."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self

import pytest

from homeport.appmaster.runtime.clocks import boot_ms
from homeport.appmaster.runtime.lease_server import LeaseServer
from homeport.appmaster.runtime.lease_table import LeaseTable, RenewalGuard
from homeport.job_coordinator.http.messages import (
    CheckIn,
    Order,
    OrderKind,
    Started,
    StopCause,
    Stopped,
)
from homeport.job_coordinator.http.server import JobCoordinatorServer
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel

TOKEN = "the token"  # noqa: S105 - of this test
FIRST, SECOND = Incarnation(ProcessorId("0"), 1), Incarnation(ProcessorId("0"), 2)
LIMIT_S = 20.0

# A server that goes while a launcher is connecting leaves the connection to the collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

LEASE_MS = 1500

CHILD = """
import os, signal, sys, time
mode = open("mode").read()
print("permit", sys.argv[sys.argv.index("--permit") + 1])
print("environment", os.environ["SAMZA_CONTAINER_ID"], os.environ["EXECUTION_ENV_CONTAINER_ID"])
def stop(*_):
    if mode != "deaf":
        print("stopping in order")
        sys.exit(143)
signal.signal(signal.SIGTERM, stop)
print("ready", flush=True)
if mode == "leased":
    from homeport.container.runtime.lease_memory import watch_lease
    watch_lease(os.environ)
if mode == "finish": sys.exit(0)
if mode == "fail": raise ValueError("what went wrong")
while True: time.sleep(60)
"""


class Am:
    """An AM that answers one fixed order, and remembers what it was told."""

    def __init__(self) -> None:
        self.order = Order(OrderKind.WAIT, 50, 1000)
        self.check_ins: list[CheckIn] = []
        self.reports: list[Stopped] = []
        self.url = ""
        self._loop = asyncio.new_event_loop()
        self._server = JobCoordinatorServer(self, TOKEN, "127.0.0.1", 0)
        self.table = LeaseTable(LEASE_MS, boot_ms())
        self.table.register(FIRST, boot_ms())
        self.table.register(SECOND, boot_ms())
        guard = RenewalGuard(1_000_000, boot_ms())
        self.keeper = LeaseServer(self.table, guard, lease_ms=LEASE_MS, attempt=1, token=TOKEN)
        self.lease_url = ""
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        host, port = asyncio.run_coroutine_threadsafe(self._server.start(), self._loop).result(10)
        self.url = f"http://{host}:{port}/"
        opened = self.keeper.start("127.0.0.1", 0, None)
        self.lease_url = asyncio.run_coroutine_threadsafe(opened, self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        self.gone()
        self.keeper_gone()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        gc.collect()  # what was cut off is reported here, not in another module's test

    def gone(self) -> None:
        """It answers no more."""
        asyncio.run_coroutine_threadsafe(self._server.stop(), self._loop).result(10)

    def keeper_gone(self) -> None:
        """Nobody renews leases any more."""
        asyncio.run_coroutine_threadsafe(self.keeper.stop(), self._loop).result(10)

    def orders(self, kind: OrderKind, incarnation: Incarnation | None = None) -> None:
        """What every check-in is answered from now on."""
        version = 7 if incarnation else None
        self.order = Order(kind, 50, LEASE_MS, incarnation, version, lease_url=self.lease_url)

    def job_model(self, version: int | None) -> JobModel | None:
        """There is none."""
        del version
        return None

    def locality(self) -> Mapping[ProcessorId, Host]:
        """There is none."""
        return {}

    def is_running(self, resource_id: ResourceId) -> bool:
        """Nothing does."""
        del resource_id
        return False

    async def check_in(self, message: CheckIn) -> Order:
        """The order of the moment."""
        self.check_ins.append(message)
        return self.order

    async def started(self, message: Started) -> None:
        """Nobody asks."""
        del message

    async def stopped(self, message: Stopped) -> None:
        """Kept."""
        self.reports.append(message)

    async def shutdown(self) -> None:
        """Nobody asks."""

    def status(self) -> Mapping[str, Any]:
        """There is none."""
        return {}


class Running:
    """A launcher in a folder of its own, as YARN would start it."""

    def __init__(self, folder: Path, am: Am, mode: str, **environment: str) -> None:
        (folder / "homeport-token").write_text(TOKEN)
        (folder / "mode").write_text(mode)
        package = folder / "__package" / "homeport_child"
        package.mkdir(parents=True)
        (package / "__main__.py").write_text(CHILD)
        self.folder = folder
        code = (
            "import os, sys; from homeport.container.runtime import launcher as l\n"
            "real = l.Launcher.__init__\n"
            "command = (sys.executable, '-m', 'homeport_child')\n"
            "l.Launcher.__init__ = lambda s, a, b, c: real(s, a, b, c, command)\n"
            "sys.exit(l.main())\n"
        )
        log = os.open(folder / "launcher.log", os.O_WRONLY | os.O_CREAT, 0o644)
        self.process = subprocess.Popen(
            [sys.executable, "-c", code],
            cwd=folder,
            stdout=log,
            stderr=subprocess.STDOUT,
            env={
                **os.environ,
                "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
                "SAMZA_COORDINATOR_URL": am.url,
                "CONTAINER_ID": "container_1700000000000_0001_01_000002",
                "SKEIN_CONTAINER_ID": "h-0_0",
                "NM_HOST": "NM1",
                "LOG_DIRS": str(folder / "logs"),
                "LOGGED_STORE_BASE_DIR": str(folder / "state"),
                "HOMEPORT_HISTORY_DIR": "job-1/.history",
                "HOMEPORT_CHECK_IN_INTERVAL_MS": "50",
                "HOMEPORT_LOST_MS": "3000",
                "HOMEPORT_SHUTDOWN_MS": "1000",
                **environment,
            },
        )
        os.close(log)

    @property
    def child_log(self) -> str:
        """What the child has written."""
        path = self.folder / "logs" / "container-0-1.log"
        return path.read_text() if path.exists() else ""

    def child_pid(self, am: Am) -> int:
        """The pid of the child, once it is ready."""
        wait_for(lambda: "ready" in self.child_log, self)
        wait_for(lambda: am.check_ins[-1].running is not None, self)
        return am.check_ins[-1].pid

    def events(self) -> list[str]:
        """The names of the launcher's history, in order."""
        files = sorted((self.folder / "state" / "job-1" / ".history").glob("launcher-*.jsonl"))
        return [json.loads(line)["event"] for f in files for line in f.read_text().splitlines()]


def wait_for(condition: Callable[[], bool], launcher: Running) -> None:
    """Returns when ``condition`` holds; fails with the launcher's log at the limit."""
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        if time.monotonic() > deadline:
            pytest.fail((launcher.folder / "launcher.log").read_text())
        time.sleep(0.02)


def is_alive(pid: int) -> bool:
    """Whether a process of that pid runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


@pytest.fixture
def am() -> Iterator[Am]:
    """An AM that says ``wait``."""
    with Am() as started:
        yield started


@pytest.fixture
def launch(tmp_path: Path, am: Am) -> Iterator[Callable[..., Running]]:
    """Starts launchers; those that still run at the end are killed."""
    started: list[Running] = []

    def start(mode: str = "run", **environment: str) -> Running:
        folder = tmp_path / str(len(started))
        folder.mkdir()
        started.append(Running(folder, am, mode, **environment))
        return started[-1]

    yield start
    for launcher in started:
        with contextlib.suppress(ProcessLookupError):
            launcher.process.kill()
        launcher.process.wait()


Launch = Callable[..., Running]


def test_it_says_who_it_is_and_waits(am: Am, launch: Launch) -> None:
    """Ids, attempt, host in the one spelling, its own pid; and it exits with 0 when told so."""
    launcher = launch()
    wait_for(lambda: len(am.check_ins) > 2, launcher)
    message = am.check_ins[0]
    told = (message.resource_id, message.skein_id, message.attempt, message.host, message.pid)
    expected = ("container_1700000000000_0001_01_000002", "h-0_0", 1, "nm1", launcher.process.pid)
    assert told == expected
    am.orders(OrderKind.EXIT)
    assert launcher.process.wait(LIMIT_S) == 0


def test_a_permit_reaches_the_child_which_is_stopped_in_order(am: Am, launch: Launch) -> None:
    """Permit and environment arrive; ``stop`` ends it by SIGTERM; the report names the order."""
    launcher = launch()
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    assert pid != launcher.process.pid
    assert '"processor_id":"0","epoch":1,"model_version":7,"fence":[]' in launcher.child_log
    assert "environment 0 container_1700000000000_0001_01_000002" in launcher.child_log
    am.orders(OrderKind.STOP, FIRST)
    wait_for(lambda: bool(am.reports), launcher)
    assert not is_alive(pid)
    report = am.reports[0]
    assert (report.incarnation, report.cause, report.exit_code) == (FIRST, StopCause.ORDERED, 143)
    assert report.last_lines[-1] == "stopping in order"
    am.orders(OrderKind.EXIT)
    assert launcher.process.wait(LIMIT_S) == 0
    assert launcher.events() == ["permit-received", "child-started", "child-stopped"]


@pytest.mark.parametrize(
    ("mode", "cause", "exit_code", "last"),
    [
        ("finish", StopCause.FINISHED, 0, "ready"),
        ("fail", StopCause.FAILED, 1, "ValueError: what went wrong"),
    ],
)
def test_an_end_of_its_own_is_reported_with_its_cause(
    am: Am, launch: Launch, mode: str, cause: StopCause, exit_code: int, last: str
) -> None:
    """Finished or failed, with the last lines of the child's log."""
    launcher = launch(mode)
    am.orders(OrderKind.RUN, FIRST)
    wait_for(lambda: bool(am.reports), launcher)
    report = am.reports[0]
    assert (report.cause, report.exit_code, report.last_lines[-1]) == (cause, exit_code, last)


@pytest.mark.parametrize(
    ("number", "cause"),
    [(signal.SIGTERM, StopCause.SIGNALLED), (signal.SIGKILL, StopCause.KILLED)],
)
def test_a_stray_signal_is_told_from_an_order(
    am: Am, launch: Launch, number: signal.Signals, cause: StopCause
) -> None:
    """Nobody ordered it: the cause says so, whatever the exit code."""
    launcher = launch()
    am.orders(OrderKind.RUN, FIRST)
    os.kill(launcher.child_pid(am), number)
    wait_for(lambda: bool(am.reports), launcher)
    assert am.reports[0].cause is cause
    assert launcher.process.poll() is None


def test_an_incarnation_is_run_once(am: Am, launch: Launch) -> None:
    """Asked again to run one that has ended it reports the stop again, and runs the next."""
    launcher = launch("finish")
    am.orders(OrderKind.RUN, FIRST)
    wait_for(lambda: len(am.reports) > 2, launcher)
    assert {r.incarnation for r in am.reports} == {FIRST}
    assert launcher.child_log.count("ready") == 1
    am.orders(OrderKind.RUN, SECOND)
    wait_for(lambda: am.reports[-1].incarnation == SECOND, launcher)


def test_one_that_never_ran_is_reported_stopped_and_never_runs(am: Am, launch: Launch) -> None:
    """A stop that overtakes its permit is evidence too, as the permit is not obeyed afterwards."""
    launcher = launch()
    am.orders(OrderKind.STOP, FIRST)
    wait_for(lambda: bool(am.reports), launcher)
    assert am.reports[0].cause is StopCause.ORDERED
    seen = len(am.reports)
    am.orders(OrderKind.RUN, FIRST)
    wait_for(lambda: len(am.reports) > seen + 1, launcher)
    assert launcher.child_log == ""


def test_a_child_that_does_not_stop_is_killed_in_time(am: Am, launch: Launch) -> None:
    """After the shutdown time SIGKILL ends it; it was still ordered."""
    launcher = launch("deaf")
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    am.orders(OrderKind.STOP, FIRST)
    wait_for(lambda: bool(am.reports), launcher)
    assert (am.reports[0].cause, am.reports[0].exit_code) == (StopCause.ORDERED, -9)
    assert not is_alive(pid)


def test_without_driver_and_keeper_it_kills_its_child_and_goes(am: Am, launch: Launch) -> None:
    """The lease is lost: the child is dead; nobody answers for long: the launcher leaves with 1."""
    launcher = launch("deaf")
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    am.gone()
    am.keeper_gone()
    assert launcher.process.wait(LIMIT_S) == 1
    assert not is_alive(pid)


def test_without_its_driver_the_child_runs_on(am: Am, launch: Launch) -> None:
    """The keeper goes on renewing: three times the lease, and longer than an AM may be silent."""
    launcher = launch("deaf")
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    am.gone()
    time.sleep(3 * LEASE_MS / 1000)
    assert is_alive(pid)
    assert launcher.process.poll() is None


def test_a_lost_lease_costs_the_child_and_not_the_launcher(am: Am, launch: Launch) -> None:
    """Revoked: the child is killed, the stop is reported as what it is, the launcher stays."""
    launcher = launch("deaf")
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    am.table.stopped(FIRST)
    wait_for(lambda: bool(am.reports), launcher)
    assert am.reports[0].cause is StopCause.LEASE_LOST
    assert not is_alive(pid)
    am.orders(OrderKind.RUN, SECOND)
    wait_for(lambda: am.check_ins[-1].running == SECOND, launcher)


def test_a_child_that_does_not_beat_is_killed(am: Am, launch: Launch) -> None:
    """Silent for task.hang.ms: a failure, whose story says so."""
    launcher = launch("run", HOMEPORT_HANG_MS="1000")
    am.orders(OrderKind.RUN, FIRST)
    wait_for(lambda: bool(am.reports), launcher)
    assert am.reports[0].cause is StopCause.FAILED
    assert "task.hang.ms" in am.reports[0].last_lines[-1]


def test_a_child_whose_launcher_is_stopped_ends_itself(am: Am, launch: Launch) -> None:
    """SIGSTOP of the launcher: nobody renews, and the child's own thread ends it in time."""
    launcher = launch("leased")
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    launcher.process.send_signal(signal.SIGSTOP)
    wait_for(lambda: not is_alive(pid), launcher)
    launcher.process.send_signal(signal.SIGCONT)
    wait_for(lambda: bool(am.reports), launcher)
    assert am.reports[0].cause is StopCause.LEASE_LOST


def test_a_signal_stops_both_in_order(am: Am, launch: Launch) -> None:
    """SIGTERM to the launcher: the child ends whole, the stop is reported, exit code 143."""
    launcher = launch()
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    launcher.process.terminate()
    assert launcher.process.wait(LIMIT_S) == 143
    assert not is_alive(pid)
    assert [r.cause for r in am.reports] == [StopCause.SIGNALLED]


def test_the_child_dies_with_its_launcher(am: Am, launch: Launch) -> None:
    """Not even SIGKILL of the launcher leaves a child behind."""
    launcher = launch("deaf")
    am.orders(OrderKind.RUN, FIRST)
    pid = launcher.child_pid(am)
    launcher.process.kill()
    wait_for(lambda: not is_alive(pid), launcher)


def test_a_launcher_that_is_refused_leaves(am: Am, launch: Launch, tmp_path: Path) -> None:
    """A wrong token is no reason to ask for ever."""
    wrong = tmp_path / "wrong-token"
    wrong.write_text("another job's")
    launcher = launch(HOMEPORT_TOKEN_FILE=str(wrong))
    assert launcher.process.wait(LIMIT_S) == 1
    assert am.check_ins == []
    assert "refuses this launcher" in (launcher.folder / "launcher.log").read_text()


def test_it_outlives_its_folders(am: Am, launch: Launch) -> None:
    """YARN may remove working and log folder early: the stop is still reported, with its lines."""
    launcher = launch()
    am.orders(OrderKind.RUN, FIRST)
    launcher.child_pid(am)
    for path in sorted(launcher.folder.rglob("*"), reverse=True):
        if path.is_file():
            path.unlink()
    am.orders(OrderKind.STOP, FIRST)
    deadline = time.monotonic() + LIMIT_S
    while not am.reports and time.monotonic() < deadline:
        time.sleep(0.02)
    assert am.reports[0].last_lines[-1] == "stopping in order"
