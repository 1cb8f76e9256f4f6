"""The end of a container, and of the job, which stops all that runs. PURE."""

from dataclasses import replace

from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    TERMINAL,
    WAITING,
    ContainerPhase,
    Containers,
    ContainerState,
    Ending,
    JobPhase,
)
from homeport.appmaster.allocation.job_state.table import Edit
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind, named
from homeport.appmaster.allocation.protocol.instructions import (
    EndJob,
    JobResult,
    StopContainer,
    WriteJobEnd,
)
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.config.errors import InvariantViolation
from homeport.job_coordinator.model.ids import ProcessorId

_Containers = Containers | Edit[ProcessorId, ContainerState, Containers]


def is_at_its_end(containers: _Containers, *, is_complete: bool) -> bool:
    """Return whether every active container has ended, so that the job does.

    ``is_complete``: all that an earlier driver left running has been found. Before, a standby that
    waits may run, and nothing would stop it.
    """
    if containers.indexed(Containers.GOING, value=True):
        return False
    return is_complete or _have_all_ended(containers)


def _have_all_ended(containers: _Containers) -> bool:
    ended = sum(len(containers.indexed(Containers.PHASE, phase)) for phase in TERMINAL)
    return ended == len(containers)


def end_of_all(draft: Draft) -> None:
    """End the job, as every active container has ended: FAILED if one was given up."""
    failed = [str(c.last_failure) for c in draft.each(frozenset({ContainerPhase.FAILED}))]
    if failed:
        begin_ending(draft, JobResult.FAILED, "; ".join(failed))
    else:
        begin_ending(draft, JobResult.SUCCEEDED, "every processor finished")


def has_nothing_left(container: ContainerState) -> bool:
    """Return whether a finish of this container is its end; a standby's work ends with the job."""
    is_active = container.replica_of is None
    return is_active and not container.is_retired and not container.has_gained


def finish(draft: Draft, container: ContainerState) -> None:
    """End the container, which has finished."""
    left = draft.end_request(container)
    draft.cancel_timer(Timer(TimerKind.RETRY_WINDOW, container.processor_id))
    draft.cancel_timer(Timer(TimerKind.RETRY_DELAY, container.processor_id))
    ended = replace(draft.end_failover(left), resource_id=None, failures=0)
    draft.move(ended, Trigger.STOPPED, ContainerPhase.FINISHED)
    draft.because(ReasonKind.FINISHED, container, draft.host_of(container))


def decide_end(draft: Draft, result: JobResult, diagnostics: str) -> Ending:
    """Set the result, if there is none, and return it; ``begin_if_due`` begins the ending."""
    if draft.ending is None:
        draft.ending = Ending(result, diagnostics)
        draft.record(WriteJobEnd(result, diagnostics))
    return draft.ending


def begin_if_due(draft: Draft) -> None:
    """Begin the ending if there is a result and hosts are known.

    The shell reports hosts once all that an earlier driver permitted is accounted for. Before,
    nothing would stop a container that is found after the end, nor wait for it.
    """
    if draft.phase is JobPhase.ACTIVE and draft.ending is not None and draft.hosts is not None:
        begin_ending(draft, draft.ending.result, draft.ending.diagnostics)


def begin_ending(draft: Draft, result: JobResult, diagnostics: str) -> None:
    """Begin the ending: end all that waits, and order all that runs to stop."""
    draft.phase = JobPhase.ENDING
    ending = decide_end(draft, result, diagnostics)
    draft.because(ReasonKind.JOB_ENDS, detail=f"{ending.result.value}, {ending.diagnostics}")
    for container in draft.each():
        draft.cancel_timer(Timer(TimerKind.RETRY_WINDOW, container.processor_id))
        draft.cancel_timer(Timer(TimerKind.RETRY_DELAY, container.processor_id))
    for container in draft.each(WAITING):
        left = draft.end_failover(draft.end_request(container))
        draft.move(replace(left, resource_id=None), Trigger.JOB_ENDING, ContainerPhase.STOPPED)
    for container in draft.each(LIVE):
        left = draft.end_failover(container)
        order_stop(draft, draft.move(left, Trigger.JOB_ENDING, ContainerPhase.STOPPING))


def end_if_over(draft: Draft) -> None:
    """End the application with its result once everything has stopped."""
    is_over = draft.phase is JobPhase.ENDING and _have_all_ended(draft.containers)
    if is_over and draft.ending is not None:
        draft.phase = JobPhase.ENDED
        draft.instruct(EndJob(draft.ending.result, draft.ending.diagnostics))


def order_stop(draft: Draft, container: ContainerState) -> None:
    """Order what the container's launcher runs to stop."""
    if container.resource_id is None:
        raise InvariantViolation(f"{named(container.incarnation)} runs without a resource")
    keeps, own = container.keeps_process, container.incarnation
    draft.instruct(StopContainer(container.resource_id, own, keeps))
