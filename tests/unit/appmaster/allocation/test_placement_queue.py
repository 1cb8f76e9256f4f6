"""A queued container keeps its turn, and is placed again where its situation has changed."""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    allocated,
    check_in,
    expired,
    live,
    model,
    stopped,
)


def test_the_first_in_the_queue_asks_when_the_host_is_free_again(machine: Machine) -> None:
    """The others wait on, for the same host."""
    machine.deploy({"0": "a", "1": "a", "2": "a"}, "a", "b")
    machine.feed(allocated(1))
    assert machine.phases == (P.ALLOCATED, P.REQUESTED, P.QUEUED)
    assert [machine.container(p).requested_host for p in "012"] == ["a", "a", "a"]


def test_a_leftover_launcher_serves_a_container_that_waits_elsewhere(machine: Machine) -> None:
    """A retired processor has stopped on a; 2, whose home had no room, is queued for b."""
    machine.deploy({"0": "a", "1": "c", "2": "c"}, "a", "b", "c")
    machine.run("0", "r0", "a", 1)
    machine.feed(expired(2))
    assert [machine.container(p).requested_host for p in "12"] == ["b", "a"]
    machine.feed(model({"1": "c", "2": "c", "3": None, "4": None}, version=2))
    queued = [p for p in "1234" if machine.phase(p) is P.QUEUED]
    assert queued
    machine.feed(stopped("0", 1, StopCause.ORDERED, 0))
    assert machine.phase(queued[0]) is P.ASSIGNED
    assert machine.container(queued[0]).resource_id == "r0"


def test_no_container_moves_to_a_free_host_that_is_no_better(machine: Machine) -> None:
    """A is served, and more loaded than b, where 2 waits; 2 waits on."""
    machine.deploy({"0": "a", "1": "a", "2": "b", "3": "b"}, "a", "b")
    machine.feed(allocated(1), check_in("r0", "a", request=1))
    machine.feed(allocated(3), check_in("r1", "a", request=3))
    assert machine.container("3").requested_host == "b"
    machine.feed(live("a", "b"))
    assert machine.container("3").requested_host == "b"
