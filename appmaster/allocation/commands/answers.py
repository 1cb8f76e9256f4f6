"""The answers to an operator's command, and what the steps of its kinds share. PURE."""

from dataclasses import replace

from homeport.appmaster.allocation.job_end import order_stop
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import Placement, PlacementStep, SparkWait
from homeport.appmaster.allocation.job_state.state import (
    WORKING,
    ContainerPhase,
    ContainerState,
    EarlyPhase,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind, named
from homeport.appmaster.allocation.protocol.instructions import WritePlacementResponse
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId
from homeport.job_coordinator.model.placement import PlacementSource, PlacementStatus

_REASONS = {
    PlacementStatus.ACCEPTED: ReasonKind.COMMAND_WAITS,
    PlacementStatus.IN_PROGRESS: ReasonKind.COMMAND_GOES_ON,
    PlacementStatus.SUCCEEDED: ReasonKind.COMMAND_DONE,
    PlacementStatus.BAD_REQUEST: ReasonKind.COMMAND_REFUSED,
    PlacementStatus.FAILED: ReasonKind.COMMAND_FAILED,
}


def stop(draft: Draft, container: ContainerState, *, keeps_process: bool = False) -> None:
    """Order the container to stop, and its process to end, or to rest for the next permit."""
    ending = replace(container, keeps_process=keeps_process)
    order_stop(draft, draft.move(ending, Trigger.COMMANDED, ContainerPhase.STOPPING))


def begin(
    draft: Draft,
    placement: Placement,
    container: ContainerState,
    step: PlacementStep,
    host: Host | None,
) -> Placement:
    """Put the action into this step, with this destination; note where its container was."""
    source = placement.source or PlacementSource(
        container.epoch, draft.host_of(container) or container.home
    )
    return draft.keep(replace(placement, step=step, host=host, source=source))


def accept(draft: Draft, placement: Placement, reason: str) -> None:
    """Let the request wait; answer once that it is accepted."""
    is_news = placement.status is PlacementStatus.CREATED
    status = PlacementStatus.ACCEPTED if is_news else placement.status
    accepted = replace(placement, status=status, story=reason)
    if accepted != placement:
        draft.keep(accepted)
    if is_news:
        answer(draft, accepted, PlacementStatus.ACCEPTED, reason)


def report_progress(draft: Draft, placement: Placement, text: str) -> None:
    """Answer that the action is in progress, and how far."""
    said = draft.keep(replace(placement, status=PlacementStatus.IN_PROGRESS, story=text))
    answer(draft, said, PlacementStatus.IN_PROGRESS, text)


def succeed(draft: Draft, placement: Placement, container: ContainerState) -> None:
    """Answer that the container runs where it was wanted."""
    text = f"{named(container.incarnation)} runs on {draft.host_of(container)}"
    end(draft, placement, PlacementStatus.SUCCEEDED, text)


def refuse(draft: Draft, placement: Placement, fault: str) -> None:
    """Refuse the request: BAD_REQUEST if nothing was done, else FAILED."""
    is_begun = placement.status is PlacementStatus.IN_PROGRESS
    status = PlacementStatus.FAILED if is_begun else PlacementStatus.BAD_REQUEST
    end(draft, placement, status, fault)


def fail(draft: Draft, placement: Placement, text: str) -> None:
    """Fail the action; its container goes on."""
    end(draft, placement, PlacementStatus.FAILED, text)


def end(draft: Draft, placement: Placement, status: PlacementStatus, text: str) -> None:
    """Give the final answer; give up the reserved launcher and the temporary standby."""
    del draft.placements[placement.request.uuid]
    draft.cancel_timer(Timer(TimerKind.COMMAND, placement.request.uuid))
    placement = await_no_spark(draft, placement)
    withdraw(draft, placement.request.processor_id)
    dismiss(draft, placement)
    launcher = draft.resources.get(placement.resource_id)
    if launcher is not None and draft.holder(launcher.resource_id) is None:
        draft.release(launcher)
    elif launcher is not None and launcher.reserved_for is not None:
        draft.resources[launcher.resource_id] = replace(launcher, reserved_for=None)
    answer(draft, placement, status, text)


def dismiss(draft: Draft, placement: Placement) -> None:
    """Stop the temporary standby, if any; remove it if it has no permit yet."""
    standby = draft.containers.get(placement.standby)
    if standby is None or not standby.is_temporary:
        return
    if standby.phase is ContainerPhase.ASSIGNED:
        del draft.containers[standby.processor_id]
    elif standby.phase in WORKING:
        stop(draft, standby)


def await_no_spark(draft: Draft, placement: Placement) -> Placement:
    """Return the action without its wait for a Spark."""
    if placement.spark is not SparkWait.AWAITED:
        return placement
    draft.cancel_timer(Timer(TimerKind.SPARE_SPARK, placement.request.processor_id))
    return replace(placement, spark=SparkWait.NOT_YET)


def withdraw(draft: Draft, processor_id: ProcessorId, *, served: RequestId | None = None) -> None:
    """Withdraw the container's reservation, if any; cancel its request unless just served."""
    early = draft.early.get(processor_id)
    if early is not None and early.is_reservation:
        del draft.early[processor_id]
        if early.phase is not EarlyPhase.OVER:
            draft.forget_request(early.request_id, is_served=early.request_id == served)


def answer(draft: Draft, placement: Placement, status: PlacementStatus, text: str) -> None:
    """Write the answer, and note it as a reason."""
    source = None if status.is_final else placement.source
    request = placement.request
    kind, processor_id = _REASONS[status], request.processor_id
    draft.because(kind, processor_id, placement.host, f"{request.destination}: {text}")
    draft.record(WritePlacementResponse(request, status, text, source, placement.standby))
