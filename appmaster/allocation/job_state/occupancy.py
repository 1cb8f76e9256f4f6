"""Which launchers are idle, how loaded each host is, and how hosts rank; updated in each step.

PURE. This follows from containers, resources and early requests together, so it cannot be an index
of one of their tables. An ``Occupancy`` names the tables that it was derived from; for a state with
other tables it is counted again.
"""

from immutables import Map

from homeport.appmaster.allocation.job_state.hosts import Rank, Ranking, ranked
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    Containers,
    ContainerState,
    EarlyRequest,
    EarlyRequests,
    Occupancy,
    Resources,
    ResourceState,
)
from homeport.appmaster.allocation.job_state.table import Edit
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId


def occupancy_of(state: AllocatorState) -> Occupancy:
    """Return the occupancy of the state's tables, the kept one if it is theirs."""
    kept = state.occupancy
    if (
        kept is not None
        and kept.containers is state.containers
        and kept.resources is state.resources
        and kept.early is state.early
    ):
        return kept
    return counted(state)


def counted(state: AllocatorState) -> Occupancy:
    """Return the occupancy of the state's tables, counted from every row, without a ranking."""
    loads: dict[Host, int] = {}
    for container in state.containers:
        launcher = state.resources.get(container.resource_id)
        host = launcher.host if launcher is not None else container.requested_host
        if host is not None:
            loads[host] = loads.get(host, 0) + 1
    held = {c.resource_id for c in state.containers}
    idle = {
        r.resource_id: None for r in state.resources if is_useful(r) and r.resource_id not in held
    }
    return Occupancy(state.containers, state.resources, state.early, Map(idle), Map(loads))


def is_useful(launcher: ResourceState) -> bool:
    """Return whether a container may get this launcher, if none holds it."""
    return not launcher.is_released and launcher.ended is None and launcher.reserved_for is None


class OccupancyEdit:
    """An occupancy that follows the changes of a step, until ``freeze``.

    ``freed``: the launchers that became idle in this step, though perhaps not for long.
    ``emptied``: the hosts that the last container left in this step, with the same reserve.
    """

    __slots__ = (
        "_before",
        "_gone",
        "_ranking",
        "containers",
        "early",
        "emptied",
        "freed",
        "idle",
        "loads",
        "resources",
    )

    def __init__(self, state: AllocatorState) -> None:
        self._before = occupancy_of(state)
        self._gone: dict[ResourceId, Host] = {}
        self._ranking = self._before.ranking
        self.idle = self._before.idle
        self.loads = self._before.loads
        self.freed: set[ResourceId] = set()
        self.emptied: set[Host] = set()
        self.containers: Edit[ProcessorId, ContainerState, Containers] = Edit(
            state.containers, self._container_changed
        )
        self.resources: Edit[ResourceId, ResourceState, Resources] = Edit(
            state.resources, self._resource_changed
        )
        self.early: Edit[ProcessorId, EarlyRequest, EarlyRequests] = Edit(
            state.early, self._early_changed
        )

    def freeze(
        self, containers: Containers, resources: Resources, early: EarlyRequests
    ) -> Occupancy:
        """Return the occupancy of these tables, which the step has led to."""
        return Occupancy(containers, resources, early, self.idle, self.loads, self._ranking)

    def is_asked(self, host: Host | None) -> bool:
        """Return whether a strict request for this host is outstanding."""
        return bool(
            self.containers.indexed(Containers.ASKED, host)
            or self.early.indexed(EarlyRequests.ASKED, host)
        )

    def ranking(self, hosts: tuple[Host, ...], full: frozenset[Host]) -> Ranking:
        """Return the ranking of these hosts; the last one is kept."""
        kept = self._ranking
        if kept is None or kept.hosts != hosts or kept.full != full:
            kept = self._ranking = ranked(hosts, full, lambda host: self._rank(host, full))
        return kept

    def _rank(self, host: Host, full: frozenset[Host]) -> Rank:
        return (host in full, self.loads.get(host, 0), self.is_asked(host))

    def _rank_anew(self, host: Host | None) -> None:
        ranking = self._ranking
        if ranking is not None and host is not None:
            self._ranking = ranking.moved(host, self._rank(host, ranking.full))

    def _container_changed(self, old: ContainerState | None, new: ContainerState | None) -> None:
        was, now = self._host_of(old), self._host_of(new)
        if was != now:
            self._count(was, -1)
            self._count(now, 1)
            self._rank_anew(was)
        self._rank_anew(now)
        held = None if old is None else old.resource_id
        holds = None if new is None else new.resource_id
        if held != holds:
            self._look_at(held)
            self._look_at(holds)

    def _early_changed(self, old: EarlyRequest | None, new: EarlyRequest | None) -> None:
        for early in (old, new):
            self._rank_anew(None if early is None else early.host)

    def _resource_changed(self, old: ResourceState | None, new: ResourceState | None) -> None:
        if old is not None and new is None:
            # Its holder counts there until the step changes the holder.
            self._gone[old.resource_id] = old.host
        for launcher in (old, new):
            if launcher is not None:
                self._look_at(launcher.resource_id)

    def _host_of(self, container: ContainerState | None) -> Host | None:
        if container is None:
            return None
        resource_id = container.resource_id
        if resource_id is None:
            return container.requested_host
        launcher = self.resources.get(resource_id)
        return self._gone.get(resource_id) if launcher is None else launcher.host

    def _count(self, host: Host | None, difference: int) -> None:
        if host is None:
            return
        load = self.loads.get(host, 0) + difference
        self.loads = self.loads.set(host, load) if load else self.loads.delete(host)
        if not load:
            self.emptied.add(host)

    def _look_at(self, resource_id: ResourceId | None) -> None:
        if resource_id is None:
            return
        launcher = self.resources.get(resource_id)
        is_idle = (
            launcher is not None
            and is_useful(launcher)
            and not self.containers.indexed(Containers.RESOURCE, resource_id)
        )
        if is_idle:
            self.freed.add(resource_id)
            self.idle = self.idle.set(resource_id, None)
        elif resource_id in self.idle:
            self.idle = self.idle.delete(resource_id)
