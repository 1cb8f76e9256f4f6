"""An operator's commands that cannot be carried out, and what goes wrong on the way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from homeport.appmaster.allocation.commands import unfinished
from homeport.appmaster.allocation.job_state.placements import Placement, PlacementStep
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.state import JobPhase
from homeport.appmaster.allocation.protocol.events import (
    Event,
    HostReport,
    HostsObserved,
    LagsReported,
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
    ReleaseResource,
    SetTimer,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    CANCEL,
    FORCE_RESTART_LAST_SEEN,
    PlacementRequest,
)
from tests.unit.appmaster.allocation.conftest import (
    BAD,
    BEGUN,
    DONE,
    FAILED,
    HOSTS,
    SETTINGS,
    Machine,
    MachineWith,
    allocated,
    answers,
    asked,
    asks,
    check_in,
    deployed,
    ended,
    expired,
    inc,
    job,
    model,
    never_came,
    orders,
    releases,
    running,
    said,
    settled,
    silent,
    started,
    stopped,
    stops,
    taken,
    wants,
)


def test_c3_an_expiry_leaves_the_container_untouched(machine: Machine) -> None:
    """C3: 10 ms, and the host never delivers: FAILED; a running container goes on."""
    running(machine)
    timer = SetTimer(Timer(TimerKind.REQUEST_EXPIRY, RequestId(3)), 10)
    assert machine.feed(wants(expiry=10)) == (*asks(3, "h3")[:1], timer)
    assert orders(machine.feed(expired(3))) == [CancelRequest(RequestId(3))]
    assert answers(machine) == [BEGUN, FAILED]
    assert said(machine) == "no launcher came on h3: the request was not granted in time"
    assert [settled(machine, p) for p in "01"] == [("h1", P.RUNNING), ("h2", P.RUNNING)]
    assert (len(machine.state.early), machine.state.placements) == (0, ())


@pytest.mark.parametrize(
    ("ending", "story"),
    [
        ((allocated(3), never_came(3)), "its launcher did not check in in time"),
        ((ended(3, story="no room"),), "no room"),
        ((ended(3),), "its container has ended"),
    ],
    ids=["never came", "refused", "ended"],
)
def test_a_reservation_without_a_launcher_fails(
    machine: Machine, ending: tuple[Event, ...], story: str
) -> None:
    """Why is said; the container runs on, and nothing is charged."""
    running(machine).feed(wants(), *ending)
    assert answers(machine) == [BEGUN, FAILED]
    assert story in said(machine)
    assert settled(machine, "0") == ("h1", P.RUNNING)
    assert machine.container("0").failures == 0


def _launching(machine: Machine) -> Machine:
    """0 has been permitted on h3 and is starting."""
    running(machine).feed(wants(), check_in("r3", "h3", request=3))
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143), check_in("r3", "h3"))
    assert settled(machine, "0") == ("h3", P.STARTING)
    return machine


def test_c4_a_launch_that_fails_leads_back_to_the_source(machine: Machine) -> None:
    """C4: the start on h3 fails: 0 goes back to h1; preferred 4, FAILED; nothing is charged."""
    _launching(machine)
    stated = machine.feed(stopped("0", 2))
    assert orders(stated) == [ReleaseResource(ResourceId("r3")), asks(4, "h1")[0]]
    assert answers(machine)[-1] is FAILED
    assert "its start on h3 failed: 0@2 on h3: failed, exit code 1" in said(machine)
    machine.feed(ended(resource="r3"))
    machine.run("0", "r4", "h1", 4)
    assert settled(machine, "0") == ("h1", P.RUNNING)
    assert machine.container("0").failures == 0


@pytest.mark.parametrize(
    "loss",
    [ended(resource="r3", story="memory", is_own_fault=True), silent("r3")],
    ids=["ended", "silent"],
)
def test_a_launcher_lost_at_the_start_leads_back_to_the_source(
    machine: Machine, loss: Event
) -> None:
    """C4 by other means: YARN ended it, or its host fell silent."""
    stated = _launching(machine).feed(loss)
    assert asks(4, "h1")[0] in stated
    assert answers(machine)[-1] is FAILED
    assert machine.container("0").failures == 0


def test_a_launcher_lost_before_its_permit_leads_back_to_the_source(machine: Machine) -> None:
    """It was assigned, and died before it polled again."""
    running(machine).feed(wants(), check_in("r3", "h3", request=3))
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert settled(machine, "0") == ("h3", P.ASSIGNED)
    stated = machine.feed(ended(resource="r3"))
    assert asks(4, "h1")[0] in stated
    assert answers(machine)[-1] is FAILED


def test_a_reserved_launcher_that_is_lost_while_the_container_stops(machine: Machine) -> None:
    """FAILED at once; the container comes back on the launcher that it had, which was kept."""
    running(machine).feed(wants(), check_in("r3", "h3", request=3))
    assert settled(machine, "0") == ("h1", P.STOPPING)
    machine.feed(silent("r3"))
    assert answers(machine)[-1] is FAILED
    assert said(machine) == "its launcher on h3 was lost"
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    machine.run("0", "r1", "h1")
    assert settled(machine, "0") == ("h1", P.RUNNING)


def test_a_restart_that_is_given_up_fails(machine_with: MachineWith) -> None:
    """What is charged while it starts is charged as ever."""
    machine = running(machine_with(retry_count=0, fail_job_after_retries=False))
    machine.feed(wants(to=FORCE_RESTART_LAST_SEEN), stopped("0", 1, StopCause.ORDERED, 143))
    machine.feed(check_in("r1", "h1"), stopped("0", 2))
    assert answers(machine) == [BEGUN, FAILED]
    assert "0@2 on h1: failed" in said(machine)


def test_where_no_host_can_be_requested_any_is_a_bad_request(machine: Machine) -> None:
    """As where all hosts are drained."""
    machine.deploy({"0": "h1"}, "h1")
    machine.run("0", "r1", "h1", 1)
    machine.feed(SettingsChanged(replace(SETTINGS, drained_hosts=frozenset({Host("h1")}))))
    machine.feed(wants(to=ANY_HOST))
    assert (answers(machine), said(machine)) == ([BAD], "no host can be asked for it")


@pytest.mark.parametrize(
    ("request_", "story"),
    [
        (asked("7"), "the job has no processor '7': it has 0, 1"),
        (asked(""), "the job has no processor ''"),
        (asked(to="nowhere"), "'nowhere' is no live host: live are h1, h2, h3, h4"),
        (asked(to=""), "is no live host"),
        (asked(expiry=0), "from 1 to 86400000 ms"),
        (asked(expiry=86_400_001), "from 1 to 86400000 ms"),
        (asked(expiry=10**400), "from 1 to 86400000 ms"),
    ],
    ids=str,
)
def test_a_bad_request_is_answered_at_once(
    machine: Machine, request_: PlacementRequest, story: str
) -> None:
    """C7, and unknown processors, which Samza never answers: nothing is done."""
    assert running(machine).feed(PlacementRequested(request_)) == ()
    assert answers(machine) == [BAD]
    assert story in said(machine)
    assert taken(machine) == ["u1"]


def test_an_answer_counts_the_names_that_it_omits(machine: Machine) -> None:
    """An answer is one line."""
    machine.deploy({str(n): None for n in range(30)}, *(f"h{n}" for n in range(30)))
    machine.feed(wants("x"), wants("0", "x", uuid="u2"))
    assert said(machine) == "the job has no processor 'x': it has 30 others"
    assert said(machine, "u2") == "'x' is no live host: live are 30 others"


def test_an_excluded_host_is_a_bad_destination(machine: Machine) -> None:
    """Its only launcher fell silent; a reservation that is outstanding there fails."""
    running(machine, "h1", "h2", "h3")
    machine.feed(wants(to="h3"))
    machine.feed(silent("r3"))
    assert (answers(machine)[-1], said(machine)) == (
        FAILED,
        "h3 has fallen silent: it is not asked",
    )
    machine.feed(wants(to="h3", uuid="u2"))
    assert answers(machine, "u2") == [BAD]


def test_a_host_that_is_too_small_is_a_bad_destination(machine_with: MachineWith) -> None:
    """A request for more than any host has would end Skein's AM: one that is outstanding fails."""
    machine = running(machine_with(container_memory_mb=1000, container_cores=1))
    rooms = dict.fromkeys(HOSTS, 2000)
    machine.feed(_observed({**rooms, "h4": 500}), wants(to="h4"))
    assert (answers(machine), said(machine)) == ([BAD], "h4 is too small for a container")
    machine.feed(_observed({**rooms, "h3": 1000}), wants(to=ANY_HOST, uuid="u2"))
    assert [e.host for e in machine.state.early] == ["h4"]
    machine.feed(_observed(dict.fromkeys(HOSTS, 500)))
    assert (answers(machine, "u2"), len(machine.state.early)) == ([BEGUN, FAILED], 0)


def _observed(memory_mb: dict[str, int]) -> HostsObserved:
    """Hosts of so much memory, of which 1000 MB are in use on h3."""
    hosts = tuple(Host(h) for h in memory_mb)
    free = {h: mb - 1000 * (h == "h3") for h, mb in memory_mb.items()}
    reports = (HostReport(Host(h), None, mb, 8, free[h], 8) for h, mb in memory_mb.items())
    return HostsObserved(hosts, tuple(reports))


def test_a_model_change_in_a_move_is_followed(machine: Machine) -> None:
    """0 stops for the version, which moves it, and starts on the reserved launcher."""
    running(machine).feed(wants())
    machine.feed(replace(model({"0": "h1", "1": "h2"}, version=2), floors={ProcessorId("0"): 2}))
    assert machine.phase("0") is P.STOPPING
    machine.feed(check_in("r3", "h3", request=3))
    machine.feed(stopped("0", 1, StopCause.ORDERED, 143))
    assert settled(machine, "0") == ("h3", P.ASSIGNED)
    machine.run("0", "r3", "h3")
    assert (answers(machine)[-1], said(machine)) == (DONE, "0@3 runs on h3")


def test_the_jobs_end_answers_all(machine: Machine) -> None:
    """FAILED, in every step; also for later requests."""
    running(machine).feed(wants(), wants(to="h4", uuid="u2", at=2))
    machine.feed(wants("1", "h4", uuid="u3"), check_in("r3", "h3", request=3))
    stated = machine.feed(ShutdownRequested())
    assert ReleaseResource(ResourceId("r3")) in stated
    assert [answers(machine, u)[-1] for u in ("u1", "u2", "u3")] == [FAILED] * 3
    assert said(machine) == "the job ends"
    machine.feed(wants(uuid="u4"))
    assert (machine.state.phase, answers(machine, "u4")) == (JobPhase.ENDING, [FAILED])


# --- commands that do not come to their end by themselves: each has a time, and can be cancelled


TIMER = Timer(TimerKind.COMMAND, "u1")
LIMIT = SETTINGS.command_timeout_ms
NO_FURTHER = f"it has come no further in {LIMIT} ms"
WARM = "0-warm"


def over(uuid: str = "u1") -> TimerFired:
    """The time of that command is over."""
    return TimerFired(Timer(TimerKind.COMMAND, uuid))


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
    assert Timer(TimerKind.COMMAND, "u2") not in warming.state.timers
    warming.feed(over(), ordered(WARM, 1))
    assert warming.state.placements[0].step is PlacementStep.RESERVING
    assert Timer(TimerKind.COMMAND, "u2") not in warming.state.timers
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
