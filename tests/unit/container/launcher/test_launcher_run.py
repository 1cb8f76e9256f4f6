"""A launcher's life: its AM answers as the test says, shells stand for the children.

Both clocks are the test's, so that nothing waits; ``tests/integration/test_launcher.py`` has the
launcher as a process.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from homeport.config.errors import HomeportError, UnavailableError
from homeport.container.host.exit_codes import EXIT_LEASE_LOST, EXIT_TERMINATED
from homeport.container.host.lease_memory import SpareKind
from homeport.container.launcher import launcher as module
from homeport.container.launcher import spare
from homeport.container.launcher.child_end import EXITED
from homeport.container.launcher.child_process import ChildProcess
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
from homeport.job_coordinator.model.outcomes import StopCause

FIRST, SECOND = Incarnation(ProcessorId("0"), 1), Incarnation(ProcessorId("0"), 2)
KEEPER = "http://keeper:1/"
LIMIT_S = 10.0
LOST_MS, SHUTDOWN_MS = 3000, 1000
RUNS_ON = "read -r permit; exec sleep 600"
DEAF = "trap '' TERM; echo deaf; exec sleep 600"

Until = Callable[[], bool]


class Am(CoordinatorClient):
    """Answers by steps, each until its condition holds, and then by the order to exit.

    It is the keeper too, and grants all. ``on_report`` may refuse a report by raising. A launcher
    that comes no further fails the test.
    """

    def __init__(self) -> None:
        super().__init__("http://am:1/", None)
        self.check_ins: list[CheckIn] = []
        self.reports: list[Stopped] = []
        self.now_ms = 1_000_000
        self.on_report: Callable[[Stopped], None] = lambda _: None
        self._steps: list[tuple[Order | HomeportError, Until, int]] = []
        self._limit_s = time.monotonic() + LIMIT_S

    @property
    def running(self) -> Incarnation | None:
        """What runs, as the last check-in says."""
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
        """The answer of the step."""
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

    def at(self, url: str, timeout_s: float) -> CoordinatorClient:
        """The keeper."""
        assert (url, timeout_s > 0) == (KEEPER, True)
        return self

    def renew(self, message: Renewal) -> LeaseGrant:
        """Granted for longer than any test takes."""
        del message
        return LeaseGrant(LeaseAnswer.GRANTED, 600_000)

    def config(self) -> dict[str, str]:
        """Empty."""
        return {}

    def _go_on(self) -> None:
        assert time.monotonic() < self._limit_s, f"no further: {self.check_ins[-1:]}"


class QuietWitnesses(Witnesses):
    """A testimony that starts no witness."""

    def __init__(self, shutdown_ms: int) -> None:
        super().__init__(shutdown_ms)
        self.stopped: list[Incarnation] = []

    def of_stopped(self, report: Stopped) -> None:
        """Noted."""
        self.stopped.append(report.incarnation)

    def of_running(self, incarnation: Incarnation, pid_fd: int) -> None:
        """Of no interest here."""


@dataclass
class Life:
    """Makes one launcher and runs it. ``wanted``: the spare that each of its children wants."""

    folder: Path
    am: Am
    witnesses: QuietWitnesses
    started: list[ChildProcess]
    launchers: list[Launcher]
    wanted: SpareKind = SpareKind.NONE

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
    am, witnesses, leases = Am(), QuietWitnesses(SHUTDOWN_MS), list[LeaseHolder]()
    made = Life(tmp_path, am, witnesses, [], [])
    start, hold = ChildProcess.start, LeaseHolder.hold

    def started(*arguments: Any) -> ChildProcess:  # noqa: ANN401 - as the real one's
        made.started.append(start(*arguments))
        made.started[-1].memory.want_spare(made.wanted)
        return made.started[-1]

    def held(lease: LeaseHolder, *arguments: Any) -> None:  # noqa: ANN401 - as the real one's
        leases.append(lease)
        hold(lease, *arguments)

    monkeypatch.setattr(ChildProcess, "start", started)
    monkeypatch.setattr(LeaseHolder, "hold", held)
    monkeypatch.setattr(module, "StopReporter", lambda _: witnesses)
    monkeypatch.setattr(module, "boot_ms", lambda: am.now_ms)
    monkeypatch.setattr(spare, "boot_ms", lambda: am.now_ms)
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
    """The order to run it."""
    return Order(OrderKind.RUN, 10, 600_000, incarnation, 7, lease_url=KEEPER)


def wait() -> Order:
    """The order to wait."""
    return Order(OrderKind.WAIT, 10, 0)


def _check_ins(am: Am, count: int) -> Until:
    """Holds at the ``count``-th check-in after it was first asked."""
    seen: list[int] = []

    def holds() -> bool:
        seen.append(len(am.check_ins))
        return len(am.check_ins) >= seen[0] + count

    return holds


def test_a_launcher_writes_its_childs_life_into_the_history(life: Life) -> None:
    """The permit with its model version, the start with its pid, the end with cause and code."""
    life.am.until_runs(FIRST)
    assert life.run() == 0
    assert [event["event"] for event in life.events()] == [
        "permit-received",
        "child-started",
        "child-stopped",
    ]
    permitted, begun, stopped = life.events()
    assert permitted["model_version"] == 7
    assert begun["child_pid"] == life.started[0].pid
    assert (stopped["cause"], stopped["exit_code"]) == ("ordered", -signal.SIGTERM)


@pytest.mark.parametrize(
    ("exit_code", "cause", "last_lines"),
    [
        (1, StopCause.FAILED, ("said",)),
        (0, StopCause.FAILED, ("said", EXITED)),
        (EXIT_LEASE_LOST, StopCause.LEASE_LOST, ("said",)),
    ],
)
def test_a_report_has_cause_code_and_last_lines(
    life: Life, exit_code: int, cause: StopCause, last_lines: tuple[str, ...]
) -> None:
    """Of an early exit with 0 it says what that is; a child may notice its lost lease first."""
    life.am.then(run(FIRST), lambda: bool(life.am.reports))
    assert life.run(f"read -r permit; echo said; exit {exit_code}") == 0
    assert life.am.reports[0] == Stopped(FIRST, cause, exit_code, last_lines)


def test_a_child_finds_the_package_before_all_else(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package that YARN has put into the working folder is the first place of its imports."""
    monkeypatch.chdir(life.folder)
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    life.am.then(run(FIRST), lambda: bool(life.am.reports))
    life.run('read -r permit; echo "$PYTHONPATH"; exit 1')
    assert life.am.reports[0].last_lines == (f"{life.folder / '__package'}:/elsewhere",)


def test_a_second_child_is_not_started_beside_the_first(life: Life) -> None:
    """Whatever the AM asks: one launcher runs one incarnation at a time."""
    life.am.until_runs(FIRST)
    life.am.then(run(SECOND), _check_ins(life.am, 3))
    assert life.run() == 0
    assert {message.running for message in life.am.check_ins[1:]} <= {FIRST, None}
    assert len(life.started) == 1


def test_a_stop_is_reported_again_while_another_child_runs(life: Life) -> None:
    """The AM asks to run what has ended, so the report was lost on it."""
    life.am.until_runs(FIRST)
    life.am.until_stopped(FIRST)
    life.am.until_runs(SECOND)
    life.am.then(run(FIRST), lambda: len(life.am.reports) > 1)
    assert life.run() == 0
    first, again, _ = life.am.reports
    assert replace(again, age_ms=first.age_ms) == first


def test_an_order_that_names_no_keeper_is_not_obeyed_yet(life: Life) -> None:
    """Without a lease nothing runs; the launcher stays, and obeys the order that names one."""
    without = replace(run(FIRST), lease_url=None)
    life.am.then(without, _check_ins(life.am, 2))
    life.am.until_runs(FIRST)
    assert life.run() == 0
    assert [message.running for message in life.am.check_ins[:3]] == [None, None, None]
    assert len(life.started) == 1


def test_a_launcher_with_a_child_stays_however_long_the_am_is_silent(life: Life) -> None:
    """The lease alone decides how long the child may run."""
    life.am.until_runs(FIRST)
    life.am.then(UnavailableError("gone"), _check_ins(life.am, 3), LOST_MS)
    life.am.then(wait(), _check_ins(life.am, 1))
    assert life.run() == 0
    assert life.am.reports[0].cause is StopCause.ORDERED


def test_a_child_learns_of_the_job_model_in_force(life: Life) -> None:
    """The answer to a check-in names it; an answer that does not changes nothing."""
    life.am.until_runs(FIRST)
    life.am.then(replace(wait(), model_version=8), _check_ins(life.am, 2))
    found: list[int] = []

    def is_kept() -> bool:
        found.append(life.started[0].memory.model_version)
        return len(found) == 3

    life.am.then(wait(), is_kept)
    assert life.run() == 0
    assert found == [8, 8, 8]


def test_a_launcher_without_a_child_leaves_a_silent_am(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    """With 1, so that YARN has its container back; the log says once that there is no answer."""
    life.am.then(UnavailableError("gone"), lambda: False, LOST_MS // 3)
    assert life.run() == 1
    assert len(life.am.check_ins) == 3
    assert caplog.text.count("no answer, trying again: gone") == 1


def test_a_deaf_child_is_killed_however_often_it_is_ordered_to_stop(life: Life) -> None:
    """An AM repeats its order at each check-in: the time to stop counts from the first."""
    life.am.then(run(FIRST), lambda: "deaf" in life.log())
    stop = Order(OrderKind.STOP, 10, 0, FIRST)
    life.am.then(stop, lambda: bool(life.am.reports), SHUTDOWN_MS // 2)
    assert life.run(DEAF) == 0
    report = life.am.reports[0]
    assert (report.cause, report.exit_code) == (StopCause.ORDERED, -signal.SIGKILL)


def test_a_late_report_says_how_old_it_is(life: Life) -> None:
    """The AM reckons from the end of the child, not from when it has heard of it."""
    refusals = iter([700, 800])

    def refuse(_report: Stopped) -> None:
        for passed_ms in refusals:
            life.am.now_ms += passed_ms
            raise UnavailableError("gone")

    life.am.on_report = refuse
    life.am.until_runs(FIRST)
    life.am.then(wait(), _check_ins(life.am, 3), LOST_MS)
    life.am.until_stopped(FIRST)
    assert life.run() == 0
    assert [report.age_ms for report in life.am.reports] == [1500]


def test_at_a_signal_a_stop_witness_writes_an_unreported_stop_at_once(life: Life) -> None:
    """YARN may kill the launcher before its next call: the stop is then known to Kafka."""

    def refuse_and_end(_report: Stopped) -> None:
        life.am.on_report = lambda _: None
        assert life.witnesses.stopped == []
        signal.raise_signal(signal.SIGTERM)
        assert life.witnesses.stopped == [FIRST]
        raise UnavailableError("gone")

    life.am.on_report = refuse_and_end
    life.am.until_runs(FIRST)
    life.am.until_stopped(FIRST)
    assert life.run() == EXIT_TERMINATED
    assert [report.incarnation for report in life.am.reports] == [FIRST]


def test_the_next_child_is_the_spare(life: Life) -> None:
    """Its imports are done: no other process is started for the permit."""
    _until_spared(life)
    life.am.until_stopped(FIRST)
    life.am.until_runs(SECOND)
    assert life.run() == 0
    assert [message.pid for message in life.am.check_ins if message.running == SECOND] == [
        life.started[1].pid
    ]
    assert len(life.started) == 2


def test_a_launcher_that_ends_has_waited_for_its_spare(life: Life) -> None:
    """As for its child: nothing of the container is left when the launcher says how it ended."""
    _until_spared(life)
    assert life.run() == 0
    assert [process.poll() for process in life.started] == [-signal.SIGTERM, -signal.SIGKILL]


def _until_spared(life: Life) -> None:
    """The next steps: the first incarnation runs, and a spare waits beside it."""
    life.wanted = SpareKind.PLAIN
    life.am.until_runs(FIRST)
    life.am.then(wait(), lambda: life.am.check_ins[-1].spare is not None, 1000)
