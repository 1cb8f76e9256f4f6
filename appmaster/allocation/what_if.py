"""What would follow from the loss of hosts, or from a command: the allocator runs on by itself.

PURE, without side effects: ``step`` never changes its state, and nothing here carries out the
instructions. In the simulated cluster nothing else goes wrong. Every launcher on a lost host is
silent at once, and the ResourceManager reports these hosts lost. Containers stop when ordered and
start when permitted. A standby that gives way has read everything and has its Spark. A request is
granted if there is room, else it expires. A delay is over at once.

The simulation ends when nothing is left to happen. A container's requests expire once per host and
once for any host; then it counts as without a place. ``MAX_ROUNDS`` limits the simulation.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

from homeport.appmaster.allocation.container_process_manager import step
from homeport.appmaster.allocation.job_state.state import (
    ASKING,
    AllocatorState,
    ContainerPhase,
    Containers,
    ContainerState,
    EarlyPhase,
)
from homeport.appmaster.allocation.protocol import events
from homeport.appmaster.allocation.protocol.events import Timer, TimerKind
from homeport.appmaster.allocation.protocol.instructions import (
    CancelRequest,
    FailTasksOver,
    RequestResource,
    WriteFailover,
    WritePlacementResponse,
)
from homeport.appmaster.allocation.protocol.reasons import Reason, ReasonKind
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.appmaster.allocation.shortage import shortage
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.model.placement import PlacementRequest
from homeport.job_coordinator.status.outlook import ShownFate, ShownOutlook

MAX_ROUNDS: Final = 200
"""Each round answers all requests that are outstanding when it begins."""

_FULFILLED: Final = frozenset({ContainerPhase.RUNNING, ContainerPhase.FINISHED})


def known_hosts(state: AllocatorState) -> frozenset[Host]:
    """Return the hosts that a question may name: live ones, and those with a launcher."""
    return frozenset({*(state.hosts or ()), *(r.host for r in state.resources)})


def what_if(
    state: AllocatorState, lost: frozenset[Host], reports: Sequence[events.HostReport] = ()
) -> ShownOutlook:
    """Return what would follow from the loss of these hosts now.

    Unknown hosts in ``lost`` change nothing. A host without a report has room for everything.
    """
    future = _Future(state, lost, tuple(_lost(r) if r.host in lost else r for r in reports))
    future.lose()
    is_settled = future.calm()
    lacking = shortage(future.state, future.reports())
    fates, notes = tuple(_fates(state, future)), (r for r in future.reasons if not r.processor_id)
    return ShownOutlook(
        hosts=tuple(sorted(lost)),
        containers=fates,
        unplaced=tuple(f.processor_id for f in fates if not f.is_placed),
        tasks_moved={processor_id: {} for processor_id in sorted(future.given_up)},
        notes=tuple(map(str, dict.fromkeys(notes))),
        shortage=None if lacking is None else lacking.says,
        suspects_itself=any(r.kind is ReasonKind.FAULT_HERE for r in future.reasons),
        job=future.state.phase.value,
        is_settled=is_settled,
    )


@dataclass(frozen=True, slots=True)
class CommandOutlook:
    """What would follow from an operator's command.

    ``answer``: the last one, which is final if nothing would be in the way; None: there is none.
    ``fates``: as in ``ShownOutlook.containers``.
    """

    answer: WritePlacementResponse | None
    fates: tuple[ShownFate, ...]


def what_if_commanded(
    state: AllocatorState, request: PlacementRequest, reports: Sequence[events.HostReport] = ()
) -> CommandOutlook:
    """Return what would follow from this command now; the other arguments as in ``what_if``."""
    future = _Future(state, frozenset(), tuple(reports))
    future.feed(events.PlacementRequested(request))
    future.calm()
    return CommandOutlook(future.answers.get(request.uuid), tuple(_fates(state, future)))


class _Future:
    """The simulation: the state, and the cluster around it."""

    def __init__(
        self, state: AllocatorState, lost: frozenset[Host], reports: tuple[events.HostReport, ...]
    ) -> None:
        self.state = state
        self.reasons: list[Reason] = []
        self.taken: dict[ProcessorId, ProcessorId | None] = {}
        """{active: the standby whose place it takes}"""
        self.answers: dict[str, WritePlacementResponse] = {}
        """{command: the last answer}"""
        self.given_up: set[ProcessorId] = set()
        """Mixed containers whose tasks go to others."""
        self._lost = lost
        self._reports = reports
        self._room = {r.host: _room(state.settings, r) for r in reports}
        self._used: Counter[Host] = Counter()
        """How many launchers of this job a host has gained since its report."""
        self._asked = _asked(state)
        self._placeless: set[ProcessorId] = set()
        """Containers whose request for any host has expired."""
        self._launchers = 0

    def reports(self) -> tuple[events.HostReport, ...]:
        settings = self.state.settings
        return tuple(
            replace(
                r,
                free_memory_mb=r.free_memory_mb - self._used[r.host] * settings.container_memory_mb,
                free_cores=r.free_cores - self._used[r.host] * settings.container_cores,
            )
            for r in self._reports
        )

    def feed(self, event: events.Event) -> bool:
        decision = step(self.state, event)
        self.state = decision.state
        self.reasons += decision.reasons
        for record in decision.records:
            if isinstance(record, WriteFailover):
                self.taken[record.active] = record.standby
            elif isinstance(record, WritePlacementResponse):
                self.answers[record.request.uuid] = record
        for instruction in decision.instructions:
            # The state shows all other instructions: launchers ask for theirs again.
            if isinstance(instruction, RequestResource):
                self._asked[instruction.request_id] = instruction.host
            elif isinstance(instruction, CancelRequest):
                self._asked.pop(instruction.request_id, None)
            elif isinstance(instruction, FailTasksOver):
                self.given_up.add(instruction.processor_id)
        return bool(decision.reasons or decision.records or decision.instructions)

    def lose(self) -> None:
        for resource in list(self.state.resources):
            if resource.host in self._lost:
                self.feed(events.LauncherSilent(resource.resource_id))
        left = tuple(h for h in self.state.hosts or () if h not in self._lost)
        self.feed(events.HostsObserved(left, self._reports))

    def calm(self) -> bool:
        for _ in range(MAX_ROUNDS):
            happened = [self._happens(event) for event in list(self._due())]
            if not any(happened):
                return True
        return False

    def _due(self) -> Iterator[events.Event]:
        yield from self._of_containers()
        yield from self._of_launchers()
        for standby in [p.standby for p in self.state.placements if p.standby is not None]:
            yield events.LagsReported({standby: 0})
            yield events.SparesReported({standby: True})
        for request_id in sorted(self._asked):
            if self._asker(request_id) not in self._placeless:
                yield self._answer(request_id, self._asked[request_id])

    def _of_containers(self) -> Iterator[events.Event]:
        for container in self._in(ContainerPhase.STOPPING):
            yield events.ContainerStopped(container.incarnation, StopCause.ORDERED, 0)
        for container in self._in(ContainerPhase.STARTING):
            yield events.ContainerStarted(container.incarnation)
        for container in self._in(ContainerPhase.BACKING_OFF):
            yield events.TimerFired(Timer(TimerKind.RETRY_DELAY, container.processor_id))

    def _of_launchers(self) -> Iterator[events.Event]:
        for resource in self.state.resources:
            if resource.is_released:
                yield events.ResourceEnded(resource.request_id, resource.resource_id)
            elif resource.ended is not None:
                yield events.LauncherSilent(resource.resource_id)
        assigned = (
            self.state.resources.get(c.resource_id) for c in self._in(ContainerPhase.ASSIGNED)
        )
        for launcher in filter(None, assigned):
            id_, host, request_id = launcher.resource_id, launcher.host, launcher.request_id
            yield events.LauncherCheckedIn(id_, host, None, request_id)

    def _in(self, phase: ContainerPhase) -> list[ContainerState]:
        found = sorted(self.state.containers.indexed(Containers.PHASE, phase))
        return [c for c in map(self.state.container, found) if c is not None]

    def _answer(self, request_id: RequestId, host: Host | None) -> events.Event:
        place = self._roomiest() if host is None else host
        if place is None or place in self._lost or not self._has_room(place):
            return events.TimerFired(Timer(TimerKind.REQUEST_EXPIRY, request_id))
        self._launchers += 1
        id_ = ResourceId(f"what-if-{self._launchers}")
        return events.LauncherCheckedIn(id_, place, None, request_id)

    def _roomiest(self) -> Host | None:
        load = {h: 0 for h in self.state.hosts or () if self._has_room(h)}
        for resource in self.state.resources:
            if resource.host in load:
                load[resource.host] += 1
        return min(load, key=lambda h: (load[h], h), default=None)

    def _has_room(self, host: Host) -> bool:
        return host not in self._room or self._room[host] > self._used[host]

    def _happens(self, event: events.Event) -> bool:
        """Feed ``event``, unless others of its round made it void; return as ``feed`` does."""
        match event:
            case events.TimerFired(timer=timer) if timer not in self.state.timers:
                return False
            case events.TimerFired(timer=Timer(kind=TimerKind.REQUEST_EXPIRY, key=request_id)):
                asker = self._asker(request_id)
                if asker is not None and self._asked.get(request_id) is None:
                    self._placeless.add(asker)
            case events.LauncherCheckedIn() if self.state.resources.get(event.resource_id) is None:
                if event.request_id not in self._asked or not self._has_room(event.host):
                    return False
                del self._asked[event.request_id]
                self._use(event.host, 1)
            case events.ResourceEnded(resource_id=str(resource_id)):
                resource = self.state.resources.get(resource_id)
                self._use(resource.host if resource is not None else None, -1)
        return self.feed(event)

    def _use(self, host: Host | None, count: int) -> None:
        if host is not None and host in self._room:
            self._used[host] += count

    def _asker(self, request_id: RequestId) -> ProcessorId | None:
        early = (e.processor_id for e in self.state.early if e.request_id == request_id)
        askers = self.state.containers.indexed(Containers.REQUEST, request_id)
        return min(askers, default=None) or next(early, None)


def _asked(state: AllocatorState) -> dict[RequestId, Host | None]:
    own = {
        c.request_id: c.requested_host
        for c in state.containers
        if c.phase in ASKING and c.request_id is not None
    }
    early = {e.request_id: e.host for e in state.early if e.phase is not EarlyPhase.OVER}
    return {**own, **early}


def _lost(report: events.HostReport) -> events.HostReport:
    return replace(report, is_live=False, free_memory_mb=0, free_cores=0)


def _room(settings: AllocatorSettings, report: events.HostReport) -> int:
    sizes = (
        (report.free_memory_mb, settings.container_memory_mb),
        (report.free_cores, settings.container_cores),
    )
    fits = [free // size for free, size in sizes if size > 0]
    return min(fits, default=1_000_000) if report.is_live else 0


def _fates(before: AllocatorState, future: _Future) -> Iterator[ShownFate]:
    why: dict[ProcessorId, dict[ReasonKind, Reason]] = {}
    for reason in future.reasons:
        if reason.processor_id is not None:
            said = why.setdefault(reason.processor_id, {})
            said.pop(reason.kind, None)
            said[reason.kind] = reason
    for container in before.containers:
        after = future.state.container(container.processor_id)
        if after is not None and (after.phase, after.epoch, after.resource_id) == (
            container.phase,
            container.epoch,
            container.resource_id,
        ):
            continue
        yield ShownFate(
            processor_id=container.processor_id,
            role=container.role.value,
            replica_of=container.replica_of,
            host_before=before.host_of(container),
            host=future.state.host_of(after) if after is not None else None,
            phase=after.phase.value if after is not None else None,
            is_placed=after is None or after.phase in _FULFILLED,
            takes_over=future.taken.get(container.processor_id),
            why=tuple(map(str, why.get(container.processor_id, {}).values())),
        )
