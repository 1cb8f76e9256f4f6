"""Hosts that get no container: those that fell silent, that are drained, that have no room."""

from __future__ import annotations

from dataclasses import replace

import pytest
from immutables import Map

from homeport.appmaster.allocation import host_search
from homeport.appmaster.allocation.capacity import TOO_SMALL
from homeport.appmaster.allocation.exclusion import suspects_itself
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.hosts import Room, room_of
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import ContainerState, JobPhase, initial_state
from homeport.appmaster.allocation.protocol.events import (
    HostReport,
    HostsObserved,
    PlacementRequested,
    SettingsChanged,
    ShutdownRequested,
    Timer,
    TimerFired,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    CancelTimer,
    EndJob,
    RequestResource,
    SetTimer,
    SuspectOurselves,
)
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.appmaster.allocation.shortage import shortage
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    FORCE_RESTART_LAST_SEEN,
    PlacementSource,
)
from tests.unit.appmaster.allocation.conftest import (
    BAD,
    DONE,
    FAILED,
    SETTINGS,
    A,
    B,
    C,
    Machine,
    MachineWith,
    allocated,
    answers,
    asked,
    asks,
    cancels,
    check_in,
    deployed,
    ended,
    excludes,
    exclusion_over,
    expired,
    falls_silent,
    inc,
    job,
    live,
    model,
    never_came,
    orders,
    permits,
    releases,
    said,
    settled,
    silent,
    started,
    stopped,
    wants,
)
from tests.unit.appmaster.allocation.test_warm_moves import behind, wants_warm


def excluded(machine: Machine) -> dict[Host, bool]:
    """The excluded hosts, and whether each may be probed."""
    return dict(machine.state.exclusions)


@pytest.fixture
def lost(machine: Machine) -> Machine:
    """Processor 0 ran on ``a`` of four hosts, which fell silent; request 2 asks ``b``."""
    machine.at_home({"0": "a"}, "b", "c", "d")
    stated = machine.feed(silent("r0"))
    assert stated == (*cancels(1), *falls_silent("a"), *excludes("a"), *asks(2, "b"))
    assert excluded(machine) == {A: False}
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
        CancelTimer(Timer(TimerKind.SILENCE, A)),
        CancelTimer(Timer(TimerKind.EXCLUSION, A)),
    )
    assert excluded(lost) == {}


def test_an_exclusion_ends_when_the_rm_calls_the_host_lost(lost: Machine) -> None:
    """Safety P3: from then on its word that the host runs again is believed."""
    lost.feed(live("b", "c", "d"))
    assert excluded(lost) == {}
    lost.feed(live("a", "b", "c", "d"), expired(2))
    assert lost.container("0").requested_host == "a"


@pytest.mark.parametrize("comes", [True, False])
def test_after_a_while_one_launcher_is_sent_to_probe(lost: Machine, *, comes: bool) -> None:
    """Safety P3: it ends the exclusion, or the host is excluded again and nothing is charged."""
    lost.feed(exclusion_over("a"))
    assert excluded(lost) == {A: True}
    assert lost.feed(expired(2)) == (*cancels(2), *asks(3, "a"))
    lost.feed(allocated(3))
    if comes:
        lost.feed(check_in("r3", "a", request=3))
        assert excluded(lost) == {}
        assert lost.phase("0") is P.STARTING
    else:
        assert lost.feed(never_came(3)) == (*cancels(3), *excludes("a"), *asks(4, "c"))
        assert excluded(lost) == {A: False}
        assert lost.container("0").failures == 0


def test_more_than_half_at_once_is_our_own_fault(machine: Machine) -> None:
    """Safety L5: what was excluded is let in again, no other is excluded, and the log says so."""
    machine.deploy({"0": "a", "1": "b", "2": "c"}, "a", "b", "c", "d")
    for number, host in enumerate("abc"):
        machine.run(str(number), f"r{number}", host, number + 1)
    machine.feed(silent("r0"), silent("r1"))
    assert excluded(machine) == {A: False, B: False}
    stated = machine.feed(silent("r2"))
    assert SuspectOurselves((A, B, C)) in stated
    assert excluded(machine) == {}
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
    machine.at_home({"0": "a"})
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
    machine.at_home({"0": "a", "1": "b"}, "c", "d", "e")
    machine.feed(silent("r0"), silent("r1"))
    assert excluded(machine) == {A: False, B: False}
    assert SuspectOurselves((A, B)) in machine.feed(live("a", "b", "c"))
    assert excluded(machine) == {}
    assert not any(isinstance(i, SuspectOurselves) for i in machine.feed(live("a", "b", "d")))


# --- a host that is drained: no container is placed there, whatever way leads to it


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
    machine.feed(drained("a"), silent("r0"), of_drain("0", "u2", 2, warm=True))
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
    assert orders(machine.feed(ended(1))) == []
    machine.feed(silent("r0"))
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
    machine.feed(drained("b"), silent("r0"))
    assert machine.container("0").requested_host == "c"
    assert machine.phase("0-0") is P.RUNNING


def test_the_reason_names_it() -> None:
    """Of what is in the way of a home, the first that holds."""
    settings = replace(SETTINGS, drained_hosts=frozenset({A}))
    state = replace(initial_state(settings), hosts=(A, B))
    silent = replace(state, exclusions=Map({B: False}))
    zero = ContainerState(ProcessorId("0"), tried=(B,))
    why = [
        host_search.why_not_home(Draft(known, ""), replace(zero, home=home), C)
        for known, home in ((state, A), (silent, B), (state, B))
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


# --- room decides which host is requested; a cluster too small for a container ends the job


SIZED = replace(SETTINGS, container_memory_mb=1024, container_cores=2)
WATCH = SetTimer(TOO_SMALL, SETTINGS.check_in_timeout_ms)


def report(
    host: str, memory_mb: int = 4096, cores: int = 8, *, free_mb: int | None = None
) -> HostReport:
    """A live host, by default empty."""
    free = memory_mb if free_mb is None else free_mb
    return HostReport(Host(host), None, memory_mb, cores, free, cores)


def lost_report(stated: HostReport) -> HostReport:
    """The same host, lost."""
    return replace(stated, is_live=False, free_memory_mb=0, free_cores=0)


def observed(*reports: HostReport) -> HostsObserved:
    """Those that are live, and what all of them have."""
    return HostsObserved(tuple(r.host for r in reports if r.is_live), reports)


@pytest.fixture
def sized(machine_with: MachineWith) -> Machine:
    """A machine whose containers need 1024 MB and 2 cores."""
    return machine_with(container_memory_mb=1024, container_cores=2)


def test_the_size_of_each_host_is_compared_with_one_container() -> None:
    """To the last MB and core; of lost hosts only their size counts."""
    a, b, c, d = (report(h) for h in "abcd")
    a = replace(a, free_memory_mb=1024, free_cores=2)
    b = replace(b, free_memory_mb=1023)
    c = replace(c, free_cores=1)
    small = report("s", 1023, 8)
    assert room_of((a, b, c, small, lost_report(d)), SIZED) == Room(
        frozenset({b.host, c.host, small.host}), frozenset({small.host}), largest=(4096, 8)
    )
    assert room_of((), SIZED) == Room()
    nothing_live = room_of((small, lost_report(d)), SIZED)
    assert (nothing_live.is_large_enough, nothing_live.could_be) == (False, True)
    few_cores = room_of((report("e", 4096, 1),), SIZED)
    assert not few_cores.could_be
    # YARN's own default rule for what fits on a host does not count cores.
    assert few_cores.small == frozenset()


def test_a_host_that_is_too_small_is_never_requested(sized: Machine) -> None:
    """Not even as home: its state was that of a smaller container."""
    sized.feed(model({"0": "a"}))
    decision = sized.decide(observed(report("a", 512), report("b")))
    assert decision.instructions == asks(1, "b")
    (asked,) = (r for r in decision.reasons if r.kind is ReasonKind.OTHER_HOST_ASKED)
    assert asked.detail == "a is too small for a container"
    assert sized.feed(expired(1)) == (CancelRequest(RequestId(1)), *asks(2, None))


def test_there_is_no_request_while_no_live_host_is_large_enough(sized: Machine) -> None:
    """What is outstanding is withdrawn, for any host too: the refusal would end Skein's AM."""
    large, small = report("a"), report("b", 512)
    sized.feed(model({"0": "a", "1": "b"}), observed(large, small))
    assert sized.feed(expired(1)) == (CancelRequest(RequestId(1)), *asks(2, None), *asks(3, None))
    decision = sized.decide(observed(lost_report(large), small))
    assert [type(i) for i in decision.instructions] == [
        CancelTimer,
        CancelRequest,
        CancelTimer,
        CancelRequest,
    ]
    stated = [r.kind for r in decision.reasons]
    assert stated.count(ReasonKind.CLUSTER_TOO_SMALL) == 1
    assert sized.phases == (P.QUEUED, P.QUEUED)
    assert sized.feed(observed(large, small)) == (*asks(4, None), *asks(5, None))


def test_a_launcher_of_a_withdrawn_request_must_exit(sized: Machine) -> None:
    """Granted when the large host was there, and being ended since; one of a living request is not.

    What an earlier driver asked for is of no request that this one has cancelled.
    """
    large, small = report("a"), report("b", 512)
    sized.feed(model({"0": None}), observed(large, small), observed(lost_report(large), small))
    assert sized.feed(check_in("r1", "a", request=1)) == releases("r1")
    assert sized.phase("0") is P.QUEUED
    sized.feed(check_in("r9", "a"))
    assert sized.phase("0") is P.STARTING


def test_a_cluster_that_can_never_hold_a_container_ends_the_job(sized: Machine) -> None:
    """Reference 4.5: FAILED, in one line, when it has been so for a while."""
    assert sized.feed(
        model({"0": "a"}), observed(report("a", 512), lost_report(report("b", 900)))
    ) == (WATCH,)
    decision = sized.decide(TimerFired(TOO_SMALL))
    end = decision.instructions[-1]
    assert isinstance(end, EndJob)
    assert end.result.value == "FAILED"
    assert end.diagnostics == (
        "no host can hold a container: one needs 1024 MB and 2 cores "
        "(cluster-manager.container.memory.mb and .cpu.cores), and no host of the cluster has "
        "more than 900 MB or 8 cores"
    )


def test_the_time_to_wait_runs_on_while_nothing_changes(sized: Machine) -> None:
    """The next poll finds it as it was."""
    sized.feed(model({"0": "a"}), observed(report("a", 512)))
    assert sized.feed(observed(report("a", 512), report("b", 600))) == ()


def test_a_large_host_that_comes_or_is_only_lost_saves_the_job(sized: Machine) -> None:
    """Nodes come one by one after a restart of the ResourceManager; a lost one may come back."""
    small, large = report("a", 512), report("b")
    sized.feed(model({"0": None}))
    assert sized.feed(observed(small)) == (WATCH,)
    assert sized.feed(observed(small, lost_report(large))) == (CancelTimer(TOO_SMALL),)
    assert sized.feed(observed(small)) == (WATCH,)
    assert sized.feed(observed(small, large)) == (*asks(1, "b"), CancelTimer(TOO_SMALL))
    sized.stale(TimerFired(TOO_SMALL))


def test_a_running_container_needs_no_room(sized: Machine) -> None:
    """The job goes on as it is, whatever host sizes the ResourceManager reports."""
    sized.feed(model({"0": "a"}), observed(report("a")))
    sized.run("0", "r1", "a", request=1)
    assert sized.feed(observed(report("a", 512))) == ()
    assert sized.state.phase is JobPhase.ACTIVE


def test_unknown_sizes_count_as_room(machine: Machine) -> None:
    """Hosts without reports, and a size that is not known."""
    assert machine.feed(model({"0": None}), live("a")) == asks(1, "a")
    requests = machine.feed(observed(report("a", 0, 0)))
    assert not [i for i in requests if isinstance(i, RequestResource)]
    assert machine.phase("0") is P.REQUESTED


def test_without_reports_the_known_sizes_stay(sized: Machine) -> None:
    """As when a loss of hosts is tried out: the others have no more room for that."""
    sized.feed(model({"0": "a"}), observed(report("a", free_mb=0), report("b", free_mb=0)))
    assert sized.state.room.full == {"a", "b"}
    sized.feed(live("b"))
    assert sized.state.room.full == {"a", "b"}
