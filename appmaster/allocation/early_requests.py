"""Requests home as soon as YARN reports the end of a container there; the permit waits.

PURE. A NodeManager that reports the end of a launcher's container lives, so the next launcher is
requested on the same host at once. The report is no evidence that the child has stopped
(safety P1). So the processor keeps its phase until its launcher, or the keeper, gives that
evidence, and the new launcher stays idle (safety P2). Then the processor takes over the request, or
finds the idle launcher at home.
"""

from collections.abc import Iterator
from dataclasses import replace

from homeport.appmaster.allocation import separation
from homeport.appmaster.allocation import standby_container_manager as standbys
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    WORKING,
    ContainerPhase,
    ContainerState,
    EarlyPhase,
    EarlyRequest,
    JobPhase,
    Resources,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.transitions import Trigger
from homeport.appmaster.allocation.protocol.events import ResourceEnded
from homeport.appmaster.allocation.protocol.reasons import ReasonKind
from homeport.job_coordinator.model.ids import RequestId, ResourceId


def end_was_reported(draft: Draft, launcher: ResourceState, ended: ResourceEnded) -> None:
    """Note YARN's report of the end of a launcher whose child may still run."""
    draft.resources[launcher.resource_id] = replace(launcher, ended=ended)
    holder = draft.holder(launcher.resource_id)
    draft.because(ReasonKind.END_NOT_PROVEN, holder, launcher.host, ended.story)


def settle(draft: Draft) -> None:
    """Hand over, withdraw and make early requests as the state requires."""
    ended = draft.resources.indexed(Resources.ENDED, value=True)
    if not ended and not draft.early:
        return
    awaited = {owner.processor_id: owner for key in ended for owner in _owners(draft, key)}
    for early in list(draft.early.values()):
        if early.processor_id not in awaited and not early.is_reservation:
            _close(draft, early)
    for processor_id in sorted(awaited):
        if processor_id not in draft.early:
            _ask(draft, awaited[processor_id])


def _owners(draft: Draft, ended: ResourceId) -> Iterator[ContainerState]:
    """Yield the container, if any, that only waits for the evidence of a stop in this launcher.

    It is the active that takes the place of the launcher's container, or that container itself if
    its home is there.
    """
    holder, host = draft.holder(ended), draft.resources[ended].host
    if draft.phase is not JobPhase.ACTIVE or holder is None or host not in (draft.hosts or ()):
        return
    active, end = standbys.awaiting(draft, holder), draft.resources[ended].ended
    is_taken_back = end is not None and end.is_taken_back
    asks_elsewhere = is_taken_back and not separation.is_alone(draft, holder)
    if active is not None:
        yield active
    elif holder.phase in WORKING and host == holder.home and not asks_elsewhere:
        yield holder


def _ask(draft: Draft, container: ContainerState) -> None:
    host = container.home
    if host is None or draft.is_asked(host):
        return
    if host in draft.settings.drained_hosts:
        return
    request_id = draft.request(host, draft.settings.request_timeout_ms)
    draft.early[container.processor_id] = EarlyRequest(container.processor_id, request_id, host)
    draft.because(ReasonKind.ASKED_EARLY, container, host)


def _close(draft: Draft, early: EarlyRequest) -> None:
    del draft.early[early.processor_id]
    if early.phase is EarlyPhase.OVER:
        return
    owner = draft.containers.get(early.processor_id)
    is_live = early.host in (draft.hosts or ()) and early.host not in draft.exclusions
    if (
        owner is None
        or owner.phase is not ContainerPhase.QUEUED
        or owner.home != early.host
        or early.host in owner.tried
        or not is_live
        or not separation.may_have(draft, owner, early.host)
    ):
        draft.forget_request(early.request_id)
        draft.because(ReasonKind.EARLY_WITHDRAWN, early.processor_id, early.host)
        return
    draft.because(ReasonKind.EARLY_TAKEN_OVER, early.processor_id, early.host)
    asking = replace(owner, request_id=early.request_id, requested_host=early.host)
    asking = draft.move(asking, Trigger.PLACED, ContainerPhase.REQUESTED)
    if early.phase is EarlyPhase.GRANTED:
        draft.move(asking, Trigger.ALLOCATED, ContainerPhase.ALLOCATED)


def granted(draft: Draft, early: EarlyRequest) -> None:
    """Wait for the check-in from now on: Skein has started its launcher."""
    if early.phase is not EarlyPhase.ASKED:
        draft.count_stale()
        return
    draft.early[early.processor_id] = replace(early, phase=EarlyPhase.GRANTED)
    draft.await_check_in(early.request_id)


_UNSERVED = {
    EarlyPhase.ASKED: "the request was not granted in time",
    EarlyPhase.GRANTED: "its launcher did not check in in time",
}


def over(draft: Draft, request_id: RequestId | None, *, is_served: bool, story: str = "") -> bool:
    """End the request, cancelled unless served; return whether there was one.

    Nothing is charged: its owner requests again when the evidence is there. ``story``: why the
    request ended; empty: it took too long.
    """
    early = draft.early_asker(request_id)
    if early is None:
        return False
    draft.forget_request(early.request_id, is_served=is_served)
    if not is_served:
        draft.because(ReasonKind.REQUEST_EXPIRED, early.processor_id, early.host)
    said = story or ("its container has ended" if is_served else _UNSERVED[early.phase])
    said = said if early.is_reservation else ""
    draft.early[early.processor_id] = replace(early, phase=EarlyPhase.OVER, story=said)
    return True
