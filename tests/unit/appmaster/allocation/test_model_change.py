"""A new JobModel while the job runs: which stop, which wait for others, which go, which stay."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest
from immutables import Map

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import JobPhase
from homeport.appmaster.allocation.protocol.events import (
    FencedByDriver,
    FencesReported,
    JobModelPublished,
    OlderModelsWanted,
    RetiredStopped,
    SettingsChanged,
    SparesReported,
)
from homeport.appmaster.allocation.protocol.instructions import WriteStop
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    SETTINGS,
    Machine,
    MachineWith,
    allocated,
    asks,
    cancels,
    check_in,
    ended,
    inc,
    model,
    permits,
    releases,
    silent,
    stopped,
    stops,
)

ORDERED = StopCause.ORDERED


def change(
    version: int,
    processors: Mapping[str, str | None],
    raised: Mapping[str, tuple[int, int]] | None = None,
    lists: Mapping[str, tuple[Incarnation, ...]] | None = None,
    gainers: str = "",
    retired: Mapping[str, int] | None = None,
) -> JobModelPublished:
    """A publication. ``raised``: {processor: (last permitted epoch, epoch of the record)}."""
    raised = raised or {}
    return JobModelPublished(
        version,
        {ProcessorId(p): None if h is None else Host(h) for p, h in processors.items()},
        {ProcessorId(p): epoch for p, (epoch, _) in raised.items()},
        {ProcessorId(p): floor for p, (_, floor) in raised.items()},
        {ProcessorId(p): listed for p, listed in (lists or {}).items()},
        {ProcessorId(p): epoch for p, epoch in (retired or {}).items()},
        frozenset(ProcessorId(p) for p in gainers),
    )


@pytest.fixture
def running(machine: Machine) -> Machine:
    """Processors 0 on a and 1 on b run with epoch 1 in resources r0 and r1; c is free."""
    return machine.at_home({"0": "a", "1": "b"}, "c")


GROWN = change(
    2,
    {"0": "a", "1": "b", "2": "a"},
    {"0": (1, 2), "1": (1, 1)},
    {"0": (inc("0", 1),), "1": (inc("1", 1),), "2": (inc("0", 1),)},
    gainers="2",
)
"""Processor 0 loses a task to 2, which is new; 1 is not affected."""

READY = SparesReported({ProcessorId("2"): True})

SHRUNK = change(2, {"0": "a"}, {"0": (1, 2)}, {"0": (inc("0", 1), inc("1", 1))}, gainers="0")
"""Processor 1 is retired; 0 gets its tasks."""


# --- growing


@pytest.mark.parametrize(
    "cause", [StopCause.FAILED, StopCause.KILLED, StopCause.UNAVAILABLE, StopCause.LEASE_LOST]
)
def test_a_stop_that_a_model_ordered_is_never_charged(running: Machine, cause: StopCause) -> None:
    """Whatever the container died of: it was to stop."""
    running.feed(GROWN, check_in("r2", "a", request=3), READY)
    assert running.feed(stopped("0", 1, cause, 1)) == ()
    assert (running.phase("0"), running.container("0").failures) == (P.ASSIGNED, 0)


# --- evidence


def test_a_report_of_yarn_is_no_evidence(running: Machine) -> None:
    """The loser's YARN container ended: the gate stays shut without evidence of the stop."""
    running.feed(GROWN, check_in("r2", "a", request=3), READY, ended(1))
    assert running.phase("0") is P.STOPPING
    assert running.feed(check_in("r2", "a")) == ()
    running.feed(stopped("0", 1, ORDERED, 0))
    assert running.phase("0") is P.REQUESTED
    assert running.feed(check_in("r2", "a"))[:1] == permits("r2", "2", 1, (inc("0", 1),), 2)


def test_fences_are_known_of_all_lists(running: Machine) -> None:
    """Once one successor, or the driver, has fenced the former owner, no other needs to."""
    running.feed(GROWN, check_in("r2", "a", request=3), READY)
    running.feed(stopped("0", 1, StopCause.FAILED), FencedByDriver(inc("0", 1)))
    assert running.feed(check_in("r2", "a")) == permits("r2", "2", 1, (), 2)
    assert running.feed(check_in("r0", "a")) == permits("r0", "0", 3, (), 2)
    running.stale(FencedByDriver(inc("0", 1)), FencesReported(inc("2", 1), (inc("0", 1),)))


# --- shrinking


@pytest.mark.parametrize("how", ["silent", "ended"])
def test_a_retired_container_that_is_lost_is_forgotten(running: Machine, how: str) -> None:
    """It is not requested again."""
    falls = silent("r1")
    has_ended = ended(2, "r1")
    orders = running.feed(SHRUNK, falls if how == "silent" else has_ended)
    assert [i for i in orders if i in asks(3, "b")] == []
    assert running.state.container(ProcessorId("1")) is None
    assert running.records[-1] == WriteStop(inc("1", 1), "lease-lost")


def test_a_retired_container_that_waits_is_dropped_at_once(machine: Machine) -> None:
    """Whatever it waits for is taken back; an idle launcher too. What had a permit has stopped."""
    machine.deploy({"0": "a", "1": "b", "2": "c", "3": "c"}, "a", "b", "c")
    machine.run("0", "r0", "a", 1)
    machine.feed(allocated(2))
    machine.feed(check_in("r2", "c", request=3), stopped("2", 1, StopCause.SIGNALLED, 0))
    assert machine.phases == (P.RUNNING, P.ALLOCATED, P.ASSIGNED, P.REQUESTED)
    orders = machine.feed(change(2, {"0": "a"}, {"0": (1, 1)}))
    assert set(orders) == {*cancels(2, "check-in"), *cancels(4, "expiry"), *releases("r2")}
    assert machine.records[-1] == WriteStop(inc("2", 1), "ordered")
    assert [c.processor_id for c in machine.state.containers] == ["0"]


def test_a_processor_that_returns_later_goes_on_above_all_its_epochs(running: Machine) -> None:
    """It has stopped, and was forgotten; the stream has not."""
    running.feed(SHRUNK, stopped("1", 1, ORDERED, 0))
    back = change(3, {"0": "a", "1": "b"}, {"0": (1, 3), "1": (1, 3)}, {"1": (inc("1", 1),)}, "1")
    running.feed(back, check_in("r2", "b", request=3))
    assert running.state.container(ProcessorId("1")) is not None
    assert running.container("1").epoch == 4


# --- several, and other things meanwhile


def test_the_same_version_again_is_stale_and_an_older_one_a_bug(running: Machine) -> None:
    """A driver publishes upwards only."""
    running.feed(GROWN)
    running.stale(GROWN)
    with pytest.raises(InvariantViolation, match="version 1 published over version 2"):
        running.feed(model({"0": "a"}))


def test_an_early_request_is_withdrawn(running: Machine) -> None:
    """Its owner was waited for; now it is to stop, and asks when it has."""
    assert running.feed(ended(1)) == asks(3, "a")
    orders = running.feed(change(2, {"0": "a", "1": "b"}, {"0": (1, 2), "1": (1, 1)}))
    assert orders == (*stops("r0", "0", 1, keeps=True), *cancels(3, "expiry"))


def test_a_finished_one_stays_so_unless_it_gains(running: Machine) -> None:
    """What ended of itself needs no second end; another task does."""
    running.feed(stopped("0", 1, StopCause.FINISHED, 0))
    lost = change(2, {"0": "a", "1": "b"}, {"0": (1, 2), "1": (1, 1)})
    assert running.feed(lost)[:1] == releases("r0")[:0]
    assert running.phase("0") is P.FINISHED
    gained = change(3, {"0": "a", "1": "b"}, {"0": (1, 3), "1": (1, 1)}, gainers="0")
    running.feed(gained)
    assert running.phase("0") in {P.REQUESTED, P.ASSIGNED}
    running.feed(check_in("r9", "a", request=running.container("0").request_id))
    assert running.container("0").epoch == 4


@pytest.mark.parametrize(("gainers", "phase"), [("", P.FINISHED), ("0", P.ASSIGNED)])
def test_a_finish_while_it_is_stopped_counts_unless_it_gains(
    running: Machine, gainers: str, phase: P
) -> None:
    """It had finished what it had."""
    running.feed(change(2, {"0": "a", "1": "b"}, {"0": (1, 2), "1": (1, 1)}, gainers=gainers))
    running.feed(stopped("0", 1, StopCause.FINISHED, 0))
    assert running.phase("0") is phase


# --- a driver that starts in mid-change

RESTARTED = change(
    2,
    {"0": "a", "2": "b"},
    {"0": (1, 2)},
    {"0": (inc("0", 1),), "2": (inc("0", 1), inc("1", 1))},
    retired={"1": 1},
)


def test_a_retired_container_that_has_stopped_is_not_waited_for(machine: Machine) -> None:
    """Its launcher or another process says so; a second report is stale, as is a stranger's."""
    machine.feed(RESTARTED)
    assert machine.feed(stopped("1", 1, ORDERED, 0)) == ()
    assert not machine.state.retired
    assert machine.decide(RetiredStopped(inc("1", 1), "ordered")).state.stale_events == 1
    assert machine.records == (WriteStop(inc("1", 1), "ordered"),) * 2
    machine.stale(stopped("1", 1, ORDERED, 0))


def test_a_retired_container_without_a_lease_is_not_waited_for(machine: Machine) -> None:
    """The keeper says so, as the driver has not found its launcher."""
    machine.feed(RESTARTED)
    assert machine.feed(RetiredStopped(inc("1", 1), "lease-lost")) == ()
    assert not machine.state.retired


# --- settings


def test_settings_change_while_the_job_runs(running: Machine) -> None:
    """What is decided from now on is decided by them; the same again is stale."""
    running.feed(SettingsChanged(replace(SETTINGS, retry_count=0)))
    running.stale(SettingsChanged(replace(SETTINGS, retry_count=0)))
    running.feed(stopped("0", 1))
    assert running.state.phase is JobPhase.ENDING


def test_a_permit_may_name_the_model_from_before(machine: Machine) -> None:
    """Where the shell wants that; a new version ends it, unless its event names it again."""
    machine.at_home({"0": "a"}, "b")
    before = Map({ProcessorId("0"): 1})
    machine.feed(replace(model({"0": "a"}, version=2, p0=1), older=before))
    machine.feed(stopped("0", 1, StopCause.ORDERED))
    ran = [inc("0", epoch) for epoch in (1, 2, 3)]
    permit = permits("r0", "0", 2, (*ran[:1],), version=1)
    assert machine.feed(check_in("r0", "a")) == permit
    machine.feed(OlderModelsWanted(Map()))
    machine.feed(stopped("0", 2, StopCause.ORDERED))
    permit = permits("r0", "0", 3, (*ran[:2],), version=2)
    assert machine.feed(check_in("r0", "a")) == permit
    machine.feed(OlderModelsWanted(before), model({"0": "a"}, version=3, p0=3))
    machine.feed(stopped("0", 3, StopCause.ORDERED))
    permit = permits("r0", "0", 4, (*ran,), version=3)
    assert machine.feed(check_in("r0", "a")) == permit


def test_what_rests_after_failures_is_tried_again_with_a_new_model(
    machine_with: MachineWith,
) -> None:
    """It forgives them, and may be what mends the container."""
    machine = machine_with(last_retry_delay_ms=60_000)
    machine.at_home({"0": "a"}, "b")
    machine.feed(stopped("0", 1), check_in("r0", "a"), stopped("0", 2))
    assert machine.phase("0") is P.BACKING_OFF
    machine.feed(model({"0": "a"}, version=2, p0=2))
    assert machine.phase("0") is P.REQUESTED
    assert machine.container("0").failures == 0
