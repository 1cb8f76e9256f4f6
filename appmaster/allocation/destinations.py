"""Where an operator's command may move a container, and what is wrong with a named destination.

PURE. Nothing here changes the state. The destinations' words are Samza's.
"""

from collections.abc import Callable

from homeport.appmaster.allocation import host_search, separation
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.placements import Placement, PlacementStep
from homeport.appmaster.allocation.job_state.state import ContainerPhase, ContainerState
from homeport.job_coordinator.model.ids import Host, ProcessorId, host_of
from homeport.job_coordinator.model.placement import (
    ANY_HOST,
    FORCE_RESTART_LAST_SEEN,
    LAST_SEEN,
    PlacementRequest,
)

_BEFORE_ITS_STOP = frozenset(
    {
        PlacementStep.WAITING,
        PlacementStep.RESERVING,
        PlacementStep.WARMING,
        PlacementStep.GIVING_WAY,
    }
)
_MOST_NAMED = 20
"""Of more, only the number is shown."""


Find = Callable[[ProcessorId], ContainerState | None]
"""Returns the container of that processor; None where there is none."""


def group_id(find: Find, processor_id: ProcessorId) -> ProcessorId:
    """Return the active container of the processor's group; an unknown processor itself."""
    container = find(processor_id)
    return processor_id if container is None else container.group


def fault(draft: Draft, placement: Placement, container: ContainerState | None) -> str | None:
    """Return why the command can never be carried out; None: it may be."""
    request = placement.request
    if request.fault:
        return request.fault
    if container is None or container.is_retired:
        known = f"{len(draft.containers)} others"
        if len(draft.containers) <= _MOST_NAMED:
            known = ", ".join(draft.containers)
        return f"the job has no processor {request.processor_id!r}: it has {known}"
    if container.is_temporary:
        return f"{container.processor_id} is a temporary standby of {container.replica_of}"
    if container.phase is ContainerPhase.FINISHED:
        return f"processor {container.processor_id} has finished"
    is_waiting = placement.step is PlacementStep.WAITING
    host = named_host(draft, request)
    if is_waiting and host is not None and draft.hosts is not None:
        return host_fault(draft, host)
    may_have_arrived = is_waiting and placement.source is not None
    return None if may_have_arrived else drain_fault(draft, placement, container)


def drain_fault(draft: Draft, placement: Placement, container: ContainerState) -> str | None:
    """Return why a move of a drain ends: its container is on no drained host; None: go on."""
    is_open = placement.request.is_drain and placement.step in _BEFORE_ITS_STOP
    host = draft.host_of(container)
    if not is_open or draft.hosts is None or host in draft.settings.drained_hosts:
        return None
    place = f"on {host}, which is not drained" if host else "on no drained host"
    return f"processor {container.processor_id} is {place}: nothing is left of the drain to do"


def named_host(draft: Draft, request: PlacementRequest) -> Host | None:
    """Return the host that the request names; None: it has a word, or host affinity is off."""
    words = {ANY_HOST, LAST_SEEN, FORCE_RESTART_LAST_SEEN}
    is_word = request.destination in words or not draft.settings.host_affinity_enabled
    return None if is_word else host_of(request.destination)


def host_fault(draft: Draft, host: Host) -> str | None:
    """Return why this host cannot be requested by name; None: it can."""
    if host not in (draft.hosts or ()):
        live = draft.hosts or ()
        named = ", ".join(live) if len(live) <= _MOST_NAMED else f"{len(live)} others"
        return f"{host!r} is no live host: live are {named}"
    if host in draft.room.small or not draft.room.is_large_enough:
        return f"{host} is too small for a container"
    if host in draft.settings.drained_hosts:
        return f"{host} is drained: no container is placed there"
    if host in draft.exclusions:
        return f"{host} has fallen silent: it is not asked"
    return None


def group_fault(draft: Draft, container: ContainerState, host: Host) -> str | None:
    """Return which of its group has this host, or is going to (Invariant-1); None: none."""
    other = next(separation.in_the_way(draft, container, host), None)
    if other is None:
        return None
    return (
        f"{host} has processor {other.processor_id}, a replica of the same tasks, or is to have it"
    )


def word(draft: Draft, request: PlacementRequest) -> str:
    """Return the request's destination; without host affinity any host."""
    return request.destination if draft.settings.host_affinity_enabled else ANY_HOST


def destination(draft: Draft, placement: Placement, container: ContainerState) -> Host | None:
    """Return the host to request; None: there is none. For any host, another one if possible."""
    named = named_host(draft, placement.request)
    if named is not None:
        return named
    own = draft.host_of(container) or container.home
    if word(draft, placement.request) == LAST_SEEN:
        known = placement.source.host if placement.source is not None else None
        if known or own:
            return known or own
    left = separation.left_to(draft, container, draft.hosts or ())
    hosts = [h for h in left if not host_fault(draft, h)]
    others = [h for h in hosts if h != own] or hosts
    free = [h for h in others if not draft.is_asked(h)] or others
    candidates = filter(frozenset(free).__contains__, draft.ranking.best_first())
    return host_search.best_host(draft, container, candidates)
