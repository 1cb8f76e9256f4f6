"""The phases of recoveries, from the allocator's own decisions at times that the test sets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import ContainerPhase
from homeport.appmaster.allocation.protocol import events
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind
from homeport.appmaster.allocation.protocol.reasons import Reason, ReasonKind
from homeport.appmaster.report.recovery import RecoveryKind, RecoveryPhase, cause_of
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from tests.unit.appmaster.allocation.conftest import (
    check_in,
    expired,
    inc,
    job,
    live,
    model,
    rest_over,
    started,
    stopped,
    wants,
)
from tests.unit.appmaster.allocation.recovery_words import START_S, WALL_MS, Watched


def running(published: events.JobModelPublished) -> Watched:
    """Each processor runs at home, in r0, r1 and so on; a, b and c are live."""
    watched = Watched()
    watched.at(0, published, live("a", "b", "c"))
    for number, (processor, host) in enumerate(published.processors.items()):
        watched.at(0, check_in(f"r{number}", str(host), request=number + 1), started(processor, 1))
    return watched


@pytest.fixture
def watched() -> Watched:
    """Active 0 runs on a, its standby 0-0 on b."""
    return running(job({"0": "a", "0-0": "b"}))


@pytest.fixture
def alone() -> Watched:
    """Active 0 runs on a, 1 on b, without standbys."""
    return running(model({"0": "a", "1": "b"}))


def comes_back(watched: Watched, cause: StopCause = StopCause.KILLED, at_ms: int = 100) -> None:
    """The first incarnation of 0 ends, and its launcher checks in 100 ms later."""
    watched.at(at_ms, stopped("0", 1, cause))
    watched.at(at_ms + 100, check_in("r0", "a", request=1))


def test_a_failover_from_end_to_end(watched: Watched) -> None:
    """Each phase begins where the one before ends; the standby that made way recovers too."""
    watched.recoveries.seen(inc("0", 1), 1_000)
    watched.at(4_600, events.LauncherSilent(ResourceId("r0")))
    assert watched.machine.phase("0") is ContainerPhase.FAILING_OVER
    assert watched.phases(4_700) == {"detect": 3_600, "decide": 10, "stop": 90}
    watched.at(5_000, stopped("0-0", 1, StopCause.ORDERED, 143))
    assert watched.phases(5_100)["resource"] == 100
    watched.at(5_200, check_in("r1", "b", request=2))
    assert watched.stated(5_210)["kind"] == "failover"
    watched.runs(8_000, "0", 2)
    watched.works("0", 2, 1_900)
    assert watched.stated(99_999) == {
        "cause": "launcher-silent",
        "kind": "failover",
        "from": "a",
        "to": "b",
        "began_ms": WALL_MS + 1_000,
        "phases_ms": {
            "detect": 3_600,
            "decide": 10,
            "stop": 390,
            "resource": 210,
            "start": 1_390,
            "fence": 500,
            "restore": 900,
            "first-batch": 400,
        },
        "total_ms": 7_400,
        "is_over": True,
    }
    assert watched.ended == [watched.last()]
    assert watched.last("0-0").cause == "ordered"


def test_a_container_that_fails_at_home_comes_back_on_its_launcher(alone: Watched) -> None:
    """No stop has to be waited for; the launcher reports how long ago it saw the end."""
    alone.recoveries.seen(inc("0", 1), 980)
    alone.at(1_000, stopped("0", 1, StopCause.KILLED))
    alone.at(1_500, check_in("r0", "a", request=1))
    alone.runs(4_000, "0", 2)
    alone.works("0", 2, 1_600)
    body = alone.stated(4_500)
    assert (body["kind"], body["from"], body["to"], body["cause"]) == ("home", "a", "a", "killed")
    assert body["phases_ms"] == {
        "detect": 20,
        "decide": 10,
        "stop": 0,
        "resource": 500,
        "start": 1_090,
        "fence": 500,
        "restore": 900,
        "first-batch": 100,
    }


def test_home_is_requested_before_a_standby(watched: Watched) -> None:
    """Its host has no room for it any more: resource, then stop, then resource."""
    watched.recoveries.seen(inc("0", 1), 0)
    watched.at(100, events.ResourceEnded(resource_id=ResourceId("r0")))
    assert watched.machine.phase("0") is ContainerPhase.REQUESTED
    watched.at(5_000, expired(3))
    assert watched.machine.phase("0") is ContainerPhase.FAILING_OVER
    watched.at(5_500, stopped("0-0", 1, StopCause.ORDERED, 143))
    assert watched.phases(5_600) == {
        "detect": 100,
        "decide": 10,
        "stop": 490,
        "resource": 4_900 + 100,
    }


def test_a_failover_to_a_second_standby_is_one_recovery() -> None:
    """The first choice does not stop in time: another one stops for it, and that is all."""
    watched = running(job({"0": "a", "0-0": "b", "0-1": "c"}))
    watched.recoveries.seen(inc("0", 1), 0)
    watched.at(100, events.LauncherSilent(ResourceId("r0")))
    first = watched.machine.container("0").failover
    watched.at(1_000, events.TimerFired(Timer(TimerKind.STANDBY_STOP, ProcessorId("0"))))
    second = watched.machine.container("0").failover
    assert (first and first.standby, second and second.standby) == ("0-0", "0-1")
    watched.at(1_500, stopped("0-1", 1, StopCause.ORDERED, 143))
    watched.at(1_600, check_in("r2", "c", request=3))
    assert watched.stated(1_610)["kind"] == "failover"
    assert watched.phases(1_610) == {
        "detect": 100,
        "decide": 10,
        "stop": 1_390,
        "resource": 110,
        "start": 0,
    }


def test_a_failure_before_its_first_transaction_too(alone: Watched) -> None:
    """It had started, but not worked: it has not recovered, and its fence and restore count."""
    alone.recoveries.seen(inc("0", 1), 0)
    comes_back(alone)
    alone.runs(2_000, "0", 2)
    alone.at(3_000, stopped("0", 2, StopCause.FAILED))
    assert alone.ended == []
    alone.at(3_100, check_in("r0", "a", request=1))
    assert alone.phases(3_110)["first-batch"] == 1_000
    alone.runs(5_000, "0", 3)
    alone.works("0", 2, 9_000)
    assert not alone.last().is_over
    alone.works("0", 3, 1_600)
    assert alone.phases(0)["restore"] == 1_800
    assert [r.epoch for r in alone.ended] == [3]


def test_an_end_after_it_worked_begins_another(alone: Watched) -> None:
    """Of which nothing of the first is a part."""
    for epoch, at_ms in ((1, 1_000), (2, 20_000)):
        alone.recoveries.seen(inc("0", epoch), at_ms)
        alone.at(at_ms, stopped("0", epoch, StopCause.SIGNALLED))
        alone.at(at_ms + 100, check_in("r0", "a", request=1))
        alone.runs(at_ms + 3_000, "0", epoch + 1)
        alone.works("0", epoch + 1, 1_500)
    assert [r.shown(0).total_ms for r in alone.ended] == [3_000, 3_000]


def test_a_standby_has_recovered_when_it_runs(watched: Watched) -> None:
    """It commits no transaction: its first batch takes no time."""
    watched.recoveries.seen(inc("0-0", 1), 0)
    watched.at(100, stopped("0-0", 1, StopCause.KILLED))
    watched.at(200, check_in("r1", "b", request=2))
    watched.runs(2_000, "0-0", 2)
    assert [r.processor_id for r in watched.ended] == ["0-0"]
    assert watched.stated(0, "0-0")["is_over"]
    assert watched.phases(0, "0-0")["first-batch"] == 0


def test_a_model_that_overtakes_a_starting_container(alone: Watched) -> None:
    """In mid-recovery: it stops, and starts again; one recovery all the while."""
    comes_back(alone)
    changed = replace(
        model({"0": "a", "1": "b"}, 2),
        epochs={ProcessorId("0"): 2, ProcessorId("1"): 1},
        floors={ProcessorId("0"): 3},
    )
    alone.at(1_000, changed)
    alone.at(1_300, stopped("0", 2, StopCause.ORDERED, 143))
    alone.at(1_400, check_in("r0", "a", request=1))
    assert alone.last().cause == "killed"
    assert alone.phases(1_410) == {
        "decide": 10 + 10,
        "stop": 290,
        "resource": 100 + 110,
        "start": 790,
        "detect": 0,
    }


def test_a_container_that_is_moved_before_it_worked(alone: Watched) -> None:
    """It runs again, but has not worked: the operator's stop is in the same recovery."""
    comes_back(alone)
    alone.runs(2_000, "0", 2)
    alone.at(2_500, wants("0", to="c"), check_in("r3", "c", request=3))
    alone.at(3_000, stopped("0", 2, StopCause.ORDERED, 143))
    alone.at(3_100, check_in("r3", "c", request=3))
    assert alone.phases(3_110)["stop"] == 490
    assert alone.last().kind is RecoveryKind.ELSEWHERE


def test_an_end_without_an_observed_last_sign_of_life(alone: Watched) -> None:
    """As of a keeper that is new: what it took to detect it is left out, not guessed."""
    alone.recoveries.seen(inc("0", 7), 10)
    alone.at(1_000, events.LauncherSilent(ResourceId("r0")))
    assert alone.stated(1_100)["began_ms"] == WALL_MS + 1_000
    assert alone.phases(1_100) == {"decide": 10, "stop": 0, "resource": 90}


def test_a_start_without_its_seconds(alone: Watched) -> None:
    """Its own report lacks them: its fence and restore are left out, and its end is shown."""
    comes_back(alone)
    alone.at(2_000, started("0", 2))
    alone.recoveries.started(inc("0", 2), START_S, 2_100)
    alone.works("0", 2, 9_999, at_ms=2_500)
    assert list(alone.phases(0)) == ["decide", "stop", "resource", "start", "first-batch"]
    assert alone.phases(0)["first-batch"] == 500


def test_a_container_that_does_not_come_back_has_no_recovery(alone: Watched) -> None:
    """Given up: the recovery before it is forgotten with it; one that is over stays."""
    alone.at(100, stopped("0", 1, StopCause.FAILED), check_in("r0", "a", request=1))
    for epoch in (2, 3):
        alone.at(200, stopped("0", epoch, StopCause.FAILED), rest_over("0"))
        alone.at(200, check_in("r0", "a", request=1))
    assert alone.recoveries.last(ProcessorId("0")) is None
    assert alone.ended == []
    alone.tells(300, "1", ReasonKind.GIVEN_UP)
    assert alone.recoveries.last(ProcessorId("1")) is None


def test_a_finish_before_a_transaction_ends_the_recovery(alone: Watched) -> None:
    """There was nothing left to do; a finish afterwards changes nothing."""
    comes_back(alone)
    alone.runs(2_000, "0", 2)
    alone.at(2_700, stopped("0", 2, StopCause.FINISHED, 0))
    assert alone.phases(0)["first-batch"] == 700
    alone.tells(9_000, "0", ReasonKind.FINISHED)
    assert [r.epoch for r in alone.ended] == [2]


def test_a_report_about_an_unknown_container_is_ignored(alone: Watched) -> None:
    """Reasons about hosts, and of processors that a model has just taken away."""
    host = Reason(ReasonKind.HOST_OPEN, None, Host("a"))
    alone.note(100, events.ShutdownRequested(), Decision(alone.machine.state, (), (), (host,)))
    alone.tells(100, "9", ReasonKind.CHARGED)
    alone.tells(100, "9", ReasonKind.STARTED)
    alone.tells(200, "9", ReasonKind.CHARGED)
    assert alone.last("9").from_host is None
    alone.tells(300, "9", ReasonKind.PERMITTED)
    assert alone.last("9").phase is RecoveryPhase.DECIDE


@pytest.mark.parametrize(
    ("event", "cause"),
    [
        (events.ContainerStopped(inc("0", 1), StopCause.LEASE_LOST, 1), "lease-lost"),
        (events.LauncherSilent(ResourceId("r")), "launcher-silent"),
        (events.ResourceEnded(resource_id=ResourceId("r")), "resource-ended"),
        (events.ResourceEnded(resource_id=ResourceId("r"), is_taken_back=True), "taken-back"),
        (events.JobModelPublished(1, {}), "model-change"),
        (events.ShutdownRequested(), "other"),
    ],
)
def test_the_event_gives_the_cause(event: events.Event, cause: str) -> None:
    """A label per way to end, and no more."""
    assert cause_of(event) == cause
