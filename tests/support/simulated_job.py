"""The allocator on a simulated cluster: the shell of a driver on the cluster's own clock.

It does what a driver does, without Kafka and HTTP: polls the cluster, holds timers, hears launchers
and answers them, and takes a launcher that has been silent for its whole limit to be gone.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from simulated_cluster import SimulatedCluster
from simulated_launchers import Answer, Letter

from homeport.appmaster.allocation import invariants
from homeport.appmaster.allocation.container_process_manager import Decision, step
from homeport.appmaster.allocation.job_state.state import ContainerPhase, initial_state
from homeport.appmaster.allocation.protocol.events import (
    ContainerStarted,
    ContainerStopped,
    Event,
    JobModelPublished,
    LauncherCheckedIn,
    ResourceEnded,
    Timer,
    TimerFired,
    describe,
)
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    CancelTimer,
    EndJob,
    Instruction,
    PermitContainer,
    ReleaseResource,
    RequestResource,
    SetTimer,
    StopContainer,
    order_for,
)
from homeport.appmaster.allocation.protocol.observation import (
    SkeinContainerState,
    Snapshot,
    events_between,
)
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.lease.launcher_table import LauncherEntry, LauncherTable
from homeport.config.errors import UnavailableError
from homeport.job_coordinator.http.messages import CheckIn, Order, OrderKind, Started
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId

_POLL_MS = 500
_RETRY_MS = 1000
_TICK_MS = 50


class SimulatedJob:
    """A job of these processors, each with its home; it begins at once. To be run by ``run``.

    ``standbys``: {standby: the active one that it replicates}.
    """

    def __init__(
        self,
        cluster: SimulatedCluster,
        settings: AllocatorSettings,
        homes: Mapping[ProcessorId, Host | None],
        standbys: Mapping[ProcessorId, ProcessorId] | None = None,
    ) -> None:
        self.cluster = cluster
        self.state = initial_state(settings)
        self.end: EndJob | None = None
        self.asked = 0
        self._manager = cluster.manager()
        self._launchers = LauncherTable(cluster.lease_ms, cluster.now_ms)
        self._snapshot: Snapshot | None = None
        self._armed: dict[Timer, int] = {}
        self._settings_count = 0
        self.take(JobModelPublished(1, homes, standbys=standbys or {}))
        self._poll()

    def run(self, ms: int) -> None:
        """So much time passes."""
        for _ in range(ms // _TICK_MS):
            self.cluster.advance(_TICK_MS)
            for letter in self.cluster.letters():
                self.cluster.answer(letter, self._answer_to(letter))

    def phases(self) -> set[ContainerPhase]:
        """The phases that containers are in."""
        return {c.phase for c in self.state.containers}

    def take(self, event: Event) -> Decision:
        """One event, from the step to the instructions; every invariant holds."""
        decision = step(self.state, event)
        invariants.check_step(self.state, decision.state, describe(event))
        self.state = decision.state
        for instruction in decision.instructions:
            self._carry_out(instruction)
        return decision

    def _carry_out(self, instruction: Instruction) -> None:
        match instruction:
            case RequestResource(request_id=request_id, host=host):
                self.asked += 1
                self._request(request_id, host)
            case CancelRequest(request_id=request_id):
                self._cancel(request_id)
            case SetTimer(timer=timer, delay_ms=delay_ms):
                self._settings_count += 1
                self._armed[timer] = number = self._settings_count
                self.cluster.after(delay_ms, lambda: self._fired(timer, number))
            case CancelTimer(timer=timer):
                self._armed.pop(timer, None)
            case EndJob():
                self.end = instruction

    def _fired(self, timer: Timer, number: int) -> None:
        if self._armed.get(timer) == number:
            del self._armed[timer]
            self.take(TimerFired(timer))

    def _request(self, request_id: RequestId, host: Host | None) -> None:
        try:
            self._manager.request(request_id, host, {})
        except UnavailableError as e:
            ended = ResourceEnded(request_id, story=str(e))
            self.cluster.after(_RETRY_MS, partial(self._told, ended))

    def _told(self, event: Event) -> None:
        self.take(event)

    def _cancel(self, request_id: RequestId) -> None:
        try:
            self._manager.cancel(request_id)
        except UnavailableError:
            self.cluster.after(_RETRY_MS, lambda: self._cancel(request_id))

    def _poll(self) -> None:
        self.cluster.after(_POLL_MS, self._poll)
        for launcher in self._launchers.silent(self.cluster.now_ms):
            self.take(launcher.gone())
        try:
            hosts, reports = self._manager.hosts(), self._manager.resources()
        except UnavailableError:
            return
        for report in reports:
            is_end = report.container.state is SkeinContainerState.ENDED
            if is_end and report.resource_id is not None:
                self._launchers.ended(report.resource_id, report.container)
        live = tuple(h.host for h in hosts if h.is_live)
        snapshot = Snapshot(tuple(r.container for r in reports), live, hosts)
        memory_mb, cores = self._size()
        before, self._snapshot = self._snapshot, snapshot
        for event in events_between(before, snapshot, memory_mb=memory_mb, cores=cores):
            self.take(event)

    def _size(self) -> tuple[int, int]:
        return self.state.settings.container_memory_mb, self.state.settings.container_cores

    def _answer_to(self, letter: Letter) -> Answer:
        message = letter.message
        if isinstance(message, CheckIn):
            return self._order(message)
        if isinstance(message, Started):
            self.take(ContainerStarted(message.incarnation))
        else:
            self.take(ContainerStopped(message.incarnation, message.cause, message.exit_code))
        return None

    def _order(self, message: CheckIn) -> Order:
        times = self.cluster.check_in_ms, self.cluster.lease_ms
        request_id = self._manager.request_of(message.skein_id)
        if request_id is None or self.end is not None:
            return Order(OrderKind.EXIT, *times)
        resource_id, host, running = message.resource_id, message.host, message.running
        now_ms = self.cluster.now_ms
        self._launchers.heard(
            LauncherEntry(resource_id, request_id, host, message.pid, running, now_ms)
        )
        decision = self.take(LauncherCheckedIn(resource_id, host, running, request_id))
        match order_for(decision.instructions, resource_id):
            case PermitContainer(incarnation=incarnation):
                return Order(OrderKind.RUN, *times, incarnation)
            case StopContainer(incarnation=incarnation):
                return Order(OrderKind.STOP, *times, incarnation)
            case ReleaseResource():
                return Order(OrderKind.EXIT, *times)
        return Order(OrderKind.WAIT, *times)
