"""A host that is drained: no container is placed there, whatever way leads to it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation import host_search
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import ContainerState
from homeport.appmaster.allocation.protocol.events import (
    LauncherSilent,
    PlacementRequested,
    ResourceEnded,
    SettingsChanged,
)
from homeport.appmaster.allocation.shortage import shortage
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    FORCE_RESTART_LAST_SEEN,
    PlacementSource,
)
from tests.unit.appmaster.allocation.conftest import (
    SETTINGS,
    Machine,
    MachineWith,
    asks,
    check_in,
    deployed,
    expired,
    inc,
    job,
    live,
    permits,
    started,
    stopped,
)
from tests.unit.appmaster.allocation.placement_words import (
    BAD,
    DONE,
    FAILED,
    answers,
    asked,
    orders,
    said,
    settled,
    wants,
)
from tests.unit.appmaster.allocation.test_warm_moves import behind, wants_warm

A, B = Host("a"), Host("b")
ZERO = ProcessorId("0")


def drained(*hosts: str) -> SettingsChanged:
    """These are drained, and no others."""
    return SettingsChanged(replace(SETTINGS, drained_hosts=frozenset(map(Host, hosts))))


def with_drained(machine_with: MachineWith, *hosts: str) -> Machine:
    """A machine that begins so."""
    machine = machine_with()
    machine.feed(drained(*hosts))
    return machine


def test_a_request_for_it_is_withdrawn(machine: Machine) -> None:
    """And the container asks elsewhere in the same step."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.feed(drained("a"))
    assert machine.container("0").requested_host == "b"


def test_any_host_is_not_requested_while_one_is_drained(machine_with: MachineWith) -> None:
    """It could be that one: the round begins again with those that are left."""
    machine = with_drained(machine_with, "a")
    machine.deploy({"0": "a"}, "a", "b")
    machine.feed(expired(1))
    assert machine.container("0").requested_host == "b"


def test_no_host_at_all_is_waited_for(machine_with: MachineWith) -> None:
    """The container waits without a request until it is taken back."""
    machine = with_drained(machine_with, "a")
    machine.deploy({"0": "a"}, "a")
    assert machine.phase("0") is P.QUEUED
    assert orders(machine.feed(drained())) == list(asks(1, "a"))[:1]


def test_a_launcher_that_comes_from_there_is_not_taken(machine: Machine) -> None:
    """Of a request for any host that stood before."""
    machine.deploy({"0": None}, "a")
    machine.feed(expired(1))
    assert machine.container("0").requested_host is None
    machine.feed(drained("a"), check_in("r1", "a", request=2))
    assert machine.container("0").resource_id is None


@pytest.mark.parametrize("hosts", [("a",), ("a", "b")])
def test_a_restart_comes_back_on_its_launcher(machine: Machine, hosts: tuple[str, ...]) -> None:
    """As after a failure: its store is there, and another host would read the whole state."""
    deployed(machine, {"0": "a"}, *hosts)
    machine.feed(drained("a"), wants("0", FORCE_RESTART_LAST_SEEN))
    assert orders(machine.feed(stopped("0", 1, StopCause.ORDERED, 143))) == []
    assert orders(machine.feed(check_in("r0", "a"))) == list(permits("r0", "0", 2, (inc("0", 1),)))
    machine.feed(started("0", 2))
    assert (answers(machine)[-1], said(machine)) == (DONE, "0@2 runs on a")


def test_a_restart_there_does_not_cost_the_standby(machine: Machine) -> None:
    """The pair is where it was, restarted one after the other as in an upgrade."""
    deployed(machine, {"0": "a", "0-0": "b"}, "a", "b")
    machine.feed(drained("a"))
    for at, (processor, resource, host) in enumerate([("0-0", "r1", "b"), ("0", "r0", "a")]):
        machine.feed(wants(processor, FORCE_RESTART_LAST_SEEN, f"u{at}", at=at))
        machine.feed(stopped(processor, 1, StopCause.ORDERED, 143), check_in(resource, host))
        machine.feed(started(processor, 2))
        assert answers(machine, f"u{at}")[-1] is DONE
    assert [settled(machine, p) for p in ("0", "0-0")] == [("a", P.RUNNING), ("b", P.RUNNING)]


def of_drain(processor: str, uuid: str = "u1", at: int = 1, *, warm: bool) -> PlacementRequested:
    """A move of a drain is read."""
    request = replace(asked(processor, ANY_HOST, uuid, at), is_warm=warm, is_drain=True)
    return PlacementRequested(request)


def test_a_move_of_a_drain_that_comes_too_late_is_refused(machine: Machine) -> None:
    """The drain was taken back, or the container has left by itself; or it is nowhere now."""
    deployed(machine, {"0": "a"}, "a", "b")
    machine.feed(of_drain("0", warm=True))
    assert answers(machine) == [BAD]
    machine.feed(drained("a"), LauncherSilent(ResourceId("r0")), of_drain("0", "u2", 2, warm=True))
    assert (answers(machine, "u2"), said(machine, "u2")) == (
        [BAD],
        "processor 0 is on no drained host: nothing is left of the drain to do",
    )


@pytest.mark.parametrize("is_back", [True, False])
def test_a_resumed_move_of_a_drain_may_have_arrived(machine: Machine, *, is_back: bool) -> None:
    """The next driver looks where the container is before it looks at the key."""
    epoch = 1 if is_back else 2
    machine.feed(drained("a"), job({"0": "b"}, p0=epoch))
    begun = of_drain("0", warm=False)
    machine.feed(replace(begun, is_resumed=True, source=PlacementSource(1, A)))
    machine.feed(check_in("r1", "b", inc("0", epoch)), live("a", "b"))
    assert answers(machine)[-1] is (FAILED if is_back else DONE)


def test_its_launcher_is_not_requested_early(machine: Machine) -> None:
    """YARN calls the launcher ended; the evidence is waited for, and home is no choice."""
    deployed(machine, {"0": "a"}, "a", "b")
    machine.feed(drained("a"))
    assert orders(machine.feed(ResourceEnded(RequestId(1)))) == []
    machine.feed(LauncherSilent(ResourceId("r0")))
    assert machine.container("0").requested_host == "b"


def test_a_command_to_it_is_refused(machine: Machine) -> None:
    """By name; any host is another one."""
    deployed(machine, {"0": "a"}, "a", "b", "c")
    machine.feed(drained("b"), wants("0", "b"))
    assert (answers(machine), said(machine)) == (
        [BAD],
        "b is drained: no container is placed there",
    )
    machine.feed(wants("0", ANY_HOST, "u2"))
    assert machine.state.placements[0].host == "c"


def test_an_active_leaves_to_the_host_of_its_standby_where_no_other_is_left(
    machine: Machine,
) -> None:
    """Warm: the standby gives way; cold there would be no place."""
    deployed(machine, {"0": "a", "0-0": "b"}, "a", "b")
    machine.feed(drained("a"), behind(0, "0-0"), wants("0", ANY_HOST))
    assert answers(machine) == [BAD]
    machine.feed(wants_warm("0", ANY_HOST, "u2", 2))
    assert machine.state.placements[0].host == "b"
    machine.feed(stopped("0-0", 1), stopped("0", 1), check_in("r1", "b"), started("0", 2))
    assert machine.container("0").home == "b"
    assert machine.container("0-0").requested_host is None


def test_an_active_does_not_fail_over_to_it(machine: Machine) -> None:
    """Its standby runs there, and stays."""
    deployed(machine, {"0": "a", "0-0": "b"}, "a", "b", "c")
    machine.feed(drained("b"), LauncherSilent(ResourceId("r0")))
    assert machine.container("0").requested_host == "c"
    assert machine.phase("0-0") is P.RUNNING


def test_the_reason_names_it() -> None:
    """Of what is in the way of a home, the first that holds."""
    settings = replace(SETTINGS, drained_hosts=frozenset({A}))
    zero = ContainerState(ProcessorId("0"), tried=(B,))
    why = [
        host_search.why_not(settings, (A, B), (), zero, A),
        host_search.why_not(settings, (A, B), {B}, zero, B),
        host_search.why_not(settings, (A, B), (), zero, B),
    ]
    assert why == [
        "a is drained",
        "the launchers of b fell silent",
        "b had no room, or launched nothing",
    ]


def test_what_waits_says_so(machine_with: MachineWith) -> None:
    """With each host."""
    machine = with_drained(machine_with, "a")
    machine.feed(job({"0": "a"}), live("a"))
    found = shortage(machine.state, ())
    assert found is not None
    assert dict(found.hosts) == {A: "is drained"}
