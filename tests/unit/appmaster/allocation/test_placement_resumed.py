"""A driver that starts again goes on with operators' commands."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import Event, PlacementRequested
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementSource,
)
from tests.unit.appmaster.allocation.conftest import Machine, check_in, inc, live, model, stopped
from tests.unit.appmaster.allocation.placement_words import (
    BEGUN,
    DONE,
    HOSTS,
    answers,
    asked,
    said,
    settled,
    wants,
)

_SOURCE = PlacementSource(1, Host("h1"))


def _resumed(source: PlacementSource | None, to: str = "h3") -> PlacementRequested:
    return PlacementRequested(asked(to=to), is_resumed=True, source=source)


def _restarted(machine: Machine, event: Event, *found: Event) -> Machine:
    """A new driver receives the model, the action and what is found."""
    machine.feed(model({"0": "h1", "1": "h2"}, p0=2, p1=1), event, *found)
    machine.feed(live(*HOSTS))
    return machine


@pytest.mark.parametrize("to", ["h3", ANY_HOST, FORCE_RESTART_LAST_SEEN])
def test_a_new_driver_finds_the_container_where_it_was_to_go(machine: Machine, to: str) -> None:
    """It had its permit and runs: SUCCEEDED, and no container is disturbed."""
    _restarted(machine, _resumed(_SOURCE, to=to), check_in("r3", "h3", inc("0", 2)))
    assert answers(machine) == [DONE]
    assert settled(machine, "0") == ("h3", P.RUNNING)


def test_a_new_driver_finds_it_back_where_it_was(machine: Machine) -> None:
    """LAST_SEEN is where it was when the action began: SUCCEEDED there; else it is moved."""
    _restarted(machine, _resumed(_SOURCE, to=LAST_SEEN), check_in("r1", "h1", inc("0", 2)))
    assert answers(machine) == [DONE]
    machine.feed(wants(to="h3", uuid="u2"))
    assert answers(machine, "u2") == [BEGUN]


@pytest.mark.parametrize("to", ["h3", ANY_HOST])
def test_a_new_driver_moves_a_container_that_has_not_moved(machine: Machine, to: str) -> None:
    """The incarnation that was to stop runs on: reserved again, from the beginning."""
    source = PlacementSource(2, Host("h1"))
    found = check_in("r1", "h1", inc("0", 2)), check_in("r2", "h2", inc("1", 1))
    _restarted(machine, _resumed(source, to=to), *found)
    assert answers(machine) == [BEGUN]
    assert [e.host for e in machine.state.early] == ["h3"]


def test_a_new_driver_that_finds_it_stopped_places_it_at_once(machine: Machine) -> None:
    """It had stopped, and was to start on h3, which is requested beside its home."""
    _restarted(machine, _resumed(PlacementSource(2, Host("h1"))), check_in("r2", "h2", inc("1", 1)))
    (early,) = machine.state.early
    assert (machine.container("0").requested_host, early.host) == ("h1", "h3")
    machine.feed(check_in("r3", "h3", request=early.request_id))
    machine.run("0", "r3", "h3")
    assert answers(machine)[-1] is DONE


@pytest.mark.parametrize("is_there", [True, False])
def test_a_new_driver_ends_a_restart(machine: Machine, *, is_there: bool) -> None:
    """A container that is not found running comes back by itself, and that is the answer."""
    source = PlacementSource(2, Host("h1"))
    found = (check_in("r1", "h1", inc("0", 2)),) if is_there else ()
    _restarted(machine, _resumed(source, to=FORCE_RESTART_LAST_SEEN), *found)
    if is_there:
        assert machine.phase("0") is P.STOPPING
        machine.feed(stopped("0", 2, StopCause.ORDERED, 143))
        machine.run("0", "r1", "h1")
    else:
        request_id = machine.container("0").request_id
        assert request_id is not None
        machine.run("0", "r5", "h1", request_id)
    assert (answers(machine)[-1], said(machine)) == (DONE, "0@3 runs on h1")
