"""Where a queued container may look for a place: home, a standby's place, another host, any host.

PURE. ``candidate_hosts`` to ``best_launcher`` answer questions about one placement: constraints
first, then preference. No host is forbidden to an active container but an excluded one. At most one
strict request per host is pending, since YARN reserves the node for it. The allocator
(``container_allocator``) decides which container asks. A container that is alone in its group has
every open host, then any; of the others each takes hosts from the rest (``separation``), and an
active among them that cannot go home takes the place of a standby (``standby_container_manager``).

Source: HA-YARN, "This approach can be considered as a 'best-effort stickiness' policy": home first.
Where home cannot be had, the least loaded other host, since containers that share a host share its
loss.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import replace

from homeport.appmaster.allocation import separation
from homeport.appmaster.allocation import standby_container_manager as standbys
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    ContainerPhase,
    ContainerState,
    ResourceState,
)
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host

_JOINED_LATER = "joined after submission and cannot be asked for by name"


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
        """Return whether there is any."""
        return any(host in self for host in self._live)

    def best(self) -> Host | None:
        """Return the one to ask for; None where there is none."""
        draft, container = self._draft, self._container
        return best_host(
            draft.ranking.best_first(),
            container.home,
            self.__contains__,
            lambda host: separation.shares_rack(draft, container, host),
        )


def may_go_home(draft: Draft, container: ContainerState) -> bool:
    """Return whether the host with its state may be asked for."""
    return container.home is not None and container.home in Candidates(draft, container)


def _askable(draft: Draft, container: ContainerState) -> tuple[Host, ...]:
    closed = draft.room.small | draft.settings.drained_hosts
    closed |= {h for h in draft.exclusions if draft.is_closed(h)}
    return candidate_hosts(draft.settings, draft.hosts or (), closed, container)


def may_ask_any(draft: Draft, container: ContainerState) -> bool:
    """Return whether a launcher that comes from anywhere may be of use.

    Where the group of the container stands in its way on some host, only a host that cannot be
    asked by name is worth it: else any host is as likely as not the one that it must not have.
    """
    live, known = draft.hosts or (), draft.settings.strict_hosts
    allowed = separation.left_to(draft, container, live)
    if len(allowed) == len(live):
        return True
    return known is not None and any(h not in known for h in allowed)


def seek(draft: Draft, container: ContainerState) -> tuple[ContainerState, Candidates]:
    """Return the container and hosts for it; none: anywhere, where that may be asked.

    An active that cannot go home may have become one that waits for its standby. Where all that is
    left has been tried and any host must not be asked for, the round begins again.
    """
    candidates = Candidates(draft, container)
    is_alone = separation.is_alone(draft, container)
    if container.home in candidates or (is_alone and not draft.settings.drained_hosts):
        return container, candidates
    is_last_resort = not candidates and not may_ask_any(draft, container)
    has_replicas = container.replica_of is None and not is_alone
    if has_replicas and (is_last_resort or standbys.has_state_somewhere(container)):
        container = standbys.fail_over(draft, container, is_last_resort=is_last_resort)
        if container.phase is not ContainerPhase.QUEUED:
            return container, candidates
        candidates = Candidates(draft, container)
        is_last_resort = not candidates and not may_ask_any(draft, container)
    if is_last_resort and container.tried:
        container = draft.change(replace(container, tried=()))
        candidates = Candidates(draft, container)
    if is_last_resort and not candidates and container.replica_of is None:
        standbys.make_room(draft, container, frozenset(_askable(draft, container)))
        candidates = Candidates(draft, container)
    return container, candidates


def candidate_hosts(
    settings: AllocatorSettings,
    live: Iterable[Host],
    closed: Container[Host],
    container: ContainerState,
) -> tuple[Host, ...]:
    """Return the hosts that ``container`` may still ask for by name in this round, sorted."""
    known = settings.strict_hosts
    return tuple(
        h
        for h in sorted(live)
        if h not in closed and h not in container.tried and (known is None or h in known)
    )


def why_not(
    settings: AllocatorSettings,
    live: Container[Host],
    excluded: Container[Host],
    container: ContainerState,
    host: Host,
    small: Container[Host] = (),
) -> str:
    """Return what keeps ``container`` from being asked for on ``host``, in one clause; or empty."""
    known = settings.strict_hosts
    obstacles = (
        (host not in live, "is not live"),
        (known is not None and host not in known, _JOINED_LATER),
        (host in settings.drained_hosts, "is drained"),
        (host in small, "is too small for a container"),
        (host in container.tried, "had no room, or launched nothing"),
    )
    if host in excluded and not any(is_so for is_so, _ in obstacles[:4]):
        return f"the launchers of {host} fell silent"
    return next((f"{host} {what}" for is_so, what in obstacles if is_so), "")


def best_host(
    ranked: Iterable[Host],
    home: Host | None,
    is_candidate: Callable[[Host], bool],
    is_near: Callable[[Host], bool] = lambda _: False,
) -> Host | None:
    """Return home if it is a candidate, else the first of ``ranked`` that is one; None: no host.

    A host that is not near others of the container's group comes before all that are.
    """
    if home is not None and is_candidate(home):
        return home
    near = None
    for host in ranked:
        if is_candidate(host):
            if not is_near(host):
                return host
            near = near or host
    return near


def best_launcher(
    idle: Iterable[ResourceState], choice: Host | None, home: Host | None, load: Mapping[Host, int]
) -> ResourceState | None:
    """Return the idle launcher to take rather than ask for ``choice``; None: ask.

    One at home always; where it would not ask for home anyway, one on the host it would ask for,
    else the one on the least loaded host.
    """
    launchers = tuple(r for r in idle if home is None or choice != home or r.host == home)
    return min(
        launchers,
        key=lambda r: (
            r.host != home,
            r.host != choice,
            load.get(r.host, 0),
            r.host,
            r.resource_id,
        ),
        default=None,
    )
