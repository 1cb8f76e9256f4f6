"""The report has the waiting containers and each host's obstacle; it omits what runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import to_builtins

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import (
    Containers,
    ContainerState,
    JobPhase,
    Resources,
    ResourceState,
)
from homeport.appmaster.allocation.protocol.events import HostReport, LauncherSilent
from homeport.appmaster.allocation.shortage import Shortage, shortage
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from tests.unit.appmaster.allocation.conftest import Machine, MachineWith, live, model
from tests.unit.appmaster.allocation.test_capacity import lost, observed, report

P0, R1 = ProcessorId("0"), ResourceId("r1")


@pytest.fixture
def sized(machine_with: MachineWith) -> Machine:
    """A machine whose containers need 1024 MB and 2 cores; d joined after the submission."""
    hosts = tuple(Host(h) for h in "abce")
    return machine_with(container_memory_mb=1024, container_cores=2, strict_hosts=hosts)


def stated(machine: Machine, *reports: HostReport) -> Shortage:
    """What is said."""
    found = shortage(machine.state, reports)
    assert found is not None
    return found


def test_the_report_is_empty_where_no_container_waits(sized: Machine) -> None:
    """Before hosts are known, while all run, and when the job has ended."""
    assert shortage(sized.state, ()) is None
    sized.feed(model({"0": "a"}))
    assert shortage(sized.state, ()) is None
    sized.feed(observed(report("a")))
    sized.run("0", "r1", "a", request=1)
    assert shortage(sized.state, (report("a"),)) is None


def test_each_host_is_reported_with_its_obstacle(sized: Machine) -> None:
    """Room in numbers, size, loss, exclusion, submission; nothing where none of them is known."""
    hosts = (
        report("a"),
        replace(report("b", free_mb=512), free_cores=3),
        report("c", 900),
        report("d"),
        lost(report("f")),
    )
    sized.feed(model({"0": "a", "1": None}), observed(report("e"), *hosts))
    sized.run("0", "r1", "a", request=1)
    sized.feed(LauncherSilent(ResourceId("r1")))
    assert stated(sized, *hosts).hosts == {
        "a": "is not asked, as its launchers fell silent",
        "b": "has 512 of 4096 MB and 3 of 8 cores free",
        "c": "is too small, with 900 MB",
        "d": "joined after the submission and cannot be asked for by name",
        "e": "",
        "f": "is lost",
    }
    sized.feed(live("a"))
    assert stated(sized, report("b")).hosts[Host("b")] == "is not live"


def test_a_container_is_reported_with_its_own_obstacle(sized: Machine) -> None:
    """What it has tried in this round, and where others of its group are."""
    active = ContainerState(P0, phase=P.RUNNING, epoch=1, resource_id=R1)
    standby = ContainerState(
        ProcessorId("0-0"), replica_of=P0, requested_host=Host("b"), tried=(Host("c"),)
    )
    state = replace(
        sized.state,
        phase=JobPhase.ACTIVE,
        hosts=(Host("a"), Host("b"), Host("c")),
        containers=Containers([active, standby]),
        resources=Resources([ResourceState(R1, Host("a"), None)]),
    )
    found = shortage(state, ())
    assert found is not None
    (waiter,) = found.waiters
    assert (waiter.processor_id, waiter.asks) == ("0-0", "b")
    assert waiter.obstacles == {
        "c": "gave it no container in time",
        "a": "has processor 0, which has the same state",
    }
    assert str(found) == (
        "waiting for 1 container of 1024 MB and 2 cores: processor 0-0; c gave it no container in "
        "time; a has processor 0, which has the same state (3 hosts of 3 could hold one)"
    )


def test_the_report_is_bounded(sized: Machine) -> None:
    """Of thirty containers twenty are shown, of thirty hosts twenty, in the sentence five each."""
    hosts = tuple(report(f"h{n:02}", free_mb=0) for n in range(30))
    sized.feed(model({str(n): None for n in range(10, 40)}), observed(*hosts))
    found = stated(sized, *hosts)
    body = to_builtins(found.shown({ProcessorId("10"): 7}))
    assert (body["count"], len(body["processors"])) == (30, 20)
    assert (body["hosts_count"], len(body["hosts"])) == (30, 20)
    assert body["needs"] == {"memory_mb": 1024, "cores": 2}
    assert body["processors"][0] == {
        "processor_id": "10",
        "since_ms": 7,
        "asks": None,
        "obstacles": {},
    }
    assert body["says"] == str(found)
    assert "processor 10, 11, 12, 13, 14 and 25 more" in str(found)
    assert "; and 25 more hosts" in str(found)


def test_a_report_without_obstacles_says_so(machine: Machine) -> None:
    """A request that was made a moment ago."""
    machine.feed(model({"0": "a"}), live("a"))
    assert "processor 0; nothing is in the way (1 host of 1 could hold one)" in str(stated(machine))


def test_a_waiting_container_is_no_obstacle_for_others(machine_with: MachineWith) -> None:
    """Of a pair that waits neither has a host; a host with room is reported as such."""
    machine = machine_with(container_memory_mb=1024, container_cores=2)
    pair = replace(model({"0": None, "0-0": None}), standbys={ProcessorId("0-0"): P0})
    machine.feed(pair, observed(report("a"), report("b")))
    found = stated(machine, report("a"), report("b"))
    assert found.hosts == {"a": "", "b": ""}
    assert [dict(w.obstacles) for w in found.waiters] == [{}, {}]
