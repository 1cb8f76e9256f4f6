"""Rests before retries: the last one of a container at home, and launches that fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import ContainerState, Failure, FailureKind
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import (
    ResourceEnded,
    ShutdownRequested,
    Timer,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelTimer,
    EndJob,
    JobResult,
    WriteFailureCount,
)
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.appmaster.allocation.retries import delay_ms
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    SETTINGS,
    Machine,
    MachineWith,
    asks,
    check_in,
    disarms,
    ended,
    forgets_failures,
    releases,
    rest_over,
    rests,
    stopped,
    window_over,
)

LAST_MS = 360_000


def _launch_fails(request: int) -> ResourceEnded:
    return ended(request)


@pytest.fixture
def running(machine_with: MachineWith) -> Machine:
    """One container at home on ``a``, two retries, a rest before the last."""
    machine = machine_with(last_retry_delay_ms=LAST_MS)
    return machine.at_home({"0": "a"}, "b")


def _until_resting(machine: Machine) -> None:
    machine.feed(stopped("0", 1), check_in("r0", "a"))
    assert machine.feed(stopped("0", 2)) == (*rests("0", LAST_MS), *releases("r0"))
    assert machine.phase("0") is P.BACKING_OFF


def test_launches_that_fail_wait_longer_each_time(machine_with: MachineWith) -> None:
    """One second, two, four; a launcher that comes ends the series."""
    machine = machine_with(launch_retry_ms=1000, retry_count=9)
    machine.deploy({"0": None}, "a")
    for request, rest_ms in ((1, 1000), (2, 2000), (3, 4000)):
        assert machine.feed(_launch_fails(request)) == (
            *disarms(request, "expiry"),
            *rests("0", rest_ms),
        )
        machine.stale(_launch_fails(request))
        machine.feed(rest_over("0"))
        assert machine.phase("0") is P.REQUESTED
    machine.run("0", "r0", "a", 4)
    assert machine.container("0").launch_failures == 0


@pytest.mark.parametrize(
    ("series", "rest_ms"), [(1, 1000), (5, 16_000), (6, 30_000), (100, 30_000)]
)
def test_the_rest_after_a_failed_launch_is_bounded(series: int, rest_ms: int) -> None:
    """By half a minute, however often it failed; without limit of retries too."""
    settings = replace(SETTINGS, launch_retry_ms=1000)
    failed = ContainerState(ProcessorId("0"), launch_failures=series)
    assert delay_ms(settings, failed, Trigger.LAUNCH_FAILED) == rest_ms
    assert delay_ms(SETTINGS, failed, Trigger.LAUNCH_FAILED) == 0


def test_a_resting_container_may_turn_out_to_have_finished(running: Machine) -> None:
    """Then nothing of it is left armed, and the job is over."""
    _until_resting(running)
    end = running.feed(stopped("0", 2, StopCause.FINISHED, 0))
    assert end[:2] == (*forgets_failures("0"), _ends_rest())
    assert isinstance(end[-1], EndJob)
    assert end[-1].result is JobResult.SUCCEEDED


def test_the_end_of_the_job_waits_for_no_resting_container(running: Machine) -> None:
    """Its timers are off."""
    _until_resting(running)
    end = running.feed(ShutdownRequested())
    assert end[:2] == (*forgets_failures("0"), _ends_rest())
    assert isinstance(end[-1], EndJob)
    assert running.phase("0") is P.STOPPED


def _ends_rest() -> CancelTimer:
    return CancelTimer(Timer(TimerKind.RETRY_DELAY, ProcessorId("0")))


GREED = "killed for exceeding memory limits"


@pytest.mark.parametrize("is_reported", [True, False])
def test_a_container_ended_for_its_memory_has_failed(
    running: Machine, *, is_reported: bool
) -> None:
    """YARN signals launcher and child: a signal alone is not charged, the word of YARN is."""
    if is_reported:
        running.feed(stopped("0", 1, StopCause.SIGNALLED, 143))
        assert (running.phase("0"), running.container("0").failures) == (P.ASSIGNED, 0)
        running.feed(ended(1, story=GREED, is_own_fault=True))
        assert running.phase("0") is P.REQUESTED
    else:
        early = running.feed(ended(1, story=GREED, is_own_fault=True))
        assert early == asks(2, "a")
        running.feed(ended(1, "r0", GREED, is_own_fault=True))
    assert (running.phase("0"), running.container("0").failures) == (P.REQUESTED, 1)
    assert running.container("0").last_failure == Failure(
        FailureKind.LAUNCHER_LOST,
        f"0@1 on a: its YARN container ended: {GREED}",
        Incarnation(ProcessorId("0"), 1),
        Host("a"),
    )


def _recorded(machine: Machine) -> list[int]:
    return [r.count for r in machine.records if isinstance(r, WriteFailureCount)]


def test_a_failure_with_a_reason_is_recorded_where_none_is_counted(
    machine_with: MachineWith,
) -> None:
    """For each incarnation; one without a reason takes the last one back, and then none is."""
    machine = machine_with(retry_count=-1).at_home({"0": "a"})
    for epoch, reason, records in ((1, "no table", 1), (2, "no table", 2), (3, "", 3), (4, "", 3)):
        machine.feed(stopped("0", epoch, reason=reason))
        failure = machine.container("0").last_failure
        assert failure is not None
        assert (failure.reason, _recorded(machine)) == (reason, [0] * records)
        machine.feed(check_in("r0", "a"))


def test_a_reason_stays_with_the_last_failure_when_that_is_forgiven(running: Machine) -> None:
    """The window's end records it again; a failure without charge and reason records nothing."""
    running.feed(stopped("0", 1, reason="no table"), window_over("0"))
    failure = running.container("0").last_failure
    assert failure is not None
    assert (failure.reason, _recorded(running)) == ("no table", [1, 0])
    running.feed(check_in("r0", "a"), stopped("0", 2, reason="no table"), check_in("r0", "a"))
    running.feed(stopped("0", 3, StopCause.SIGNALLED, 143))
    assert (running.container("0").failures, _recorded(running)) == (1, [1, 0, 1])


def test_a_launch_that_fails_says_what_yarn_says(machine_with: MachineWith) -> None:
    """The story is kept."""
    machine = machine_with(launch_retry_ms=1000)
    machine.deploy({"0": "a"}, "a")
    machine.feed(ended(1, story="no such file"))
    stated = "no launcher checked in for request 1 (a): no such file"
    failure = Failure(FailureKind.NO_LAUNCHER, stated, host=Host("a"))
    assert machine.container("0").last_failure == failure


def test_a_launcher_that_cannot_have_its_package_is_tried_elsewhere(machine: Machine) -> None:
    """Charged, as that no launcher came; so one that no host can start comes to an end."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.feed(check_in("r1", "a", request=1))
    assert machine.phase("0") is P.STARTING
    decision = machine.decide(stopped("0", 1, StopCause.NO_PACKAGE))
    assert {*releases("r1"), *asks(2, "b")} <= set(decision.instructions)
    assert (machine.container("0").failures, machine.container("0").resource_id) == (1, None)
    assert ReasonKind.PACKAGELESS_RELEASED in {r.kind for r in decision.reasons}
    machine.feed(check_in("r2", "b", request=2), stopped("0", 2, StopCause.NO_PACKAGE))
    request = machine.container("0").request_id
    machine.feed(check_in("r3", "a", request=request), stopped("0", 3, StopCause.NO_PACKAGE))
    assert machine.phase("0") is P.FAILED
