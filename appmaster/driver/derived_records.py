"""What the next driver must know of a step besides its records: retries, stops, the job's end.

Decides only; the time is given. What changed is read off the states before and after the step, and
is written, as those are, before anything follows from it (design 2).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from homeport.appmaster.allocation.container_process_manager import Decision
from homeport.appmaster.allocation.job_state.state import AllocatorState, ContainerState
from homeport.appmaster.allocation.protocol.events import (
    ChargedFailures,
    ContainerStopped,
    Event,
    RetiredStopped,
)
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.metadata.lifecycle import (
    JobEnd,
    JobEndManager,
    RetryManager,
    RetryState,
    StopManager,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.outcomes import StopCause


def records_of(
    before: AllocatorState, decision: Decision, event: Event, submission: int, now_ms: int
) -> Iterator[CoordinatorStreamMessage]:
    """The records that the step of ``event`` asks for; ``now_ms`` in ms since 1970."""
    after = decision.state
    for processor_id in sorted(decision.changes.containers):
        old, new = before.container(processor_id), after.container(processor_id)
        if old is None:
            continue
        if new is None:
            # The model has it no more, so nobody comes after it whose permit would tell of its end.
            yield from _stop_of(old, after)
        elif new.failures != old.failures:
            yield RetryManager.message(new.processor_id, RetryState(new.failures, now_ms))
    if isinstance(event, RetiredStopped):
        yield StopManager.message(event.incarnation, event.cause)
    elif isinstance(event, ContainerStopped) and before.retired != after.retired:
        yield StopManager.message(event.incarnation, event.cause.value)
    if before.ending is None and after.ending is not None:
        result, diagnostics = after.ending.result.value, after.ending.diagnostics
        yield JobEndManager.message(JobEnd(submission, result, diagnostics))


def _stop_of(retired: ContainerState, after: AllocatorState) -> Iterator[CoordinatorStreamMessage]:
    is_lost = retired.resource_id is not None and after.resource(retired.resource_id) is None
    cause = StopCause.LEASE_LOST if is_lost else StopCause.ORDERED
    if retired.epoch:
        yield StopManager.message(retired.incarnation, cause.value)


def charged_failures(
    states: Mapping[ProcessorId, RetryState], *, retry_count: int, window_ms: int, now_ms: int
) -> dict[ProcessorId, ChargedFailures]:
    """What still counts of what earlier drivers have charged.

    Who was given up stays given up. A clock that went back forgives nothing.
    """
    found = {}
    for processor_id, state in states.items():
        left_ms = min(window_ms, state.since_ms + window_ms - now_ms)
        if left_ms > 0 or 0 <= retry_count < state.count:
            found[processor_id] = ChargedFailures(state.count, max(left_ms, 1))
    return found
