"""The order to a launcher depends on its report and on the containers that need it."""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import (
    LauncherSilent,
    ResourceEnded,
    ShutdownRequested,
)
from homeport.appmaster.allocation.protocol.instructions import order_for
from homeport.job_coordinator.model.ids import RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    asks,
    check_in,
    expired,
    inc,
    live,
    permits,
    releases,
    stopped,
    stops,
)


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
    machine.feed(ResourceEnded(RequestId(1)))
    assert not machine.state.cancelled
    machine.stale(ResourceEnded(RequestId(1)))


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
    machine.feed(LauncherSilent(ResourceId("r1")))
    back = check_in("r1", "a", running=inc("0", 1), request=1)
    assert machine.feed(back) == stops("r1", "0", 1)
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert machine.feed(check_in("r1", "a", request=1)) == releases("r1")
    assert machine.phase("0") is P.REQUESTED


def test_it_is_not_adopted_while_a_later_epoch_waits(machine: Machine) -> None:
    """The processor runs nowhere just now, but an epoch came after: the old one must not go on."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(LauncherSilent(ResourceId("r1")))
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
