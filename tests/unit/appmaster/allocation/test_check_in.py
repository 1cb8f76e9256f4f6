"""The order to a launcher depends on its report and on the containers that need it."""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import (
    LauncherSilent,
    ResourceEnded,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import order_for
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    allocated,
    asks,
    cancels,
    check_in,
    disarms,
    expired,
    inc,
    live,
    model,
    permits,
    records_epoch,
    releases,
    started,
    stopped,
    stops,
)


def test_before_the_model_a_launcher_waits(machine: Machine) -> None:
    """No order, and nothing remembered: it will ask again."""
    machine.feed(live("a"))
    assert machine.feed(check_in("r1", "a"), check_in("r1", "a", running=inc("0", 1))) == ()
    assert not machine.state.resources


def test_a_check_in_is_the_grant(machine: Machine) -> None:
    """The record of the epoch first, then the permit that names it; the timers are off."""
    machine.deploy({"0": "a"}, "a")
    machine.feed(allocated(1))
    decision = machine.decide(check_in("r1", "a", request=1))
    assert decision.records == (records_epoch("0", 1),)
    assert decision.instructions == (*disarms(1, "check-in"), *permits("r1", "0", 1))
    assert machine.phase("0") is P.STARTING


def test_a_check_in_may_come_before_skein_says_running(machine: Machine) -> None:
    """The expiry is disarmed by it; the late word of Skein is stale."""
    machine.deploy({"0": "a"}, "a")
    granted = machine.feed(check_in("r1", "a", request=1))
    assert granted == (*disarms(1, "expiry"), *permits("r1", "0", 1))
    machine.stale(allocated(1))


def test_a_permit_is_repeated_the_same_until_the_child_runs(machine: Machine) -> None:
    """A lost answer heals, and no epoch is spent on it (safety C4)."""
    machine.deploy({"0": "a"}, "a")
    machine.feed(check_in("r1", "a", request=1))
    for _ in range(2):
        decision = machine.decide(check_in("r1", "a", request=1))
        assert (decision.records, decision.instructions) == ((), permits("r1", "0", 1))
    assert machine.feed(check_in("r1", "a", running=inc("0", 1))) == ()


def test_a_launcher_that_has_lost_its_started_child_must_run_it_again(machine: Machine) -> None:
    """It answers ``stopped``, as it has run this epoch: a lost report of the stop heals."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    assert machine.feed(check_in("r1", "a", request=1)) == permits("r1", "0", 1)
    assert machine.phase("0") is P.RUNNING


def test_a_grant_goes_to_the_processor_that_is_at_home_there(machine: Machine) -> None:
    """By reported host, not by request: the one whose request it was asks again."""
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.feed(expired(1))  # 0 could not go home; b is requested for 1, so 0 waits for its turn
    assert machine.container("0").requested_host == "b"
    machine.feed(allocated(2))  # now 0 asks for b with request 3
    taken = machine.feed(check_in("r3", "b", request=3))
    assert taken == (
        *disarms(3, "expiry"),
        *cancels(2, "check-in"),
        *permits("r3", "1", 1),
        *asks(4, "b"),
    )


def test_of_containers_at_home_there_the_one_with_the_request_comes_first(machine: Machine) -> None:
    """Else the first by id."""
    machine.deploy({"0": "a", "1": "a"}, "a")
    machine.feed(allocated(1))
    assert machine.feed(check_in("r2", "a", request=2))[-1:] == permits("r2", "1", 1)
    assert machine.feed(check_in("r9", "a"))[-1:] == permits("r9", "0", 1)


def test_a_launcher_of_a_cancelled_request_must_exit(machine: Machine) -> None:
    """It checked in while Skein had the order to end it: a permit would be lost with it.

    The same holds if the request expired, if another launcher served its container, or if the
    launcher was given up as silent. Each check-in gets this order until the end of its container is
    reported.
    """
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.feed(expired(1), allocated(2))
    decision = machine.decide(check_in("late", "c", request=1))
    assert decision.instructions == releases("late")
    assert [r.kind for r in decision.reasons] == [ReasonKind.CANCELLED_RELEASED]
    assert machine.feed(check_in("late", "c", request=1)) == releases("late")
    assert machine.container("0").requested_host == "b"
    machine.feed(check_in("r9", "b"))  # takes over what 1 has asked for
    assert machine.feed(check_in("r2", "b", request=2)) == releases("r2")
    machine.feed(LauncherSilent(ResourceId("r2")))
    assert machine.feed(check_in("r2", "b", request=2)) == releases("r2")
    assert not machine.state.cancelled


def test_a_cancelled_request_is_forgotten_with_its_container(machine: Machine) -> None:
    """Its end is reported once; after that nothing of the request is kept."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.feed(expired(1))
    assert list(machine.state.cancelled) == [1]
    machine.feed(ResourceEnded(RequestId(1)))
    assert not machine.state.cancelled
    machine.stale(ResourceEnded(RequestId(1)))


def test_a_queued_container_is_served_before_one_with_a_request(machine: Machine) -> None:
    """It has nothing to cancel, and has waited without a chance of its own."""
    machine.deploy({"0": None, "1": None}, "a")
    assert machine.phases == (P.REQUESTED, P.QUEUED)
    assert machine.feed(check_in("r9", "z"))[-1:] == permits("r9", "1", 1)


def test_a_launcher_that_reports_another_host_serves_its_request(machine: Machine) -> None:
    """Where no container is at home: the one whose request it was."""
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.feed(check_in("r2", "z", request=2))
    assert machine.phases == (P.REQUESTED, P.STARTING)


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


def test_a_child_of_the_current_epoch_is_adopted_by_a_new_driver(machine: Machine) -> None:
    """Rather than a second one started: its request is cancelled, its host is home."""
    assert machine.feed(live("a", "b"), model({"0": "a"}, p0=3)) == asks(1, "a")
    assert machine.feed(check_in("r7", "b", running=inc("0", 3))) == cancels(1, "expiry")
    container = machine.container("0")
    assert (container.phase, container.epoch, container.home) == (P.RUNNING, 3, "b")
    assert machine.records == ()
    machine.feed(started("0", 3), stopped("0", 3))
    assert machine.feed(check_in("r7", "b"))[-1:] == permits("r7", "0", 4, (inc("0", 3),))


def test_a_launcher_that_was_given_up_and_comes_back_is_not_adopted(machine: Machine) -> None:
    """Its lease is over, and YARN has the order to end it: its child is stopped, then it exits."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(LauncherSilent(ResourceId("r1")))
    back = check_in("r1", "a", running=inc("0", 1), request=1)
    assert machine.feed(back) == stops("r1", "0", 1)
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert machine.feed(check_in("r1", "a", request=1)) == releases("r1")
    assert machine.phase("0") is P.REQUESTED


def test_it_is_not_adopted_when_it_has_a_successor(machine: Machine) -> None:
    """Its processor was permitted again: it is stopped as often as it says that it runs."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(LauncherSilent(ResourceId("r1")), check_in("r2", "a", request=2))
    assert machine.container("0").epoch == 2
    for _ in range(2):
        back = check_in("r1", "a", running=inc("0", 1), request=1)
        assert machine.feed(back) == stops("r1", "0", 1)


def test_it_is_not_adopted_while_a_later_epoch_waits(machine: Machine) -> None:
    """The processor runs nowhere just now, but an epoch came after: the old one must not go on."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(LauncherSilent(ResourceId("r1")))
    machine.run("0", "r2", "a", 2)
    machine.feed(stopped("0", 2))
    assert machine.phase("0") is P.ASSIGNED
    assert machine.feed(check_in("r1", "a", running=inc("0", 1))) == stops("r1", "0", 1)


def test_adoption_frees_a_launcher_that_was_set_aside(machine: Machine) -> None:
    """It is idle then, and goes."""
    machine.deploy({"0": "a", "1": "a"}, "a", "b")
    machine.run("0", "r1", "a", 1)
    machine.feed(check_in("r2", "a", request=2))
    machine.feed(LauncherSilent(ResourceId("r2")), check_in("r3", "b"))
    assert machine.phase("1") is P.REQUESTED
    machine.feed(expired(3))
    assert machine.container("1").resource_id == "r3"
    assert machine.feed(check_in("r2", "a", running=inc("1", 1))) == releases("r3")
    assert machine.container("1").resource_id == "r2"


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
