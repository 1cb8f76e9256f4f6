"""A lost mixed container, whose tasks have failed over: which host it takes, and when."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.invariants import check
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import Event, ResourceEnded
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.appmaster.allocation.shortage import shortage
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    allocated,
    check_in,
    exclusion_over,
    expired,
    live,
    model,
    never_came,
    silent,
)


@pytest.fixture
def lost(machine_with: MachineWith) -> Machine:
    """One container each on a, b and c; a fell silent."""
    machine = machine_with(mixes_roles=True).at_home({"0": "a", "1": "b", "2": "c"})
    decision = machine.decide(silent("r0"))
    assert [r.host for r in decision.reasons if r.kind is ReasonKind.WAITS_FOR_HOME] == ["a"]
    assert _asked(machine) == (P.QUEUED, None)
    return machine


def _asked(machine: Machine, processor: str = "0") -> tuple[P, str | None]:
    container = machine.container(processor)
    return container.phase, container.requested_host


def test_it_goes_home_when_its_host_is_back(lost: Machine) -> None:
    """The probe is a request of its own; there is none before."""
    lost.feed(exclusion_over("a"))
    assert _asked(lost) == (P.REQUESTED, "a")
    lost.feed(allocated(4), check_in("r3", "a", request=4))
    assert (lost.phase("0"), lost.container("0").has_left) == (P.STARTING, False)


@pytest.mark.parametrize(
    "failure", [(expired(4),), (allocated(4), never_came(4))], ids=["no room", "no launcher"]
)
def test_it_goes_beside_another_when_the_probe_has_failed(
    lost: Machine, failure: tuple[Event, ...]
) -> None:
    """A host that stays away does not keep it waiting."""
    lost.feed(exclusion_over("a"), *failure)
    assert _asked(lost)[1] in {"b", "c"}


def test_it_goes_beside_another_when_yarn_calls_its_host_lost(lost: Machine) -> None:
    """Then the host does not come back by itself."""
    lost.feed(live("b", "c"))
    assert _asked(lost) == (P.REQUESTED, "b")


@pytest.mark.parametrize("comes", [True, False], ids=["a new host", "a host that is left"])
def test_it_takes_a_host_without_a_container(lost: Machine, *, comes: bool) -> None:
    """At once: one that joins the cluster, or one that the last container has left."""
    if comes:
        lost.feed(live("a", "b", "c", "d"))
        assert _asked(lost) == (P.REQUESTED, "d")
        return
    lost.feed(model({"0": "a", "1": "b"}, 2))
    assert _asked(lost) == (P.QUEUED, None)
    lost.feed(ResourceEnded(None, ResourceId("r2"), is_own_fault=False))
    assert _asked(lost) == (P.REQUESTED, "c")


def test_the_wait_is_shown(lost: Machine) -> None:
    """With what keeps it from each host."""
    found = shortage(lost.state, ())
    assert found is not None
    assert found.processors[0].obstacles == {
        "b": "has a container of the job, and a may come back",
        "c": "has a container of the job, and a may come back",
    }


def test_the_host_of_another_lost_container_is_not_taken(machine_with: MachineWith) -> None:
    """It is empty, but excluded; the reason of each wait is given once."""
    homes = dict(zip("01234", "abcde", strict=True))
    machine = machine_with(mixes_roles=True).at_home(homes)
    machine.feed(silent("r0"))
    reasons = machine.decide(silent("r1")).reasons
    assert [r.processor_id for r in reasons if r.kind is ReasonKind.WAITS_FOR_HOME] == ["1"]
    assert _asked(machine) == _asked(machine, "1") == (P.QUEUED, None)


def test_one_that_waits_beside_an_empty_host_is_a_fault(lost: Machine) -> None:
    """The search and the worlds look for it."""
    draft = Draft(lost.state, "")
    draft.hosts = (*(draft.hosts or ()), Host("d"))
    draft.change(replace(draft.containers[ProcessorId("0")], requested_host=None))
    with pytest.raises(InvariantViolation, match="processor 0 is queued for a host"):
        check(draft.freeze())
