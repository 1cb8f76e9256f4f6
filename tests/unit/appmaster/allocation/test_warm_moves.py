"""A move whose state is read at the destination first: each step, and what may go wrong in it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation import standby_container_manager as standbys
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import PlacementStep, SparkWait
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.protocol.events import (
    ContainerStopped,
    Event,
    LagsReported,
    PlacementRequested,
    SettingsChanged,
    ShutdownRequested,
    SparesReported,
    Timer,
    TimerFired,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelTimer,
    DeleteLocality,
    SetTimer,
)
from homeport.appmaster.allocation.standby_container_manager import is_replaced
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import PlacementSource
from tests.unit.appmaster.allocation.conftest import (
    ACCEPTED,
    BAD,
    BEGUN,
    DONE,
    FAILED,
    Machine,
    MachineWith,
    allocated,
    answers,
    asked,
    asks,
    check_in,
    deployed,
    ended,
    inc,
    job,
    live,
    orders,
    permits,
    releases,
    said,
    settled,
    silent,
    started,
    stopped,
    stops,
)

WARM = ProcessorId("0-warm")


def wants_warm(
    processor: str = "0", to: str = "b", uuid: str = "u1", at: int = 1
) -> PlacementRequested:
    """A warm move is read."""
    return PlacementRequested(replace(asked(processor, to, uuid, at), is_warm=True))


def behind(lag: int, standby: str = WARM) -> LagsReported:
    """The standby is so far behind."""
    return LagsReported({ProcessorId(standby): lag})


def ordered(processor: str, epoch: int) -> ContainerStopped:
    """It has stopped, as it was ordered to."""
    return stopped(processor, epoch, StopCause.ORDERED, 143)


@pytest.fixture
def alone(machine: Machine) -> Machine:
    """0 runs on a in r0; b and c are live."""
    return deployed(machine, {"0": "a"}, "a", "b", "c")


@pytest.fixture
def warming(alone: Machine) -> Machine:
    """0 moves to b: its temporary standby has started in r1."""
    assert alone.feed(wants_warm()) == asks(2, "b")
    given = alone.feed(allocated(2), check_in("r1", "b", request=2))
    assert orders(given) == list(permits("r1", WARM, 1))
    assert step(alone) is PlacementStep.WARMING
    alone.feed(started(WARM, 1))
    return alone


@pytest.fixture
def giving_way(warming: Machine) -> Machine:
    """The standby got the order to stop."""
    assert orders(warming.feed(behind(0))) == list(stops("r1", WARM, 1))
    assert step(warming) is PlacementStep.GIVING_WAY
    return warming


def step(machine: Machine) -> PlacementStep:
    """How far the one action is."""
    (placement,) = machine.state.placements
    return placement.step


def is_over(machine: Machine, story: str) -> None:
    """The action has failed so, and nothing of it is left; 0 runs on a."""
    assert (answers(machine)[-1], said(machine)) == (FAILED, story)
    assert machine.state.placements == ()
    assert settled(machine, "0") == ("a", P.RUNNING)


def test_where_containers_are_mixed_the_process_of_the_standby_is_the_actives_next(
    machine_with: MachineWith,
) -> None:
    """It rests at the launcher that the active gets; a drain moves as warm as a move."""
    drains = replace(asked("0", "ANY_HOST", "u1"), is_warm=True, is_drain=True)
    machine = machine_with(mixes_roles=True).at_home({"0": "a"}, "b")
    drained = replace(machine.state.settings, drained_hosts=frozenset({Host("a")}))
    machine.feed(SettingsChanged(drained), PlacementRequested(drains))
    machine.feed(allocated(2), check_in("r2", "b", request=2))
    machine.feed(started(WARM, 1))
    assert orders(machine.feed(behind(0))) == list(stops("r2", WARM, 1, keeps=True))
    assert orders(machine.feed(ordered(WARM, 1))) == list(stops("r0", "0", 1))
    machine.feed(ordered("0", 1))
    machine.run("0", "r2", "b")
    assert answers(machine)[-1] == DONE


def test_the_active_runs_until_its_standby_has_stopped(giving_way: Machine) -> None:
    """Then it stops, and starts there: with the record of no locality, and no failure."""
    machine = giving_way
    assert is_replaced(machine.state, WARM)
    assert settled(machine, "0") == ("a", P.RUNNING)
    assert orders(machine.feed(ordered(WARM, 1))) == list(stops("r0", "0", 1))
    assert machine.state.container(WARM) is None
    assert orders(machine.feed(ordered("0", 1))) == list(releases("r0"))
    machine.run("0", "r1", "b")
    assert answers(machine) == [*[BEGUN] * (len(answers(machine)) - 1), DONE]
    assert settled(machine, "0") == ("b", P.RUNNING)
    assert [r for r in machine.records if isinstance(r, DeleteLocality)] == []
    assert machine.container("0").failures == 0


def test_it_is_waited_for_until_it_is_near(warming: Machine) -> None:
    """By records; one that is not known is not near."""
    warming.feed(behind(10_001))
    assert step(warming) is PlacementStep.WARMING
    warming.feed(behind(10_000))
    assert step(warming) is PlacementStep.GIVING_WAY


def test_the_next_driver_goes_on_from_the_epochs_in_the_stream(machine: Machine) -> None:
    """What runs of an earlier action is stopped first, and waited for."""
    left = replace(job({"0": "a"}, **{"0": 1}), retired={WARM: 3}, former={WARM: 3})
    machine.feed(left, check_in("r0", "a", inc("0", 1)), live("a", "b"))
    resumed = replace(wants_warm(), is_resumed=True, source=PlacementSource(1, Host("a")))
    machine.feed(resumed)
    assert step(machine) is PlacementStep.WAITING
    found = machine.feed(check_in("r1", "b", inc(WARM, 3)))
    assert orders(found) == list(stops("r1", WARM, 3))
    machine.feed(ordered(WARM, 3))
    assert orders(machine.feed(check_in("r1", "b"))) == list(permits("r1", WARM, 4))


@pytest.mark.parametrize("is_known", [True, False])
def test_its_launcher_may_be_lost(warming: Machine, *, is_known: bool) -> None:
    """By YARN's word, of which the evidence follows, or by silence."""
    if is_known:
        assert orders(warming.feed(ended(2))) == list(stops("r1", WARM, 1))
        assert warming.state.early == type(warming.state.early)()
        warming.feed(ended(resource="r1"))
    else:
        warming.feed(silent("r1"))
    is_over(warming, "its launcher on b was lost")
    assert warming.state.container(WARM) is None


def test_its_launcher_may_be_lost_while_it_stops(giving_way: Machine) -> None:
    """The evidence of its stop is there, but its place is not."""
    giving_way.feed(silent("r1"))
    is_over(giving_way, "its launcher on b was lost")


def test_its_launcher_may_be_lost_before_it_begins(alone: Machine) -> None:
    """It waits in ASSIGNED where its launcher was idle; it leaves no record."""
    alone.feed(wants_warm(), check_in("r1", "b"))
    assert alone.phase(WARM) is P.ASSIGNED
    alone.feed(silent("r1"))
    is_over(alone, "its launcher on b was lost")
    assert alone.state.container(WARM) is None


def test_the_same_while_the_standby_stops_for_the_move(giving_way: Machine) -> None:
    """The order to stop serves both."""
    giving_way.feed(silent("r0"))
    assert giving_way.phase("0") is P.FAILING_OVER
    giving_way.feed(ordered(WARM, 1))
    assert step(giving_way) is PlacementStep.MOVING
    giving_way.run("0", "r1", "b")
    assert answers(giving_way)[-1] is DONE


def test_an_active_without_a_home_takes_the_launcher_of_a_standby_that_has_not_begun(
    alone: Machine,
) -> None:
    """Nothing is read there yet: the move is one like any other."""
    alone.feed(wants_warm(), check_in("r1", "b"), silent("r0"))
    assert alone.state.container(WARM) is None
    assert settled(alone, "0") == ("b", P.ASSIGNED)


def test_an_active_that_does_not_run_is_not_moved_warm(alone: Machine) -> None:
    """A launcher that comes while it does not run is for itself."""
    alone.feed(wants_warm(), stopped("0", 1), allocated(2), check_in("r1", "b", request=2))
    assert alone.state.container(WARM) is None
    assert settled(alone, "0") == ("b", P.ASSIGNED)


@pytest.mark.parametrize(("to", "story"), [("a", "processor 0 runs on a already")])
def test_what_cannot_be_done(alone: Machine, to: str, story: str) -> None:
    """Waiting would not mend it."""
    alone.feed(wants_warm(to=to))
    assert (answers(alone), said(alone)) == ([BAD], story)


def test_a_temporary_standby_is_not_moved_itself(warming: Machine) -> None:
    """It is no processor of the job."""
    warming.feed(wants_warm(WARM, "c", "u2", 2))
    assert answers(warming, "u2") == [BAD]
    assert said(warming, "u2") == "0-warm is a temporary standby of 0"


# --- with a Spark: the containers of the job have a pipeline

TIMER = Timer(TimerKind.SPARE_SPARK, ProcessorId("0"))


def spark(standby: str = WARM, *, is_ready: bool = True) -> SparesReported:
    """The launcher of the standby reports its spare."""
    return SparesReported({ProcessorId(standby): is_ready})


@pytest.fixture
def sparking(machine_with: MachineWith) -> Machine:
    """0 moves to b; its temporary standby is near, and the Spark beside it is awaited."""
    machine = deployed(machine_with(temporary_have_spark=True), {"0": "a"}, "a", "b")
    machine.feed(wants_warm(), allocated(2), check_in("r1", "b", request=2), started(WARM, 1))
    assert TIMER not in machine.state.timers
    assert machine.feed(behind(3)) == (
        SetTimer(TIMER, 120_000),
        CancelTimer(Timer(TimerKind.COMMAND, "u1")),
    )
    assert (step(machine), machine.state.placements[0].spark) == (
        PlacementStep.WARMING,
        SparkWait.AWAITED,
    )
    assert said(machine) == "0-warm@1 is 3 records behind; a Spark starts beside it"
    return machine


def test_a_spark_that_comes_after_its_time_is_no_late_one(sparking: Machine) -> None:
    """What the answer says is what the container finds."""
    sparking.feed(behind(10_001), TimerFired(TIMER), spark(), behind(4))
    assert said(sparking) == "0-warm@1 is 4 records behind, and stops"


@pytest.mark.parametrize("event", [silent("r1"), stopped(WARM, 1), ShutdownRequested()], ids=str)
def test_the_timer_goes_with_the_action(sparking: Machine, event: Event) -> None:
    """Its launcher is lost, the standby ends, the job ends."""
    sparking.feed(event)
    assert sparking.state.placements == ()
    assert TIMER not in sparking.state.timers


def test_the_timer_goes_with_a_failover_to_the_standby(sparking: Machine) -> None:
    """The active has lost its host: a Spark is not waited for."""
    sparking.feed(silent("r0"), ordered(WARM, 1))
    assert step(sparking) is PlacementStep.MOVING
    assert TIMER not in sparking.state.timers


def test_of_two_moves_each_waits_for_its_own_spark(machine_with: MachineWith) -> None:
    """The end of the time of one is none of the other's."""
    machine = machine_with(temporary_have_spark=True)
    machine.deploy({"0": "a", "1": "c"}, "a", "b", "c", "d")
    machine.run("0", "r0", "a", 1)
    machine.run("1", "r1", "c", 2)
    machine.feed(wants_warm("0", "b", "u1"), check_in("r2", "b", request=3))
    machine.feed(wants_warm("1", "d", "u2", 2), check_in("r3", "d", request=4))
    machine.feed(started(WARM, 1), started("1-warm", 1), behind(0), behind(0, "1-warm"))
    assert [p.spark for p in machine.state.placements] == [SparkWait.AWAITED] * 2
    machine.feed(TimerFired(TIMER))
    assert [p.spark for p in machine.state.placements] == [SparkWait.OVER, SparkWait.AWAITED]
    assert [p.step.value for p in machine.state.placements] == ["giving-way", "warming"]


def test_what_stands_ready_beside_no_standby_is_stale(warming: Machine) -> None:
    """Of an active, of an unknown processor, and what is known."""
    before = warming.state.stale_events
    warming.feed(spark("0"), spark("9"), spark(is_ready=False))
    assert warming.state.stale_events == before + 3


# --- of a pair: 0 runs on a in r0, 0-0 on b in r1


def test_a_standby_that_does_not_run_yet_is_waited_for(machine: Machine) -> None:
    """Then it is as above."""
    machine.feed(job({"0": "a", "0-0": "b"}), live("a", "b"))
    machine.run("0", "r0", "a", 1)
    machine.feed(check_in("r1", "b", request=2), wants_warm())
    assert answers(machine) == [ACCEPTED]
    machine.feed(started("0-0", 1))
    assert step(machine) is PlacementStep.WARMING


def test_the_end_of_the_action_leaves_the_standby_where_it_was(pair: Machine) -> None:
    """An action that ends while the standby stops: that comes back on its launcher."""
    pair.feed(behind(0, "0-0"), wants_warm(), stopped("0", 1, StopCause.FINISHED, 0))
    assert pair.state.placements == ()
    launcher = pair.state.resources.get(ResourceId("r1"))
    assert launcher is not None
    assert launcher.reserved_for is None


def test_a_standby_is_moved_cold(pair: Machine) -> None:
    """No input waits for it."""
    pair.feed(wants_warm("0-0", "c"), allocated(3), check_in("r2", "c", request=3))
    assert step(pair) is PlacementStep.MOVING
    assert pair.phase("0-0") is P.STOPPING


def test_a_standby_that_is_to_step_aside_before_it_began_is_gone(alone: Machine) -> None:
    """It is nowhere without its launcher: no host is requested for it."""
    alone.feed(wants_warm(), check_in("r1", "b"))
    draft = Draft(alone.state, "")
    standbys.step_aside(draft, draft.containers[WARM])
    assert WARM not in draft.containers
