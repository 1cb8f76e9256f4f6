"""Rare situations of groups: which container is chosen, steps aside or is corrected."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.failure import FailureKind
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import ContainerState
from homeport.appmaster.allocation.protocol.events import (
    JobModelPublished,
    LauncherSilent,
    ResourceEnded,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.spec.pairs import asked, group, loses_launcher, request_of, running
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    allocated,
    asks,
    cancels,
    check_in,
    inc,
    live,
    remembers_failure,
    stopped,
    stops,
)


def _standby(number: int, phase: P, lag: int | None = None) -> ContainerState:
    processor = ProcessorId(f"0-{number}")
    return ContainerState(processor, replica_of=ProcessorId("0"), phase=phase, lag=lag)


def test_a_standby_withdraws_its_request_for_the_host_of_its_active(machine: Machine) -> None:
    """A new driver finds the active on the host that it has requested for its standby."""
    machine.feed(group({"0": "a", "0-0": "b"}, p0=1), live("a", "b", "c"))
    machine.feed(check_in("r1", "b", running=inc("0", 1)))
    assert (machine.phase("0"), machine.container("0").home) == (P.RUNNING, "b")
    assert machine.container("0-0").requested_host in {"a", "c"}


def test_room_is_not_made_where_standbys_run(machine: Machine) -> None:
    """Two standbys were found on the one host that is left: the active waits until one has gone."""
    machine.feed(group({"0": "a", "0-0": "b", "0-1": "b"}, **{"p0": 1, "p0-0": 1, "p0-1": 1}))
    for number in range(2):
        machine.feed(check_in(f"r{number}", "b", running=inc(f"0-{number}", 1)))
    assert machine.feed(live("b")) == ()
    assert machine.phases == (P.QUEUED, P.RUNNING, P.STOPPING)
    machine.feed(stopped("0-1", 1, StopCause.ORDERED, 0))
    assert machine.phase("0") is P.FAILING_OVER


def test_a_group_that_a_model_makes_is_brought_apart(machine: Machine) -> None:
    """1 was active on the host of 0, and is its standby now: it stops and goes elsewhere."""
    machine.feed(group({"0": "a", "1": "a", "2": "a"}), live("a", "b"))
    for processor in "01":
        machine.feed(allocated(request_of(machine, processor)))
        machine.run(processor, f"r-{processor}", "a", request_of(machine, processor))
    assert machine.phase("2") is P.REQUESTED
    changed = group({"0": None, "1": None, "2": None}, version=2)
    standbys = {ProcessorId("1"): ProcessorId("0"), ProcessorId("2"): ProcessorId("0")}
    stated = machine.feed(replace(changed, standbys=standbys))
    assert stops("r-1", "1", 1)[0] in stated
    assert machine.container("2").requested_host != "a"


def test_a_group_that_is_apart_already_is_left_alone(machine: Machine) -> None:
    """1 was active on a host of its own and is the standby of 0 now: it runs on."""
    machine.feed(group({"0": "a", "1": "b", "2": None}), live("a", "b"))
    machine.run("0", "r-0", "a", request_of(machine, "0"))
    machine.run("1", "r-1", "b", request_of(machine, "1"))
    two = group({"0": None, "1": None, "2": None}, version=2)
    assert machine.feed(replace(two, standbys={ProcessorId("1"): ProcessorId("0")})) == ()
    assert machine.container("1").replica_of == "0"


def test_a_launchers_own_fault_is_charged_with_what_yarn_says(machine: Machine) -> None:
    """YARN said that it ended it for its memory; then its launcher says that it stopped."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    greed = ResourceEnded(RequestId(1), story="beyond its memory", is_own_fault=True)
    assert asked(machine.feed(greed)) == ["a"]
    assert machine.feed(stopped("0", 1, StopCause.SIGNALLED, 143))[:1] == remembers_failure("0")
    failure = machine.container("0").last_failure
    assert failure is not None
    assert (failure.kind, failure.cause) == (FailureKind.LAUNCHER_LOST, None)
    assert "beyond its memory" in failure.story


def test_an_early_request_is_granted_once(machine: Machine) -> None:
    """The second report of it is stale; a grant that is not used is not charged."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    assert machine.feed(ResourceEnded(request_id=RequestId(1))) == asks(2, "a")
    machine.feed(allocated(2))
    machine.stale(allocated(2))
    stated = machine.feed(ResourceEnded(request_id=RequestId(2)))
    assert cancels(2)[0] not in stated
    assert machine.container("0").failures == 0


@pytest.mark.parametrize("is_standby_first", [True, False])
def test_both_of_a_pair_lost_at_once_are_brought_back(
    machine: Machine, *, is_standby_first: bool
) -> None:
    """In either order: each is on its way to a host of its own."""
    running(machine, {"0": "a", "0-0": "b"}, "c", "d", "e")
    lost = [loses_launcher("0"), loses_launcher("0-0")]
    machine.feed(*(reversed(lost) if is_standby_first else lost))
    wanted = {machine.container(p).requested_host for p in ("0", "0-0")}
    assert wanted == {"a", "b"}


def test_a_retired_standby_that_returns_keeps_its_host(machine: Machine) -> None:
    """A new driver finds 0-0 of an older model running; 0 requests its host when 0-0 returns."""
    a, b, active, standby = Host("a"), Host("b"), ProcessorId("0"), ProcessorId("0-0")
    machine.feed(
        JobModelPublished(2, {active: a}, epochs={active: 1}, retired={standby: 1}),
        check_in("r1", "a", inc("0", 1)),
        check_in("r2", "b", inc("0-0", 1)),
        live("a", "b"),
        LauncherSilent(ResourceId("r1")),
    )
    assert machine.container("0").requested_host == b
    machine.feed(
        JobModelPublished(
            3,
            {active: a, standby: None},
            epochs={active: 1, standby: 1},
            floors={active: 1, standby: 2},
            gainers=frozenset({standby}),
            standbys={standby: active},
        )
    )
    assert machine.container("0-0").phase is P.STOPPING
    assert machine.container("0").requested_host != b
