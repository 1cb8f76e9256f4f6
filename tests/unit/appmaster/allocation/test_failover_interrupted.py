"""A failover that a driver's death, a new model or the end of the job comes upon; rare corners."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.allocation.protocol.events import (
    FailoverRecord,
    FailoverStep,
    JobModelPublished,
    LauncherSilent,
)
from homeport.appmaster.allocation.protocol.instructions import EndFailover, WriteStop
from homeport.job_coordinator.model.ids import ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    TAKEN_BACK,
    Machine,
    MachineWith,
    check_in,
    deployed,
    expired,
    inc,
    job,
    live,
    model,
    stopped,
    stops,
)
from tests.unit.appmaster.allocation.failover_words import FIRST, MADE_WAY, ZERO, A, B, news

P = ContainerPhase


# --- the AM, the model and the job


def interrupted(*, step: FailoverStep = FailoverStep.STANDBY) -> JobModelPublished:
    """What a driver finds that starts after the records of a failover."""
    record = FailoverRecord(1, FIRST, B, step, (FIRST,))
    found = job({"0": "b", "0-0": None, "0-1": "c"}, p0=1, **{"p0-0": 1, "p0-1": 1})
    return replace(found, failovers={ZERO: record})


def test_a_model_may_retire_the_active_in_a_failover(pair: Machine) -> None:
    """The failover is over; the standby, retired too, stops."""
    pair.feed(TAKEN_BACK)
    assert news(pair, model({"1": None}, 2)) == (
        EndFailover(ZERO),
        WriteStop(inc("0", 1), "ordered"),
    )
    assert pair.state.container(ZERO) is None
    pair.feed(MADE_WAY)
    assert [c.processor_id for c in pair.state.containers] == ["1"]


def test_an_active_that_is_given_up_fails_over_no_more(machine_with: MachineWith) -> None:
    """Its retries are used up on the standby's host; the standby runs on."""
    machine = machine_with(retry_count=0, fail_job_after_retries=False)
    deployed(machine, {"0": "a", "0-0": "b"}, "a", "b", "c")
    machine.feed(TAKEN_BACK, MADE_WAY, check_in("r1", "b"))
    assert news(machine, stopped("0", 2))[0] == EndFailover(ZERO)
    assert machine.phase("0") is P.FAILED


def test_a_driver_hears_of_a_finish_before_it_has_found_the_standby(machine: Machine) -> None:
    """The job ends when all that an earlier driver left running is found and stopped."""
    machine.feed(job({"0": "a", "0-0": "b"}, p0=1, **{"p0-0": 1}))
    assert machine.feed(stopped("0", 1, StopCause.FINISHED, 0)) == ()
    machine.feed(check_in("r1", "b", inc("0-0", 1)))
    assert machine.feed(live("a", "b")) == stops("r1", "0-0", 1)


def test_other_hosts_are_requested_one_after_the_other(pair: Machine) -> None:
    """Once it is known that no standby can be taken, that is not written with each request."""
    pair.feed(LauncherSilent(ResourceId("r1")), live("a", "c", "d"), TAKEN_BACK)
    assert pair.container("0").requested_host == "d"
    assert news(pair, expired(4)) == ()


def test_an_active_waits_for_its_standbys_reserved_launcher_if_no_host_can_be_requested(
    machine_with: MachineWith,
) -> None:
    """Then the standby starts there, and stops for the active."""
    machine = machine_with(strict_hosts=(A,))
    machine.feed(job({"0": "a", "0-0": None}), live("a", "z"))
    machine.run("0", "r0", "a", 1)
    machine.run("0-0", "r2", "z", 2)
    machine.feed(stopped("0-0", 1), live("z"), LauncherSilent(ResourceId("r0")))
    assert machine.phases == (P.QUEUED, P.ASSIGNED)
    machine.feed(check_in("r2", "z"))
    assert machine.phases == (P.FAILING_OVER, P.STOPPING)
