"""The end of the job: what waits, waits no longer; what runs is stopped, with evidence.

PURE. Source: interfaces, "Life of a job".
"""

from __future__ import annotations

from homeport.appmaster.allocation.draft import Draft
from homeport.appmaster.allocation.events import named
from homeport.appmaster.allocation.instructions import JobResult, StopContainer
from homeport.appmaster.allocation.state import (
    LIVE,
    WAITING,
    ContainerPhase,
    ContainerState,
    Ending,
    JobPhase,
    retry_delay_timer,
    retry_window_timer,
)
from homeport.appmaster.allocation.transitions import Happening
from homeport.config.errors import InvariantViolation


def end_of_all(draft: Draft) -> None:
    """Every container came to its end, so the job does: FAILED if any was given up."""
    failed = [c.last_failure for c in draft.each(frozenset({ContainerPhase.FAILED}))]
    if failed:
        begin_ending(draft, JobResult.FAILED, "; ".join(failed))
    else:
        begin_ending(draft, JobResult.SUCCEEDED, "every processor finished")


def begin_ending(draft: Draft, result: JobResult, diagnostics: str) -> None:
    """The result stands; nothing waits any more and what runs is told to stop."""
    draft.phase = JobPhase.ENDING
    draft.ending = Ending(result, diagnostics)
    for container in draft.each():
        draft.cancel_timer(retry_window_timer(container.processor_id))
        draft.cancel_timer(retry_delay_timer(container.processor_id))
    for container in draft.each(WAITING):
        draft.end_request(container)
        draft.move(
            container,
            Happening.JOB_ENDING,
            ContainerPhase.STOPPED,
            request_id=None,
            resource_id=None,
            wanted=None,
        )
    for container in draft.each(LIVE):
        stopping = draft.move(container, Happening.JOB_ENDING, ContainerPhase.STOPPING)
        order_stop(draft, stopping)


def order_stop(draft: Draft, container: ContainerState) -> None:
    """What the container's launcher runs is told to stop."""
    if container.resource_id is None:
        raise InvariantViolation(f"{named(container.incarnation)} runs without a resource")
    draft.instruct(StopContainer(container.resource_id, container.incarnation))
