"""A queued container keeps its turn, and is placed again where its situation has changed."""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import Machine, expired, model, stopped


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
