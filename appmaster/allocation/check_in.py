"""Handles a launcher's check-in.

The launcher is granted to a container, gets its order again, or its child is adopted or stopped.

PURE. Only a check-in grants a launcher: Skein's report merely says that one may come. A container
is permitted only in the answer to its launcher's check-in. The cluster manager ends a launcher
whose request was cancelled, so such a launcher gets no container, and its child is not adopted.
"""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.allocation import container_allocator as allocator
from homeport.appmaster.allocation import early_requests, exclusion, model_change
from homeport.appmaster.allocation import placement_actions as placement
from homeport.appmaster.allocation.job_end import order_stop
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    LIVE,
    WAITING,
    ContainerPhase,
    ContainerState,
    JobPhase,
    ResourceState,
)
from homeport.appmaster.allocation.protocol.events import LauncherCheckedIn
from homeport.appmaster.allocation.protocol.instructions import (
    PermitContainer,
    ReleaseResource,
    StopContainer,
)
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.incarnation import Incarnation


def checked_in(draft: Draft, event: LauncherCheckedIn) -> None:
    """The launcher is recorded and gets its order, if any; before the first JobModel, nothing."""
    if draft.phase is JobPhase.NEW:
        return
    exclusion.host_spoke(draft, event.host)
    known = draft.resources.get(event.resource_id) or placement.claim(draft, event)
    if known is None:
        early_requests.over(draft, event.request_id, is_served=True)
    elif known.ended is not None:
        known = draft.resources[known.resource_id] = replace(
            known, ended=None
        )  # the report of its end was wrong
    launcher = known or ResourceState(event.resource_id, event.host, event.request_id)
    holder = draft.holder(event.resource_id)
    if event.running is not None:
        _with_child(draft, launcher, event.running, holder)
    elif holder is not None:
        _of_holder(draft, launcher, holder)
    elif known is None:
        _of_newcomer(draft, launcher)
    elif known.is_released:
        draft.instruct(ReleaseResource(known.resource_id))
    elif draft.phase is JobPhase.ACTIVE and known.reserved_for is None:
        allocator.grant(draft, known)  # idle: its holder is retired


def _of_newcomer(draft: Draft, launcher: ResourceState) -> None:
    """A new launcher without a child: released if its request was cancelled, else granted."""
    if draft.forget_cancelled(launcher.request_id):
        draft.release(launcher)
        draft.because(
            ReasonKind.CANCELLED_RELEASED, host=launcher.host, detail=str(launcher.resource_id)
        )
    elif draft.phase is JobPhase.ACTIVE:
        allocator.grant(draft, launcher)
    else:
        draft.resources[launcher.resource_id] = launcher


def _of_holder(draft: Draft, launcher: ResourceState, holder: ContainerState) -> None:
    """A launcher without a child that ``holder`` has: the permit, or the order to stop."""
    if holder.phase is ContainerPhase.ASSIGNED:
        if allocator.may_be_permitted(draft, holder):
            allocator.permit(draft, holder, launcher)
    elif holder.phase is ContainerPhase.STOPPING:
        order_stop(draft, holder)
    else:
        resource_id, version = launcher.resource_id, holder.model_version
        draft.instruct(PermitContainer(resource_id, holder.incarnation, version, holder.fence))


def _with_child(
    draft: Draft, launcher: ResourceState, running: Incarnation, holder: ContainerState | None
) -> None:
    """The child runs on, is adopted, or gets the order to stop."""
    if holder is not None and holder.phase in LIVE and holder.incarnation == running:
        if holder.phase is ContainerPhase.STOPPING:
            order_stop(draft, holder)
        return
    owner = draft.containers.get(running.processor_id)
    is_known = launcher.resource_id in draft.resources
    is_news = not is_known and launcher.request_id not in draft.cancelled
    if is_news and running in draft.retired and draft.phase is JobPhase.ACTIVE:
        model_change.adopt_retired(draft, running, launcher)
    elif is_news and owner and owner.phase in WAITING and owner.epoch == running.epoch:
        allocator.adopt(draft, owner, launcher)
    else:
        draft.count_stale()
        draft.instruct(StopContainer(launcher.resource_id, running))
        why = "it is not the incarnation that was permitted last, or not there"
        draft.because(ReasonKind.STRANGER_STOPPED, running.processor_id, launcher.host, why)
