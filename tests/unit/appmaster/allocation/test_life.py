"""Starts and stops by cause, the retry keys, what a successor must fence, the job's end."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import (
    FencedByDriver,
    FencesReported,
    LauncherSilent,
    ResourceEnded,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import EndJob, Instruction, JobResult
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    asks,
    cancels,
    check_in,
    forgets_failures,
    inc,
    model,
    permits,
    records_epoch,
    releases,
    remembers_failure,
    started,
    stopped,
    stops,
)


def ends(result: JobResult, diagnostics: str) -> tuple[Instruction, ...]:
    """The end of the job."""
    return (EndJob(result, diagnostics),)


SUCCEEDED = ends(JobResult.SUCCEEDED, "every processor finished")
KILLED = ends(JobResult.KILLED, "shut down on request")


@pytest.fixture
def running(machine: Machine) -> Machine:
    """Processors 0 on a and 1 on b run with epoch 1 in resources r0 and r1."""
    machine.deploy({"0": "a", "1": "b"}, "a", "b", "c")
    machine.run("0", "r0", "a", 1)
    machine.run("1", "r1", "b", 2)
    return machine


def again(machine: Machine, processor: str, resource: str, host: str) -> None:
    """The launcher polls, is permitted to run the next incarnation, which starts."""
    machine.feed(check_in(resource, host))
    machine.feed(started(processor, machine.container(processor).epoch))


# --- starting


def test_a_start_of_another_incarnation_is_stale(running: Machine) -> None:
    """Unknown processor, other epoch, or no incarnation at all."""
    running.stale(started("9", 1), started("0", 2), started("0", 0))


def test_the_model_is_published_once(running: Machine) -> None:
    """Again: stale. An older version for a running job: a bug of the shell's."""
    running.stale(model({"0": "a", "1": "b"}))
    with pytest.raises(InvariantViolation, match="version 0 published over version 1"):
        running.feed(model({"0": "a"}, version=0))


# --- stopping, by cause


@pytest.mark.parametrize("cause", [StopCause.FAILED, StopCause.KILLED, StopCause.DISK_FULL])
def test_a_failure_is_charged_and_the_same_launcher_runs_the_next(
    running: Machine, cause: StopCause
) -> None:
    """At once on its next poll; no request goes to YARN."""
    assert running.feed(stopped("0", 1, cause, 137)) == remembers_failure("0")
    assert running.phase("0") is P.ASSIGNED
    assert running.feed(check_in("r0", "a")) == permits("r0", "0", 2, (inc("0", 1),))
    assert running.container("0").failures == 1


@pytest.mark.parametrize("cause", [StopCause.ORDERED, StopCause.SIGNALLED, StopCause.LEASE_LOST])
def test_a_stop_that_is_no_failure_is_not_charged(
    machine_with: MachineWith, cause: StopCause
) -> None:
    """A stray SIGTERM, a lost lease or an old order never retires a processor, retries or not."""
    machine = machine_with(retry_count=0)
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    for epoch in range(1, 5):
        assert machine.feed(stopped("0", epoch, cause, 143)) == ()
        again(machine, "0", "r0", "a")
    assert machine.container("0").failures == 0


def test_a_launcher_whose_end_yarn_has_reported_needs_no_order_to_exit(machine: Machine) -> None:
    """Its child was cut off, and is waited for, when the launcher is gone."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.feed(ResourceEnded(RequestId(1), story="gone"))
    stated = machine.feed(stopped("0", 1, StopCause.CUT_OFF, 73))
    assert not [i for i in stated if i in releases("r0")]
    assert machine.container("0").requested_host == "b"


def test_a_late_report_that_it_finished_counts_before_a_successor_is_permitted(
    running: Machine,
) -> None:
    """Its launcher fell silent after the end of its tasks; after a permit it would be stale."""
    running.feed(LauncherSilent(ResourceId("r0")))
    assert running.feed(stopped("0", 1, StopCause.FINISHED, 0)) == cancels(3, "expiry")
    assert running.phase("0") is P.FINISHED
    running.feed(LauncherSilent(ResourceId("r1")), check_in("r3", "b", request=4))
    running.stale(stopped("1", 1, StopCause.FINISHED, 0))


# --- resources that are gone


def test_skeins_report_is_no_evidence_of_a_stop(running: Machine) -> None:
    """Safety P1: the container's end counts when its launcher has been silent, too."""
    assert running.feed(ResourceEnded(request_id=RequestId(1))) == asks(3, "a")
    assert running.phase("0") is P.RUNNING
    running.stale(
        ResourceEnded(request_id=RequestId(1)),
        ResourceEnded(request_id=RequestId(77)),
        ResourceEnded(resource_id=ResourceId("r77")),
        LauncherSilent(ResourceId("r77")),
        ResourceEnded(),
    )
    with_evidence = ResourceEnded(RequestId(1), ResourceId("r0"))
    assert running.feed(with_evidence) == remembers_failure("0")
    assert running.phase("0") is P.REQUESTED


def test_a_launcher_without_a_request_is_lost_without_a_cancellation(machine: Machine) -> None:
    """An earlier driver requested it without a number; a lease is not charged (safety C6)."""
    machine.deploy({"0": "a"}, "a")
    machine.feed(check_in("r0", "a"))
    assert machine.feed(LauncherSilent(ResourceId("r0"))) == asks(2, "a")
    assert machine.container("0").failures == 0


# --- retry keys


def test_retries_are_counted_within_the_window_and_then_the_job_fails(running: Machine) -> None:
    """retry.count=2: two forgiven, the third ends the job when the others have stopped."""
    for epoch in (1, 2):
        assert running.feed(stopped("0", epoch)) == remembers_failure("0")
        again(running, "0", "r0", "a")
    assert running.feed(stopped("0", 3, StopCause.KILLED, -9)) == (
        *forgets_failures("0"),
        *stops("r1", "1", 1),
        *releases("r0"),
    )
    assert running.phases == (P.FAILED, P.STOPPING)
    story = (
        "processor 0 failed 3 times, cluster-manager.container.retry.count is 2; "
        "0@3 on a: killed, exit code -9"
    )
    assert running.feed(stopped("1", 1, StopCause.ORDERED, 143)) == (
        *releases("r1"),
        *ends(JobResult.FAILED, story),
    )


def test_a_finish_forgets_the_failures(running: Machine) -> None:
    """No timer is left for a processor that is done."""
    running.feed(stopped("0", 1))
    again(running, "0", "r0", "a")
    finish = running.feed(stopped("0", 2, StopCause.FINISHED, 0))
    assert finish == (*forgets_failures("0"), *releases("r0"))


def test_without_fail_job_the_others_go_on_and_the_job_fails_at_its_end(
    machine_with: MachineWith,
) -> None:
    """fail.job.after.retries=false: degraded, and FAILED when all others have finished."""
    machine = machine_with(retry_count=0, fail_job_after_retries=False)
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.run("1", "r1", "b", 2)
    assert machine.feed(stopped("0", 1)) == releases("r0")
    assert machine.phases == (P.FAILED, P.RUNNING)
    machine.stale(stopped("0", 1))
    end = machine.feed(stopped("1", 1, StopCause.FINISHED, 0))
    assert end[:-1] == releases("r1")
    assert isinstance(end[-1], EndJob)
    assert end[-1].result is JobResult.FAILED
    assert end[-1].diagnostics.startswith("processor 0 failed 1 times")


def test_launches_that_never_succeed_fail_the_job_too(machine: Machine) -> None:
    """Samza retries them without limit (17.8); here they count."""
    machine.deploy({"0": None}, "a")
    for request in (1, 2, 3):
        last = machine.feed(ResourceEnded(request_id=RequestId(request)))
    assert isinstance(last[-1], EndJob)
    assert "no launcher checked in for request 3 (any host)" in last[-1].diagnostics


# --- what a successor must fence


def test_a_list_stays_small_however_long_a_container_fails(machine_with: MachineWith) -> None:
    """The driver fences each that was waited for, before or after the next permit (safety I1)."""
    machine = machine_with(retry_count=-1)
    machine.deploy({"0": "a"}, "a")
    machine.feed(check_in("r0", "a", request=1))
    for epoch in range(1, 40):
        machine.feed(stopped("0", epoch), check_in("r0", "a"), FencedByDriver(inc("0", epoch)))
    assert machine.permits[-1].fence == (inc("0", 39),)
    machine.feed(stopped("0", 40), FencedByDriver(inc("0", 40)), check_in("r0", "a"))
    assert machine.records[-1] == records_epoch("0", 41)


def test_an_incarnation_without_evidence_of_a_stop_stays_listed_until_it_is_reported(
    machine_with: MachineWith,
) -> None:
    """It may wake up and begin again after the driver's fence: only a later one's report drops it.

    A report drops those it names only, and is never too late.
    """
    machine = machine_with(retry_count=-1)
    machine.deploy({"0": "a"}, "a")
    machine.feed(check_in("r0", "a", request=1), LauncherSilent(ResourceId("r0")))
    machine.stale(FencedByDriver(inc("0", 1)))
    machine.feed(check_in("r1", "a", request=2))
    for epoch in range(2, 40):
        machine.feed(stopped("0", epoch), FencedByDriver(inc("0", epoch)), check_in("r1", "a"))
        assert machine.permits[-1].fence == (inc("0", 1),)
    machine.feed(FencesReported(inc("0", 39), (inc("0", 1),)))
    machine.stale(FencesReported(inc("0", 39), (inc("0", 1),)))
    machine.stale(FencesReported(inc("9", 1), (inc("0", 40),)))
    machine.feed(stopped("0", 40), check_in("r1", "a"))
    assert machine.permits[-1].fence == (inc("0", 40),)


# --- the end of the job


def test_a_job_without_processors_has_succeeded(machine: Machine) -> None:
    """There is nothing to wait for."""
    assert machine.feed(model({})) == SUCCEEDED


def test_a_shutdown_stops_what_runs_and_cancels_what_waits(machine: Machine) -> None:
    """Every phase: queued, requested, assigned, starting, running; then KILLED."""
    machine.deploy({"0": "a", "1": "b", "2": "c", "3": "d", "4": "d"}, "a", "b", "c", "d")
    machine.run("0", "r0", "a", 1)
    machine.feed(check_in("r1", "b", request=2))
    machine.run("2", "r2", "c", 3)
    machine.feed(stopped("2", 1), check_in("r9", "z"))
    assert machine.phases == (P.RUNNING, P.STARTING, P.ASSIGNED, P.REQUESTED, P.QUEUED)
    assert machine.feed(ShutdownRequested()) == (
        *forgets_failures("2"),
        *cancels(4, "expiry"),
        *stops("r0", "0", 1),
        *stops("r1", "1", 1),
        *releases("r2", "r9"),
    )
    assert machine.feed(started("1", 1)) == ()
    assert machine.phases == (P.STOPPING, P.STOPPING, P.STOPPED, P.STOPPED, P.STOPPED)
    machine.stale(ShutdownRequested())
    assert machine.feed(stopped("0", 1, StopCause.ORDERED, 143)) == releases("r0")
    end = machine.feed(stopped("1", 1, StopCause.ORDERED, 143))
    assert end == (*releases("r1"), *KILLED)


def test_the_order_to_stop_is_repeated_at_each_check_in(running: Machine) -> None:
    """With the child or without: a launcher that does not run it reports that it never will."""
    running.feed(ShutdownRequested())
    assert running.feed(check_in("r0", "a", running=inc("0", 1))) == stops("r0", "0", 1)
    assert running.feed(check_in("r0", "a")) == stops("r0", "0", 1)
