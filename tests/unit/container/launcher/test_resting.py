"""A child that lets go of its incarnation rests, and gets the next permit here."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
from zipped import sha256_of, zipped

from homeport.container.host.lease_memory import SpareKind
from homeport.container.launcher import resting, spare
from homeport.job_coordinator.http.messages import Order, OrderKind, Stopped
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.container.launcher.conftest import (
    FIRST,
    LOST_MS,
    SECOND,
    SHUTDOWN_MS,
    Life,
    check_ins,
    run,
    wait,
)

TASKS = (TaskName("Partition 0"), TaskName("Partition 2"))
LISTENS = "while read -r message; do echo $message; done; echo over"


def change(incarnation: Incarnation = FIRST) -> Order:
    """Return the order to let go, and to keep these tasks."""
    return Order(OrderKind.STOP, 10, 0, incarnation, keep=TASKS)


def lets_go(life: Life, incarnation: Incarnation = FIRST) -> None:
    """The next step: the order comes until its stop is reported; the child obeys it."""

    def holds() -> bool:
        if life.am.check_ins[-2:] and life.am.running == incarnation:
            life.started[-1].memory.resting = incarnation.epoch
        return any(report.incarnation == incarnation for report in life.am.reports)

    life.am.then(change(incarnation), holds)


def pids(life: Life) -> list[int]:
    """The process of each check-in with a child."""
    return [message.pid for message in life.am.check_ins if message.running is not None]


@pytest.fixture(autouse=True)
def _clock(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resting, "boot_ms", lambda: life.am.now_ms)


def beats(life: Life) -> bool:
    """Let each child's last beat be now."""
    for process in life.started:
        process.memory.beat_ms = life.am.now_ms
    return True


def test_the_next_permit_goes_to_the_process_that_has_let_go(life: Life) -> None:
    """Its pid stays; it got the tasks that stay, then the permit; no other process is started."""
    life.am.until_runs(FIRST)
    lets_go(life)
    life.am.then(wait(), lambda: beats(life))
    life.am.until_runs(SECOND)
    assert life.run(LISTENS) == 0
    assert len(life.started) == 1
    assert set(pids(life)) == {life.started[0].pid}
    assert life.am.reports[0] == Stopped(FIRST, StopCause.ORDERED, 0, age_ms=0)
    log = (life.folder / "logs" / "container-0-2.log").read_text()
    first, rest, second, *_ = log.splitlines()
    assert rest == 'rest ["Partition 0","Partition 2"]'
    assert '"epoch":1' in first
    assert '"epoch":2' in second
    assert [event["event"] for event in life.events()][:4] == [
        "permit-received",
        "child-started",
        "child-stopped",
        "permit-received",
    ]
    assert life.events()[2]["rests"] is True


def test_between_two_permits_the_process_has_no_lease(life: Life) -> None:
    """It runs nothing, and may wait for owners that are slow; the next lease is its deadline."""
    life.am.until_runs(FIRST)
    lets_go(life)
    deadlines: list[int] = []

    def rests() -> bool:
        beats(life)
        deadlines.append(life.started[0].memory.deadline_ms)
        assert life.started[0].memory.resting == 0, "the next incarnation does not rest yet"
        return True

    life.am.then(wait(), rests)
    life.am.until_runs(SECOND)
    life.run(LISTENS)
    assert deadlines[0] > 1 << 60


def test_a_child_that_does_not_let_go_is_killed(life: Life) -> None:
    """Its successors wait for that alone."""
    life.am.until_runs(FIRST)
    life.am.then(change(), lambda: bool(life.am.reports), SHUTDOWN_MS // 4)
    assert life.run(LISTENS) == 0
    assert life.am.reports[0].cause is StopCause.ORDERED
    assert life.am.reports[0].exit_code == -signal.SIGKILL


def test_a_child_that_dies_as_it_lets_go_is_reported_as_any(life: Life) -> None:
    """What it could not commit is not evidence of more."""
    life.am.until_runs(FIRST)
    life.am.then(change(), lambda: bool(life.am.reports))
    assert life.run("read -r permit; read -r rest; echo broken; exit 1") == 0
    report = life.am.reports[0]
    assert (report.exit_code, report.last_lines[-1]) == (1, "broken")


def test_an_order_to_end_replaces_that_to_let_go(life: Life) -> None:
    """The job ends, or an operator restarts the container, while its change is under way."""
    life.am.until_runs(FIRST)
    life.am.then(change(), check_ins(life.am, 2))
    life.am.until_stopped(FIRST)
    assert life.run("read -r permit; read -r rest; exec sleep 600") == 0
    assert life.am.reports[0].exit_code == -signal.SIGTERM


@pytest.mark.parametrize("why", ["it dies", "it does not beat", "it waits for too long"])
def test_a_process_that_is_of_no_use_is_replaced(life: Life, why: str) -> None:
    """A permit never waits for it."""
    life.am.until_runs(FIRST)
    lets_go(life)

    def befalls() -> bool:
        process = life.started[0]
        beats(life)
        if why == "it dies":
            os.kill(process.pid, signal.SIGKILL)
            return process.poll() is not None
        if why == "it does not beat":
            process.memory.beat_ms = life.am.now_ms - 60_000
            return True
        return process.poll() is not None

    life.am.then(wait(), befalls, 1000)
    life.am.until_runs(SECOND)
    assert life.run(LISTENS) == 0
    assert len(life.started) == 2
    assert pids(life)[-1] == life.started[1].pid
    assert life.started[0].poll() is not None


def test_a_process_of_another_package_is_ended(life: Life, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has imported stays imported."""
    monkeypatch.chdir(life.folder)
    package = zipped({"job.py": "VALUE = 1"})
    life.am.packages[sha256_of(package)] = package
    life.am.until_runs(FIRST)
    lets_go(life)
    life.am.then(wait(), lambda: beats(life))
    order = replace(run(SECOND), package=sha256_of(package))
    life.am.then(order, lambda: life.am.running == SECOND)
    assert life.run(LISTENS) == 0
    assert len(life.started) == 2
    assert life.started[0].poll() is not None


def test_nothing_that_rests_outlives_its_launcher(life: Life) -> None:
    """Ordered to exit, forsaken by the AM, or ended by YARN."""
    life.am.until_runs(FIRST)
    lets_go(life)
    assert life.run(LISTENS) == 0
    assert life.started[0].poll() is not None
    assert life.am.now_ms < 1_000_000 + LOST_MS


def test_a_launcher_that_waits_has_a_process_ready(life: Life) -> None:
    """The order names its kind, the check-in reports it; the permit goes to that process."""
    life.is_ready = True
    prepare = replace(wait(), prepare="warm")

    def is_ready() -> bool:
        beats(life)
        found = life.am.check_ins[-1].spare
        return found is not None and found.is_ready

    life.am.then(prepare, is_ready, 1500)
    life.am.then(wait(), lambda: beats(life))
    life.am.until_runs(FIRST)
    assert life.run(LISTENS) == 0
    assert len(life.started) == 1
    spares = [message.spare for message in life.am.check_ins]
    assert spares[0] is None
    assert any(s is not None and (s.kind, s.is_ready) == ("warm", True) for s in spares)
    assert life.started[0].memory.spare is SpareKind.NONE
    assert life.started[0].memory.is_permit_near, "it gives way to nothing"


@pytest.mark.parametrize("kind", ["plain", "warm"])
def test_a_launcher_without_memory_for_it_counts_as_ready(
    life: Life, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the owner of the tasks would work on until the time is over."""
    monkeypatch.setattr(spare, "used_mb", lambda: 1024)
    life.am.then(
        replace(wait(), prepare=kind),
        lambda: bool(life.am.check_ins[-1].spare and life.am.check_ins[-1].spare.is_ready),
        1500,
    )
    assert life.run(LISTENS) == 0
    assert life.started == []


def test_an_unknown_kind_is_not_prepared(life: Life) -> None:
    """An AM of a later version may have others: its own time-out ends its wait."""
    life.am.then(replace(wait(), prepare="hot"), check_ins(life.am, 3), 1500)
    assert life.run(LISTENS) == 0
    assert {message.spare for message in life.am.check_ins} == {None}
