"""Where a queued container may look for a place: home, a standby's place, another host, any host.

PURE. The order of what is left to one container; which of the hosts is best is ``constraints``',
and who is asked then ``container_allocator``'s. A container that is alone in its group has every
open host, then any; of the others each takes hosts from the rest (``separation``), and an active
among them that cannot go home takes the place of a standby (``standby_container_manager``).
"""

from __future__ import annotations

from homeport.appmaster.allocation import constraints, separation
from homeport.appmaster.allocation import standby_container_manager as standbys
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import ContainerPhase, ContainerState
from homeport.job_coordinator.model.ids import Host


class Candidates:
    """The hosts that a container may still ask for by name in this round."""

    def __init__(self, draft: Draft, container: ContainerState) -> None:
        self._draft = draft
        self._container = container
        self._live = draft.ranking.rank_of
        self._taken: list[Host] | None = None

    def __contains__(self, host: Host | None) -> bool:
        draft = self._draft
        return (
            host is not None
            and host in self._live
            and host not in self._container.tried
            and draft.may_be_named(host)
            and host not in draft.room.small
            and not draft.is_closed(host)
            and not any(separation.is_too_near(draft, taken, host) for taken in self.taken)
        )

    @property
    def taken(self) -> list[Host]:
        """What the others of its group have: looked up when a host is open, and kept."""
        if self._taken is None:
            self._taken = separation.taken_hosts(self._draft, self._container)
        return self._taken

    def __bool__(self) -> bool:
        """Whether there is any."""
        return any(host in self for host in self._live)

    def best(self) -> Host | None:
        """The one to ask for; None where there is none."""
        draft, container = self._draft, self._container
        return constraints.best_host(
            draft.ranking.best_first(),
            container.home,
            self.__contains__,
            lambda host: separation.shares_rack(draft, container, host),
        )


def may_go_home(draft: Draft, container: ContainerState) -> bool:
    """Whether the host with its state may be asked for."""
    return container.home is not None and container.home in Candidates(draft, container)


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


def seek(draft: Draft, container: ContainerState) -> tuple[ContainerState, Candidates]:
    """The container and the hosts it may be placed on; none: anywhere, where that may be asked.

    An active that cannot go home may have become one that waits for its standby. Where all that is
    left has been tried and any host must not be asked for, the round begins again.
    """
    candidates = Candidates(draft, container)
    if container.home in candidates or separation.is_alone(draft, container):
        return container, candidates
    is_last_resort = not candidates and not may_ask_any(draft, container)
    if container.replica_of is None and (is_last_resort or standbys.has_state_somewhere(container)):
        container = standbys.fail_over(draft, container, is_last_resort=is_last_resort)
        if container.phase is not ContainerPhase.QUEUED:
            return container, candidates
        candidates = Candidates(draft, container)
        is_last_resort = not candidates and not may_ask_any(draft, container)
    if is_last_resort and container.tried:
        container = draft.change(container, tried=())
        candidates = Candidates(draft, container)
    if is_last_resort and not candidates and container.replica_of is None:
        standbys.make_room(draft, container, frozenset(_askable(draft, container)))
        candidates = Candidates(draft, container)
    return container, candidates
