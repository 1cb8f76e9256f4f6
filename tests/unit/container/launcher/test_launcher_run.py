"""A launcher's life; ``conftest`` has its AM and its children."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest

from homeport.config.errors import UnavailableError
from homeport.container.child.process import ChildProcess
from homeport.container.child.running import EXITED
from homeport.container.host.exit_codes import EXIT_LEASE_LOST, EXIT_TERMINATED
from homeport.container.launcher.lease_holder import LeaseHolder
from homeport.job_coordinator.http.messages import Order, OrderKind, Stopped
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.container.launcher.conftest import (
    DEAF,
    FIRST,
    LOST_MS,
    SECOND,
    SHUTDOWN_MS,
    Life,
    check_ins,
    run,
    until_spared,
    wait,
)


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
    assert (permitted["model_version"], permitted["package"]) == (7, None)
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
    report = Stopped(FIRST, cause, exit_code, last_lines)
    assert life.am.reports[0] == report
    assert life.events()[-1].get("reason", "") == report.reason


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
    life.am.then(run(SECOND), check_ins(life.am, 3))
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
    life.am.then(without, check_ins(life.am, 2))
    life.am.until_runs(FIRST)
    assert life.run() == 0
    assert [message.running for message in life.am.check_ins[:3]] == [None, None, None]
    assert len(life.started) == 1


def test_a_permit_without_a_keeper_ends_in_time(
    life: Life, caplog: pytest.LogCaptureFixture
) -> None:
    """Its host is cut off, whichever epochs come meanwhile: the AM tries another host."""
    life.am.keeper_fault = UnavailableError("no route")
    life.am.then(run(FIRST), check_ins(life.am, 2), LOST_MS // 4)
    life.am.then(run(SECOND), lambda: bool(life.am.reports), LOST_MS // 4)
    assert life.run() == 0
    assert life.am.reports == [Stopped(SECOND, StopCause.CUT_OFF, 1, ("no route",))]
    assert caplog.text.count("epoch 1 waits: no route") == 1
    assert life.started == []


def test_a_keeper_that_comes_back_is_waited_for(life: Life) -> None:
    """Its time begins again, and so it does after a time without the AM itself."""
    life.am.keeper_fault = UnavailableError("no route")

    def comes_back() -> bool:
        life.am.keeper_fault = None
        return life.am.running == FIRST

    def is_away_again() -> bool:
        life.am.keeper_fault = UnavailableError("no route")
        return True

    seconds = run(SECOND)
    life.am.then(run(FIRST), check_ins(life.am, 2), LOST_MS // 3)
    life.am.then(run(FIRST), comes_back, LOST_MS // 3)
    life.am.until_stopped(FIRST)
    life.am.then(wait(), is_away_again)
    for away in (UnavailableError("gone"), None):
        life.am.then(seconds, check_ins(life.am, 2), LOST_MS // 3)
        life.am.then(away or seconds, check_ins(life.am, 1), LOST_MS // 3)
    assert life.run() == 0
    assert [report.cause for report in life.am.reports] == [StopCause.ORDERED]


def test_a_launcher_with_a_child_stays_however_long_the_am_is_silent(life: Life) -> None:
    """The lease alone decides how long the child may run."""
    life.am.until_runs(FIRST)
    life.am.then(UnavailableError("gone"), check_ins(life.am, 3), LOST_MS)
    life.am.then(wait(), check_ins(life.am, 1))
    assert life.run() == 0
    assert life.am.reports[0].cause is StopCause.ORDERED


def test_a_child_learns_of_the_job_model_in_force(life: Life) -> None:
    """The answer to a check-in names it; an answer that does not changes nothing."""
    life.am.until_runs(FIRST)
    life.am.then(replace(wait(), model_version=8), check_ins(life.am, 2))
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


def test_a_child_that_does_not_die_has_its_lease_renewed_no_more(
    life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands in the kernel, where SIGKILL waits: the keeper is to call its lease over."""
    alive_at_close, ignored = list[bool](), list[signal.Signals]()
    close, signalled = LeaseHolder.close, ChildProcess.signal

    def closed(lease: LeaseHolder) -> None:
        alive_at_close.append(life.started[0].poll() is None)
        close(lease)

    def not_let_go(process: ChildProcess, number: signal.Signals) -> None:
        if number is signal.SIGKILL and not ignored:
            ignored.append(number)
        else:
            signalled(process, number)

    monkeypatch.setattr(LeaseHolder, "close", closed)
    monkeypatch.setattr(ChildProcess, "signal", not_let_go)
    life.am.then(run(FIRST), lambda: "deaf" in life.log())
    stop = Order(OrderKind.STOP, 10, 0, FIRST)
    life.am.then(stop, lambda: bool(alive_at_close), step_ms=SHUTDOWN_MS)
    life.am.then(stop, lambda: bool(life.am.check_ins[-1].running and _kill(life)))
    life.am.until_stopped(FIRST)
    life.run(DEAF)
    assert alive_at_close[0]


def _kill(life: Life) -> bool:
    """The kernel lets it go at last."""
    os.kill(life.started[0].pid, signal.SIGKILL)
    return True


def test_a_late_report_says_how_old_it_is(life: Life) -> None:
    """The AM reckons from the end of the child, not from when it has heard of it."""
    refusals = iter([700, 800])

    def refuse(_report: Stopped) -> None:
        for passed_ms in refusals:
            life.am.now_ms += passed_ms
            raise UnavailableError("gone")

    life.am.on_report = refuse
    life.am.until_runs(FIRST)
    life.am.then(wait(), check_ins(life.am, 3), LOST_MS)
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
    until_spared(life)
    life.am.until_stopped(FIRST)
    life.am.until_runs(SECOND)
    assert life.run() == 0
    pids = {message.pid for message in life.am.check_ins if message.running == SECOND}
    assert pids == {life.started[1].pid}
    assert len(life.started) == 2


def test_a_launcher_that_ends_has_waited_for_its_spare(life: Life) -> None:
    """As for its child: nothing of the container is left when the launcher says how it ended."""
    until_spared(life)
    assert life.run() == 0
    assert [process.poll() for process in life.started] == [-signal.SIGTERM, -signal.SIGKILL]
