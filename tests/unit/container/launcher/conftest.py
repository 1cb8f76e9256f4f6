"""A launcher's life: its AM answers as the test says, shells stand for the children.

Both clocks are the test's, so that nothing waits; ``tests/integration/test_launcher.py`` has the
launcher as a process.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from homeport.config.errors import HomeportError, WireError
from homeport.container.child.process import ChildProcess
from homeport.container.host.lease_memory import SpareKind
from homeport.container.launcher import launcher as module
from homeport.container.launcher import packages, spare
from homeport.container.launcher.launcher import Launcher
from homeport.container.launcher.launcher_settings import LauncherSettings
from homeport.container.launcher.lease_holder import LeaseHolder
from homeport.container.launcher.stop_reporter import StopReporter as Witnesses
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import (
    CheckIn,
    LeaseAnswer,
    LeaseGrant,
    Order,
    OrderKind,
    Renewal,
    Stopped,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation

FIRST, SECOND = Incarnation(ProcessorId("0"), 1), Incarnation(ProcessorId("0"), 2)
KEEPER = "http://keeper:1/"
LIMIT_S = 10.0
LOST_MS, SHUTDOWN_MS = 3000, 1000
RUNS_ON = "read -r permit; exec sleep 600"
DEAF = "trap '' TERM; echo deaf; exec sleep 600"

Until = Callable[[], bool]


class _Am(CoordinatorClient):
    """Answers by steps, each until its condition holds, and then by the order to exit.

    It is the keeper too, and grants all, unless it has a ``keeper_fault``. ``on_report`` may
    refuse a report by raising. A launcher that comes no further fails the test.
    """

    def __init__(self) -> None:
        super().__init__("http://am:1/", None)
        self.check_ins: list[CheckIn] = []
        self.reports: list[Stopped] = []
        self.packages: dict[str, bytes] = {}
        self.fetched: list[str] = []
        self.now_ms = 1_000_000
        self.keeper_fault: HomeportError | None = None
        self.on_report: Callable[[Stopped], None] = lambda _: None
        self._steps: list[tuple[Order | HomeportError, Until, int]] = []
        self._limit_s = time.monotonic() + LIMIT_S

    @property
    def running(self) -> Incarnation | None:
        return self.check_ins[-1].running

    def then(self, answer: Order | HomeportError, until: Until, step_ms: int = 0) -> None:
        """The next step; ``step_ms`` pass at each of its check-ins."""
        self._steps.append((answer, until, step_ms))

    def until_runs(self, incarnation: Incarnation) -> None:
        """The next step: it is to run, until it does."""
        self.then(run(incarnation), lambda: self.running == incarnation)

    def until_stopped(self, incarnation: Incarnation) -> None:
        """The next step: it is to stop, until it is reported."""
        stop = Order(OrderKind.STOP, 10, 0, incarnation)
        self.then(stop, lambda: any(r.incarnation == incarnation for r in self.reports))

    def check_in(self, message: CheckIn) -> Order:
        self._go_on()
        self.check_ins.append(message)
        while self._steps and self._steps[0][1]():
            del self._steps[0]
        if not self._steps:
            return Order(OrderKind.EXIT, 10, 0)
        answer, _, step_ms = self._steps[0]
        self.now_ms += step_ms
        if isinstance(answer, HomeportError):
            raise answer
        return answer

    def stopped(self, message: Stopped) -> None:
        """Kept, unless ``on_report`` refuses it."""
        self._go_on()
        self.on_report(message)
        self.reports.append(message)

    def at(self, url: str, timeout_s: float, *, holds: bool = False) -> CoordinatorClient:
        assert (url, timeout_s > 0, holds) == (KEEPER, True, True)
        return self

    def renew(self, message: Renewal) -> LeaseGrant:
        del message
        if self.keeper_fault is not None:
            raise self.keeper_fault
        return LeaseGrant(LeaseAnswer.GRANTED, 600_000)

    def package(self, name: str) -> bytes:
        self.fetched.append(name)
        if name not in self.packages:
            raise WireError(f"404 there is no package {name}")
        return self.packages[name]

    def config(self) -> dict[str, str]:
        """Empty."""
        return {}

    def _go_on(self) -> None:
        assert time.monotonic() < self._limit_s, f"no further: {self.check_ins[-1:]}"


class _QuietWitnesses(Witnesses):
    """A testimony that starts no witness."""

    def __init__(self, shutdown_ms: int) -> None:
        super().__init__(shutdown_ms)
        self.stopped: list[Incarnation] = []

    def of_stopped(self, report: Stopped) -> None:
        self.stopped.append(report.incarnation)

    def of_running(self, incarnation: Incarnation, pid_fd: int) -> None:
        """Of no interest here."""


@dataclass
class Life:
    """Makes one launcher and runs it.

    ``wanted``: the spare that each of its children wants; ``is_ready``: what each process says.
    """

    folder: Path
    am: _Am
    witnesses: _QuietWitnesses
    started: list[ChildProcess]
    launchers: list[Launcher]
    wanted: SpareKind = SpareKind.NONE
    is_ready: bool = False

    def run(self, script: str = RUNS_ON) -> int:
        """The exit code of a launcher whose children are that script."""
        settings = LauncherSettings(
            coordinator_url=self.am.url,
            token_file=self.folder / "token",
            resource_id=ResourceId("container_1700000000000_0001_01_000002"),
            skein_id="h-0_0",
            host=Host("nm1"),
            attempt=1,
            log_folder=self.folder / "logs",
            interval_ms=10,
            hang_ms=1_000_000_000,
            lost_ms=LOST_MS,
            shutdown_ms=SHUTDOWN_MS,
            memory_mb=1024,
            clean_after_ms=0,
            history_folder=None,
            history_max_mb=512,
        )
        history = HistoryWriter(self.folder / "history", "launcher", "nm1", 64)
        command = ("/bin/sh", "-c", script, "child")
        self.launchers.append(Launcher(settings, self.am, history, command))
        try:
            return self.launchers[-1].run()
        finally:
            history.close()

    def log(self) -> str:
        """What the child of the first incarnation has said."""
        file = self.folder / "logs" / "container-0-1.log"
        return file.read_text() if file.exists() else ""

    def events(self) -> list[dict[str, Any]]:
        """The launcher's history."""
        files = (self.folder / "history").iterdir()
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]


@pytest.fixture(name="life")
def _life(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    am, witnesses, leases = _Am(), _QuietWitnesses(SHUTDOWN_MS), list[LeaseHolder]()
    made = Life(tmp_path, am, witnesses, [], [])
    start, hold = ChildProcess.start, LeaseHolder.hold

    def started(*arguments: Any) -> ChildProcess:  # noqa: ANN401 - as the real one's
        made.started.append(start(*arguments))
        made.started[-1].memory.want_spare(made.wanted)
        made.started[-1].memory.is_ready = made.is_ready
        return made.started[-1]

    def held(lease: LeaseHolder, *arguments: Any) -> None:  # noqa: ANN401 - as the real one's
        leases.append(lease)
        hold(lease, *arguments)

    monkeypatch.setattr(ChildProcess, "start", started)
    monkeypatch.setattr(LeaseHolder, "hold", held)
    monkeypatch.setattr(module, "StopReporter", lambda _: witnesses)
    monkeypatch.setattr(module, "boot_ms", lambda: am.now_ms)
    monkeypatch.setattr(spare, "boot_ms", lambda: am.now_ms)
    monkeypatch.setattr(packages, "boot_ms", lambda: am.now_ms)
    monkeypatch.setattr(spare, "used_mb", lambda: 0)
    on_sigterm = signal.getsignal(signal.SIGTERM)
    yield made
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, on_sigterm)
    for lease in leases:
        lease.close()
    for process in made.started:
        if process.poll() is None:
            process.signal(signal.SIGKILL)
            process.wait()
            process.close()
    for launcher in made.launchers:
        launcher._selector.close()
        launcher._wake_in.close()
        launcher._wake_out.close()


def run(incarnation: Incarnation) -> Order:
    """Return the order to run it."""
    return Order(OrderKind.RUN, 10, 600_000, incarnation, 7, lease_url=KEEPER)


def wait() -> Order:
    """The order to wait."""
    return Order(OrderKind.WAIT, 10, 0)


def check_ins(am: _Am, count: int) -> Until:
    """Holds at the ``count``-th check-in after its first call."""
    seen: list[int] = []

    def holds() -> bool:
        seen.append(len(am.check_ins))
        return len(am.check_ins) >= seen[0] + count

    return holds


def until_spared(life: Life) -> None:
    """The next steps: the first incarnation runs, and a spare waits beside it."""
    life.wanted = SpareKind.PLAIN
    life.am.until_runs(FIRST)
    life.am.then(wait(), lambda: life.am.check_ins[-1].spare is not None, 1000)
