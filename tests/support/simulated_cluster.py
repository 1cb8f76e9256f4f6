"""A cluster in this process, on a clock of its own: the ResourceManager's side, for tests.

Theory. Nothing happens but by ``advance``, and what happens follows from the seed, the calls and
their order: the same again, byte for byte. A ``ClusterResourceManager`` as one driver has it is
``manager()``; a second call gives that of the next driver of the same attempt. What launchers say
are ``Letter``s (see ``simulated_launchers``), which the test hands to its AM:

    cluster = SimulatedCluster(roomy("nm1", "nm2"), seed=7)
    manager = cluster.manager()
    manager.request(RequestId(1), Host("nm1"), {})
    cluster.advance(1000)
    for letter in cluster.letters():
        cluster.answer(letter, the_answer_of_the_am_to(letter.message))

What YARN does that a test of an AM meets: a strict request is granted on its host or not at all; a
host is full; a machine dies, which the ResourceManager notices late; a container is preempted; a
request that the largest live host could not hold even if it were empty ends Skein's AM. By
``Faults`` calls fail, before or after they have taken effect, and messages are late, lost, twice,
and out of order.

What this module does not know: Kafka, leases' keeper, what a stream container does.
"""

from __future__ import annotations

import heapq
import random
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from simulated_launchers import Answer, Launcher, Letter, Post

from homeport.appmaster.allocation.protocol.events import HostReport
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.cluster_resource_manager import ResourceReport
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId

_T = TypeVar("_T")

LOST = "Container released on a *lost* node"
PREEMPTED = "Container preempted by scheduler"
_ENDED = SkeinContainerState.ENDED
_REQUESTED = SkeinContainerState.REQUESTED
_RUNNING = SkeinContainerState.RUNNING


@dataclass(frozen=True)
class Faults:
    """How long things take, in ms (least, most), and how often they go wrong (0 to 1).

    ``refused``: of a manager's calls, every second one after it has taken effect. ``lost`` and
    ``doubled``: of letters, and of answers. ``slow``: {host: how many times longer it takes there}.
    """

    grant_ms: tuple[int, int] = (10, 100)
    launch_ms: tuple[int, int] = (50, 300)
    restore_ms: tuple[int, int] = (20, 500)
    stop_ms: tuple[int, int] = (5, 200)
    letter_ms: tuple[int, int] = (1, 20)
    refused: float = 0.0
    lost: float = 0.0
    doubled: float = 0.0
    slow: Mapping[Host, int] = field(default_factory=dict)


@dataclass
class _Container:
    """One container of ours; ``wanted`` None: anywhere."""

    skein_id: str
    request_id: RequestId
    wanted: Host | None
    environment: Mapping[str, str]
    state: SkeinContainerState = _REQUESTED
    host: Host | None = None
    resource_id: ResourceId | None = None
    story: str = ""
    is_own_fault: bool = False
    is_taken_back: bool = False
    launcher: Launcher | None = None

    def report(self) -> ResourceReport:
        """What Skein says of it; not its host."""
        shown = SkeinContainer(
            self.skein_id,
            self.request_id,
            self.state,
            None,
            self.story,
            self.is_own_fault,
            self.is_taken_back,
        )
        return ResourceReport(shown, self.resource_id)


def roomy(*hosts: str, memory_mb: int = 16_384, cores: int = 64) -> tuple[HostReport, ...]:
    """Empty hosts of one size, each in a rack of its own."""
    return tuple(
        HostReport(Host(h), f"/rack-{h}", memory_mb, cores, memory_mb, cores) for h in hosts
    )


class SimulatedCluster:
    """Hosts, and the containers and launchers of one attempt of one application. Thread-safe.

    Args:
        hosts: what each has, all of it free or taken by others.
        seed: of everything that is random.
        faults: by default nothing goes wrong.
        container: memory in MB and cores of one container.
        services: hosts that can be asked for by name; by default all that there are.
        node_expiry_ms: how long the ResourceManager takes to call a dead machine lost.
        check_in_ms: how often launchers poll.
        lease_ms: how long a launcher without an answer lets its child run.
    """

    def __init__(
        self,
        hosts: Iterable[HostReport],
        *,
        seed: int = 0,
        faults: Faults | None = None,
        container: tuple[int, int] = (1024, 1),
        services: Iterable[Host] | None = None,
        node_expiry_ms: int = 10_000,
        check_in_ms: int = 500,
        lease_ms: int = 10_000,
    ) -> None:
        self.now_ms = 0
        self.faults = faults or Faults()
        self.check_in_ms, self.lease_ms = check_in_ms, lease_ms
        self.result: tuple[JobResult, str] | None = None
        self.pages: list[str] = []
        self.is_am_gone = False
        self.lock = threading.RLock()
        self.random = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._hosts = {report.host: report for report in hosts}
        self._services = frozenset(self._hosts if services is None else services)
        self._memory_mb, self._cores = container
        self._node_expiry_ms = node_expiry_ms
        self._due: list[tuple[int, int, Callable[[], None]]] = []
        self._number = 0
        self._granted = 0
        self._containers: dict[str, _Container] = {}
        self._waiting: dict[str, _Container] = {}
        self._ledger: dict[str, RequestId] = {}
        self._dead: set[Host] = set()
        self._post = Post(self)

    # ------------------------------------------------------------------ the clock

    def advance(self, ms: int) -> None:
        """So much time has passed, and what was due in it has happened, in order."""
        with self.lock:
            end = self.now_ms + ms
            while self._due and self._due[0][0] <= end:
                self.now_ms, _, happen = heapq.heappop(self._due)
                happen()
            self.now_ms = end

    def after(self, ms: int, happen: Callable[[], None]) -> None:
        """``happen`` will be called so much later; of two at one time, the first told first."""
        self._number += 1
        heapq.heappush(self._due, (self.now_ms + ms, self._number, happen))

    def span(self, bounds: tuple[int, int], host: Host | None = None) -> int:
        """A time within ``bounds``, longer on a slow host."""
        return self.random.randint(*bounds) * (self.faults.slow.get(host, 1) if host else 1)

    # ------------------------------------------------------------------ what launchers say

    def letters(self) -> tuple[Letter, ...]:
        """What has arrived at the AM since the last call, in the order of arrival."""
        with self.lock:
            return self._post.arrived()

    def answer(self, letter: Letter, answer: Answer) -> None:
        """The AM has answered; whether and when the launcher learns of it is another matter."""
        with self.lock:
            self._post.answered(letter, answer)

    def launchers(self) -> tuple[Launcher, ...]:
        """The launchers that live, by resource."""
        with self.lock:
            found = (c.launcher for c in self._containers.values() if c.launcher is not None)
            return tuple(sorted((x for x in found if x.is_alive), key=lambda x: x.resource_id))

    # ------------------------------------------------------------------ what befalls the cluster

    def kill_host(self, host: Host) -> None:
        """The machine has lost power; the ResourceManager calls it lost some time later."""
        with self.lock:
            self._dead.add(host)
            for launcher in self.launchers():
                if launcher.host == host:
                    launcher.die()
            self.after(self._node_expiry_ms, lambda: self._lose(host))

    def start_host(self, host: Host) -> None:
        """The machine is back, empty."""
        with self.lock:
            self._lose(host)
            self._dead.discard(host)
            report = self._hosts[host]
            self._hosts[host] = replace(
                report, is_live=True, free_memory_mb=report.memory_mb, free_cores=report.cores
            )
            self._try_waiting()

    def stand_still(self, host: Host, ms: int) -> None:
        """The machine does nothing for so long, and the ResourceManager does not notice."""
        with self.lock:
            for launcher in self.launchers():
                if launcher.host == host:
                    launcher.stand_still(self.now_ms + ms)

    def occupy(self, host: Host, memory_mb: int, cores: int = 0) -> None:
        """Somebody else's containers take so much of the host; below zero, they leave."""
        with self.lock:
            self._take(host, memory_mb, cores)
            self._try_waiting()

    def end(
        self,
        request_id: RequestId,
        story: str = PREEMPTED,
        *,
        is_own_fault: bool = False,
        is_taken_back: bool = True,
    ) -> None:
        """The cluster ends the container of this request, by default for somebody's who may."""
        with self.lock:
            found = next(c for c in self._containers.values() if c.request_id == request_id)
            self._end(found, story, is_own_fault=is_own_fault, is_taken_back=is_taken_back)

    def manager(self) -> SimulatedResourceManager:
        """The cluster manager as the attempt's next driver has it."""
        return SimulatedResourceManager(self)

    # ------------------------------------------------------------------ inside

    def hosts(self) -> tuple[HostReport, ...]:
        """As the ResourceManager has them."""
        return tuple(self._hosts[host] for host in sorted(self._hosts))

    def ask(self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]) -> str:
        """A container is asked for; its Skein id."""
        if host is not None and host not in self._services:
            raise UnavailableError(
                f"host {host} has joined after the submission: it has no service"
            )
        live = [report for report in self._hosts.values() if report.is_live]
        if max((r.memory_mb for r in live), default=0) < self._memory_mb:
            self.is_am_gone = True
            raise UnavailableError("Skein's AM is gone")
        skein_id = f"{host or 'any'}_{len(self._containers)}"
        container = _Container(skein_id, request_id, host, dict(environment))
        self._containers[skein_id] = self._waiting[skein_id] = container
        self.after(self.span(self.faults.grant_ms), partial(self._try, container))
        return skein_id

    def withdraw(self, skein_id: str) -> None:
        """The container is killed; a machine that is dead does not hear of it."""
        container = self._containers[skein_id]
        if container.state is not _ENDED:
            self._end(container, "killed by the application")

    @property
    def ledger(self) -> dict[str, RequestId]:
        """{Skein id: request} of what was asked for and told; outlives drivers."""
        return self._ledger

    def reports(self) -> dict[str, ResourceReport]:
        """{Skein id: what Skein says of it}."""
        return {skein_id: self._containers[skein_id].report() for skein_id in self._containers}

    def _try(self, container: _Container) -> None:
        if container.state is not _REQUESTED:
            return
        wanted = [container.wanted] if container.wanted is not None else sorted(self._hosts)
        fitting = [
            h
            for h in wanted
            if h not in self._dead
            and self._hosts[h].is_live
            and self._hosts[h].has_room(self._memory_mb, self._cores)
        ]
        if not fitting:
            return  # until there is room
        host = max(fitting, key=lambda h: (self._hosts[h].free_memory_mb, h))
        del self._waiting[container.skein_id]
        self._take(host, self._memory_mb, self._cores)
        container.state, container.host = _RUNNING, host
        self._granted += 1
        container.resource_id = ResourceId(f"container_1_0001_01_{self._granted + 1:06}")
        self.after(self.span(self.faults.launch_ms, host), lambda: self._launch(container))

    def _launch(self, container: _Container) -> None:
        host, resource_id = container.host, container.resource_id
        if container.state is _RUNNING and host is not None and resource_id is not None:
            container.launcher = Launcher(
                self._post, resource_id, container.skein_id, host, lambda: self._exited(container)
            )

    def _exited(self, container: _Container) -> None:
        self._end(container, "Completed successfully")

    def _end(
        self,
        container: _Container,
        story: str,
        *,
        is_own_fault: bool = False,
        is_taken_back: bool = False,
    ) -> None:
        if container.state is _RUNNING and container.host is not None:
            self._take(container.host, -self._memory_mb, -self._cores)
        self._waiting.pop(container.skein_id, None)
        container.state, container.story = _ENDED, story
        container.is_own_fault, container.is_taken_back = is_own_fault, is_taken_back
        if container.launcher is not None:
            container.launcher.kill()
        self._try_waiting()

    def _take(self, host: Host, memory_mb: int, cores: int) -> None:
        report = self._hosts[host]
        if report.is_live:
            self._hosts[host] = replace(
                report,
                free_memory_mb=report.free_memory_mb - memory_mb,
                free_cores=report.free_cores - cores,
            )

    def _try_waiting(self) -> None:
        """There may be room now for those who wait, in the order in which they asked."""
        for container in self._waiting.values():
            self.after(self.span(self.faults.grant_ms), partial(self._try, container))

    def _lose(self, host: Host) -> None:
        if host not in self._dead or not self._hosts[host].is_live:
            return
        self._hosts[host] = replace(
            self._hosts[host], is_live=False, free_memory_mb=0, free_cores=0
        )
        for container in list(self._containers.values()):
            if container.host == host and container.state is _RUNNING:
                self._end(container, LOST, is_taken_back=True)


class SimulatedResourceManager:
    """``ClusterResourceManager`` of one driver; the next driver of the attempt has another one."""

    def __init__(self, cluster: SimulatedCluster) -> None:
        self._cluster = cluster
        self._inherited = frozenset(cluster.ledger)
        self._told: set[str] = set()

    def hosts(self) -> tuple[HostReport, ...]:
        """See the protocol."""
        return self._call(self._cluster.hosts, has_effect=False)

    def request(
        self, request_id: RequestId, host: Host | None, environment: Mapping[str, str]
    ) -> None:
        """See the protocol."""
        cluster = self._cluster

        def ask() -> str | None:
            if request_id in cluster.ledger.values():
                return None
            return cluster.ask(request_id, host, environment)

        skein_id = self._call(ask)
        if skein_id is not None:
            cluster.ledger[skein_id] = request_id

    def cancel(self, request_id: RequestId) -> None:
        """See the protocol."""
        for skein_id, known in self._cluster.ledger.items():
            if known == request_id:
                self._call(partial(self._cluster.withdraw, skein_id))

    @property
    def next_request_id(self) -> int:
        """See the protocol."""
        return max(self._cluster.ledger.values(), default=0) + 1

    def resources(self) -> tuple[ResourceReport, ...]:
        """See the protocol."""
        return self._call(self._look, has_effect=False)

    def request_of(self, skein_id: str) -> RequestId | None:
        """See the protocol."""
        return self._cluster.ledger.get(skein_id)

    def add_page(self, url: str) -> None:
        """See the protocol."""
        self._cluster.pages.append(url)

    def finish(self, result: JobResult, diagnostics: str) -> None:
        """See the protocol."""
        self._call(self._withdraw_all)
        self._cluster.result = result, diagnostics

    def _withdraw_all(self) -> None:
        for skein_id in self._cluster.reports():
            self._cluster.withdraw(skein_id)

    def _look(self) -> tuple[ResourceReport, ...]:
        ledger = self._cluster.ledger
        for skein_id, report in self._cluster.reports().items():
            is_granted = report.container.state is _RUNNING
            if skein_id not in ledger or (skein_id in self._inherited and not is_granted):
                self._cluster.withdraw(skein_id)
        found = {s: r for s, r in sorted(self._cluster.reports().items()) if s not in self._told}
        self._told |= {s for s, r in found.items() if r.container.state is _ENDED}
        return tuple(report for skein_id, report in found.items() if skein_id in ledger)

    def _call(self, call: Callable[[], _T], *, has_effect: bool = True) -> _T:
        """The answer, unless the call fails: before it has taken effect, or after it."""
        cluster = self._cluster
        with cluster.lock:
            if cluster.is_am_gone or cluster.result is not None:
                raise UnavailableError("Skein's AM is gone")
            fails = cluster.random.random() < cluster.faults.refused
            if fails and (not has_effect or cluster.random.random() < 0.5):
                raise UnavailableError("the cluster did not take the call")
            answer = call()
            if fails:
                raise UnavailableError("the cluster did not answer")
            return answer
