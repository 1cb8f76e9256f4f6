"""Hosts that join a running job: homes like any other."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.what_if import known_hosts
from tests.unit.appmaster.allocation.conftest import (
    A,
    B,
    C,
    Machine,
    asks,
    check_in,
    ended,
    job,
    live,
    model,
    moved,
    settled,
    silent,
    stopped,
    wants,
)
from tests.unit.appmaster.allocation.test_exclusion import drained
from tests.unit.appmaster.allocation.test_what_if import lost, ways


@pytest.fixture
def joined(machine: Machine) -> Machine:
    """Processor 0 runs at home on a; b and c have joined since, and 0 has been moved to c."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", request=1)
    machine.feed(live("a", "b", "c"), wants(to="c"))
    moved(machine, "0", "r2", "c", request=2)
    return machine


def test_state_on_a_host_that_joined_later_is_gone_to_first(machine: Machine) -> None:
    """By a new driver, too, that was submitted before the host was there."""
    machine.feed(live("a", "b"), live("a", "b", "c"))
    assert machine.feed(model({"0": "c"})) == asks(1, "c")


def test_containers_are_spread_to_hosts_that_joined_later(machine: Machine) -> None:
    """Each host gets one of three."""
    machine.feed(live("a"), live("a", "b", "c"))
    machine.feed(model({"0": None, "1": None, "2": None}))
    assert {c.requested_host for c in machine.state.containers} == {A, B, C}


def test_a_container_moves_there_and_comes_home(joined: Machine) -> None:
    """After a failure of its process, and after the loss of its launcher."""
    assert settled(joined, "0") == ("c", P.RUNNING)
    joined.feed(stopped("0", 2), check_in("r2", "c"))
    assert settled(joined, "0") == ("c", P.STARTING)
    joined.feed(ended(resource="r2"), silent("r2"))
    assert joined.container("0").requested_host == C


def test_a_question_and_a_drain_know_it(joined: Machine) -> None:
    """Its container has a place on another host, and never on this one."""
    assert C in known_hosts(joined.state)
    assert ways(lost(joined.state, "c"))["0"] == ("c", "a")
    joined.feed(drained("c"), ended(resource="r2"), silent("r2"))
    assert joined.container("0").requested_host in {A, B}


def test_a_standby_starts_there_and_is_failed_over_to(machine: Machine) -> None:
    """Its host is the only one apart from the active's."""
    machine.feed(job({"0": "a", "0-0": None}), live("a"))
    machine.run("0", "r0", "a", 1)
    machine.feed(live("a", "z"))
    assert machine.container("0-0").requested_host == "z"
    machine.run("0-0", "r1", "z", 2)
    machine.feed(live("z"), silent("r0"))
    assert machine.phases == (P.FAILING_OVER, P.STOPPING)


def test_another_name_takes_the_place_of_a_host_that_is_gone(joined: Machine) -> None:
    """Where home is no host any more, the empty one is best; it is home from then on."""
    joined.feed(live("a", "d"), silent("r2"))
    assert joined.container("0").requested_host in {A, "d"}
