"""Each broken sentence is found, with its story."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.appmaster.allocation.container_process_manager import step
from homeport.appmaster.allocation.invariants import check, check_step
from homeport.appmaster.allocation.job_state.draft import Changes
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    Containers,
    EarlyRequest,
    EarlyRequests,
    Ending,
    JobPhase,
    Predecessor,
    Resources,
    ResourceState,
    expiry_timer,
)
from homeport.appmaster.allocation.job_state.table import PersistentSet
from homeport.appmaster.allocation.protocol.events import ShutdownRequested, TimerFired
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from tests.unit.appmaster.allocation.conftest import Machine, check_in, inc

A, B = Host("a"), Host("b")
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
    foreign = sound.timers.having(expiry_timer(RequestId(77)))
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
    orphan = expiry_timer(RequestId(77))
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

    foreign = replace(sound, timers=sound.timers.having(expiry_timer(RequestId(77))))
    assert "only as what needs them changes" in story(foreign)
    assert "exactly where a phase needs them" in story(replace(sound, timers=PersistentSet()), "1")
    stays = changed(sound, "1", phase=ContainerPhase.FINISHED, request_id=None, requested_host=None)
    assert "exactly where a phase needs them" in story(stays, "1")
