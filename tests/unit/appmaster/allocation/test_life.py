"""Starts and stops by cause, the retry keys, what a successor must fence, the job's end."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import (
    FencedByDriver,
    FencesReported,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import (
    EndJob,
    Instruction,
    JobResult,
    WriteJobEnd,
    order_for,
)
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    allocated,
    asks,
    cancels,
    check_in,
    disarms,
    ended,
    expired,
    forgets_failures,
    inc,
    live,
    model,
    never_came,
    permits,
    records_epoch,
    releases,
    remembers_failure,
    silent,
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
    return machine.at_home({"0": "a", "1": "b"}, "c")


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
    machine.at_home({"0": "a"})
    for epoch in range(1, 5):
        assert machine.feed(stopped("0", epoch, cause, 143)) == ()
        again(machine, "0", "r0", "a")
    assert machine.container("0").failures == 0


def test_a_launcher_whose_end_yarn_has_reported_needs_no_order_to_exit(machine: Machine) -> None:
    """Its child was cut off, and is waited for, when the launcher is gone."""
    machine.at_home({"0": "a"}, "b")
    machine.feed(ended(1, story="gone"))
    stated = machine.feed(stopped("0", 1, StopCause.CUT_OFF, 73))
    assert not [i for i in stated if i in releases("r0")]
    assert machine.container("0").requested_host == "b"


def test_a_late_report_that_it_finished_counts_before_a_successor_is_permitted(
    running: Machine,
) -> None:
    """Its launcher fell silent after the end of its tasks; after a permit it would be stale."""
    running.feed(silent("r0"))
    assert running.feed(stopped("0", 1, StopCause.FINISHED, 0)) == cancels(3, "expiry")
    assert running.phase("0") is P.FINISHED
    running.feed(silent("r1"), check_in("r3", "b", request=4))
    running.stale(stopped("1", 1, StopCause.FINISHED, 0))


# --- resources that are gone


def test_skeins_report_is_no_evidence_of_a_stop(running: Machine) -> None:
    """Safety P1: the container's end counts when its launcher has been silent, too."""
    assert running.feed(ended(1)) == asks(3, "a")
    assert running.phase("0") is P.RUNNING
    running.stale(ended(1), ended(77), ended(resource="r77"), silent("r77"), ended())
    with_evidence = ended(1, "r0")
    assert running.feed(with_evidence) == remembers_failure("0")
    assert running.phase("0") is P.REQUESTED


def test_a_launcher_without_a_request_is_lost_without_a_cancellation(machine: Machine) -> None:
    """An earlier driver requested it without a number; a lease is not charged (safety C6)."""
    machine.deploy({"0": "a"}, "a")
    machine.feed(check_in("r0", "a"))
    assert machine.feed(silent("r0")) == asks(2, "a")
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
    machine.at_home({"0": "a", "1": "b"})
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
        last = machine.feed(ended(request))
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
    machine.feed(check_in("r0", "a", request=1), silent("r0"))
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


# --- the order to a launcher depends on its report and on the containers that need it


def test_before_the_model_a_launcher_waits(machine: Machine) -> None:
    """No order, and nothing remembered: it will ask again."""
    machine.feed(live("a"))
    assert machine.feed(check_in("r1", "a"), check_in("r1", "a", running=inc("0", 1))) == ()
    assert not machine.state.resources


def test_a_permit_is_repeated_the_same_until_the_child_runs(machine: Machine) -> None:
    """A lost answer heals, and no epoch is spent on it (safety C4)."""
    machine.deploy({"0": "a"}, "a")
    machine.feed(check_in("r1", "a", request=1))
    for _ in range(2):
        decision = machine.decide(check_in("r1", "a", request=1))
        assert (decision.records, decision.instructions) == ((), permits("r1", "0", 1))
    assert machine.feed(check_in("r1", "a", running=inc("0", 1))) == ()


def test_a_cancelled_request_is_forgotten_with_its_container(machine: Machine) -> None:
    """Its end is reported once; after that nothing of the request is kept."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.feed(expired(1))
    assert list(machine.state.cancelled) == [1]
    machine.feed(ended(1))
    assert not machine.state.cancelled
    machine.stale(ended(1))


def test_a_child_that_no_launcher_should_run_is_stopped(machine: Machine) -> None:
    """Of a foreign processor, an old epoch, or beside the one that is permitted."""
    machine.deploy({"0": "a"}, "a")
    assert machine.feed(check_in("rx", "a", running=inc("9", 1))) == stops("rx", "9", 1)
    machine.run("0", "r1", "a", 1)
    assert machine.feed(check_in("rx", "a", running=inc("0", 1))) == stops("rx", "0", 1)
    assert machine.feed(check_in("r1", "a", running=inc("0", 7))) == stops("r1", "0", 7)
    assert [r.resource_id for r in machine.state.resources] == ["r1"]
    assert machine.state.stale_events == 3


def test_a_check_in_sent_before_the_stop_was_reported_starts_nothing_twice(
    machine: Machine,
) -> None:
    """The launcher gets an order to stop what it no longer runs, and reports so; that is stale."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(stopped("0", 1))
    assert machine.feed(check_in("r1", "a", running=inc("0", 1))) == stops("r1", "0", 1)
    machine.stale(stopped("0", 1, StopCause.ORDERED, 0))
    assert machine.feed(check_in("r1", "a"))[-1:] == permits("r1", "0", 2, (inc("0", 1),))


def test_a_launcher_that_was_given_up_and_comes_back_is_not_adopted(machine: Machine) -> None:
    """Its lease is over, and YARN has the order to end it: its child is stopped, then it exits."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(silent("r1"))
    back = check_in("r1", "a", running=inc("0", 1), request=1)
    assert machine.feed(back) == stops("r1", "0", 1)
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert machine.feed(check_in("r1", "a", request=1)) == releases("r1")
    assert machine.phase("0") is P.REQUESTED


def test_it_is_not_adopted_while_a_later_epoch_waits(machine: Machine) -> None:
    """The processor runs nowhere just now, but an epoch came after: the old one must not go on."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(silent("r1"))
    machine.run("0", "r2", "a", 2)
    machine.feed(stopped("0", 2))
    assert machine.phase("0") is P.ASSIGNED
    assert machine.feed(check_in("r1", "a", running=inc("0", 1))) == stops("r1", "0", 1)


def test_at_the_end_a_launcher_without_a_child_must_exit(machine: Machine) -> None:
    """While the job ends, and after it, also one that was not known."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(ShutdownRequested())
    assert machine.feed(check_in("r2", "a")) == releases("r2")
    assert machine.feed(check_in("r2", "a")) == releases("r2")
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert machine.feed(check_in("r1", "a")) == releases("r1")
    assert machine.feed(check_in("r3", "a")) == releases("r3")


def test_the_answer_to_a_check_in_is_the_last_order_for_that_launcher() -> None:
    """Instructions for others, and those that are no orders, are not."""
    instructions = (*asks(1, "a"), *permits("r1", "0", 1), *releases("r2"), *stops("r1", "0", 1))
    assert order_for(instructions, ResourceId("r1")) == stops("r1", "0", 1)[0]
    assert order_for(instructions, ResourceId("r3")) is None


# --- home is requested as soon as YARN reports that a container ended there; the permit waits


EVIDENCE = ended(1, "r0")


@pytest.fixture
def reported(machine: Machine) -> Machine:
    """Processor 0 runs on ``a`` for all we can prove, and YARN has reported its container's end."""
    machine.at_home({"0": "a"}, "b")
    assert machine.feed(ended(1)) == asks(2, "a")
    assert machine.phase("0") is P.RUNNING
    machine.stale(ended(1))
    return machine


def test_the_launcher_is_there_when_the_evidence_comes(reported: Machine) -> None:
    """It waits, and is permitted with its first check-in afterwards."""
    reported.feed(allocated(2))
    assert reported.feed(check_in("r1", "a", request=2)) == disarms(2, "check-in")
    assert reported.feed(check_in("r1", "a", request=2)) == ()
    assert reported.phase("0") is P.RUNNING
    reported.feed(EVIDENCE)
    assert reported.phase("0") is P.ASSIGNED
    permit = reported.feed(check_in("r1", "a", request=2))
    assert permit == permits("r1", "0", 2, (inc("0", 1),))


@pytest.mark.parametrize("is_granted", [True, False])
def test_a_pending_early_request_is_taken_over(reported: Machine, *, is_granted: bool) -> None:
    """The evidence comes first: not asked twice, and its timer goes on."""
    if is_granted:
        reported.feed(allocated(2))
    reported.feed(EVIDENCE)
    assert reported.phase("0") is (P.ALLOCATED if is_granted else P.REQUESTED)
    assert reported.container("0").request_id == 2
    permit = reported.feed(check_in("r1", "a", request=2))
    assert permit[-1:] == permits("r1", "0", 2, (inc("0", 1),))


@pytest.mark.parametrize("is_granted", [True, False])
def test_without_room_it_is_requested_once_and_nothing_is_charged(
    reported: Machine, *, is_granted: bool
) -> None:
    """The evidence has it placed as ever."""
    if is_granted:
        reported.feed(allocated(2))
    assert reported.feed(never_came(2) if is_granted else expired(2)) == cancels(2)
    assert reported.container("0").failures == 0
    reported.feed(EVIDENCE)
    assert reported.container("0").request_id == 3


def test_a_launcher_that_lives_takes_it_back(reported: Machine) -> None:
    """YARN erred: the request is withdrawn."""
    assert reported.feed(check_in("r0", "a", inc("0", 1))) == cancels(2, "expiry")
    assert not reported.state.early


def test_a_report_that_comes_late_does_not_wait_for_a_launcher_that_is_gone(
    reported: Machine,
) -> None:
    """The launcher's word is evidence; YARN's that it is gone as well."""
    reported.feed(stopped("0", 1))
    assert reported.phase("0") is P.REQUESTED
    assert reported.container("0").request_id == 2
    reported.stale(silent("r0"))


def test_silence_after_an_end_that_was_reported_says_nothing_of_the_host(reported: Machine) -> None:
    """Safety P2: a NodeManager that reports is alive."""
    reported.feed(silent("r0"))
    assert not reported.state.exclusions
    assert reported.container("0").requested_host == "a"


def test_a_launcher_that_yarn_has_ended_is_given_to_no_container(machine: Machine) -> None:
    """Its processor finished; another that waits for the same home does not wait for it."""
    machine.deploy({"0": "a", "1": "a"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.feed(ended(1), stopped("0", 1, StopCause.FINISHED, 0))
    machine.feed(expired(2))
    assert (machine.phase("1"), machine.container("1").requested_host) == (P.REQUESTED, "b")


# --- what a step leaves for the next driver besides permits: failure counts and the job's end


def test_an_end_is_recorded_once(machine: Machine) -> None:
    """When it is decided; a later wish for another end leaves nothing."""
    machine.at_home({"0": "a"})
    decided = machine.decide(ShutdownRequested(diagnostics="why")).records
    assert decided == (WriteJobEnd(JobResult.KILLED, "why"),)
    machine.stale(ShutdownRequested("FAILED"))
