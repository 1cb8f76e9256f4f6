"""What a step leaves for the next driver, and what that one makes of it. Times are given."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.draft import Changes
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    Containers,
    ContainerState,
    Ending,
    Resources,
    ResourceState,
    initial_state,
)
from homeport.appmaster.allocation.protocol.events import (
    ChargedFailures,
    ContainerStopped,
    Event,
    HostsObserved,
    RetiredStopped,
)
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.driver.derived_records import charged_failures, records_of
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.metadata.lifecycle import RetryState
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

P0, P1 = ProcessorId("0"), ProcessorId("1")
NOTHING = HostsObserved(())
SETTINGS = AllocatorSettings(
    host_affinity_enabled=True,
    retry_count=2,
    retry_window_ms=60_000,
    fail_job_after_retries=True,
    request_timeout_ms=1,
    check_in_timeout_ms=1,
)


def state(*failures: int) -> AllocatorState:
    """So many failures of the processors 0, 1 and on."""
    containers = (ContainerState(ProcessorId(str(i)), failures=n) for i, n in enumerate(failures))
    return replace(initial_state(SETTINGS), containers=Containers(containers))


def recorded(
    before: AllocatorState, after: AllocatorState, event: Event
) -> list[CoordinatorStreamMessage]:
    """What the step of submission 3 at 5000 ms leaves, in which any container may have changed."""
    changes = Changes(frozenset((*before.containers.keys(), *after.containers.keys())))
    return list(records_of(before, Decision(after, (), (), changes=changes), event, 3, 5000))


def test_a_step_that_charges_nothing_asks_for_no_record() -> None:
    """Nor does the first one, which takes over what was charged before."""
    assert recorded(state(1, 0), state(1, 0), NOTHING) == []
    assert recorded(initial_state(SETTINGS), state(1, 0), NOTHING) == []


def test_what_is_charged_and_forgiven_is_recorded() -> None:
    """With the time of the last failure; a window that has passed leaves nothing."""
    found = recorded(state(1, 1), state(2, 0), NOTHING)
    assert found == [wire.set_retry_state("0", 2, 5000), wire.tombstone("set-retry-state", "1")]


def test_the_stop_of_who_is_in_no_model_any_more_is_recorded() -> None:
    """No later permit would tell of it, and every later attempt would wait for it (safety A4)."""
    launcher = ResourceState(ResourceId("r"), Host("a"), None)
    running = replace(state(0, 0), resources=Resources([launcher]))
    kept, retired = running.containers
    stopping = replace(retired, epoch=4, resource_id=launcher.resource_id, is_retired=True)
    running = replace(running, containers=Containers([kept, stopping]))
    told = replace(running, containers=Containers([kept]))
    assert recorded(running, told, NOTHING) == [wire.set_stopped("1", 4, "ordered")]
    lost = replace(told, resources=Resources())
    assert recorded(running, lost, NOTHING) == [wire.set_stopped("1", 4, "lease-lost")]
    assert recorded(state(0, 0), state(0), NOTHING) == []


def test_the_stop_of_one_that_an_earlier_driver_left_is_recorded() -> None:
    """Told by its launcher, or by others; not where it was found, or is in the model again."""
    left = Incarnation(P1, 4)
    before, after = replace(state(0), retired=frozenset({left})), state(0)
    told = ContainerStopped(left, StopCause.SIGNALLED, -15)
    assert recorded(before, after, told) == [wire.set_stopped("1", 4, "signalled")]
    assert recorded(after, after, told) == []
    lost = RetiredStopped(left, "lease-lost")
    for known in (before, after):
        found = recorded(known, after, lost)
        assert found == [wire.set_stopped("1", 4, "lease-lost")]
    assert recorded(before, after, NOTHING) == []


def test_an_end_is_recorded_once() -> None:
    """When it is decided, with the submission that it ends."""
    ending = replace(state(0), ending=Ending(JobResult.KILLED, "why"))
    assert recorded(state(0), ending, NOTHING) == [wire.set_job_end(3, "KILLED", "why")]
    assert recorded(ending, ending, NOTHING) == []


def test_what_was_charged_counts_for_the_rest_of_its_window() -> None:
    """Not longer; but who was given up stays so, and a clock that went back helps nobody."""

    def left(count: int, since_ms: int) -> ChargedFailures | None:
        states = {P0: RetryState(count, since_ms)}
        found = charged_failures(states, retry_count=2, window_ms=60_000, now_ms=100_000)
        return found.get(P0)

    assert left(2, 50_000) == ChargedFailures(2, 10_000)
    assert left(2, 40_000) is None
    assert left(3, 40_000) == ChargedFailures(3, 1)
    assert left(1, 200_000) == ChargedFailures(1, 60_000)
