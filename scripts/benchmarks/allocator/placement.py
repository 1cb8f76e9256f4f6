"""Section placement: a job of many containers on many hosts, in memory, that the allocator places.

The cluster grants every request at once, in the order of the requests. Each launcher executes its
order at its next check-in. The resulting events wait in a queue. The time of an event is the CPU
time of its step and of the check of the invariants that follows every step in production: both
compute and wait for nothing, and so other programs of the machine count for little.
"""

from __future__ import annotations

import time
from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.processes import peak_mb, result_of
from benchmarks.report import Row, at_least, at_most, table
from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.invariants import check, check_step
from homeport.appmaster.allocation.job_state.state import (
    AllocatorState,
    ContainerPhase,
    initial_state,
)
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    ContainerStopped,
    Event,
    HostsObserved,
    JobModelPublished,
    LauncherCheckedIn,
    LauncherSilent,
    ResourceAllocated,
    describe,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    PermitContainer,
    ReleaseResource,
    RequestResource,
    StopContainer,
)
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.programs.application_master import look_less_often
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

SETTINGS = AllocatorSettings(
    host_affinity_enabled=True,
    retry_count=8,
    retry_window_ms=300_000,
    fail_job_after_retries=True,
    request_timeout_ms=5_000,
    check_in_timeout_ms=60_000,
)
ACTIVES, HOSTS, LOST = 10_000, 1_000, 100
_FAILURES = 1_000
_PARTS = ("placing", "check_ins", "failures", "loss", "recovery")


@dataclass(slots=True)
class _Launcher:
    resource_id: ResourceId
    host: Host
    request_id: RequestId
    child: Incarnation | None = None

    def poll(self) -> LauncherCheckedIn:
        """Return its newest figures."""
        return LauncherCheckedIn(self.resource_id, self.host, self.child, self.request_id)


class Cluster:
    """The allocator's state, all launchers, and the events that stand in line."""

    def __init__(self, hosts: list[Host], settings: AllocatorSettings = SETTINGS) -> None:
        self.state: AllocatorState = initial_state(settings)
        self.hosts = hosts
        self.launchers: dict[ResourceId, _Launcher] = {}
        self.line: deque[Event] = deque()
        self.seconds: list[float] = []
        self._used: Counter[Host] = Counter()

    def feed(self, event: Event) -> float:
        """One event, and what it leads to stands in line; CPU seconds of its step and check."""
        began = time.process_time()
        decision = step(self.state, event)
        check_step(self.state, decision.state, describe(event), decision.changes)
        took = time.process_time() - began
        self.state = decision.state
        self._carry_out(decision)
        return took

    def run(self) -> None:
        """Everything in line, and all that comes of it, has happened; ``seconds`` has each."""
        while self.line:
            event = self.line.popleft()
            if isinstance(event, LauncherCheckedIn):
                launcher = self.launchers.get(event.resource_id)
                if launcher is None:
                    continue
                event = launcher.poll()
            self.seconds.append(self.feed(event))

    def _carry_out(self, decision: Decision) -> None:
        for instruction in decision.instructions:
            if isinstance(instruction, RequestResource):
                self._grant(instruction)
            elif isinstance(instruction, PermitContainer):
                launcher = self.launchers[instruction.resource_id]
                if launcher.child is None:
                    launcher.child = instruction.incarnation
                    self.line.append(ContainerStarted(launcher.child))
            elif isinstance(instruction, StopContainer):
                self.end(instruction.resource_id, StopCause.ORDERED)
            elif isinstance(instruction, ReleaseResource):
                self._leave(self.launchers.get(instruction.resource_id))
            elif isinstance(instruction, CancelRequest):
                self._leave(self.launchers.get(_resource(instruction.request_id)))

    def _grant(self, request: RequestResource) -> None:
        host = request.host or min(self.hosts, key=lambda h: self._used[h])
        launcher = _Launcher(_resource(request.request_id), host, request.request_id)
        self._used[host] += 1
        self.launchers[launcher.resource_id] = launcher
        self.line += [ResourceAllocated(request.request_id), launcher.poll()]

    def _leave(self, launcher: _Launcher | None) -> None:
        if launcher is not None:
            del self.launchers[launcher.resource_id]
            self._used[launcher.host] -= 1

    def end(self, resource_id: ResourceId, cause: StopCause) -> None:
        """The child of this launcher ends. The launcher reports it and requests another order."""
        launcher = self.launchers[resource_id]
        if launcher.child is not None:
            self.line += [ContainerStopped(launcher.child, cause, 1), launcher.poll()]
            launcher.child = None

    def lose(self, hosts: frozenset[Host]) -> list[Event]:
        """These hosts are lost. Returns the events for the driver: first the end of each lease."""
        lost = [x for x in self.launchers.values() if x.host in hosts]
        for launcher in lost:
            self._leave(launcher)
        self.hosts = [h for h in self.hosts if h not in hosts]
        return [LauncherSilent(x.resource_id) for x in lost]

    @property
    def running(self) -> int:
        """How many containers run."""
        return sum(c.phase is ContainerPhase.RUNNING for c in self.state.containers)


def _resource(request_id: RequestId) -> ResourceId:
    return ResourceId(f"container_{request_id:08d}")


def _model(actives: int, standbys_each: int) -> JobModelPublished:
    processors: dict[ProcessorId, Host | None] = {}
    standbys: dict[ProcessorId, ProcessorId] = {}
    for number in range(actives):
        active = ProcessorId(str(number))
        processors[active] = None
        for replica in range(standbys_each):
            standby = ProcessorId(f"{number}-{replica}")
            processors[standby] = None
            standbys[standby] = active
    return JobModelPublished(1, processors, standbys=standbys)


def quantiles(seconds: list[float]) -> dict[str, float]:
    """Return the number of events, and their times in ms."""
    ordered = sorted(seconds)
    return {
        "events": len(ordered),
        "p50_ms": ordered[len(ordered) // 2] * 1e3,
        "p99_ms": ordered[len(ordered) * 99 // 100] * 1e3,
        "max_ms": ordered[-1] * 1e3,
        "total_s": sum(ordered),
    }


def measured(actives: int, standbys_each: int, hosts: int, lost: int) -> dict[str, object]:
    """Placing all of it, failures of single containers, and the loss of so many hosts at once."""
    names = [Host(f"host-{n:04d}") for n in range(hosts)]
    cluster = Cluster(names)
    began = cluster.feed(_model(actives, standbys_each)) + cluster.feed(HostsObserved(tuple(names)))
    cluster.run()
    placing = quantiles(cluster.seconds)
    found: dict[str, object] = {"running": cluster.running, "first_s": began, "placing": placing}
    check(cluster.state)

    cluster.seconds.clear()
    cluster.line += [x.poll() for x in cluster.launchers.values()]
    cluster.run()
    found["check_ins"] = quantiles(cluster.seconds)

    cluster.seconds.clear()
    for resource_id in list(cluster.launchers)[:: max(1, len(cluster.launchers) // _FAILURES)]:
        cluster.end(resource_id, StopCause.FAILED)
    cluster.run()
    found["failures"] = quantiles(cluster.seconds)

    cluster.seconds.clear()
    stated = cluster.lose(frozenset(names[:: hosts // lost][:lost]))
    decided = [cluster.feed(event) for event in stated]
    observed = cluster.feed(HostsObserved(tuple(cluster.hosts)))
    found["loss"] = quantiles(decided) | {"observed_s": observed, "containers": len(stated)}
    cluster.run()
    found["recovery"] = quantiles(cluster.seconds)
    found["running_again"] = cluster.running
    check(cluster.state)
    found["peak_mb"] = peak_mb()
    return found


def measured_as_driver(*size: int) -> dict[str, object]:
    """Measure with the driver's own settings of the process."""
    look_less_often()
    return measured(*size)


def rows() -> Iterator[Row]:
    """Placing all, single events, the loss of a tenth of the hosts, and memory."""
    found = result_of("allocator.placement.measured_as_driver", ACTIVES, 1, HOSTS, LOST)
    flat = {f"{part}_{key}": n for part in _PARTS for key, n in found[part].items()} | found
    flat["s"] = found["first_s"] + found["placing"]["total_s"]
    flat["decided_s"] = found["loss"]["total_s"] + found["loss"]["observed_s"]
    yield from table(
        flat,
        ("full placement, until all run", "s", "s", 20),
        ("of that, JobModel and hosts", "first_s", "s", None),
        ("an event while it is placed: p99", "placing_p99_ms", "ms", 2),
        ("p50", "placing_p50_ms", "ms", None),
        ("longest", "placing_max_ms", "ms", None),
        ("a check-in of a launcher that runs: p99", "check_ins_p99_ms", "ms", 2),
        ("an event of 1,000 containers that fail: p99", "failures_p99_ms", "ms", 2),
        ("loss of 100 hosts, decided", "decided_s", "s", 2),
        ("an event of that: p99", "loss_p99_ms", "ms", 2),
        ("until all run again", "recovery_total_s", "s", None),
    )
    yield at_least("containers that run again", found["running_again"], 2 * ACTIVES, "")
    yield at_most("largest memory of the process", found["peak_mb"], 1024, "MB")


SECTIONS = {
    "placement": (
        "10,000 active containers with a standby each, placed on 1,000 hosts (CPU times)",
        rows,
    )
}
