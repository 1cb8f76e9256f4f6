"""What must hold of an active and its standbys, as sentences: Invariant-1, Invariant-2, moves.

PURE. Part of ``invariants``, which says when a state is looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import combinations

from homeport.appmaster.allocation import host_search, separation
from homeport.appmaster.allocation.commands import warm_moves
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import PlacementStep, SparkWait
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    LIVE,
    WAITING,
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    ResourceState,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId

_ON_ITS_WAY = WAITING | {ContainerPhase.STARTING}


def of_groups(state: AllocatorState, changed: Iterable[ContainerState]) -> Iterator[str]:
    """The broken sentences about the groups of these containers."""
    draft = _read(state)
    for active_id in sorted({c.group for c in changed}):
        group = draft.group(active_id)
        if len(group) > 1:
            yield from _of_group(draft, active_id)
        for container in group:
            if container.failover is not None or container.phase is ContainerPhase.FAILING_OVER:
                yield from _of_failover(draft, container)


def _of_group(draft: Draft, active_id: ProcessorId) -> Iterator[str]:
    active = draft.containers.get(active_id)
    if active is not None and active.replica_of is not None:
        yield f"{active_id}, which has standbys, is no standby itself"
    for one, other in combinations(draft.group(active_id), 2):
        host = separation.held_host(draft, one)
        if host is None or host != separation.held_host(draft, other):
            continue
        names = f"{one.processor_id} and {other.processor_id}"
        phases = {one.phase, other.phase}
        if ContainerPhase.STOPPING not in phases or not phases <= LIVE:
            yield f"Invariant-1: {names} are not on one host, {host}, unless one is found there"


def _of_failover(draft: Draft, container: ContainerState) -> Iterator[str]:
    name = f"processor {container.processor_id}"
    under_way = container.failover
    if under_way is None:
        yield f"{name} fails over only by a failover"
        return
    if container.replica_of is not None or container.phase not in _ON_ITS_WAY:
        yield f"a failover of {name} is under way only while it is active and on its way"
    if container.phase is not ContainerPhase.FAILING_OVER:
        return
    standby = draft.containers.get(under_way.standby) if under_way.standby else None
    if standby is None or standby.phase is not ContainerPhase.STOPPING:
        yield f"{name} waits for the stop of a standby that stops"
    elif not draft.host_of(standby) == under_way.host == container.home:
        yield f"{name} waits for the standby on the host that is its home now"


def of_permit(
    before: AllocatorState, old: ContainerState, launcher: ResourceState | None
) -> Iterator[str]:
    """The broken sentences about a step's permit of what was ``old`` before, on this launcher."""
    draft = _read(before)
    for other in separation.others(draft, old):
        host = separation.held_host(draft, other)
        if launcher is not None and other.phase in LIVE and host == launcher.host:
            yield f"Invariant-2: {old.processor_id} starts after {other.processor_id} has stopped"


def of_warm_moves(before: AllocatorState, after: AllocatorState) -> Iterator[str]:
    """The broken sentences about standbys that got the order to give way in this step."""
    gave_way = {p.request.uuid for p in before.placements if p.step is PlacementStep.GIVING_WAY}
    for placement in after.placements:
        standby = after.containers.get(placement.standby) if placement.standby else None
        is_news = (
            placement.step is PlacementStep.GIVING_WAY and placement.request.uuid not in gave_way
        )
        if standby is None or not is_news or placement.spark is SparkWait.OVER:
            continue
        if not warm_moves.has_what_it_needs(after.settings, standby):
            yield f"{standby.processor_id} gives way with a Spark beside it, or late"


def is_without_place(state: AllocatorState, container: ContainerState) -> bool:
    """Whether its group leaves the container no host that it could ask for, and be let stay on."""
    draft = _read(state)
    if separation.is_alone(draft, container) and not state.settings.drained_hosts:
        return False
    fresh = replace(container, tried=())
    return not host_search.Candidates(draft, fresh) and not host_search.may_ask_any(draft, fresh)


def is_sought_on(state: AllocatorState, host: Host) -> bool:
    """Whether a launcher on this host may be of use to a container."""
    draft = _read(state)
    return any(
        separation.may_have(draft, container, host)
        for phase in (*ASKING, ContainerPhase.QUEUED)
        for container in draft.containers.any_row(Containers.PHASE, phase)
    )


def _read(state: AllocatorState) -> Draft:
    """A draft that is only asked; frozen at once, or it and its tables would hold each other."""
    draft = Draft(state, "")
    draft.freeze()
    return draft
