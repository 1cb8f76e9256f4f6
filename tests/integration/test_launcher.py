"""The launcher as a process: a real server answers it, a small program stands for the container."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
from launchers import FIRST, LEASE_MS, LIMIT_S, SECOND, Am, Launch, Ready, wait_for
from yarn_jobs import alive

from homeport.container.child.running import EXITED
from homeport.job_coordinator.http.messages import OrderKind
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.status.shape import SpareReport


def test_the_launcher_identifies_itself_and_waits(am: Am, launch: Launch) -> None:
    """Ids, attempt, host in the one spelling, its own pid; and it exits with 0 when ordered to."""
    launcher = launch()
    wait_for(lambda: len(am.check_ins) > 2, launcher)
    message = am.check_ins[0]
    stated = (message.resource_id, message.skein_id, message.attempt, message.host, message.pid)
    expected = ("container_1700000000000_0001_01_000002", "h-0_0", 1, "nm1", launcher.process.pid)
    assert stated == expected
    am.orders(OrderKind.EXIT)
    assert launcher.process.wait(LIMIT_S) == 0


def test_a_permit_reaches_the_child_which_is_stopped_in_order(am: Am, ready: Ready) -> None:
    """Permit and environment arrive; ``stop`` ends it by SIGTERM; the report names the order."""
    launcher, pid = ready()
    assert pid != launcher.process.pid
    assert '"processor_id":"0","epoch":1,"model_version":7,"fence":[]' in launcher.child_log
    assert "environment container_1700000000000_0001_01_000002" in launcher.child_log
    am.orders(OrderKind.STOP, FIRST)
    wait_for(lambda: bool(am.reports), launcher)
    assert not alive(pid)
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
        ("exits", StopCause.FAILED, 0, EXITED),
        ("fail", StopCause.FAILED, 1, "ValueError: what went wrong"),
    ],
)
def test_an_end_of_its_own_is_reported_with_its_cause(
    am: Am, launch: Launch, mode: str, cause: StopCause, exit_code: int, last: str
) -> None:
    """Finished or failed, with the last lines of the child's log.

    Exit code 0 alone is a failure: code of the job's, or a library of its, may exit so.
    """
    launcher = launch(mode)
    am.orders(OrderKind.RUN, FIRST)
    report = am.report(launcher)
    assert (report.cause, report.exit_code, report.last_lines[-1]) == (cause, exit_code, last)


@pytest.mark.parametrize(
    ("number", "cause"), [(signal.SIGTERM, StopCause.SIGNALLED), (signal.SIGKILL, StopCause.KILLED)]
)
def test_a_stray_signal_is_distinguished_from_an_order(
    am: Am, ready: Ready, number: signal.Signals, cause: StopCause
) -> None:
    """The driver did not order it: the cause says so, whatever the exit code."""
    launcher, pid = ready()
    os.kill(pid, number)
    assert am.report(launcher).cause is cause
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


def test_a_container_that_never_ran_is_reported_stopped_and_never_runs(
    am: Am, launch: Launch
) -> None:
    """A stop that overtakes its permit is evidence too, as the permit is not obeyed afterwards."""
    launcher = launch()
    am.orders(OrderKind.STOP, FIRST)
    assert am.report(launcher).cause is StopCause.ORDERED
    seen = len(am.reports)
    am.orders(OrderKind.RUN, FIRST)
    wait_for(lambda: len(am.reports) > seen + 1, launcher)
    assert launcher.child_log == ""


def test_a_child_that_does_not_stop_is_killed_in_time(am: Am, ready: Ready) -> None:
    """After the shutdown time SIGKILL ends it; it was still ordered."""
    launcher, pid = ready("deaf")
    am.orders(OrderKind.STOP, FIRST)
    report = am.report(launcher)
    assert (report.cause, report.exit_code) == (StopCause.ORDERED, -9)
    assert not alive(pid)


def test_without_driver_and_keeper_it_kills_its_child_and_exits(am: Am, ready: Ready) -> None:
    """The child dies with its lease; without an answer for long the launcher exits with 1."""
    launcher, pid = ready("deaf")
    am.gone()
    am.keeper_gone()
    assert launcher.process.wait(LIMIT_S) == 1
    assert not alive(pid)


def test_a_launcher_that_never_reaches_the_keeper_gives_its_permit_back(
    am: Am, launch: Launch
) -> None:
    """The AM answers all the while; another host may reach the keeper."""
    am.keeper_gone()
    launcher = launch()
    am.orders(OrderKind.RUN, FIRST)
    report = am.report(launcher)
    assert (report.incarnation, report.cause) == (FIRST, StopCause.CUT_OFF)
    assert "/v1/lease: no answer: " in report.last_lines[0]
    assert launcher.child_log == ""


def test_without_its_driver_the_child_runs_on(am: Am, ready: Ready) -> None:
    """The keeper goes on renewing: three times the lease, and longer than an AM may be silent."""
    launcher, pid = ready("deaf")
    am.gone()
    time.sleep(3 * LEASE_MS / 1000)
    assert alive(pid)
    assert launcher.process.poll() is None


def test_a_lost_lease_costs_the_child_and_not_the_launcher(am: Am, ready: Ready) -> None:
    """Revoked: the child is killed, the stop is reported as what it is, the launcher stays."""
    launcher, pid = ready("deaf")
    am.table.stopped(FIRST)
    assert am.report(launcher).cause is StopCause.LEASE_LOST
    assert not alive(pid)
    am.orders(OrderKind.RUN, SECOND)
    wait_for(lambda: am.check_ins[-1].running == SECOND, launcher)


def test_a_child_that_does_not_beat_is_killed(am: Am, launch: Launch) -> None:
    """Silent for task.hang.ms: a failure, whose story says so."""
    launcher = launch("run", HOMEPORT_HANG_MS="1000")
    am.orders(OrderKind.RUN, FIRST)
    assert am.report(launcher).cause is StopCause.FAILED
    assert "task.hang.ms" in am.reports[0].last_lines[-1]


def test_a_child_whose_launcher_is_stopped_ends_itself(am: Am, ready: Ready) -> None:
    """SIGSTOP of the launcher: without renewals the child's own thread ends it in time."""
    launcher, pid = ready("leased")
    launcher.process.send_signal(signal.SIGSTOP)
    wait_for(lambda: not alive(pid), launcher)
    launcher.process.send_signal(signal.SIGCONT)
    assert am.report(launcher).cause is StopCause.LEASE_LOST


def test_a_signal_stops_both_in_order(am: Am, ready: Ready) -> None:
    """SIGTERM to the launcher: the child ends whole, the stop is reported, exit code 143."""
    launcher, pid = ready()
    launcher.process.terminate()
    assert launcher.process.wait(LIMIT_S) == 143
    assert not alive(pid)
    assert [r.cause for r in am.reports] == [StopCause.SIGNALLED]


def test_the_child_dies_with_its_launcher(ready: Ready) -> None:
    """Not even SIGKILL of the launcher leaves a child behind."""
    launcher, pid = ready("deaf")
    launcher.process.kill()
    wait_for(lambda: not alive(pid), launcher)


def test_a_launcher_that_is_refused_leaves(am: Am, launch: Launch, tmp_path: Path) -> None:
    """A wrong token is no reason to ask for ever."""
    wrong = tmp_path / "wrong-token"
    wrong.write_text("another job's")
    launcher = launch(HOMEPORT_TOKEN_FILE=str(wrong))
    assert launcher.process.wait(LIMIT_S) == 1
    assert am.check_ins == []
    assert "refuses this launcher" in (launcher.folder / "launcher.log").read_text()


def test_the_launcher_outlives_its_folders(am: Am, ready: Ready) -> None:
    """YARN may remove working and log folder early: the stop is still reported, with its lines."""
    launcher, _ = ready()
    for path in sorted(launcher.folder.rglob("*"), reverse=True):
        if path.is_file():
            path.unlink()
    am.orders(OrderKind.STOP, FIRST)
    deadline = time.monotonic() + LIMIT_S
    while not am.reports and time.monotonic() < deadline:
        time.sleep(0.02)
    assert am.reports[0].last_lines[-1] == "stopping in order"


def test_a_spare_waits_beside_its_child_and_is_the_next(am: Am, ready: Ready) -> None:
    """It is there once the child has asked; the next permit is its; then there is another one.

    Until then it has written no log of an incarnation, and has no permit.
    """
    launcher, first = ready("spared")
    spare = launcher.spare_pid()
    assert (launcher.folder / "logs" / "spare-2.log").read_text() == ""
    am.orders(OrderKind.RUN, SECOND)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: am.check_ins[-1].running == SECOND, launcher)
    assert am.check_ins[-1].pid == spare
    log = launcher.folder / "logs" / "container-0-2.log"
    wait_for(lambda: "ready" in log.read_text(), launcher)
    assert '"processor_id":"0","epoch":2' in log.read_text()
    assert "was plain" in log.read_text()
    assert launcher.spare_pid(spare) not in {first, spare}
    assert not (launcher.folder / "logs" / "spare-2.log").exists()


@pytest.mark.parametrize("is_replaced", [True, False])
def test_a_spare_learns_that_its_permit_is_near(am: Am, ready: Ready, *, is_replaced: bool) -> None:
    """From the order that stops a standby for its active container; no other stop says so."""
    launcher, _ = ready("spared")
    launcher.spare_pid()
    am.orders(OrderKind.STOP, FIRST)
    am.order = replace(am.order, is_replaced=is_replaced)
    wait_for(lambda: bool(am.reports), launcher)
    am.orders(OrderKind.RUN, SECOND)
    log = launcher.folder / "logs" / "container-0-2.log"
    wait_for(lambda: log.exists() and "ready" in log.read_text(), launcher)
    assert f"was near {is_replaced}" in log.read_text()


def test_a_spare_that_was_killed_is_replaced(am: Am, ready: Ready) -> None:
    """The child is not touched, and nothing is reported."""
    launcher, child = ready("spared")
    spare = launcher.spare_pid()
    os.kill(spare, signal.SIGKILL)
    assert launcher.spare_pid(spare) != spare
    assert not alive(spare)
    assert alive(child)
    assert am.reports == []


def test_a_spare_that_has_lost_what_it_had_is_replaced(am: Am, ready: Ready) -> None:
    """The AM hears whether the spare is ready; a spare without its parts is no fast start."""
    launcher, child = ready("losing")
    spare = launcher.spare_pid()
    wait_for(lambda: am.check_ins[-1].spare == SpareReport("plain", is_ready=True), launcher)
    (launcher.folder / f"lose-{spare}").touch()
    assert launcher.spare_pid(spare) != spare
    assert (alive(spare), alive(child)) == (False, True)
    wait_for(lambda: am.check_ins[-1].spare == SpareReport("plain", is_ready=True), launcher)


def test_a_spare_that_stands_still_is_not_used(am: Am, ready: Ready) -> None:
    """Its process would hang: the permit goes to a new one, and it is ended."""
    launcher, first = ready("spared")
    spare = launcher.spare_pid()
    os.kill(spare, signal.SIGSTOP)
    time.sleep(2.5)  # longer than a spare may be silent
    am.orders(OrderKind.RUN, SECOND)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: am.check_ins[-1].running == SECOND, launcher)
    assert am.check_ins[-1].pid not in {first, spare}
    assert not alive(spare)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_spare_does_not_outlive_its_launcher(ready: Ready, number: signal.Signals) -> None:
    """Neither an orderly end nor SIGKILL leaves one behind."""
    launcher, child = ready("spared")
    spare = launcher.spare_pid()
    launcher.process.send_signal(number)
    launcher.process.wait(LIMIT_S)
    wait_for(lambda: not alive(spare) and not alive(child), launcher)


def test_a_lease_that_is_lost_leaves_the_spare_to_the_next(am: Am, ready: Ready) -> None:
    """It never had that lease; under its own it lives until that is lost too."""
    launcher, first = ready("spared")
    spare = launcher.spare_pid()
    am.orders(OrderKind.RUN, SECOND)
    am.table.stopped(FIRST)
    wait_for(lambda: am.check_ins[-1].running == SECOND, launcher)
    assert am.reports[0].cause is StopCause.LEASE_LOST
    assert (alive(first), am.check_ins[-1].pid) == (False, spare)
    launcher.process.send_signal(signal.SIGSTOP)
    wait_for(lambda: not alive(spare), launcher)
    launcher.process.send_signal(signal.SIGCONT)
    wait_for(lambda: len(am.reports) > 1, launcher)
    assert am.reports[1].cause is StopCause.LEASE_LOST


def test_a_signal_during_the_hand_over_stops_the_former_spare(am: Am, ready: Ready) -> None:
    """SIGTERM to the whole group, as YARN sends it, while the spare has just got its permit."""
    launcher, first = ready("spared")
    spare = launcher.spare_pid()
    os.kill(spare, signal.SIGSTOP)
    am.orders(OrderKind.RUN, SECOND)
    os.kill(first, signal.SIGKILL)
    log = launcher.folder / "launcher.log"
    wait_for(lambda: f"runs as pid {spare}, which has waited" in log.read_text(), launcher)
    os.killpg(launcher.process.pid, signal.SIGTERM)
    os.kill(spare, signal.SIGCONT)
    assert launcher.process.wait(LIMIT_S) == 143
    assert not alive(spare)
    assert am.reports[-1].incarnation == SECOND
    assert am.reports[-1].cause is StopCause.SIGNALLED


def test_without_room_there_is_no_spare(am: Am, ready: Ready) -> None:
    """Of 160 MB launcher and child leave too little: none is started, and the child runs."""
    launcher, _ = ready("spared", HOMEPORT_MEMORY_MB="160")
    seen = len(am.check_ins)
    wait_for(lambda: len(am.check_ins) > seen + 60, launcher)
    assert " waits" not in (launcher.folder / "launcher.log").read_text()
