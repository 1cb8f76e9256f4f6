"""An operator moves and restarts containers: the scenarios of reference 14.4, and what waits."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import (
    Event,
    PlacementRequested,
    ResourceEnded,
    Timer,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import RequestResource, SetTimer
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementSource,
)
from tests.unit.appmaster.allocation.conftest import (
    ACCEPTED,
    BAD,
    BEGUN,
    DONE,
    FAILED,
    HOSTS,
    Machine,
    MachineWith,
    allocated,
    answers,
    asked,
    asks,
    cancels,
    check_in,
    disarms,
    ended,
    expired,
    inc,
    live,
    model,
    moved,
    orders,
    permits,
    releases,
    running,
    said,
    settled,
    silent,
    stopped,
    stops,
    taken,
    wants,
)


def test_c1_reserved_first_stopped_second(machine: Machine) -> None:
    """C1: 0 moves to h3; no other container is touched; preferred requests 3, SUCCEEDED."""
    running(machine)
    assert machine.feed(wants()) == asks(3, "h3")
    assert settled(machine, "0") == ("h1", P.RUNNING)
    moved(machine, "0", "r3", "h3", 3)
    assert settled(machine, "0") == ("h3", P.RUNNING)
    assert machine.container("0").home == "h3"
    assert settled(machine, "1") == ("h2", P.RUNNING)
    assert answers(machine) == [BEGUN, BEGUN, BEGUN, DONE]
    assert said(machine) == "0@2 runs on h3"
    assert taken(machine) == ["u1"]
    assert machine.state.next_request_id == 4
    assert machine.state.placements == ()
    assert [c.failures for c in machine.state.containers] == [0, 0]


def test_c2_actions_of_one_container_queue_by_timestamp(machine: Machine) -> None:
    """C2: h3, then h4; the one that comes first but is younger waits; one of another run is bad."""
    running(machine)
    machine.feed(wants(to="h3"))
    machine.feed(wants(to="h2", uuid="late", at=9), wants(to="h4", uuid="next", at=2))
    foreign = PlacementRequested(replace(asked(), uuid="foreign"), refusal="another run's")
    machine.feed(foreign)
    assert (answers(machine, "foreign"), said(machine, "foreign")) == ([BAD], "another run's")
    assert answers(machine, "next") == answers(machine, "late") == [ACCEPTED]
    moved(machine, "0", "r3", "h3", 3)
    assert answers(machine)[-1] is DONE
    assert answers(machine, "next") == [ACCEPTED, BEGUN]
    moved(machine, "0", "r4", "h4", 4)
    assert answers(machine, "next")[-1] is DONE
    moved(machine, "0", "r5", "h2", 5)
    assert answers(machine, "late")[-1] is DONE
    assert taken(machine) == ["u1", "late", "next", "foreign"]


def test_c5_a_container_that_was_given_up_is_placed(machine_with: MachineWith) -> None:
    """C5: 1 gave up, the job goes on; moved to h3 it runs there, and is given up no more."""
    machine = running(machine_with(retry_count=0, fail_job_after_retries=False))
    machine.feed(stopped("1", 1))
    assert machine.phase("1") is P.FAILED
    assert orders(machine.feed(wants("1"))) == [asks(3, "h3")[0]]
    assert machine.phase("1") is P.FAILED
    machine.feed(check_in("r3", "h3", request=3))
    assert settled(machine, "1") == ("h3", P.ASSIGNED)
    machine.run("1", "r3", "h3")
    assert answers(machine)[-1] is DONE
    assert (machine.container("1").failures, machine.container("1").last_failure) == (0, None)
    assert settled(machine, "0") == ("h1", P.RUNNING)


def test_a_container_that_was_given_up_is_restarted(machine_with: MachineWith) -> None:
    """Reference 17.10, mended: it is placed again, at home first; a reservation may still fail."""
    machine = running(machine_with(retry_count=0, fail_job_after_retries=False))
    machine.feed(stopped("1", 1))
    machine.feed(wants("1", "h3", uuid="u0"), expired(3))
    assert (answers(machine, "u0")[-1], machine.phase("1")) == (FAILED, P.FAILED)
    assert asks(4, "h2")[0] in machine.feed(wants("1", FORCE_RESTART_LAST_SEEN))
    machine.run("1", "r4", "h2", 4)
    assert (answers(machine)[-1], said(machine)) == (DONE, "1@2 runs on h2")


def test_c6_without_host_affinity_every_move_is_to_another_host(machine_with: MachineWith) -> None:
    """C6: h3 is named, and it ends on some other host than before; again: BAD_REQUEST."""
    machine = running(machine_with(host_affinity_enabled=False))
    before = settled(machine, "0")[0]
    (request, *_) = machine.feed(wants(to="h2"))
    assert isinstance(request, RequestResource)
    assert request.host not in {before, None}
    moved(machine, "0", "r3", request.host or "", 3)
    assert settled(machine, "0") == (request.host, P.RUNNING)
    assert settled(machine, "1")[1] is P.RUNNING
    machine.feed(PlacementRequested(asked(), refusal="it was answered before"))
    assert answers(machine)[-2:] == [DONE, BAD]


def test_any_host_means_the_only_host_if_there_is_one(machine: Machine) -> None:
    """Where there is no other host, its own is requested."""
    machine.deploy({"0": "h1"}, "h1")
    machine.run("0", "r1", "h1", 1)
    assert machine.feed(wants(to=ANY_HOST)) == asks(2, "h1")


def test_last_seen_is_the_host_where_it_runs(machine: Machine) -> None:
    """Reserved there beside what runs, then stopped, then started."""
    running(machine)
    assert machine.feed(wants(to=LAST_SEEN)) == asks(3, "h1")
    moved(machine, "0", "r3", "h1", 3)
    assert answers(machine)[-1] is DONE
    assert settled(machine, "0") == ("h1", P.RUNNING)


def test_a_container_without_a_last_host_goes_to_the_best_one(machine_with: MachineWith) -> None:
    """It was given up before it had run anywhere."""
    machine = machine_with(retry_count=0, fail_job_after_retries=False)
    machine.deploy({"0": None, "1": "h2"}, *HOSTS)
    machine.feed(never_came_of(machine, "0"))
    assert machine.phase("0") is P.FAILED
    (request, *_) = machine.feed(wants(to=LAST_SEEN))
    assert isinstance(request, RequestResource)


def never_came_of(machine: Machine, processor: str) -> Event:
    """The launcher of its request ended before it checked in."""
    return ResourceEnded(machine.container(processor).request_id)


def test_a_request_for_a_container_that_does_not_run_waits(machine: Machine) -> None:
    """Until it runs, unless it comes to its end."""
    machine.deploy({"0": "h1", "1": "h2"}, *HOSTS)
    machine.feed(wants(), wants("1", "h4", uuid="u2"))
    assert answers(machine) == answers(machine, "u2") == [ACCEPTED]
    assert said(machine) == "it waits until processor 0 runs, which is requested"
    machine.run("1", "r2", "h2", 2)
    assert answers(machine, "u2") == [ACCEPTED, BEGUN]
    machine.feed(check_in("r1", "h1", request=1), stopped("0", 1, StopCause.FINISHED, 0))
    assert (answers(machine)[-1], said(machine)) == (BAD, "processor 0 has finished")


def test_a_host_with_a_pending_request_is_waited_for(machine: Machine) -> None:
    """One strict request per host."""
    running(machine).feed(wants(), wants("1", "h3", uuid="u2"))
    assert answers(machine, "u2") == [ACCEPTED]
    stated = machine.feed(check_in("r3", "h3", request=3))
    assert orders(stated) == [*stops("r1", "0", 1), asks(4, "h3")[0]]


def test_the_same_request_under_way_is_not_begun_twice(machine: Machine) -> None:
    """Written again, it is deleted, and has the one answer."""
    running(machine).feed(wants())
    assert machine.feed(wants()) == ()
    assert answers(machine) == [BEGUN]
    assert taken(machine) == ["u1", "u1"]


@pytest.fixture
def pairs() -> Machine:
    """0@h1, 1@h2, 0-0@h2, 1-0@h1, the latter two standbys of 0 and 1."""
    machine = Machine()
    homes = {"0": "h1", "0-0": "h2", "1": "h2", "1-0": "h1"}
    standbys = {ProcessorId("0-0"): ProcessorId("0"), ProcessorId("1-0"): ProcessorId("1")}
    machine.feed(replace(model(homes), standbys=standbys), live(*HOSTS))
    for processor, host in homes.items():
        while machine.container(processor).request_id is None:
            (other,) = {
                c.request_id for c in machine.state.containers if c.requested_host == host
            } - {None}
            machine.feed(allocated(other or 0))
        machine.run(processor, f"r{processor}", host, machine.container(processor).request_id)
    return machine


def test_c8_replicas_keep_to_different_hosts(pairs: Machine) -> None:
    """C8: 0-0 to h1 and 0 to h2 are bad; then 0-0 to h3 and 0 to h2 together succeed."""
    number = pairs.state.next_request_id
    pairs.feed(wants("0-0", "h1", uuid="b1"), wants("0", "h2", uuid="b2"))
    assert answers(pairs, "b1") == answers(pairs, "b2") == [BAD]
    assert said(pairs, "b1") == "h1 has processor 0, a replica of the same tasks, or is to have it"
    pairs.feed(wants("0-0", "h3"), wants("0", "h2", uuid="u2", at=2))
    assert answers(pairs, "u2") == [ACCEPTED]
    moved(pairs, "0-0", "rx", "h3", number)
    moved(pairs, "0", "ry", "h2", number + 1)
    assert (answers(pairs)[-1], answers(pairs, "u2")[-1]) == (DONE, DONE)
    assert (settled(pairs, "0"), settled(pairs, "0-0")) == (("h2", P.RUNNING), ("h3", P.RUNNING))


def test_replicas_are_looked_for_again_before_the_launch(pairs: Machine) -> None:
    """A replica came to the destination meanwhile: FAILED, and back where it was."""
    number = pairs.state.next_request_id
    pairs.feed(wants(to="h3"))
    pairs.feed(silent("r0-0"), live("h1", "h3"))
    pairs.feed(check_in("rx", "h3", request=number))
    assert pairs.phase("0") is P.STOPPING
    pairs.feed(check_in("ry", "h3", inc("0-0", 1), request=77))
    pairs.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert answers(pairs)[-1] is FAILED
    assert said(pairs) == "h3 has processor 0-0, a replica of the same tasks, or is to have it"
    assert settled(pairs, "0") == ("h1", P.ASSIGNED)


# --- a driver that starts again goes on with operators' commands


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


# --- which hosts are requested, in which order, and for how long


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
        SetTimer(Timer(TimerKind.CHECK_IN, RequestId(1)), 60_000),
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
    assert machine.feed(ended(8)) == ()
    assert machine.feed(silent("r9")) == ()
    assert [r.resource_id for r in machine.state.resources] == ["r1"]


def test_an_idle_launcher_at_home_is_taken_before_asking(machine: Machine) -> None:
    """Its processor finished there; another, whose launcher was lost, takes it over (P13)."""
    machine.deploy({"0": "a", "1": "a", "2": "b"}, "a", "b")
    machine.feed(allocated(1))
    machine.run("0", "r1", "a", 1)
    machine.run("1", "r2", "a", 3)
    machine.feed(check_in("r9", "a"))  # surplus on a while 2 waits for b
    assert machine.feed(silent("r2")) == cancels(3)
    assert machine.container("1").resource_id == "r9"


# --- a queued container keeps its turn, and is placed again where its situation has changed


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
