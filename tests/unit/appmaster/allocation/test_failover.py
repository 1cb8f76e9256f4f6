"""An active that cannot go home: each flow of STANDBY, part 3, A, and what may fail in it.

Names as S4 are the scenarios of the reference, 14.5; where ours does otherwise, it is said.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.failover import is_replaced
from homeport.appmaster.allocation.job_state.state import (
    ContainerPhase,
    Failover,
    standby_stop_timer,
)
from homeport.appmaster.allocation.protocol.events import (
    Event,
    FailoverStep,
    LagsReported,
    LauncherSilent,
    ResourceEnded,
    TimerFired,
)
from homeport.appmaster.allocation.protocol.instructions import (
    EndFailover,
    WriteFailover,
    WriteLocality,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    TAKEN_BACK,
    Machine,
    asks,
    check_in,
    deployed,
    inc,
    job,
    live,
    model,
    permits,
    started,
    stopped,
    stops,
)
from tests.unit.appmaster.allocation.failover_words import (
    FIRST,
    MADE_WAY,
    SECOND,
    ZERO,
    A,
    B,
    C,
    chooses,
    news,
)

P = ContainerPhase


@pytest.fixture
def triple(machine: Machine) -> Machine:
    """0 runs on a in r0, 0-0 on b in r1, 0-1 on c in r2; d is live, too."""
    return deployed(machine, {"0": "a", "0-0": "b", "0-1": "c"}, "a", "b", "c", "d")


# --- the flow of the document


def test_the_standby_that_stops_is_known_until_its_active_runs(pair: Machine) -> None:
    """Its launcher may begin what the active's start will need; at any other stop it must not."""
    assert not is_replaced(pair.state, inc("0-0", 1).processor_id)
    pair.feed(TAKEN_BACK)
    assert is_replaced(pair.state, inc("0-0", 1).processor_id)
    assert not is_replaced(pair.state, inc("0", 1).processor_id)
    pair.feed(MADE_WAY, check_in("r1", "b"), started("0", 2))
    assert not is_replaced(pair.state, inc("0-0", 1).processor_id)


@pytest.mark.parametrize("lost", [live("b", "c"), LauncherSilent(ResourceId("r0"))], ids=str)
def test_a_host_that_is_lost_or_silent_is_not_tried(pair: Machine, lost: Event) -> None:
    """The ResourceManager's word, or the keeper's: the failover begins with the evidence."""
    records = news(pair, lost, LauncherSilent(ResourceId("r0")))
    assert records == chooses(FIRST, B)


def test_a_launcher_that_was_set_aside_for_the_standby_serves_the_active(pair: Machine) -> None:
    """The standby has just stopped by itself: what it would go on with is the active's."""
    pair.feed(stopped("0-0", 1))
    records = news(pair, TAKEN_BACK)
    assert records == chooses(FIRST, B, step=FailoverStep.STANDBY_HOST)
    assert pair.container("0").resource_id == "r1"
    assert pair.feed(check_in("r1", "b")) == permits("r1", "0", 2, (inc("0", 1),))


def test_a_standby_that_runs_on_the_home_of_its_active_is_the_one_to_take(machine: Machine) -> None:
    """S10: 0 is offered the host that 0-0 runs on: a failover to that one, whatever its lag."""
    machine.feed(job({"0": "b", "0-0": "b", "0-1": "c"}, p0=1, **{"p0-0": 1, "p0-1": 1}))
    machine.feed(check_in("r1", "b", inc("0-0", 1)), check_in("r2", "c", inc("0-1", 1)))
    machine.feed(LagsReported({SECOND: 0}))
    assert news(machine, live("a", "b", "c")) == chooses(FIRST, B)


# --- replication 2


@pytest.mark.parametrize(
    ("lags", "chosen"),
    [
        ({FIRST: 5, SECOND: 3}, (SECOND, C)),
        ({FIRST: 3, SECOND: 3}, (FIRST, B)),
        ({SECOND: 900}, (SECOND, C)),
        ({}, (FIRST, B)),
    ],
    ids=str,
)
def test_the_standby_with_the_least_lag_is_taken(
    triple: Machine, lags: dict[ProcessorId, int], chosen: tuple[ProcessorId, Host]
) -> None:
    """Unknown lags sort last; the id decides between equals."""
    triple.feed(LagsReported(lags))
    assert news(triple, TAKEN_BACK) == chooses(*chosen)


def test_a_lag_is_that_of_one_incarnation_of_a_standby(triple: Machine) -> None:
    """The next permit makes it unknown; that of an active or an unknown processor is dropped."""
    triple.stale(LagsReported({ZERO: 3}), LagsReported({ProcessorId("9"): 3}), LagsReported({}))
    triple.feed(LagsReported({FIRST: 4}))
    triple.stale(LagsReported({FIRST: 4}))
    assert triple.container("0-0").lag == 4
    triple.feed(stopped("0-0", 1), check_in("r1", "b"))
    assert triple.container("0-0").lag is None


def test_the_next_standby_is_taken_when_the_first_ones_host_does_not_answer(
    triple: Machine,
) -> None:
    """S7: 0-0 is not chosen again in this failover, wherever it is; then any other host."""
    triple.feed(TAKEN_BACK, LauncherSilent(ResourceId("r1")))
    records = triple.records
    assert records[-3:] == chooses(SECOND, C, FIRST)
    triple.feed(LauncherSilent(ResourceId("r2")))
    last = triple.records[-1]
    assert last == WriteFailover(ZERO, 1, None, None, FailoverStep.OTHER_HOST, (FIRST, SECOND))
    assert triple.container("0").failover == Failover(FailoverStep.OTHER_HOST, used=(FIRST, SECOND))


# --- what fails in a failover


def test_the_standbys_launcher_may_be_gone_when_it_has_stopped(pair: Machine) -> None:
    """YARN says so before the evidence is in: a launcher there is requested at once (safety P2)."""
    pair.feed(TAKEN_BACK)
    assert pair.feed(ResourceEnded(RequestId(2))) == asks(3, "b")
    pair.feed(MADE_WAY)
    assert pair.container("0").request_id == 3
    assert pair.container("0").requested_host == "b"
    pair.run("0", "r3", "b", 3)
    assert pair.container("0").failover is None


def test_a_stop_that_is_not_confirmed_in_time_leads_to_the_next_choice(triple: Machine) -> None:
    """S8: 0-0 runs on; when it stops after all it goes on at its launcher."""
    triple.feed(TAKEN_BACK)
    assert news(triple, TimerFired(standby_stop_timer(ZERO)))[-3:] == chooses(SECOND, C, FIRST)
    assert triple.phases == (P.FAILING_OVER, P.STOPPING, P.STOPPING)
    triple.feed(MADE_WAY)
    assert triple.phase("0-0") is P.ASSIGNED
    triple.stale(TimerFired(standby_stop_timer(ProcessorId("9"))))


def test_the_standbys_host_may_die_while_its_stop_is_waited_for(triple: Machine) -> None:
    """Its evidence is not waited for: the next standby is there."""
    triple.feed(TAKEN_BACK)
    assert news(triple, live("a", "c", "d"))[-3:] == chooses(SECOND, C, FIRST)


def test_actives_that_want_the_same_host_take_each_its_own_standbys_launcher(
    machine: Machine,
) -> None:
    """0 and 1 fail at once, and both have their standby on c."""
    homes = {"0": "a", "1": "b", "0-0": "c", "1-0": "c"}
    published = replace(model(homes), standbys={FIRST: ZERO, ProcessorId("1-0"): ProcessorId("1")})
    machine.feed(published, live("a", "b", "c", "d"))
    for processor, resource, host, request in (
        ("0", "r0", "a", 1),
        ("1", "r1", "b", 2),
        ("0-0", "r2", "c", 3),
    ):
        machine.run(processor, resource, host, request)
    machine.run("1-0", "r3", "c", 4)
    gone = ResourceEnded(RequestId(2), ResourceId("r1"), "preempted", is_taken_back=True)
    machine.feed(TAKEN_BACK, gone, MADE_WAY, stopped("1-0", 1, StopCause.ORDERED))
    assert [machine.container(p).resource_id for p in ("0", "1")] == ["r2", "r3"]


def test_an_active_that_is_found_running_after_all_stays(pair: Machine) -> None:
    """Its launcher was thought gone. The stream is put right, and the standby starts again."""
    pair.feed(TAKEN_BACK)
    records = news(pair, check_in("r0", "a", inc("0", 1)))
    assert records == (EndFailover(ZERO), WriteLocality(ZERO, A, 1))
    pair.feed(MADE_WAY)
    assert pair.phases == (P.RUNNING, P.ASSIGNED)


def test_a_standby_that_is_found_beside_its_active_is_stopped(machine: Machine) -> None:
    """Whatever is on its way so long: Invariant-1 is mended, with evidence."""
    machine.feed(job({"0": "a", "0-0": "b"}, p0=1, **{"p0-0": 1}))
    machine.feed(check_in("r0", "a", inc("0", 1)))
    assert machine.feed(check_in("r1", "a", inc("0-0", 1))) == stops("r1", "0-0", 1)
    machine.feed(live("a", "b"), stopped("0-0", 1, StopCause.ORDERED))
    assert machine.container("0-0").requested_host == "b"
