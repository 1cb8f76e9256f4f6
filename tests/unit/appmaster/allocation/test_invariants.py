"""Each broken sentence is found, with its story."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from immutables import Map

from homeport.appmaster.allocation.container_process_manager import step
from homeport.appmaster.allocation.invariants import check, check_step, of_warm_moves
from homeport.appmaster.allocation.job_state.draft import Changes
from homeport.appmaster.allocation.job_state.hosts import ranked
from homeport.appmaster.allocation.job_state.occupancy import counted
from homeport.appmaster.allocation.job_state.placements import Placement, PlacementStep, SparkWait
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    EarlyRequest,
    EarlyRequests,
    Ending,
    Failover,
    JobPhase,
    Occupancy,
    Predecessor,
    Preparation,
    Resources,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.state import ContainerPhase as P
from homeport.appmaster.allocation.job_state.table import PersistentSet
from homeport.appmaster.allocation.protocol.events import (
    FailoverStep,
    ShutdownRequested,
    Timer,
    TimerFired,
    TimerKind,
)
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.placement import PlacementRequest
from tests.spec.pairs import running as pair_running
from tests.unit.appmaster.allocation.conftest import ZERO, A, B, C, Machine, check_in, inc, stopped

ENDING = Ending(JobResult.KILLED, "shut down on request")


@pytest.fixture
def sound(machine: Machine) -> AllocatorState:
    """Processor 0 runs on a, 1 asks for b, 2 is queued for b; r9 is idle on c."""
    machine.deploy({"0": "a", "1": "b", "2": "b"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    machine.feed(check_in("r9", "c"))
    return machine.state


def changed(state: AllocatorState, processor: str, **changes: object) -> AllocatorState:
    """The state with some fields of one container changed."""
    containers = Containers(
        replace(c, **changes) if c.processor_id == processor else c  # type: ignore[arg-type] # by name
        for c in state.containers
    )
    return replace(state, containers=containers)


def broken(state: AllocatorState) -> str:
    """The message about a state that is not sound."""
    with pytest.raises(InvariantViolation) as caught:
        check(state)
    return str(caught.value)


def test_a_sound_state_gives_no_error_and_another_gives_its_story(sound: AllocatorState) -> None:
    """What was broken, after what, and the whole state."""
    check(sound)
    check_step(sound, sound, "nothing")
    with pytest.raises(InvariantViolation) as caught:
        check_step(sound, replace(sound, timers=PersistentSet()), "a long story")
    lines = str(caught.value).splitlines()
    assert lines[0] == "timers are armed exactly where a phase needs them: request-expiry:2"
    assert [line.strip() for line in lines[1:4]] == [
        "after: a long story",
        "job: active",
        "timers: none",
    ]
    assert len(lines) == 4 + 3 + 2


def test_containers_and_their_resources_and_requests(sound: AllocatorState) -> None:
    """Each phase holds what it must, and nothing else."""
    assert "holds a resource exactly when" in broken(changed(sound, "0", resource_id=None))
    assert "has a request exactly when" in broken(changed(sound, "1", request_id=None))
    assert "wants a host only while" in broken(changed(sound, "0", requested_host=A))


def test_containers_and_their_predecessors(sound: AllocatorState) -> None:
    """Epochs and fences."""
    assert "will be fenced by its successor" in broken(changed(sound, "0", unfenced=()))
    future = (Predecessor(inc("0", 1)), Predecessor(inc("0", 2)))
    assert "no incarnation of its future" in broken(changed(sound, "0", unfenced=future))
    assert "does not fence itself" in broken(changed(sound, "0", fence=(inc("0", 1),)))


def test_sharing(sound: AllocatorState) -> None:
    """One container per resource and request, one strict request per host."""
    on_r0 = {
        "phase": ContainerPhase.ASSIGNED,
        "resource_id": ResourceId("r0"),
        "requested_host": None,
    }
    assert "no two containers are on one resource" in broken(changed(sound, "2", **on_r0))
    assert "a held resource is known" in broken(replace(sound, resources=Resources()))
    released = Resources(replace(r, is_released=True) for r in sound.resources)
    assert "a held resource is not released" in broken(replace(sound, resources=released))
    asks_too = {"phase": ContainerPhase.REQUESTED, "request_id": RequestId(2)}
    story = broken(changed(sound, "2", **asks_too))
    assert "a request is for one container" in story
    assert "at most one strict request is outstanding per host" in story
    assert "number has not been used" in broken(replace(sound, next_request_id=2))


def test_the_invariants_of_cancelled_requests(sound: AllocatorState) -> None:
    """No container waits for it, and no launcher is kept for its sake."""
    story = broken(replace(sound, cancelled=PersistentSet([RequestId(1), RequestId(2)])))
    assert "no container waits for a request that was cancelled: 2" in story
    assert "came of no cancelled request: r0" in story


def test_the_job(sound: AllocatorState) -> None:
    """Its phase agrees with its containers, its result and its timers."""
    foreign = sound.timers.having(Timer(TimerKind.REQUEST_EXPIRY, RequestId(77)))
    assert "timers are armed exactly where" in broken(replace(sound, timers=foreign))
    assert "the result stands exactly when" in broken(replace(sound, ending=ENDING))
    nobody = replace(sound, containers=Containers(), timers=PersistentSet())
    assert "all came to their end, ends" in broken(nobody)
    ending = replace(sound, phase=JobPhase.ENDING, ending=ENDING)
    assert "waits for stops, and for nothing else" in broken(ending)
    over = replace(nobody, phase=JobPhase.ENDING, ending=ENDING)
    assert "waits for stops, and for nothing else" in broken(over)
    ended = replace(sound, phase=JobPhase.ENDED, ending=ENDING)
    assert "nothing runs when the job has ended" in broken(ended)
    assert "queued for a host being asked for" in broken(changed(sound, "2", requested_host=None))


def test_idle_launchers(sound: AllocatorState) -> None:
    """Kept only while a container needs a launcher."""
    done = {"phase": ContainerPhase.FINISHED, "request_id": None, "requested_host": None}
    nobody_seeks = changed(changed(sound, "1", **done), "2", **done)
    assert "r9 is kept idle only while" in broken(replace(nobody_seeks, timers=PersistentSet()))


def test_succession(sound: AllocatorState) -> None:
    """What one step may not do, whatever the state."""

    def story(before: AllocatorState, after: AllocatorState) -> str:
        with pytest.raises(InvariantViolation) as caught:
            check_step(before, after, "a step")
        return str(caught.value)

    ended = replace(sound, phase=JobPhase.ENDED, ending=ENDING)
    assert "never goes back from ended to active" in story(ended, sound)
    assert "once decided, stands" in story(ended, sound)
    later = replace(sound, next_request_id=99)
    assert "number is never used again" in story(later, sound)
    fewer = replace(sound, containers=Containers(list(sound.containers)[:2]))
    assert "processor 2 does not vanish" in story(sound, fewer)
    raised = changed(sound, "0", epoch=2, unfenced=(Predecessor(inc("0", 2)),))
    assert "permitted again only after it stopped" in story(sound, raised)
    assert "stays or is the next one" in story(raised, sound)
    finished = changed(
        sound, "1", phase=ContainerPhase.FINISHED, request_id=None, requested_host=None
    )
    assert "processor 1 does not leave its end" in story(finished, sound)


def test_a_step_from_a_broken_state_raises(sound: AllocatorState) -> None:
    """It does not make up what is missing."""
    orphan = Timer(TimerKind.REQUEST_EXPIRY, RequestId(77))
    with pytest.raises(InvariantViolation, match="request-expiry:77 was armed for a request"):
        step(replace(sound, timers=sound.timers.having(orphan)), TimerFired(orphan))
    with pytest.raises(InvariantViolation, match="0@1 runs without a resource"):
        step(changed(sound, "0", resource_id=None), ShutdownRequested())


def test_a_resource_of_another_is_no_business_of_a_container(sound: AllocatorState) -> None:
    """A released launcher may stay as long as it likes."""
    gone = ResourceState(ResourceId("r8"), B, None, is_released=True)
    check(replace(sound, resources=Resources((*sound.resources, gone))))
    assert sound.container(ProcessorId("0")) is not None


def test_the_changed_rows_are_enough_to_find_a_broken_invariant(sound: AllocatorState) -> None:
    """The rows that are named, and those that they concern; rows that are not named are not."""

    def story(after: AllocatorState, **changes: str) -> str:
        named = Changes(**{k: frozenset([v]) for k, v in changes.items()})  # type: ignore[arg-type] # by name
        with pytest.raises(InvariantViolation) as caught:
            check_step(sound, after, "a step", named)
        return str(caught.value)

    check_step(sound, sound, "a step", Changes())
    homeless = changed(sound, "0", resource_id=None)
    assert "holds a resource exactly when" in story(homeless, containers="0")
    check_step(sound, homeless, "a step that says nothing of it", Changes())
    assert "a held resource is known" in story(
        replace(sound, resources=Resources()), resources="r0"
    )
    gone = Containers(c for c in sound.containers if c.processor_id != "1")
    orphaned = replace(sound, containers=gone, timers=PersistentSet())
    assert "processor 2 is queued for a host being asked for" in story(orphaned, containers="1")
    assert "processor 1 does not vanish" in story(orphaned, containers="1")
    asks_too = {"phase": ContainerPhase.REQUESTED, "request_id": RequestId(2)}
    assert "one strict request" in story(changed(sound, "2", **asks_too), containers="2")
    early = EarlyRequests([EarlyRequest(ProcessorId("0"), RequestId(9), A)])
    assert "while evidence is awaited" in story(replace(sound, early=early), early="0")


def test_a_timer_without_an_owner_is_found_among_all_timers(sound: AllocatorState) -> None:
    """Whether it came without a need, or went in spite of one, of what changed or of others."""

    def story(after: AllocatorState, *processors: str) -> str:
        named = Changes(frozenset(map(ProcessorId, processors)))
        with pytest.raises(InvariantViolation) as caught:
            check_step(sound, after, "a step", named)
        return str(caught.value)

    foreign = replace(
        sound, timers=sound.timers.having(Timer(TimerKind.REQUEST_EXPIRY, RequestId(77)))
    )
    assert "only as what needs them changes" in story(foreign)
    assert "exactly where a phase needs them" in story(replace(sound, timers=PersistentSet()), "1")
    stays = changed(sound, "1", phase=ContainerPhase.FINISHED, request_id=None, requested_host=None)
    assert "exactly where a phase needs them" in story(stays, "1")


# --- each sentence of the invariants is reported for a state that breaks it, and for no other


STANDBY = ProcessorId("0-0")


@pytest.fixture
def pair(machine: Machine) -> AllocatorState:
    """0 runs on a, its standby 0-0 on b; c is empty."""
    return pair_running(machine, {"0": "a", "0-0": "b"}, "c").state


def stated(state: AllocatorState) -> str:
    """The message about a state that is not sound."""
    with pytest.raises(InvariantViolation) as caught:
        check(state)
    return str(caught.value)


Break = Callable[[AllocatorState], AllocatorState]

SENTENCES: list[tuple[str, Break]] = [
    ("0 is retired", lambda s: changed(s, "0", is_retired=True)),
    ("processor 0 lets go as nothing else is waited for", lambda s: changed(s, "0", floor=9)),
    (
        "processor 0, which a model has overtaken, does not start",
        lambda s: changed(s, "0", floor=9, phase=P.STARTING),
    ),
    (
        "the launcher of processor 0 prepares a process only before its permit",
        lambda s: changed(s, "0", preparation=Preparation.DONE),
    ),
    (
        "processor 0 has fenced no incarnation of its future",
        lambda s: changed(s, "0", unfenced=(Predecessor(inc("0", 7)), Predecessor(inc("0", 1)))),
    ),
    ("processor 0 does not fence itself", lambda s: changed(s, "0", fence=(inc("0", 1),))),
    (
        "0@1 is well and will not be fenced",
        lambda s: changed(
            s, "0-0", unfenced=(Predecessor(inc("0", 1)), Predecessor(inc("0-0", 1)))
        ),
    ),
    (
        "silence is remembered of live hosts only",
        lambda s: replace(s, silent=frozenset({Host("z")})),
    ),
    (
        "the only host is never excluded",
        lambda s: replace(s, hosts=(A,), exclusions=Map({A: False})),
    ),
    (
        "excluded c gets one probe at most",
        lambda s: replace(
            changed(s, "0", phase=P.REQUESTED, requested_host=C, request_id=RequestId(1)),
            exclusions=Map({C: False}),
        ),
    ),
    (
        "a is not excluded while we suspect ourselves",
        lambda s: replace(s, silent=frozenset({A, B}), exclusions=Map({A: False})),
    ),
    (
        "home is requested early for 0 only while evidence is awaited",
        lambda s: replace(s, early=EarlyRequests([EarlyRequest(ZERO, RequestId(1), A)])),
    ),
    (
        "0, which has standbys, is no standby itself",
        lambda s: changed(s, "0", replica_of=ProcessorId("7")),
    ),
    (
        "Invariant-1: 0 and 0-0 are not on one host, a, unless one is found there",
        lambda s: replace(
            s,
            resources=Resources(ResourceState(r.resource_id, A, r.request_id) for r in s.resources),
        ),
    ),
    (
        "processor 0 fails over only by a failover",
        lambda s: changed(s, "0", phase=P.FAILING_OVER, resource_id=None),
    ),
    (
        "a failover of processor 0 is under way only while it is active and on its way",
        lambda s: changed(s, "0", failover=Failover(FailoverStep.OTHER_HOST)),
    ),
    (
        "processor 0 waits for the stop of a standby that stops",
        lambda s: changed(
            s,
            "0",
            phase=P.FAILING_OVER,
            resource_id=None,
            failover=Failover(FailoverStep.STANDBY, STANDBY, B, (STANDBY,)),
        ),
    ),
    (
        "processor 0 waits for the standby on the host that is its home now",
        lambda s: changed(
            changed(
                s,
                "0",
                phase=P.FAILING_OVER,
                resource_id=None,
                failover=Failover(FailoverStep.STANDBY, STANDBY, B, (STANDBY,)),
            ),
            "0-0",
            phase=P.STOPPING,
        ),
    ),
]


@pytest.mark.parametrize(("sentence", "broken"), SENTENCES, ids=[s[:40] for s, _ in SENTENCES])
def test_a_broken_sentence_is_reported(pair: AllocatorState, sentence: str, broken: Break) -> None:
    """With the state; the sound one is silent."""
    check(pair)
    found = stated(broken(pair))
    assert sentence.replace("0 is retired", "retired processor 0 is there only") in found


def test_a_table_that_is_filed_wrongly_is_reported(pair: AllocatorState) -> None:
    """A row that its indexes do not find is a bug of the table's."""
    lost = pair.containers.followed_by(
        pair.containers.rows_by_key, Containers().indexes, pair.containers.order
    )
    assert "every row is found by its indexes" in stated(replace(pair, containers=lost))


def test_a_start_beside_its_standby_is_reported(machine: Machine) -> None:
    """Invariant-2 is looked at in the step of the permit."""
    before = pair_running(machine, {"0": "a", "0-0": "b"}).state
    waits = changed(before, "0", phase=P.ASSIGNED, resource_id=ResourceId("r9"))
    launcher = ResourceState(ResourceId("r9"), B, None)
    waits = replace(waits, resources=Resources([*before.resources, launcher]))
    permitted = changed(waits, "0", phase=P.STARTING, epoch=2)
    with pytest.raises(InvariantViolation, match="Invariant-2: 0 starts after 0-0 has stopped"):
        check_step(waits, permitted, "a permit")


def test_a_retired_processor_is_not_permitted(pair: AllocatorState) -> None:
    """Nor is a version taken back, a number used twice, or a processor permitted twice."""
    retired = changed(pair, "0", phase=P.STOPPING, is_retired=True)
    with pytest.raises(InvariantViolation) as caught:
        check_step(retired, changed(retired, "0", epoch=2), "a permit")
    assert "retired processor 0 is not permitted any more" in str(caught.value)
    assert "processor 0 is permitted again only after it stopped" in str(caught.value)
    older = replace(pair, model_version=0, next_request_id=1)
    with pytest.raises(InvariantViolation) as caught:
        check_step(pair, older, "a mistake")
    assert "a model is not taken back" in str(caught.value)
    assert "a request's number is never used again" in str(caught.value)


def test_a_container_without_its_launcher_is_a_bug(pair: AllocatorState) -> None:
    """What runs holds a launcher: where it does not, the attempt ends with the story."""
    with pytest.raises(InvariantViolation, match="0@1 runs without a resource"):
        step(changed(pair, "0", resource_id=None), stopped("0", 1))


def test_roles_are_read_off_the_group(pair: AllocatorState) -> None:
    """An active has no active of its own."""
    roles = {c.processor_id: c.role.value for c in pair.containers}
    assert roles == {"0": "active", "0-0": "standby"}
    assert ContainerState(ZERO).next_epoch == 1
    assert str(Timer(TimerKind.REQUEST_EXPIRY, RequestId(3))) == "request-expiry:3"


def _action(processor: str, step_: PlacementStep, uuid: str = "u1") -> Placement:
    request = PlacementRequest(uuid, "run-1", ProcessorId(processor), "c", None, 1)
    return Placement(request, step=step_, resource_id=ResourceId("r9"))


def test_operators_requests_are_accounted_for(pair: AllocatorState) -> None:
    """One action per group, each reservation and each kept launcher on behalf of one."""
    both = (_action("0", PlacementStep.RESERVING), _action("0-0", PlacementStep.RESERVING, "u2"))
    assert "one action is under way in a group at a time" in stated(replace(pair, placements=both))
    ended = replace(pair, placements=both[:1], phase=JobPhase.ENDED)
    assert "a job that ends has answered all that operators asked" in stated(ended)
    early = EarlyRequests([EarlyRequest(ZERO, RequestId(1), C, is_reservation=True)])
    assert "a reservation is requested for an action" in stated(replace(pair, early=early))
    kept = ResourceState(ResourceId("r9"), C, None, reserved_for=ZERO)
    state = replace(pair, resources=Resources([*pair.resources, kept]))
    assert "a launcher is kept on behalf of an action" in stated(state)


@pytest.mark.parametrize("spark", SparkWait)
def test_a_standby_that_gives_way_before_its_spark_is_reported(
    pair: AllocatorState, spark: SparkWait
) -> None:
    """But for one whose time is over."""
    settings = replace(pair.settings, own_have_spark=True)
    action = replace(_action("0", PlacementStep.WARMING), standby=STANDBY, spark=spark)
    warming = replace(pair, settings=settings, placements=(action,))
    gives_way = replace(action, step=PlacementStep.GIVING_WAY)
    after = replace(warming, placements=(gives_way,))
    sentences = list(of_warm_moves(warming, after))
    is_sound = spark is SparkWait.OVER
    assert sentences == (
        [] if is_sound else [f"{STANDBY} gives way with a Spark beside it, or late"]
    )
    assert list(of_warm_moves(after, after)) == []
    with_spark = changed(after, "0-0", has_spark=True)
    assert list(of_warm_moves(warming, with_spark)) == []


def test_loads_that_are_not_as_counted_are_reported(pair: AllocatorState) -> None:
    """What is derived is compared with a look at every row."""
    wrong = Occupancy(pair.containers, pair.resources, pair.early, Map(), Map({C: 7}))
    assert "as a look at every row finds them" in stated(replace(pair, occupancy=wrong))
    ranking = ranked((C,), frozenset(), lambda _: (False, 7, False))
    wrong = replace(counted(pair), ranking=ranking)
    assert "hosts are ranked as their loads and requests say" in stated(
        replace(pair, occupancy=wrong)
    )


def test_a_start_before_a_former_owner_has_stopped_is_reported(machine: Machine) -> None:
    """The former owner of its tasks still runs (design 5)."""
    machine.deploy({"0": "a", "1": "b"}, "a", "b")
    machine.run("0", "r0", "a", 1)
    owner = (Predecessor(inc("0", 1)),)
    waits = changed(machine.state, "1", unfenced=owner, epoch=3)
    permitted = changed(waits, "1", epoch=4)
    with pytest.raises(InvariantViolation, match="only after the former owner 0@1 stopped"):
        check_step(waits, permitted, "a permit")
