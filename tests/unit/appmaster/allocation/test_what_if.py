"""What would come of the loss of hosts: the machine's own word, and the state as it was."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import to_builtins

from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    Containers,
    ContainerState,
    JobPhase,
    Resources,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.shortage import shortage
from homeport.appmaster.allocation.what_if import (
    CommandOutlook,
    known_hosts,
    what_if,
    what_if_commanded,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import PlacementRequest, PlacementStatus
from homeport.job_coordinator.status.outlook import ShownOutlook
from homeport.job_coordinator.status.shape import ShownShortage
from tests.spec.pairs import running as pair_running
from tests.unit.appmaster.allocation.conftest import (
    ZERO,
    Machine,
    MachineWith,
    check_in,
    ended,
    expired,
    job,
    live,
    model,
    silent,
    stopped,
)
from tests.unit.appmaster.allocation.test_exclusion import lost_report, observed, report


@pytest.fixture
def running(machine: Machine) -> Machine:
    """Processors 0, 1, 2 run at home on a, b, c."""
    machine.deploy({"0": "a", "1": "b", "2": "c"}, "a", "b", "c")
    for number, host in enumerate("abc"):
        machine.run(str(number), f"r{number}", host, request=number + 1)
    return machine


def lost(state: AllocatorState, *hosts: str, reports: tuple[HostReport, ...] = ()) -> ShownOutlook:
    """What would come of the loss of these hosts."""
    return what_if(state, frozenset(map(Host, hosts)), reports)


def ways(outlook: ShownOutlook) -> dict[str, tuple[str | None, str | None]]:
    """{processor: from where, to where}."""
    return {f.processor_id: (f.host_before, f.host) for f in outlook.containers}


def sized(machine: Machine) -> AllocatorState:
    """The machine's state, where a container takes 1000 MB and a core."""
    settings = replace(machine.state.settings, container_memory_mb=1000, container_cores=1)
    return replace(machine.state, settings=settings)


def host_with(name: str, free_memory_mb: int) -> HostReport:
    """A host of 4000 MB with so much free."""
    return HostReport(Host(name), None, 4000, 8, free_memory_mb, 8)


def test_a_container_of_the_lost_host_starts_again_elsewhere(running: Machine) -> None:
    """One processor, on the least loaded of the other hosts; no other is touched."""
    outlook = lost(running.state, "a")
    assert ways(outlook) == {"0": ("a", "b")}
    assert outlook.is_settled
    assert not outlook.suspects_itself
    (fate,) = outlook.containers
    assert fate.is_placed
    assert str(fate.why[-1]) == "Processor 0 has started on b: epoch 2"


def test_a_container_without_room_cannot_be_placed(running: Machine) -> None:
    """Room for one on the only host left: the other waits, and it is said what for."""
    outlook = lost(sized(running), "a", "b", reports=(host_with("c", 1500),))
    assert ways(outlook) == {"0": ("a", "c"), "1": ("b", None)}
    placed, unplaced = outlook.containers
    assert placed.is_placed
    assert not unplaced.is_placed
    assert any("got no container on any host" in str(reason) for reason in unplaced.why)
    assert outlook.is_settled
    assert outlook.unplaced == ("1",)


def test_all_hosts(running: Machine) -> None:
    """Nothing can be placed, and the answer comes all the same."""
    outlook = lost(running.state, "a", "b", "c")
    assert ways(outlook) == {"0": ("a", None), "1": ("b", None), "2": ("c", None)}
    assert outlook.is_settled


def test_a_resting_container_comes_back(machine_with: MachineWith) -> None:
    """The rest is over at once."""
    machine = machine_with(retry_count=1, last_retry_delay_ms=9000)
    machine.at_home({"0": "a", "1": "b"}, "c")
    machine.feed(stopped("0", 1, StopCause.FAILED))
    outlook = lost(machine.state, "c")
    assert ways(outlook)["0"] == (None, "a")
    assert all(fate.is_placed for fate in outlook.containers)


def test_hosts_that_a_query_may_name(running: Machine) -> None:
    """Live ones, and those with a launcher whatever the ResourceManager says."""
    running.feed(live("a", "b", "d"))
    assert known_hosts(running.state) == {"a", "b", "c", "d"}


def test_before_the_first_model(machine: Machine) -> None:
    """No container is affected."""
    assert lost(machine.state, "a").containers == ()


def test_a_change_of_the_model_goes_on(running: Machine) -> None:
    """Those that must stop for it stop, those that it omits go, and the others are placed."""
    changed = replace(
        model({"0": "a", "1": "b"}, version=2), floors={ProcessorId("0"): 2}, epochs={}
    )
    running.feed(changed)
    outlook = lost(running.state, "b")
    assert ways(outlook) == {"0": ("a", "a"), "1": ("b", "a"), "2": ("c", None)}
    assert all(fate.is_placed for fate in outlook.containers)


def test_an_end_that_is_not_proven_is_proven(running: Machine) -> None:
    """YARN calls a launcher ended: it is silent for good, and its processor starts again."""
    running.feed(ended(1))
    outlook = lost(running.state, "c")
    assert ways(outlook) == {"0": ("a", "a"), "2": ("c", "b")}


def test_a_surplus_that_is_released_frees_its_room(running: Machine) -> None:
    """The launcher exits, and a container on its way gets what it held."""
    running.feed(check_in("r9", "c"))
    outlook = lost(sized(running), "a", reports=(host_with("b", 0), host_with("c", 0)))
    assert ways(outlook) == {"0": ("a", "c")}


def test_a_standby_whose_place_is_taken_is_named(machine: Machine) -> None:
    """The active goes to its standby's host, that to another."""
    pair_running(machine, {"0": "a", "0-0": "b"}, "c")
    outlook = lost(machine.state, "a")
    assert ways(outlook) == {"0": ("a", "b"), "0-0": ("b", "c")}
    assert outlook.containers[0].takes_over == "0-0"


def test_a_computation_without_an_end_is_reported(
    running: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After so many rounds it is broken off."""
    monkeypatch.setattr("homeport.appmaster.allocation.what_if.MAX_ROUNDS", 1)
    assert not lost(running.state, "a").is_settled


def test_an_unconstrained_container_goes_where_most_room_is(machine_with: MachineWith) -> None:
    """The scheduler's choice: the host with the fewest launchers."""
    machine = machine_with()
    machine.deploy({"0": None, "1": None}, "a", "b")
    machine.run("0", "r0", "a", request=1)
    assert ways(lost(machine.state)) == {"1": (None, "b")}


@pytest.mark.parametrize(("order", "asked"), [((1, 2, 3, 4), "c"), ((2, 3, 1), "a")])
def test_a_request_that_another_launcher_has_served_is_over(
    machine_with: MachineWith, order: tuple[int, ...], asked: str
) -> None:
    """A launcher comes of the one's request, on the other's host: the other's request is over."""
    machine = machine_with(retry_count=9)
    machine.deploy({"0": None, "1": "c"}, "a", "c")
    machine.feed(*map(expired, order))
    assert {c.requested_host for c in machine.state.containers} == {None, asked}
    outlook = lost(sized(machine), reports=(host_with("a", 0), host_with("c", 4000)))
    assert ways(outlook) == {"0": (None, "c"), "1": (None, "c")}
    assert outlook.is_settled


def test_room_is_given_once(machine_with: MachineWith) -> None:
    """Two that may go anywhere, and room for one: the first has it, the other none."""
    machine = machine_with()
    machine.deploy({"0": None, "1": None}, "a")
    outlook = lost(sized(machine), reports=(host_with("a", 1500),))
    assert ways(outlook)["0"] == (None, "a")
    assert [f.processor_id for f in outlook.containers if f.is_placed] == ["0"]


def with_standby(machine: Machine, *hosts: str) -> Machine:
    """Processor 0 runs on a, its standby on b."""
    machine.feed(job({"0": "a", "0-0": "b"}), live(*hosts))
    machine.run("0", "r0", "a", request=1)
    machine.run("0-0", "r1", "b", request=2)
    return machine


def test_an_active_takes_the_place_of_its_standby_which_goes_elsewhere(machine: Machine) -> None:
    """STANDBY, part 3, A: and the standby stays apart from it."""
    outlook = lost(with_standby(machine, "a", "b", "c").state, "a")
    assert ways(outlook) == {"0": ("a", "b"), "0-0": ("b", "c")}
    active, standby = outlook.containers
    assert (active.takes_over, standby.takes_over) == ("0-0", None)
    assert (active.role, active.phase) == ("active", "running")
    assert (standby.role, standby.replica_of) == ("standby", "0")
    assert outlook.shortage is None


def test_granted_room_is_no_room_any_more(running: Machine) -> None:
    """The host had room for one, which the first of two got."""
    outlook = lost(sized(running), "a", "b", reports=(host_with("c", 1500),))
    assert outlook.shortage is not None
    assert "c has 500 of 4000 MB" in outlook.shortage


def test_the_room_of_a_lost_host_is_lost(running: Machine) -> None:
    """Its room is lost, and so is that of a host that could never hold a container."""
    small = HostReport(Host("b"), None, 500, 8, 500, 8)
    reports = (host_with("a", 3000), small, host_with("c", 0))
    outlook = lost(sized(running), "a", reports=reports)
    assert ways(outlook) == {"0": ("a", None)}
    assert outlook.shortage is not None
    assert "a is lost; b is too small, with 500 MB; c has 0 of 4000 MB" in outlook.shortage


def test_standbys_that_wait_are_not_in_each_others_way(machine: Machine) -> None:
    """Only a container with a host is."""
    machine.feed(job({"0": "a", "0-0": "b", "0-1": None}), live("a", "b"))
    machine.run("0", "r0", "a", request=1)
    machine.run("0-0", "r1", "b", request=2)
    outlook = lost(machine.state, "a")
    assert outlook.unplaced == ("0-0",)
    assert outlook.shortage is not None
    assert "processor 0-0, 0-1; b has processor 0" in outlook.shortage


def asked(processor: str, destination: str) -> PlacementRequest:
    """An operator's command."""
    return PlacementRequest("u1", "a", ProcessorId(processor), destination, None, 1)


def commanded(
    state: AllocatorState, processor: str, destination: str, *reports: HostReport
) -> CommandOutlook:
    """What would come of it."""
    return what_if_commanded(state, asked(processor, destination), reports)


@pytest.mark.parametrize("destination", ["b", "c", "ANY_HOST"])
def test_a_warm_move_would_end_there_too(machine_with: MachineWith, destination: str) -> None:
    """Behind the job's own standby on b, or a temporary one, once it is near and has its Spark."""
    machine = machine_with(own_have_spark=True, temporary_have_spark=True)
    state = pair_running(machine, {"0": "a", "0-0": "b"}, "c").state
    outlook = what_if_commanded(state, replace(asked("0", destination), is_warm=True))
    assert outlook.answer is not None
    assert outlook.answer.status is PlacementStatus.SUCCEEDED
    where = {str(f.processor_id): f.host for f in outlook.fates}
    assert where["0"] == ("b" if destination == "b" else "c")


def test_a_command_that_would_be_refused_moves_nothing(running: Machine) -> None:
    """An unknown processor; a host without room, where it waits until its time is over."""
    refused = commanded(running.state, "9", "b")
    assert refused.fates == ()
    assert refused.answer is not None
    assert refused.answer.status is PlacementStatus.BAD_REQUEST
    full = commanded(sized(running), "0", "b", host_with("a", 0), host_with("b", 0))
    assert full.fates == ()
    assert full.answer is not None
    assert full.answer.status is PlacementStatus.FAILED


def test_a_command_before_the_job_is_known_has_no_answer(machine: Machine) -> None:
    """It waits in the stream."""
    assert commanded(machine.state, "0", "b").answer is None


# --- the report has the waiting containers and each host's obstacle; it omits what runs


R1 = ResourceId("r1")


@pytest.fixture
def roomy(machine_with: MachineWith) -> Machine:
    """A machine whose containers need 1024 MB and 2 cores."""
    return machine_with(container_memory_mb=1024, container_cores=2)


def stated(machine: Machine, *reports: HostReport) -> ShownShortage:
    """What is said."""
    found = shortage(machine.state, reports)
    assert found is not None
    return found


def test_the_report_is_empty_where_no_container_waits(roomy: Machine) -> None:
    """Before hosts are known, while all run, and when the job has ended."""
    assert shortage(roomy.state, ()) is None
    roomy.feed(model({"0": "a"}))
    assert shortage(roomy.state, ()) is None
    roomy.feed(observed(report("a")))
    roomy.run("0", "r1", "a", request=1)
    assert shortage(roomy.state, (report("a"),)) is None


def test_each_host_is_reported_with_its_obstacle(roomy: Machine) -> None:
    """Room in numbers, size, loss, exclusion; nothing where none of them is known."""
    hosts = (
        report("a"),
        replace(report("b", free_mb=512), free_cores=3),
        report("c", 900),
        lost_report(report("f")),
    )
    roomy.feed(model({"0": "a", "1": None}), observed(report("e"), *hosts))
    roomy.run("0", "r1", "a", request=1)
    roomy.feed(silent("r1"))
    assert stated(roomy, *hosts).hosts == {
        "a": "is not asked, as its launchers fell silent",
        "b": "has 512 of 4096 MB and 3 of 8 cores free",
        "c": "is too small, with 900 MB",
        "e": "",
        "f": "is lost",
    }
    roomy.feed(live("a"))
    assert stated(roomy, report("b")).hosts[Host("b")] == "is not live"


def test_a_container_is_reported_with_its_own_obstacle(roomy: Machine) -> None:
    """What it has tried in this round, and where others of its group are."""
    active = ContainerState(ZERO, phase=P.RUNNING, epoch=1, resource_id=R1)
    standby = ContainerState(
        ProcessorId("0-0"), replica_of=ZERO, requested_host=Host("b"), tried=(Host("c"),)
    )
    state = replace(
        roomy.state,
        phase=JobPhase.ACTIVE,
        hosts=(Host("a"), Host("b"), Host("c")),
        containers=Containers([active, standby]),
        resources=Resources([ResourceState(R1, Host("a"), None)]),
    )
    found = shortage(state, ())
    assert found is not None
    (waiter,) = found.processors
    assert (waiter.processor_id, waiter.asks) == ("0-0", "b")
    assert waiter.obstacles == {
        "c": "gave it no container in time",
        "a": "has processor 0, which has the same state",
    }
    assert found.says == (
        "waiting for 1 container of 1024 MB and 2 cores: processor 0-0; c gave it no container in "
        "time; a has processor 0, which has the same state (3 hosts of 3 could hold one)"
    )


def test_the_report_is_bounded(roomy: Machine) -> None:
    """Of thirty containers twenty are shown, of thirty hosts twenty, in the sentence five each."""
    hosts = tuple(report(f"h{n:02}", free_mb=0) for n in range(30))
    roomy.feed(model({str(n): None for n in range(10, 40)}), observed(*hosts))
    found = shortage(roomy.state, hosts, {ProcessorId("10"): 7}.get)
    assert found is not None
    body = to_builtins(found)
    assert (body["count"], len(body["processors"])) == (30, 20)
    assert (body["hosts_count"], len(body["hosts"])) == (30, 20)
    assert body["needs"] == {"memory_mb": 1024, "cores": 2}
    assert body["processors"][0] == {
        "processor_id": "10",
        "since_ms": 7,
        "asks": "h00",
        "obstacles": {},
    }
    assert "processor 10, 11, 12, 13, 14 and 25 more" in found.says
    assert "; and 25 more hosts" in found.says


def test_a_report_without_obstacles_says_so(machine: Machine) -> None:
    """A request that was made a moment ago."""
    machine.feed(model({"0": "a"}), live("a"))
    assert "processor 0; nothing is in the way (1 host of 1 could hold one)" in stated(machine).says


def test_a_waiting_container_is_no_obstacle_for_others(machine_with: MachineWith) -> None:
    """Of a pair that waits neither has a host; a host with room is reported as such."""
    machine = machine_with(container_memory_mb=1024, container_cores=2)
    pair = replace(model({"0": None, "0-0": None}), standbys={ProcessorId("0-0"): ZERO})
    machine.feed(pair, observed(report("a"), report("b")))
    found = stated(machine, report("a"), report("b"))
    assert found.hosts == {"a": "", "b": ""}
    assert [dict(w.obstacles) for w in found.processors] == [{}, {}]


def test_mixed_containers_that_cannot_go_home_give_up_their_tasks(
    machine_with: MachineWith,
) -> None:
    """They go on to another host; only the lost ones give up tasks."""
    machine = machine_with(mixes_roles=True).at_home({"0": "a", "1": "b"}, "c")
    found = lost(machine.state, "a")
    assert found.tasks_moved == {ZERO: {}}
    assert [(fate.processor_id, fate.host) for fate in found.containers] == [(ZERO, "c")]
    assert lost(machine.state, "c").tasks_moved == {}
