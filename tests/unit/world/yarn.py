"""YARN and Skein as one AM attempt sees them: ``ClusterResourceManager``, and who runs where.

A container that is asked for comes ``GRANT_MS`` later, on its host if that lives; its launcher is
started by ``world.launch``. Nothing said here is evidence of anything (safety P1).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.cluster_resource_manager import ResourceReport
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId
from tests.unit.world.clock import Process

if TYPE_CHECKING:
    from tests.unit.world.am import Attempt, Cluster
    from tests.unit.world.world import World

GRANT_MS = 20


@dataclass
class YarnContainer:
    """One container of the attempt. ``process``: its launcher, once there is one."""

    request_id: RequestId
    skein_id: str
    host: Host | None
    environment: Mapping[str, str]
    resource_id: ResourceId | None = None
    process: Process | None = None
    is_cancelled: bool = False
    is_said_to_have_ended: bool = False
    """Whether YARN says so, whatever is true; as of a container on a node that it has lost."""

    @property
    def state(self) -> SkeinContainerState:
        """What Skein says of it."""
        if self.is_cancelled or self.is_said_to_have_ended:
            return SkeinContainerState.ENDED
        if self.process is not None and not self.process.is_alive:
            return SkeinContainerState.ENDED
        if self.process is None:
            return SkeinContainerState.REQUESTED
        return SkeinContainerState.RUNNING


class Yarn:
    """``ClusterResourceManager`` of one attempt."""

    def __init__(self, world: World, cluster: Cluster, attempt: Attempt) -> None:
        self.containers: dict[RequestId, YarnContainer] = {}
        self.result: JobResult | None = None
        self._world = world
        self._cluster = cluster
        self._attempt = attempt
        self._told: set[RequestId] = set()

    def hosts(self) -> tuple[HostReport, ...]:
        """All hosts, with room for everybody."""
        return tuple(
            HostReport(host, None, 8192, 8, 8192, 8, is_live)
            for host, is_live in sorted(self._cluster.hosts.items())
        )

    @property
    def next_request_id(self) -> int:
        """Above all so far."""
        return max(self.containers, default=0) + 1

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """A container is asked for."""
        skein_id = f"{self._attempt.name}_{request_id}"
        container = YarnContainer(request_id, skein_id, host, environment)
        self.containers[request_id] = container
        self._world.clock.at(GRANT_MS, lambda: self._grant(container))

    def cancel(self, request_id: RequestId) -> None:
        """The container is not wanted; its host, if it is reached, kills what runs in it."""
        container = self.containers[request_id]
        if container.process is None:
            container.is_cancelled = True
        elif self._cluster.hosts.get(container.host or Host("")):
            container.process.kill()

    def resources(self) -> tuple[ResourceReport, ...]:
        """All that have not ended, and once those that have."""
        found = []
        for request_id, container in sorted(self.containers.items()):
            if request_id in self._told:
                continue
            if container.state is SkeinContainerState.ENDED:
                self._told.add(request_id)
            shown = SkeinContainer(container.skein_id, request_id, container.state, container.host)
            found.append(ResourceReport(shown, container.resource_id))
        return tuple(found)

    def request_of(self, skein_id: str) -> RequestId | None:
        """The request of one of ours."""
        found = (c.request_id for c in self.containers.values() if c.skein_id == skein_id)
        return next(found, None)

    def add_page(self, url: str) -> None:
        """Nothing."""

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """The application has ended."""
        self.result = result
        self._world.note("finished", result.value, diagnostics=diagnostics)

    def _grant(self, container: YarnContainer) -> None:
        live = [report.host for report in self.hosts() if report.is_live]
        wanted = [container.host] if container.host in live else live
        if container.is_cancelled or not wanted or (container.host and wanted[0] != container.host):
            return
        container.host = wanted[0]
        number = f"{self._attempt.rank.submission:04}_{self._attempt.rank.attempt:02}"
        container.resource_id = ResourceId(f"container_1_{number}_{container.request_id:06}")
        container.process = self._world.launch(self._attempt, container)
