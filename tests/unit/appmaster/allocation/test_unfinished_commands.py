"""Commands that do not come to their end by themselves: each has a time, and can be cancelled."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from homeport.appmaster.allocation.commands import unfinished
from homeport.appmaster.allocation.job_state.placements import Placement, PlacementStep
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import command_timer
from homeport.appmaster.allocation.protocol.events import (
    Event,
    LagsReported,
    PlacementRequested,
    ShutdownRequested,
    TimerFired,
)
from homeport.appmaster.allocation.protocol.instructions import CancelTimer, SetTimer
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import CANCEL, FORCE_RESTART_LAST_SEEN
from tests.unit.appmaster.allocation.conftest import (
    SETTINGS,
    Machine,
    check_in,
    deployed,
    expired,
    inc,
    job,
    releases,
    started,
    stopped,
    stops,
)
from tests.unit.appmaster.allocation.placement_words import (
    BAD,
    DONE,
    FAILED,
    answers,
    asked,
    orders,
    said,
    settled,
    wants,
)

TIMER = command_timer("u1")
LIMIT = SETTINGS.command_timeout_ms
NO_FURTHER = f"it has come no further in {LIMIT} ms"
WARM = "0-warm"


def over(uuid: str = "u1") -> TimerFired:
    """The time of that command is over."""
    return TimerFired(command_timer(uuid))


def left(processor: str, records: int) -> LagsReported:
    """So many records are left to read."""
    return LagsReported({ProcessorId(processor): records})


def warm(uuid: str = "u1", at: int = 1) -> PlacementRequested:
    """A warm move of 0 to b."""
    return PlacementRequested(replace(asked("0", "b", uuid, at), is_warm=True))


def cancels(processor: str = "0", uuid: str = "c1", at: int = 9) -> PlacementRequested:
    """The commands for the processor are to end."""
    return wants(processor, CANCEL, uuid, at=at)


def ordered(processor: str, epoch: int) -> Event:
    """It has stopped, as it was ordered to."""
    return stopped(processor, epoch, StopCause.ORDERED, 143)


@pytest.fixture
def alone(machine: Machine) -> Machine:
    """0 runs on a in r0; b and c are live."""
    return deployed(machine, {"0": "a"}, "a", "b", "c")


@pytest.fixture
def warming(alone: Machine) -> Machine:
    """A standby on b reads the state of 0."""
    alone.feed(warm(), check_in("r1", "b", request=2))
    assert TIMER in alone.state.timers
    return alone


def test_a_standby_that_never_starts_ends_it_too(warming: Machine) -> None:
    """Its restore stands still, or nothing is heard of it."""
    assert orders(warming.feed(over())) == list(stops("r1", WARM, 1))
    assert said(warming) == f"a standby on b reads the state; 0@1 runs on; {NO_FURTHER}"


def test_its_time_begins_again_when_less_is_left(warming: Machine) -> None:
    """In its start as well as behind its changelog; what goes up and down again is no progress."""
    for records, is_news in ((90_000, True), (80_000, True), (85_000, False), (80_000, False)):
        assert (SetTimer(TIMER, LIMIT) in warming.feed(left(WARM, records))) is is_news
    warming.feed(started(WARM, 1))
    for records, is_news in ((79_999, True), (80_001, False), (10_001, True)):
        assert (SetTimer(TIMER, LIMIT) in warming.feed(left(WARM, records))) is is_news


def test_each_step_has_its_own_time(warming: Machine) -> None:
    """The standby's stop, the container's stop, and its start, whose reports are progress."""
    warming.feed(started(WARM, 1), left(WARM, 50))
    assert warming.state.placements[0].step is PlacementStep.GIVING_WAY
    moving = warming.feed(ordered(WARM, 1))
    assert (SetTimer(TIMER, LIMIT) in moving, warming.phase("0")) == (True, P.STOPPING)
    warming.feed(ordered("0", 1), check_in("r1", "b"))
    assert warming.phase("0") is P.STARTING
    assert SetTimer(TIMER, LIMIT) in warming.feed(left("0", 40))
    assert SetTimer(TIMER, LIMIT) not in warming.feed(left("0", 40), left("0", 41))
    assert CancelTimer(TIMER) in warming.feed(started("0", 2))
    assert warming.container("0").lag is None
    assert answers(warming)[-1] is DONE


@pytest.mark.parametrize("step", [PlacementStep.GIVING_WAY, PlacementStep.MOVING])
def test_a_stop_that_is_not_proven_ends_it(warming: Machine, step: PlacementStep) -> None:
    """The container comes back on its launcher, and the reserved one goes."""
    warming.feed(started(WARM, 1), left(WARM, 0))
    if step is PlacementStep.MOVING:
        warming.feed(ordered(WARM, 1))
    assert warming.state.placements[0].step is step
    warming.feed(over())
    assert (answers(warming)[-1], warming.state.placements) == (FAILED, ())
    if step is PlacementStep.MOVING:
        warming.feed(ordered("0", 1), check_in("r0", "a"), started("0", 2))
    else:
        warming.feed(ordered(WARM, 1))
    assert settled(warming, "0") == ("a", P.RUNNING)
    assert orders(warming.feed(check_in("r1", "b"))) == list(releases("r1"))


def test_what_waits_for_its_turn_has_no_time_of_its_own(warming: Machine) -> None:
    """Nor has a launcher's request, which expires."""
    warming.feed(wants("0", "c", "u2", at=2))
    assert command_timer("u2") not in warming.state.timers
    warming.feed(over(), ordered(WARM, 1))
    assert warming.state.placements[0].step is PlacementStep.RESERVING
    assert command_timer("u2") not in warming.state.timers
    warming.feed(expired(3))
    assert answers(warming, "u2")[-1] is FAILED


def test_the_time_goes_with_the_command(warming: Machine) -> None:
    """The job ends."""
    assert CancelTimer(TIMER) in warming.feed(ShutdownRequested())


To = Callable[[Machine], object]


def _waiting(machine: Machine) -> None:
    machine.feed(warm(), warm("u2", 2))


def _reserving(machine: Machine) -> None:
    machine.feed(warm())


def _warming(machine: Machine) -> None:
    machine.feed(warm(), check_in("r1", "b", request=2))


def _giving_way(machine: Machine) -> None:
    _warming(machine)
    machine.feed(started(WARM, 1), left(WARM, 0))


def _moving(machine: Machine) -> None:
    _giving_way(machine)
    machine.feed(ordered(WARM, 1))


def _launched(machine: Machine) -> None:
    _moving(machine)
    machine.feed(ordered("0", 1), check_in("r1", "b"))


def _restarting(machine: Machine) -> None:
    machine.feed(wants("0", FORCE_RESTART_LAST_SEEN))


@pytest.mark.parametrize(
    ("to", "place"),
    [
        (_waiting, "running on a"),
        (_reserving, "running on a"),
        (_warming, "running on a"),
        (_giving_way, "running on a"),
        (_moving, "stopping on a"),
        (_launched, "starting on b"),
        (_restarting, "stopping on a"),
    ],
)
def test_each_step_can_be_cancelled(alone: Machine, to: To, place: str) -> None:
    """The command ends, and so does what waits behind it; the container is as it is."""
    to(alone)
    open_ones = [p.request.uuid for p in alone.state.placements]
    alone.feed(cancels())
    assert alone.state.placements == ()
    assert {(answers(alone, u)[-1].is_final, said(alone, u)) for u in open_ones} == {
        (True, "it was cancelled")
    }
    assert (answers(alone, "c1"), said(alone, "c1").endswith(f"processor 0 is {place}")) == (
        [DONE],
        True,
    )


def test_a_cancel_names_what_it_ended(warming: Machine) -> None:
    """In the order in which they would have come."""
    warming.feed(wants("0", FORCE_RESTART_LAST_SEEN, "u2", at=2), cancels())
    story = "b, FORCE_RESTART_LAST_SEEN: cancelled; processor 0 is running on a"
    assert said(warming, "c1") == story
    assert [answers(warming, u)[-1] for u in ("u1", "u2")] == [FAILED, BAD]


@pytest.mark.parametrize("processor", ["0", "9"])
def test_a_cancel_of_nothing_is_refused(alone: Machine, processor: str) -> None:
    """Also of a processor that the job does not have."""
    alone.feed(cancels(processor))
    assert (answers(alone, "c1"), said(alone, "c1")) == (
        [BAD],
        f"no command for processor {processor} is under way",
    )


def test_a_container_that_is_nowhere_is_named_so(machine: Machine) -> None:
    """Its command waited for it to run."""
    machine.deploy({"0": "a"}, "a")
    machine.feed(wants("0", "a"), cancels())
    assert said(machine, "c1") == "a: cancelled; processor 0 is requested on no host"


def test_a_command_says_what_it_waits_for(machine: Machine) -> None:
    """By the last answer, and by what is left to read."""
    deployed(machine, {"0": "a"}, "a", "b")
    machine.feed(warm())
    (placement,) = machine.state.placements
    find = machine.state.container
    assert unfinished.waits(find, placement) == "a launcher on b is being reserved"
    machine.feed(check_in("r1", "b", request=2), left(WARM, 5))
    (placement,) = machine.state.placements
    assert unfinished.waits(find, placement).startswith("a standby on b reads the state")
    assert unfinished.waits(machine.state.container, replace(placement, story="")) == (
        "0-warm@1 has 5 records left to read"
    )
    assert unfinished.waits(find, Placement(asked("9"))) == ""


def test_a_new_driver_gives_it_its_whole_time_again(machine: Machine) -> None:
    """From when it knows the command."""
    resumed = replace(warm(), is_resumed=True)
    machine.feed(job({"0": "a"}, p0=1), check_in("r0", "a", inc("0", 1)))
    assert SetTimer(TIMER, LIMIT) in machine.feed(resumed)
    assert said_of(machine) == "it waits until hosts are known"


def said_of(machine: Machine) -> str:
    """What the one command waits for."""
    (placement,) = machine.state.placements
    return unfinished.waits(machine.state.container, placement)
