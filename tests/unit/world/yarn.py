"""YARN and Skein as one AM attempt sees them: its containers, and a manager for each driver.

A request is granted ``GRANT_MS`` later, on its host if that lives and has room, else when there is
room; ``world.launch`` starts the launcher. No report is evidence of a stop (safety P1). The
managers keep the contract of ``ClusterResourceManager``; see ``test_yarn``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Protocol, TypeVar

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.cluster_resource_manager import ResourceReport
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.metadata.epochs import Rank
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId
from tests.unit.world.clock import Process

if TYPE_CHECKING:
    from tests.unit.world.world import World

_T = TypeVar("_T")

GRANT_MS = 20
HOST_MB = 8192
CONTAINER_MB = 1024
_CORES = 8
LOST = "Container released on a *lost* node"
PREEMPTED = "Container preempted by scheduler"

_ENDED, _REQUESTED = SkeinContainerState.ENDED, SkeinContainerState.REQUESTED


@dataclass(eq=False)
class YarnContainer:
    """One container of the attempt. ``process``: its launcher, once there is one."""

    request_id: RequestId
    skein_id: str
    wanted: Host | None
    environment: Mapping[str, str]
    host: Host | None = None
    resource_id: ResourceId | None = None
    process: Process | None = None
    is_cancelled: bool = False
    is_said_to_have_ended: bool = False
    """Whether YARN says so, whatever is true; as of a container on a node that it has lost."""
    story: str = "Container ended"
    is_taken_back: bool = False

    @property
    def state(self) -> SkeinContainerState:
        """What Skein says of it."""
        if self.is_cancelled or self.is_said_to_have_ended:
            return _ENDED
        if self.process is not None and not self.process.is_alive:
            return _ENDED
        return _REQUESTED if self.process is None else SkeinContainerState.RUNNING

    def report(self) -> ResourceReport:
        """What Skein says of it; not its host."""
        shown = SkeinContainer(self.skein_id, self.request_id, self.state)
        if self.state is _ENDED:
            shown = SkeinContainer(
                self.skein_id,
                self.request_id,
                _ENDED,
                story=self.story,
                is_taken_back=self.is_taken_back,
            )
        return ResourceReport(shown, self.resource_id)


@dataclass
class Nodes:
    """The hosts of the cluster, and the attempts whose containers they run.

    Shapes: ``hosts`` {host: whether it lives for the ResourceManager}; ``memory_mb``, ``others_mb``
    {host: what it has, if that is not ``HOST_MB``, and what others take of it}.
    """

    hosts: dict[Host, bool]
    memory_mb: dict[Host, int] = field(default_factory=dict)
    others_mb: dict[Host, int] = field(default_factory=dict)
    attempts: list[Yarn] = field(default_factory=list)

    def reports(self) -> tuple[HostReport, ...]:
        """As the ResourceManager has them."""
        return tuple(self.report(host) for host in sorted(self.hosts))

    def report(self, host: Host) -> HostReport:
        """What the host has, in a rack of its own."""
        memory_mb, rack = self.memory_mb.get(host, HOST_MB), f"/rack-{host}"
        if not self.hosts[host]:
            return HostReport(host, rack, memory_mb, _CORES, 0, 0, is_live=False)
        running = [y.container_mb for y in self.attempts for _ in y.running_on(host)]
        free_mb = memory_mb - sum(running) - self.others_mb.get(host, 0)
        return HostReport(host, rack, memory_mb, _CORES, free_mb, _CORES - len(running))

    def occupy(self, host: Host, memory_mb: int) -> None:
        """Other applications take so much of the host; requests that wait get what is left."""
        self.others_mb[host] = memory_mb
        self.serve()

    def lose(self, host: Host) -> None:
        """The machine is dead; the ResourceManager says so, and takes back what it had there."""
        self.hosts[host] = False
        for yarn in self.attempts:
            for container in list(yarn.running_on(host)):
                yarn.end(container.request_id, LOST)

    def start(self, host: Host) -> None:
        """The machine is back, empty, and requests that wait for it are granted."""
        self.hosts[host] = True
        self.serve()

    def serve(self) -> None:
        """Requests that wait are granted where there is room now."""
        for yarn in self.attempts:
            yarn.serve()


class _Attempt(Protocol):
    name: str
    rank: Rank


class Yarn:
    """The containers of one attempt.

    ``faults``: of the coming calls that fail, whether each takes effect all the same.
    """

    def __init__(
        self, world: World, nodes: Nodes, attempt: _Attempt, container_mb: int = CONTAINER_MB
    ) -> None:
        self.containers: dict[RequestId, YarnContainer] = {}
        self.result: tuple[JobResult, str] | None = None
        self.faults: deque[bool] = deque()
        self.nodes = nodes
        self.container_mb = container_mb
        self._world = world
        self._attempt = attempt
        self._strays: list[YarnContainer] = []
        self._is_gone = False
        nodes.attempts.append(self)

    def manager(self) -> Manager:
        """What the attempt's next driver has."""
        return Manager(self)

    def everything(self) -> Iterator[YarnContainer]:
        """The containers, also those that no driver knows."""
        yield from (*self.containers.values(), *self._strays)

    def running_on(self, host: Host) -> Iterator[YarnContainer]:
        """Those that take room there."""
        running = (c for c in self.everything() if c.host == host and c.state is not _ENDED)
        yield from running

    def end(
        self, request_id: RequestId, story: str = PREEMPTED, *, is_taken_back: bool = True
    ) -> None:
        """The cluster ends the container of this request; by default it is preempted."""
        container = self.containers[request_id]
        container.story, container.is_taken_back = story, is_taken_back
        if container.process is not None:
            container.process.kill()

    def ask(self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]) -> None:
        """A request; if no live host could hold its container, Skein's AM ends."""
        live = [r.memory_mb for r in self.nodes.reports() if r.is_live]
        if live and max(live) < self.container_mb:
            self._is_gone = True
            raise UnavailableError("Skein's AM is gone")
        skein_id = f"{self._attempt.name}_{request_id}"
        container = YarnContainer(request_id, skein_id, host, environment)
        self.containers[request_id] = container
        self._world.clock.at(GRANT_MS, partial(self._grant, container))

    def disown(self, request_id: RequestId) -> None:
        """The driver has not learnt that the container is there."""
        if request_id in self.containers:
            self._strays.append(self.containers.pop(request_id))

    def withdraw(self, containers: Iterable[YarnContainer]) -> None:
        """They are not wanted; their host, if it is reached, kills what runs in them."""
        for container in containers:
            if container.process is None:
                container.is_cancelled = True
            elif self.nodes.hosts.get(container.host or Host("")):
                container.process.kill()

    def withdraw_strays(self) -> None:
        """Containers that no driver knows are ended."""
        self.withdraw(self._strays)

    def call(self, act: Callable[[], _T]) -> _T:
        """The answer, unless the call fails: before it has taken effect, or after it."""
        if self._is_gone:
            raise UnavailableError("Skein's AM is gone")
        if not self.faults:
            return act()
        if self.faults.popleft():
            act()
        raise UnavailableError("the cluster does not answer")

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """The application has ended, with all that it had."""
        self.withdraw(self.everything())
        self.result, self._is_gone = (result, diagnostics), True
        self._world.note("finished", result.value, diagnostics=diagnostics)

    def serve(self) -> None:
        """Requests that wait are granted in their order where there is room now."""
        for container in self.containers.values():
            if container.state is _REQUESTED:
                self._world.clock.at(GRANT_MS, partial(self._grant, container))

    def _grant(self, container: YarnContainer) -> None:
        wanted = {container.wanted} if container.wanted else {*self.nodes.hosts}
        reports = map(self.nodes.report, sorted(wanted & {*self.nodes.hosts}))
        fitting = [r.host for r in reports if r.is_live and r.has_room(self.container_mb, 1)]
        if container.state is not _REQUESTED or not fitting:
            return
        container.host = fitting[0]
        number = f"{self._attempt.rank.submission:04}_{self._attempt.rank.attempt:02}"
        container.resource_id = ResourceId(f"container_1_{number}_{container.request_id:06}")
        container.process = self._world.launch(self._attempt, container)
        container.process.at_end.append(self.nodes.serve)


class Manager:
    """``ClusterResourceManager`` of one driver; the next driver of the attempt has another one."""

    def __init__(self, yarn: Yarn) -> None:
        self._yarn = yarn
        self._inherited = frozenset(yarn.containers)
        self._stated: set[RequestId] = set()

    def hosts(self) -> tuple[HostReport, ...]:
        """See the protocol."""
        return self._yarn.call(self._yarn.nodes.reports)

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """See the protocol."""
        if request_id in self._yarn.containers:
            return
        try:
            self._yarn.call(partial(self._yarn.ask, request_id, host, environment))
        except UnavailableError:
            self._yarn.disown(request_id)
            raise

    def cancel(self, request_id: RequestId) -> None:
        """See the protocol."""
        if request_id in self._yarn.containers:
            container = self._yarn.containers[request_id]
            self._yarn.call(partial(self._yarn.withdraw, [container]))

    @property
    def next_request_id(self) -> int:
        """See the protocol."""
        return max((c.request_id for c in self._yarn.everything()), default=0) + 1

    def resources(self) -> tuple[ResourceReport, ...]:
        """See the protocol."""
        return self._yarn.call(self._look)

    def request_of(self, skein_id: str) -> RequestId | None:
        """See the protocol."""
        found = (c.request_id for c in self._yarn.containers.values() if c.skein_id == skein_id)
        return next(found, None)

    def add_page(self, url: str) -> None:
        """Nothing."""

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """See the protocol."""
        self._yarn.finish(result, diagnostics)

    def _look(self) -> tuple[ResourceReport, ...]:
        containers = self._yarn.containers
        self._yarn.withdraw_strays()
        inherited = (containers[r] for r in self._inherited if r in containers)
        self._yarn.withdraw([c for c in inherited if c.state is _REQUESTED])
        found = [containers[r].report() for r in sorted(containers.keys() - self._stated)]
        ended = (r.container for r in found if r.container.state is _ENDED)
        self._stated |= {c.request_id for c in ended if c.request_id is not None}
        return tuple(found)
