"""Which launchers are idle and how many containers each host has, kept while a step changes both.

PURE. What containers and resources say together cannot be a facet of either. It is derived from the
two tables that it names: a state whose tables are others is given a new one.
"""

from __future__ import annotations

from immutables import Map

from homeport.appmaster.allocation.state import (
    AllocatorState,
    Containers,
    ContainerState,
    Occupancy,
    Resources,
    ResourceState,
)
from homeport.appmaster.allocation.table import Edit
from homeport.job_coordinator.model.ids import Host, ProcessorId, ResourceId


def occupancy_of(state: AllocatorState) -> Occupancy:
    """That of the state's tables, as it was kept, or counted where none was."""
    kept = state.occupancy
    if (
        kept is not None
        and kept.containers is state.containers
        and kept.resources is state.resources
    ):
        return kept
    return counted(state)


def counted(state: AllocatorState) -> Occupancy:
    """That of the state's tables, by a look at every row."""
    loads: dict[Host, int] = {}
    for container in state.containers:
        launcher = state.resources.get(container.resource_id)
        host = launcher.host if launcher is not None else container.wanted
        if host is not None:
            loads[host] = loads.get(host, 0) + 1
    held = {c.resource_id for c in state.containers}
    idle = {
        r.resource_id: None for r in state.resources if is_useful(r) and r.resource_id not in held
    }
    return Occupancy(state.containers, state.resources, Map(idle), Map(loads))


def is_useful(launcher: ResourceState) -> bool:
    """Whether a container may be given this launcher, if none has it."""
    return not launcher.is_released and launcher.ended is None and launcher.reserved_for is None


class OccupancyEdit:
    """An occupancy that follows the changes of a step. ``freeze`` gives what it has become."""

    __slots__ = ("_before", "_gone", "containers", "idle", "loads", "resources")

    def __init__(self, state: AllocatorState) -> None:
        self._before = occupancy_of(state)
        self._gone: dict[ResourceId, Host] = {}
        self.idle = self._before.idle
        self.loads = self._before.loads
        self.containers: Edit[ProcessorId, ContainerState, Containers] = Edit(
            state.containers, self._container_changed
        )
        self.resources: Edit[ResourceId, ResourceState, Resources] = Edit(
            state.resources, self._resource_changed
        )

    def freeze(self, containers: Containers, resources: Resources) -> Occupancy:
        """The occupancy of these tables, which the step has led to."""
        before = self._before
        if before.containers is containers and before.resources is resources:
            return before
        return Occupancy(containers, resources, self.idle, self.loads)

    def _container_changed(self, old: ContainerState | None, new: ContainerState | None) -> None:
        was, now = self._host_of(old), self._host_of(new)
        if was != now:
            self._count(was, -1)
            self._count(now, 1)
        held = None if old is None else old.resource_id
        holds = None if new is None else new.resource_id
        if held != holds:
            self._look_at(held)
            self._look_at(holds)

    def _resource_changed(self, old: ResourceState | None, new: ResourceState | None) -> None:
        if old is not None and new is None:
            # Who held it is still counted there until it is changed itself.
            self._gone[old.resource_id] = old.host
        for launcher in (old, new):
            if launcher is not None:
                self._look_at(launcher.resource_id)

    def _host_of(self, container: ContainerState | None) -> Host | None:
        if container is None:
            return None
        resource_id = container.resource_id
        if resource_id is None:
            return container.wanted
        launcher = self.resources.get(resource_id)
        return self._gone.get(resource_id) if launcher is None else launcher.host

    def _count(self, host: Host | None, difference: int) -> None:
        if host is None:
            return
        load = self.loads.get(host, 0) + difference
        self.loads = self.loads.set(host, load) if load else self.loads.delete(host)

    def _look_at(self, resource_id: ResourceId | None) -> None:
        if resource_id is None:
            return
        launcher = self.resources.get(resource_id)
        is_idle = (
            launcher is not None
            and is_useful(launcher)
            and not self.containers.filed(Containers.RESOURCE, resource_id)
        )
        if is_idle:
            self.idle = self.idle.set(resource_id, None)
        elif resource_id in self.idle:
            self.idle = self.idle.delete(resource_id)
