"""Where a queued container may look for a place: home, a standby's place, another host, any host.

PURE. Constraints come first, then preferences. At most one strict request per host is pending,
since YARN reserves the node for it. ``container_allocator`` decides which container requests. A
container without standbys may have every open host, then any host. The containers of a group keep
each other from hosts (``separation``), and an active that cannot go home takes the place of a
standby (``standby_container_manager``).

Source: HA-YARN, "This approach can be considered as a 'best-effort stickiness' policy": home first.
If home is not to be had, the least loaded other host, since containers on one host are lost
together.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from homeport.appmaster.allocation import separation
from homeport.appmaster.allocation import standby_container_manager as standbys
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import (
    ContainerPhase,
    ContainerState,
    ResourceState,
)
from homeport.job_coordinator.model.ids import Host


class Candidates:
    """The hosts that a container may still request by name in this round."""

    def __init__(self, draft: Draft, container: ContainerState) -> None:
        self._draft = draft
        self._container = container
        self._live: Collection[Host] = draft.ranking.rank_of
        self._awaits_home = container.awaits_home(draft.exclusions)
        if self._awaits_home:
            self._live = frozenset(draft.ranking.best_first(only_empty=True))
        self._taken: list[Host] | None = None

    def __contains__(self, host: Host | None) -> bool:
        if host is None or not self.is_open(host):
            return False
        if self._taken is None:  # Looked up for the first open host, and kept.
            self._taken = separation.taken_hosts(self._draft, self._container)
        return not any(separation.is_too_near(self._draft, taken, host) for taken in self._taken)

    def is_open(self, host: Host) -> bool:
        """Return whether the host may be requested, whatever hosts the group has."""
        return (
            host in self._live
            and host not in self._container.tried
            and host not in self._draft.room.small
            and not self._draft.is_closed(host)
        )

    def __bool__(self) -> bool:
        return any(host in self for host in self._live)

    def best(self) -> Host | None:
        """Return the host to request; None: there is none."""
        home = self._container.home
        if home in self:
            return home
        hosts = self._draft.ranking.best_first(only_empty=self._awaits_home)
        return best_host(self._draft, self._container, filter(self.__contains__, hosts))


def may_go_home(draft: Draft, container: ContainerState) -> bool:
    """Return whether the host with its state may be requested."""
    return container.home is not None and container.home in Candidates(draft, container)


def may_ask_any(draft: Draft, container: ContainerState) -> bool:
    """Return whether the container may request any host.

    If its group, or the other containers of the job, keep it from a host, the grant may be on that
    very host.
    """
    if container.awaits_home(draft.exclusions):
        return False
    live = draft.hosts or ()
    return len(separation.left_to(draft, container, live)) == len(live)


def seek(draft: Draft, container: ContainerState) -> tuple[ContainerState, Candidates]:
    """Return the container and the hosts that it may request; none: any host, if that is allowed.

    An active that cannot go home may wait for its standby afterwards (FAILING_OVER). If all hosts
    have been tried and the container may not request any host, its round begins again.
    """
    if draft.settings.mixes_roles and not may_go_home(draft, container):
        container = standbys.fail_tasks_over(draft, container)
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
        standbys.make_room(draft, container, candidates.is_open)
        candidates = Candidates(draft, container)
    return container, candidates


def why_not_home(draft: Draft, container: ContainerState, host: Host | None) -> str:
    """Return why the container does not request its home but ``host``; empty: that is its home."""
    home = container.home
    if not draft.settings.host_affinity_enabled:
        return "host affinity is off"
    if home is None:
        return "it has no home yet"
    obstacles = (
        (host == home, ""),
        (home not in (draft.hosts or ()), f"{home} is not live"),
        (home in draft.settings.drained_hosts, f"{home} is drained"),
        (home in draft.room.small, f"{home} is too small for a container"),
        (home in draft.exclusions, f"the launchers of {home} fell silent"),
        (home in container.tried, f"{home} had no room, or launched nothing"),
    )
    return next((why for is_so, why in obstacles if is_so), "")


def best_host(draft: Draft, container: ContainerState, candidates: Iterable[Host]) -> Host | None:
    """Return the first of ``candidates``, one near the container's group last; None: no host."""
    near = None
    for host in candidates:
        if not separation.shares_rack(draft, container, host):
            return host
        near = near or host
    return near


def best_launcher(
    idle: Iterable[ResourceState], choice: Host | None, home: Host | None, load: Mapping[Host, int]
) -> ResourceState | None:
    """Return the idle launcher to take rather than to request ``choice``; None: request it.

    A launcher at home is always taken. If the choice is another host, one on that host is taken,
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
