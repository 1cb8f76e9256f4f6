"""A failover that a driver's death, a new model or the end of the job comes upon; rare corners."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation.job_state.state import ContainerPhase, Failover
from homeport.appmaster.allocation.protocol.events import (
    FailoverRecord,
    FailoverStep,
    JobModelPublished,
    LauncherSilent,
    ShutdownRequested,
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
from tests.unit.appmaster.allocation.failover_words import (
    FIRST,
    MADE_WAY,
    SECOND,
    ZERO,
    A,
    B,
    C,
    chooses,
    news,
    waits,
)

P = ContainerPhase


# --- the AM, the model and the job


def interrupted(*, step: FailoverStep = FailoverStep.STANDBY) -> JobModelPublished:
    """What a driver finds that starts after the records of a failover."""
    record = FailoverRecord(1, FIRST, B, step, (FIRST,))
    found = job({"0": "b", "0-0": None, "0-1": "c"}, p0=1, **{"p0-0": 1, "p0-1": 1})
    return replace(found, failovers={ZERO: record})


def test_a_driver_that_starts_after_the_records_stops_the_standby(machine: Machine) -> None:
    """The standby runs: no new record, the stop is ordered (again), and the failover goes on."""
    machine.feed(interrupted(), check_in("r1", "b", inc("0-0", 1)))
    machine.feed(check_in("r2", "c", inc("0-1", 1)))
    decision = machine.decide(live("b", "c", "d"))
    assert decision.records == ()
    assert decision.instructions == (*stops("r1", "0-0", 1), *waits())
    machine.feed(MADE_WAY)
    assert machine.container("0").resource_id == "r1"


def test_a_driver_that_starts_when_the_standby_has_stopped_asks_for_its_host(
    machine: Machine,
) -> None:
    """Its containers are gone with the attempt before: home is the standby's host by now."""
    machine.feed(interrupted(), live("b", "c", "d"))
    assert [machine.container(p).requested_host for p in ("0", "0-0", "0-1")] == ["b", "d", "c"]
    assert news(machine, expired(1)) == chooses(SECOND, C, FIRST, step=FailoverStep.STANDBY_HOST)


def test_a_driver_that_starts_when_the_active_has_started_ends_the_failover(
    machine: Machine,
) -> None:
    """It is found running there."""
    machine.feed(replace(interrupted(), epochs={ZERO: 2, FIRST: 1}))
    assert news(machine, check_in("r1", "b", inc("0", 2))) == (EndFailover(ZERO),)


def test_a_model_may_change_in_a_failover(pair: Machine) -> None:
    """The standby is retired while it stops: its launcher is the active's all the same."""
    pair.feed(TAKEN_BACK, job({"0": "b"}, 2, p0=1))
    pair.feed(MADE_WAY)
    assert pair.state.container(FIRST) is None
    assert pair.container("0").resource_id == "r1"


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


def test_a_job_may_end_in_a_failover(pair: Machine) -> None:
    """Nothing is waited for but the stop; no failover is left in the stream."""
    pair.feed(TAKEN_BACK)
    assert news(pair, ShutdownRequested())[0] == EndFailover(ZERO)
    assert pair.phases == (P.STOPPED, P.STOPPING)
    pair.feed(MADE_WAY)
    assert pair.phases == (P.STOPPED, P.STOPPED)


def test_an_active_that_is_given_up_fails_over_no_more(machine_with: MachineWith) -> None:
    """Its retries are used up on the standby's host; the standby runs on."""
    machine = machine_with(retry_count=0, fail_job_after_retries=False)
    deployed(machine, {"0": "a", "0-0": "b"}, "a", "b", "c")
    machine.feed(TAKEN_BACK, MADE_WAY, check_in("r1", "b"))
    assert news(machine, stopped("0", 2))[0] == EndFailover(ZERO)
    assert machine.phase("0") is P.FAILED


def test_an_active_whose_finish_is_reported_late_fails_over_no_more(pair: Machine) -> None:
    """Its launcher said so to the AM after the cluster took it back."""
    pair.feed(TAKEN_BACK)
    assert news(pair, stopped("0", 1, StopCause.FINISHED, 0))[0] == EndFailover(ZERO)


def test_a_driver_hears_of_a_finish_before_it_has_found_the_standby(machine: Machine) -> None:
    """The job ends when all that an earlier driver left running is found and stopped."""
    machine.feed(job({"0": "a", "0-0": "b"}, p0=1, **{"p0-0": 1}))
    assert machine.feed(stopped("0", 1, StopCause.FINISHED, 0)) == ()
    machine.feed(check_in("r1", "b", inc("0-0", 1)))
    assert machine.feed(live("a", "b")) == stops("r1", "0-0", 1)


def test_a_choice_that_is_stopping_already_gets_no_second_order(machine: Machine) -> None:
    """A model has overtaken the standby: its stop is waited for as that of any."""
    machine.feed(replace(interrupted(), floors={FIRST: 2}))
    machine.feed(check_in("r1", "b", inc("0-0", 1)), live("b", "c"))
    assert machine.phases[:2] == (P.FAILING_OVER, P.STOPPING)


def test_a_standbys_last_host_that_cannot_be_requested_by_name_is_no_choice(
    machine_with: MachineWith,
) -> None:
    """It joined after the submission, and no container of the job runs there."""
    machine = machine_with(strict_hosts=(A, C))
    machine.feed(job({"0": "a", "0-0": "z"}, p0=1, **{"p0-0": 1}), live("c", "z"))
    assert machine.container("0").failover == Failover(FailoverStep.OTHER_HOST)
    assert machine.container("0").requested_host == "c"


def test_other_hosts_are_requested_one_after_the_other(pair: Machine) -> None:
    """Once it is known that no standby can be taken, that is not written with each request."""
    pair.feed(LauncherSilent(ResourceId("r1")), live("a", "c", "d"), TAKEN_BACK)
    assert pair.container("0").requested_host == "d"
    assert news(pair, expired(4)) == ()


def test_an_active_gives_up_its_request_for_a_host_where_a_standby_is_found(
    machine: Machine,
) -> None:
    """Its message was long on its way: the active takes its place as of any that runs at home."""
    machine.feed(job({"0": "b", "0-0": None}, p0=1, **{"p0-0": 1}), live("b", "c"))
    assert machine.container("0").requested_host == "b"
    assert news(machine, check_in("r1", "b", inc("0-0", 1))) == chooses(FIRST, B)


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
