"""Standby scenarios S1 to S18 of samza-behaviours 14.5, by what ours does in the same situation.

Shipped Samza deletes no locality and keeps failovers in memory only; ours follows the document.
Where Samza releases a launcher and asks for any host, the best other known host is requested here.
"""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import (
    HostReport,
    HostsObserved,
    LauncherSilent,
    ResourceEnded,
    Timer,
    TimerFired,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    ReleaseResource,
    StopContainer,
    WriteFailover,
)
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from tests.spec.pairs import asked, group, loses_launcher, request_of, running
from tests.unit.appmaster.allocation.conftest import (
    Machine,
    MachineWith,
    check_in,
    expired,
    inc,
    live,
    permits,
    stopped,
)


@pytest.fixture
def pair(machine: Machine) -> Machine:
    """0 runs on h1, its standby 0-0 on h2; h3 is empty."""
    return running(machine, {"0": "h1", "0-0": "h2"}, "h3")


def _kinds(machine: Machine, event: object) -> set[ReasonKind]:
    return {r.kind for r in machine.decide(event).reasons}  # type: ignore[arg-type] # an event


def _stopped_standby(machine: Machine, processor: str = "0-0") -> tuple[str | None, ...]:
    return tuple(asked(machine.feed(stopped(processor, 1, StopCause.ORDERED, 0))))


def test_without_standbys_no_containers_are_kept_apart(machine: Machine) -> None:
    """S1: ten actives and no standby: all of them may be on one host."""
    machine.feed(group({str(n): "a" for n in range(10)}), live("a"))
    for n in range(10):
        machine.feed(check_in(f"r{n}", "a"))
    assert set(machine.phases) == {P.STARTING}


@pytest.mark.parametrize("replicas", [1, 2])
def test_each_container_conflicts_with_the_rest_of_its_group(
    machine: Machine, replicas: int
) -> None:
    """S2: ten actives with one or two standbys each: of a group one at most is on a host."""
    names = [str(n) for n in range(10)]
    names += [f"{n}-{r}" for n in range(10) for r in range(replicas)]
    machine.feed(group(dict.fromkeys(names, "a")), live("a"))
    for n in range(30):
        machine.feed(check_in(f"r{n}", "a"))
    on_a = [c for c in machine.state.containers if c.phase is P.STARTING]
    assert sorted({c.replica_of or c.processor_id for c in on_a}) == names[:10]
    assert len(on_a) == 10


def test_a_container_that_was_taken_back_is_failed_over_at_once(pair: Machine) -> None:
    """S4: 0 exits -100: failed to the standby, which is stopped; no request before its stop.

    Then 0 is on h2, on the standby's launcher, and 0-0 is requested elsewhere.
    """
    decision = pair.decide(loses_launcher("0", is_taken_back=True))
    assert ReasonKind.FAILOVER_TO_STANDBY in {r.kind for r in decision.reasons}
    assert StopContainer(ResourceId("r-0-0"), inc("0-0", 1)) in decision.instructions
    assert asked(decision.instructions) == []
    (elsewhere,) = _stopped_standby(pair)
    assert elsewhere in {"h1", "h3"}
    assert pair.feed(check_in("r-0-0", "h2")) == permits("r-0-0", "0", 2, (inc("0", 1),))


def test_a_container_that_fails_is_tried_at_home_first(pair: Machine) -> None:
    """S5: 0 exits 1 and its launcher goes with it: only h1 is requested, and 0 runs there again."""
    stated = pair.feed(stopped("0", 1), ResourceEnded(request_id=RequestId(1)))
    assert asked(stated) == ["h1"]
    pair.run("0", "r9", "h1", request_of(pair, "0"))
    assert (pair.phase("0-0"), pair.container("0-0").epoch) == (P.RUNNING, 1)
    assert not [r for r in pair.records if isinstance(r, WriteFailover)]


def test_home_that_does_not_answer_leads_to_the_standby(pair: Machine) -> None:
    """S6: as S5, but h1 does not answer: the request is cancelled, and S4 follows."""
    pair.feed(stopped("0", 1), ResourceEnded(request_id=RequestId(1)))
    request = request_of(pair, "0")
    stated = pair.feed(expired(request))
    assert CancelRequest(request) in stated
    assert StopContainer(ResourceId("r-0-0"), inc("0-0", 1)) in stated
    assert pair.phase("0") is P.FAILING_OVER


def test_a_choice_that_fails_is_followed_by_the_next(machine: Machine) -> None:
    """S7: h2 is lost with the standby: the other running one; its launcher fails: any other host.

    Neither of the two is chosen again in this failover.
    """
    running(machine, {"0": "h1", "0-0": "h2", "0-1": "h3"}, "h4", "h5", "h6", "h7")
    machine.feed(LauncherSilent(ResourceId("r-0")))
    first = machine.container("0").failover
    machine.feed(LauncherSilent(ResourceId("r-0-0")))
    second = machine.container("0").failover
    assert first is not None
    assert second is not None
    assert (first.standby, second.standby) == ("0-0", "0-1")
    stated = _kinds(machine, LauncherSilent(ResourceId("r-0-1")))
    assert ReasonKind.FAILOVER_TO_NOBODY in stated
    assert machine.container("0").requested_host in {"h4", "h5", "h6", "h7"}


def test_a_standby_that_does_not_stop_is_left_alone(machine: Machine) -> None:
    """S8: its stop is not confirmed in time: the next candidate; it is not chosen again."""
    running(machine, {"0": "h1", "0-0": "h2", "0-1": "h3"})
    machine.feed(loses_launcher("0", is_taken_back=True))
    stated = machine.feed(TimerFired(Timer(TimerKind.STANDBY_STOP, ProcessorId("0"))))
    assert StopContainer(ResourceId("r-0-1"), inc("0-1", 1)) in stated
    under_way = machine.container("0").failover
    assert under_way is not None
    assert under_way.used == ("0-0", "0-1")
    assert (machine.phase("0"), under_way.standby) == (P.FAILING_OVER, "0-1")


def test_a_standby_is_never_given_its_actives_host(machine: Machine) -> None:
    """S9: 0-0 is offered h1, where 0 runs: the launcher goes, 0-0 asks on elsewhere."""
    machine.feed(group({"0": "h1", "0-0": None}), live("h1", "h2"))
    machine.run("0", "r-0", "h1", 1)
    stated = machine.feed(check_in("r9", "h1", request=2))
    assert ReleaseResource(ResourceId("r9")) in machine.feed(check_in("r9", "h1")) or (
        ReleaseResource(ResourceId("r9")) in stated
    )
    assert (machine.phase("0-0"), machine.container("0-0").requested_host) == (P.REQUESTED, "h2")


def test_an_active_is_never_given_its_standbys_host(pair: Machine) -> None:
    """S10: 0 is offered h2, where 0-0 runs: not while that runs; the failover stops it first."""
    pair.feed(loses_launcher("0"))
    pair.feed(check_in("r9", "h2", request=request_of(pair, "0")))
    assert pair.container("0").resource_id is None
    if pair.phase("0") is not P.FAILING_OVER:
        pair.feed(expired(request_of(pair, "0")))
    assert (pair.phase("0"), pair.phase("0-0")) == (P.FAILING_OVER, P.STOPPING)


@pytest.mark.parametrize(("host", "is_taken"), [("h3", True), ("h1", False)])
def test_a_standby_takes_a_surplus_that_passes_the_check(
    pair: Machine, host: str, *, is_taken: bool
) -> None:
    """S11: 0-0's request expires with a surplus on h3: it is taken; with one on h1: it is not."""
    pair.feed(loses_launcher("0-0"), check_in("r9", host))
    pair.feed(expired(request_of(pair, "0-0")))
    assert (pair.container("0-0").resource_id == "r9") is is_taken
    assert pair.phase("0-0") is (P.ASSIGNED if is_taken else P.REQUESTED)


def test_an_active_prefers_its_standby_to_a_surplus(pair: Machine) -> None:
    """S12: 0's request expires with a surplus on h3: it is failed to its standby instead."""
    pair.feed(loses_launcher("0"), check_in("r9", "h3"))
    pair.feed(expired(request_of(pair, "0")))
    assert pair.phase("0") is P.FAILING_OVER
    assert pair.container("0").home == "h2"


def test_a_standby_that_fails_comes_back(pair: Machine) -> None:
    """S13: 0-0 exits 1: on its own host again; taken back (-102): home comes first here too.

    Samza asks for any host then; its state is on h2 all the same.
    """
    pair.feed(stopped("0-0", 1))
    assert pair.container("0-0").resource_id == "r-0-0"
    again = running(Machine(), {"0": "h1", "0-0": "h2"}, "h3")
    stated = again.feed(loses_launcher("0-0", is_taken_back=True))
    assert asked(stated) in (["h2"], ["h3"])
    assert again.phase("0") is P.RUNNING


def test_a_launch_that_fails_leads_on(pair: Machine) -> None:
    """S14: no launcher comes at home: 0 is failed to its standby; 0-0 asks the next host."""
    pair.feed(loses_launcher("0"))
    pair.feed(ResourceEnded(request_id=request_of(pair, "0")))
    assert pair.phase("0") is P.FAILING_OVER
    other = running(Machine(), {"0": "h1", "0-0": "h2"}, "h3")
    other.feed(loses_launcher("0-0"))
    assert asked(other.feed(ResourceEnded(request_id=request_of(other, "0-0")))) == ["h3"]


def test_two_standbys_on_one_host_are_put_right(machine: Machine) -> None:
    """S15: a driver that starts again finds both on h2: Samza's AM fails; here one is stopped."""
    machine.feed(group({"0": None, "0-0": "h2", "0-1": "h2"}, **{"p0-0": 1, "p0-1": 1}))
    found = machine.feed(
        check_in("r1", "h2", running=Incarnation(ProcessorId("0-0"), 1)),
        check_in("r2", "h2", running=Incarnation(ProcessorId("0-1"), 1)),
    )
    assert StopContainer(ResourceId("r2"), inc("0-1", 1)) in found
    assert machine.phase("0-0") is P.RUNNING


def test_without_a_standby_to_go_to_any_host_is_requested(machine_with: MachineWith) -> None:
    """S16: no standby runs, none has a locality: any other host, and that is reported."""
    machine = machine_with()
    machine.feed(group({"0": "h1", "0-0": None}), live("h1", "h2"))
    machine.run("0", "r-0", "h1", 1)
    assert ReasonKind.FAILOVER_TO_NOBODY in _kinds(machine, LauncherSilent(ResourceId("r-0")))
    assert machine.container("0").requested_host == "h2"


def test_racks_are_what_the_hosts_reports_say(machine_with: MachineWith) -> None:
    """S18: hosts of one rack are one fault domain; a host that is new is known by its report.

    Samza queries YARN for each host that it does not know; here every poll has all hosts.
    """
    machine = machine_with(racks_are_apart=True)
    machine.feed(group({"0": "h1", "0-0": None}), _in_racks(h1="/r1", h2="/r1"))
    machine.run("0", "r-0", "h1", 1)
    assert machine.phase("0-0") is P.QUEUED
    assert asked(machine.feed(_in_racks(h1="/r1", h2="/r1", h3="/r3"))) == ["h3"]


def _in_racks(**racks: str) -> HostsObserved:
    reports = tuple(HostReport(Host(h), rack, 8192, 8, 8192, 8) for h, rack in racks.items())
    return HostsObserved(tuple(map(Host, racks)), reports)
