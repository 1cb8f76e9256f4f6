"""Hosts that fell silent: lost now, probed later, and never most of them at once."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.exclusion import suspects_itself
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import Exclusion, exclusion_timer, silence_timer
from homeport.appmaster.allocation.protocol.events import LauncherSilent, ShutdownRequested
from homeport.appmaster.allocation.protocol.instructions import CancelTimer, SuspectOurselves
from homeport.job_coordinator.model.ids import Host, ResourceId
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    allocated,
    asks,
    cancels,
    check_in,
    excludes,
    exclusion_over,
    expired,
    falls_silent,
    live,
    never_came,
)

A, B, C = Host("a"), Host("b"), Host("c")


def silent(resource: str) -> LauncherSilent:
    """This launcher fell silent."""
    return LauncherSilent(ResourceId(resource))


def excluded(machine: Machine) -> list[Exclusion]:
    """The hosts that are excluded, or probed."""
    return list(machine.state.exclusions)


@pytest.fixture
def lost(machine: Machine) -> Machine:
    """Processor 0 ran on ``a`` of four hosts, which fell silent; request 2 asks ``b``."""
    machine.deploy({"0": "a"}, "a", "b", "c", "d")
    machine.run("0", "r0", "a", 1)
    stated = machine.feed(silent("r0"))
    assert stated == (*cancels(1), *falls_silent("a"), *excludes("a"), *asks(2, "b"))
    assert excluded(machine) == [Exclusion(A)]
    return machine


def test_a_silent_host_is_lost_now_and_what_it_ran_is_not_charged(lost: Machine) -> None:
    """Safety P2: the RM still calls it live; home is not asked, another host is, at once."""
    assert lost.state.hosts == tuple(Host(h) for h in "abcd")
    assert lost.container("0").failures == 0
    lost.feed(expired(2))
    assert lost.container("0").requested_host == "c"


def test_an_exclusion_ends_with_a_check_in(lost: Machine) -> None:
    """Safety P3: any launcher that checks in from there, even one of no use."""
    assert lost.feed(check_in("r9", "a"))[:2] == (
        CancelTimer(silence_timer(A)),
        CancelTimer(exclusion_timer(A)),
    )
    assert excluded(lost) == []


def test_an_exclusion_ends_when_the_rm_calls_the_host_lost(lost: Machine) -> None:
    """Safety P3: from then on its word that the host runs again is believed."""
    lost.feed(live("b", "c", "d"))
    assert excluded(lost) == []
    lost.feed(live("a", "b", "c", "d"), expired(2))
    assert lost.container("0").requested_host == "a"


@pytest.mark.parametrize("comes", [True, False])
def test_after_a_while_one_launcher_is_sent_to_probe(lost: Machine, *, comes: bool) -> None:
    """Safety P3: it ends the exclusion, or the host is excluded again and nothing is charged."""
    lost.feed(exclusion_over("a"))
    assert excluded(lost) == [Exclusion(A, is_probed=True)]
    assert lost.feed(expired(2)) == (*cancels(2), *asks(3, "a"))
    lost.feed(allocated(3))
    if comes:
        lost.feed(check_in("r3", "a", request=3))
        assert excluded(lost) == []
        assert lost.phase("0") is P.STARTING
    else:
        assert lost.feed(never_came(3)) == (*cancels(3), *excludes("a"), *asks(4, "c"))
        assert excluded(lost) == [Exclusion(A)]
        assert lost.container("0").failures == 0


def test_more_than_half_at_once_is_our_own_fault(machine: Machine) -> None:
    """Safety L5: what was excluded is let in again, no other is excluded, and the log says so."""
    machine.deploy({"0": "a", "1": "b", "2": "c"}, "a", "b", "c", "d")
    for number, host in enumerate("abc"):
        machine.run(str(number), f"r{number}", host, number + 1)
    machine.feed(silent("r0"), silent("r1"))
    assert excluded(machine) == [Exclusion(A), Exclusion(B)]
    stated = machine.feed(silent("r2"))
    assert SuspectOurselves((A, B, C)) in stated
    assert excluded(machine) == []
    assert machine.container("2").requested_host == "c"


def test_half_of_the_hosts_or_a_single_host_is_no_fault_of_the_am() -> None:
    """Safety L5, as a rule."""
    hosts = [Host(f"nm{n}") for n in range(1, 5)]
    assert not suspects_itself(hosts[:2], hosts)
    assert suspects_itself(hosts[:3], hosts)
    assert not suspects_itself(hosts[:1], hosts[:1])


def test_the_only_host_is_never_excluded(machine_with: MachineWith) -> None:
    """There is no other host: it counts as a live one; a lease is not charged (safety C6)."""
    machine = machine_with(retry_count=8)
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r0", "a", 1)
    machine.feed(silent("r0"))
    assert machine.container("0").requested_host == "a"
    assert machine.container("0").failures == 0


def test_the_end_of_the_job_forgets_all(lost: Machine) -> None:
    """No timer is left armed."""
    lost.feed(ShutdownRequested())
    assert not lost.state.exclusions
    assert not lost.state.silent
    assert not lost.state.timers


def test_silent_hosts_that_come_to_be_most_are_our_own_fault(machine: Machine) -> None:
    """Safety L5: two of five fell silent, two others are lost; two of three is more than half."""
    machine.deploy({"0": "a", "1": "b"}, "a", "b", "c", "d", "e")
    machine.run("0", "r0", "a", 1)
    machine.run("1", "r1", "b", 2)
    machine.feed(silent("r0"), silent("r1"))
    assert excluded(machine) == [Exclusion(A), Exclusion(B)]
    assert SuspectOurselves((A, B)) in machine.feed(live("a", "b", "c"))
    assert excluded(machine) == []
    assert not any(isinstance(i, SuspectOurselves) for i in machine.feed(live("a", "b", "d")))
