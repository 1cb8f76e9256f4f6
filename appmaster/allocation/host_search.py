"""Where a queued container may look for a place: home, a standby's place, another host, any host.

PURE. The order of what is left to one container; which of the hosts is best is ``constraints``',
and who is asked then ``container_allocator``'s. A container that is alone in its group has every
open host, then any; of the others each takes hosts from the rest (``separation``), and an active
among them that cannot go home takes the place of a standby (``standby_container_manager``).
"""

from __future__ import annotations

from homeport.appmaster.allocation import constraints, separation
from homeport.appmaster.allocation import standby_container_manager as standbys
from homeport.appmaster.allocation.draft import Draft
from homeport.appmaster.allocation.state import ContainerPhase, ContainerState
from homeport.job_coordinator.model.ids import Host


def may_go_home(draft: Draft, container: ContainerState) -> bool:
    """Whether the host with its state may be asked for."""
    return container.home in candidates_for(draft, container)


def candidates_for(draft: Draft, container: ContainerState) -> tuple[Host, ...]:
    """The hosts that the container may still ask for by name in this round, sorted."""
    found = _askable(draft, container)
    if separation.is_alone(draft, container):
        return found
    return separation.left_to(draft, container, found)


def _askable(draft: Draft, container: ContainerState) -> tuple[Host, ...]:
    closed = draft.room.small | {h for h in draft.exclusions if draft.is_closed(h)}
    return constraints.candidate_hosts(draft.settings, draft.hosts or (), closed, container)


def may_ask_any(draft: Draft, container: ContainerState) -> bool:
    """Whether a launcher that comes from anywhere may be of use.

    Where the group of the container stands in its way on some host, only a host that cannot be
    asked by name is worth it: else any host is as likely as not the one that it must not have.
    """
    live, known = draft.hosts or (), draft.settings.strict_hosts
    allowed = separation.left_to(draft, container, live)
    if len(allowed) == len(live):
        return True
    return known is not None and any(h not in known for h in allowed)


def seek(draft: Draft, container: ContainerState) -> tuple[ContainerState, tuple[Host, ...]]:
    """The container and the hosts it may be placed on; none: anywhere, where that may be asked.

    An active that cannot go home may have become one that waits for its standby. Where all that is
    left has been tried and any host must not be asked for, the round begins again.
    """
    candidates = candidates_for(draft, container)
    if container.home in candidates or separation.is_alone(draft, container):
        return container, candidates
    is_last_resort = not candidates and not may_ask_any(draft, container)
    if container.replica_of is None and (is_last_resort or standbys.has_state_somewhere(container)):
        container = standbys.fail_over(draft, container, is_last_resort=is_last_resort)
        if container.phase is not ContainerPhase.QUEUED:
            return container, ()
        candidates = candidates_for(draft, container)
        is_last_resort = not candidates and not may_ask_any(draft, container)
    if is_last_resort and container.tried:
        container = draft.change(container, tried=())
        candidates = candidates_for(draft, container)
    if is_last_resort and not candidates and container.replica_of is None:
        standbys.make_room(draft, container, frozenset(_askable(draft, container)))
        candidates = candidates_for(draft, container)
    return container, candidates
