"""Keeps an active container and its standbys apart: which hosts a group leaves to one of its own.

PURE. Invariant-1 (STANDBY, part 2: "An active and its corresponding standby task/container should
not be on the same host") holds for every pair of a group, since two replicas of one active would
share a directory too. A container has the host that it holds or requests, whatever its phase is,
and the host of a launcher that a command reserved for it. With fault domains apart (hard) a rack
counts as a host does; with fault domains known (soft) a host in another rack is preferred.

The active comes first: while it waits, its home is kept free of its standbys. If no other host is
left, it takes a host that a standby has only requested (``standby_container_manager.make_room``).
"""

from collections.abc import Iterator

from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    LIVE,
    ContainerPhase,
    Containers,
    ContainerState,
)
from homeport.job_coordinator.model.ids import Host

_EXPECTS_HOME = frozenset(
    {ContainerPhase.QUEUED, ContainerPhase.BACKING_OFF, ContainerPhase.FAILING_OVER}
)


def others(draft: Draft, container: ContainerState) -> list[ContainerState]:
    """Return the rest of its group, its active first."""
    if is_alone(draft, container):
        return []
    group = draft.group(container.group)
    return [c for c in group if c.processor_id != container.processor_id]


def is_alone(draft: Draft, container: ContainerState) -> bool:
    """Return whether it is an active without standbys."""
    is_active = container.replica_of is None
    return is_active and not draft.containers.indexed(Containers.REPLICA_OF, container.processor_id)


def held_host(draft: Draft, container: ContainerState) -> Host | None:
    """Return the host that the container holds or requests; None: none."""
    if container.resource_id is not None:
        return draft.host_of(container)
    return container.requested_host if container.phase in ASKING else None


def _kept_host(draft: Draft, container: ContainerState) -> Host | None:
    if container.replica_of is None and container.phase in _EXPECTS_HOME:
        return container.requested_host or container.home
    return held_host(draft, container)


def in_the_way(draft: Draft, container: ContainerState, host: Host) -> Iterator[ContainerState]:
    """Yield the others of the group that keep the container from this host."""
    for other, taken in _taken_hosts(draft, container):
        if is_too_near(draft, taken, host):
            yield other


def _taken_hosts(draft: Draft, container: ContainerState) -> Iterator[tuple[ContainerState, Host]]:
    for other in others(draft, container):
        for taken in (_kept_host(draft, other), _reserved_host(draft, other)):
            if taken is not None:
                yield other, taken


def _reserved_host(draft: Draft, container: ContainerState) -> Host | None:
    for placement in draft.commands_for(container.processor_id):
        launcher = draft.resources.get(placement.resource_id)
        if launcher is not None and launcher.reserved_for == container.processor_id:
            return launcher.host
    return None


def taken_hosts(draft: Draft, container: ContainerState) -> list[Host]:
    """Return the hosts that the others of its group have; see ``is_too_near``."""
    return [taken for _, taken in _taken_hosts(draft, container)]


def left_to(draft: Draft, container: ContainerState, hosts: tuple[Host, ...]) -> tuple[Host, ...]:
    """Return those of these hosts that Invariant-1 leaves to the container, but no drained ones."""
    drained = draft.settings.drained_hosts
    hosts = tuple(h for h in hosts if h not in drained) if drained else hosts
    taken = taken_hosts(draft, container)
    if not draft.settings.racks_are_apart:
        return tuple(host for host in hosts if host not in taken)
    return tuple(h for h in hosts if not any(is_too_near(draft, other, h) for other in taken))


def may_have(draft: Draft, container: ContainerState, host: Host) -> bool:
    """Return whether the host is not drained, and Invariant-1 lets the container have it."""
    return host not in draft.settings.drained_hosts and may_stay(draft, container, host)


def may_stay(draft: Draft, container: ContainerState, host: Host) -> bool:
    """Return whether Invariant-1 lets the container keep a launcher there, drained or not."""
    return next(in_the_way(draft, container, host), None) is None


def is_clear(draft: Draft, container: ContainerState) -> bool:
    """Return whether no other container of its group may run on the host that it holds.

    Source: STANDBY, Invariant-2: "should be started only after its corresponding standby has been
    successfully stopped".
    """
    host = draft.host_of(container)
    return not any(c.phase in LIVE and draft.host_of(c) == host for c in others(draft, container))


def shares_rack(draft: Draft, container: ContainerState, host: Host) -> bool:
    """Return whether racks count, and another container of the group is in this host's rack."""
    if not draft.settings.racks_are_preferred:
        return False
    taken = (held_host(draft, other) for other in others(draft, container))
    return any(h is not None and _is_same_rack(draft, h, host) for h in taken)


def is_too_near(draft: Draft, taken: Host, host: Host) -> bool:
    """Return whether a container on ``taken`` keeps the others of its group from ``host``."""
    return taken == host or (draft.settings.racks_are_apart and _is_same_rack(draft, taken, host))


def _is_same_rack(draft: Draft, one: Host, another: Host) -> bool:
    rack = draft.racks.get(one)
    return rack is not None and rack == draft.racks.get(another)
