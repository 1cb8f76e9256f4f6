"""Which hosts are requested, in which order, and for how long."""

from __future__ import annotations

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import check_in_timer
from homeport.appmaster.allocation.protocol.events import LauncherSilent, ResourceEnded
from homeport.appmaster.allocation.protocol.instructions import SetTimer
from homeport.job_coordinator.model.ids import RequestId, ResourceId
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    allocated,
    asks,
    cancels,
    check_in,
    disarms,
    expired,
    permits,
    releases,
)


def test_each_processor_is_requested_at_home(machine: Machine) -> None:
    """Host affinity: a strict request at the last host of each."""
    assert machine.deploy({"0": "b", "1": "a"}, "a", "b", "c") == (*asks(1, "b"), *asks(2, "a"))


def test_strangers_keep_off_a_home(machine: Machine) -> None:
    """A processor that can go home is placed first, though its id is higher."""
    assert machine.deploy({"0": None, "1": "a"}, "a", "b") == (*asks(1, "a"), *asks(2, "b"))


def test_of_equally_loaded_hosts_one_without_a_queue_is_best(machine: Machine) -> None:
    """The host of a container that runs, rather than queueing behind a request."""
    machine.deploy({"0": "a", "1": "b", "2": "gone"}, "a", "b")
    assert machine.container("2").requested_host == "a"  # both are requested: the first by name
    machine.run("1", "r2", "b", 2)
    assert machine.container("2").requested_host == "b"
    assert machine.phase("2") is P.REQUESTED


def test_allocation_disarms_the_expiry_and_limits_the_check_in(machine: Machine) -> None:
    """After RUNNING the launcher has a time of its own to check in; a second report is stale."""
    machine.deploy({"0": "a"}, "a")
    assert machine.feed(allocated(1)) == (
        *disarms(1, "expiry"),
        SetTimer(check_in_timer(RequestId(1)), 60_000),
    )
    machine.stale(allocated(1), allocated(7), expired(1))


def test_a_surplus_launcher_is_released_when_no_container_waits_any_more(machine: Machine) -> None:
    """A4: an unneeded launcher exits; each of its check-ins gets this order."""
    machine.deploy({"0": "a"}, "a", "b")
    machine.feed(check_in("r9", "b"))
    assert machine.feed(check_in("r1", "a", request=1)) == (
        *disarms(1, "expiry"),
        *permits("r1", "0", 1),
        *releases("r9"),
    )
    assert machine.feed(check_in("r9", "b")) == releases("r9")
    assert machine.feed(check_in("r8", "a")) == releases("r8")


def test_a_released_launcher_is_forgotten_when_it_is_gone(machine: Machine) -> None:
    """By the shell's word or by Skein's."""
    machine.deploy({"0": "a"}, "a")
    machine.run("0", "r1", "a", 1)
    machine.feed(check_in("r8", "a", request=8), check_in("r9", "a"))
    assert machine.feed(ResourceEnded(request_id=RequestId(8))) == ()
    assert machine.feed(LauncherSilent(ResourceId("r9"))) == ()
    assert [r.resource_id for r in machine.state.resources] == ["r1"]


def test_an_idle_launcher_at_home_is_taken_before_asking(machine: Machine) -> None:
    """Its processor finished there; another, whose launcher was lost, takes it over (P13)."""
    machine.deploy({"0": "a", "1": "a", "2": "b"}, "a", "b")
    machine.feed(allocated(1))
    machine.run("0", "r1", "a", 1)
    machine.run("1", "r2", "a", 3)
    machine.feed(check_in("r9", "a"))  # surplus on a while 2 waits for b
    silent = LauncherSilent(ResourceId("r2"))
    assert machine.feed(silent) == cancels(3)
    assert machine.container("1").resource_id == "r9"
