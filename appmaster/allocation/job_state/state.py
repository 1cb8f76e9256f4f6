"""What the allocator knows, as one frozen value.

PURE. Rules for editing: no field is stored that others imply, and no time (deadlines and windows
are timers of the shell); every change of a phase goes through ``transitions``.

Theory. A *container* is a processor on its way to a resource: it waits, is permitted on a launcher,
runs, stops. A *resource* is a launcher that checked in; it outlives the stream containers that it
runs. A request belongs to one waiting container, but the launcher that it brings may serve another:
they are matched by host.

Normal flow: QUEUED, REQUESTED, ALLOCATED, STARTING, RUNNING, then FINISHED. Other flows:

* a request expires: back to QUEUED
* an active cannot go home: FAILING_OVER, until its standby has gone through STOPPING to QUEUED and
  left it the launcher
* a container stops on a launcher that lives: ASSIGNED, on that launcher
* a new model: the containers that it affects work on until the next owners of their tasks are
  ready, and go through STOPPING to ASSIGNED, on their launchers; those that it does not have are
  removed
* the job ends: what waits becomes STOPPED, what runs goes there through STOPPING

This module knows nothing of time, Kafka, YARN, or the tasks of a processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum

from immutables import Map

from homeport.appmaster.allocation.job_state.hosts import Ranking, Room
from homeport.appmaster.allocation.job_state.placements import Placement
from homeport.appmaster.allocation.job_state.table import IndexValues, PersistentSet, Table
from homeport.appmaster.allocation.protocol.events import FailoverStep, ResourceEnded, Timer
from homeport.appmaster.allocation.protocol.instructions import JobResult
from homeport.appmaster.allocation.protocol.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause


class ContainerRole(Enum):
    """Whether the tasks of a processor process input or keep replicas."""

    ACTIVE = "active"
    STANDBY = "standby"


class ContainerPhase(Enum):
    """The phase of a processor on its way."""

    FAILING_OVER = "failing-over"
    """Waits for the evidence that the standby whose place it takes has stopped (Invariant-2)."""
    QUEUED = "queued"
    """Needs a resource, without a request: hosts are unknown, or another requests its host."""
    BACKING_OFF = "backing-off"
    """Has failed, and waits before it is placed again; the RETRY_DELAY timer runs."""
    REQUESTED = "requested"
    """Its request is outstanding; the expiry timer runs."""
    ALLOCATED = "allocated"
    """Skein runs its launcher, which has not checked in; the check-in timer runs."""
    ASSIGNED = "assigned"
    """Has a live launcher, which gets the permit with its next check-in."""
    STARTING = "starting"
    """Permitted; fences, restores, writes its locality."""
    RUNNING = "running"
    """Reported started."""
    STOPPING = "stopping"
    """Ordered to stop; no evidence of the stop yet."""
    STOPPED = "stopped"
    """Stopped, or never started, because the job ends."""
    FINISHED = "finished"
    """Its tasks have ended. Not restarted, unless a new model gives it others."""
    FAILED = "failed"
    """Given up: it failed too often, and the job goes on without it.

    The next model, or an operator's command, tries it again."""

    __hash__ = object.__hash__
    """By identity, as equality is. Enum hashes the name, which takes a fifth of a step's time."""


WAITING = frozenset(
    {
        ContainerPhase.FAILING_OVER,
        ContainerPhase.QUEUED,
        ContainerPhase.BACKING_OFF,
        ContainerPhase.REQUESTED,
        ContainerPhase.ALLOCATED,
        ContainerPhase.ASSIGNED,
    }
)
"""Phases on the way to a start: no incarnation may run."""

ASKING = frozenset({ContainerPhase.REQUESTED, ContainerPhase.ALLOCATED})
"""Phases with an outstanding request."""

LIVE = frozenset({ContainerPhase.STARTING, ContainerPhase.RUNNING, ContainerPhase.STOPPING})
"""Phases with an incarnation that may run."""

WORKING = frozenset({ContainerPhase.STARTING, ContainerPhase.RUNNING})
"""Phases with an incarnation that was not ordered to stop."""

TERMINAL = frozenset({ContainerPhase.STOPPED, ContainerPhase.FINISHED, ContainerPhase.FAILED})
"""Phases that only a new model ends; FAILED an operator's command, too."""


class JobPhase(Enum):
    """The phase of the job."""

    NEW = "new"
    """No JobModel yet."""
    ACTIVE = "active"
    """Containers are placed and kept running."""
    ENDING = "ending"
    """The result is decided; what runs is being stopped."""
    ENDED = "ended"
    """EndJob has been given."""


class FailureKind(Enum):
    """What went wrong."""

    STOPPED = "stopped"
    """A launcher has reported that its stream container ended."""
    LAUNCHER_LOST = "launcher-lost"
    """The launcher ended or fell silent, and the incarnation that it ran is lost with it."""
    NO_LAUNCHER = "no-launcher"
    """No launcher checked in for the request."""
    RETRIES_USED_UP = "retries-used-up"
    """The container failed once too often, and is given up."""


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure of a container.

    Attributes:
        kind: what went wrong.
        story: the same for people.
        incarnation: the one that failed; None: none was permitted.
        host: where it ran, or where a launcher was requested; None: anywhere.
        cause: the cause that its launcher reported; None: no launcher did.
        exit_code: the exit code that its launcher reported; None: no launcher did.
        reason: the cause in its log, for the coordinator stream alone; empty: unknown.
    """

    kind: FailureKind
    story: str
    incarnation: Incarnation | None = None
    host: Host | None = None
    cause: StopCause | None = None
    exit_code: int | None = None
    reason: str = ""

    def __str__(self) -> str:
        return self.story


class Preparation(Enum):
    """Whether the launcher of a container without its permit has a process ready for that."""

    NONE = "none"
    """Not ordered: no other container works on its tasks."""
    ORDERED = "ordered"
    """Ordered, while former owners of its tasks work on; the timer PREPARATION runs."""
    DONE = "done"
    """The process is ready, or the time for that is over."""

    __hash__ = object.__hash__
    """By identity: see ContainerPhase."""


@dataclass(frozen=True, slots=True)
class Predecessor:
    """An incarnation that its successors fence; ``is_stopped``: a launcher reported its stop."""

    incarnation: Incarnation
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Failover:
    """The way of an active that cannot go home; the fields are those of ``FailoverRecord``."""

    step: FailoverStep
    standby: ProcessorId | None = None
    host: Host | None = None
    used: tuple[ProcessorId, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerState:
    """One processor and where it is.

    Attributes:
        processor_id: its id.
        replica_of: the active that it is a standby of; None: it is active itself.
        phase: where it is on its way.
        epoch: the epoch of its last permit.
        floor: the epoch that a model has raised it to; no container uses this number.
        has_gained: whether it has tasks or input that its last incarnation did not have.
        has_left: whether the driver moves its tasks to containers with their standbys.
        keeps_process: whether a model changes it while its process goes on (safety C4).
        preparation: while it is ASSIGNED: whether a process is ready for its permit.
        is_retired: whether the model does not have it any more: only its stop is waited for.
        model_version: the version of the JobModel that its last incarnation runs with.
        fence: the list of its last permit; empty if an earlier driver gave that.
        home: the host with its state; None: unknown, or host affinity is off.
        requested_host: the host that it requests, or is queued for; None: none or any.
        tried: the hosts that had no room in this round of requests, sorted.
        request_id: its outstanding request.
        resource_id: the launcher that it holds.
        unfenced: what its next permit must list, oldest first.
        failures: how many were charged within the retry window.
        launch_failures: how many in a row brought no launcher, as far as the delay grows.
        last_failure: the last one, charged or not.
        lag: how many records a standby is behind, or a start has left to read; None: unknown.
        has_spark: whether the spare beside this standby has a Spark ready.
        failover: set for an active that cannot go home, from the choice until it has started.
        is_temporary: it is no processor of the JobModel but the standby of one warm move.
    """

    processor_id: ProcessorId
    replica_of: ProcessorId | None = None
    phase: ContainerPhase = ContainerPhase.QUEUED
    epoch: int = 0
    floor: int = 0
    has_gained: bool = False
    has_left: bool = False
    keeps_process: bool = False
    preparation: Preparation = Preparation.NONE
    is_retired: bool = False
    model_version: int = 0
    fence: tuple[Incarnation, ...] = ()
    home: Host | None = None
    requested_host: Host | None = None
    tried: tuple[Host, ...] = ()
    request_id: RequestId | None = None
    resource_id: ResourceId | None = None
    unfenced: tuple[Predecessor, ...] = ()
    failures: int = 0
    launch_failures: int = 0
    last_failure: Failure | None = None
    lag: int | None = None
    has_spark: bool = False
    failover: Failover | None = None
    is_temporary: bool = False

    @property
    def role(self) -> ContainerRole:
        """Whether it is active or a standby."""
        return ContainerRole.ACTIVE if self.replica_of is None else ContainerRole.STANDBY

    @property
    def group(self) -> ProcessorId:
        """The id of the active in its group, which is an active with its standbys."""
        return self.processor_id if self.replica_of is None else self.replica_of

    @property
    def incarnation(self) -> Incarnation:
        """The incarnation of the last permit."""
        return Incarnation(self.processor_id, self.epoch)

    @property
    def next_epoch(self) -> int:
        """The epoch of the next permit."""
        return max(self.epoch, self.floor) + 1

    def having_tried(self, host: Host | None) -> ContainerState:
        """Return it with ``host`` among the tried ones; None: unchanged."""
        if host is None:
            return self
        return replace(self, tried=tuple(sorted({*self.tried, host})))

    def awaits_home(self, exclusions: Mapping[Host, bool]) -> bool:
        """Return whether its tasks have failed over, and its excluded home may come back.

        Until the exclusion ends, or the probe has failed, it takes only a host without another
        container of the job. Beside one it would be of little use, and stay when its home is back.
        """
        if self.home is None or not self.has_left or self.home in self.tried:
            return False
        return exclusions.get(self.home) is False

    @property
    def is_overtaken(self) -> bool:
        """Whether a model has overtaken its last incarnation, which must not go on."""
        return self.is_retired or self.floor > self.epoch


@dataclass(frozen=True, slots=True)
class ResourceState:
    """One launcher that checked in. A released one is kept until it is known to be gone.

    ``ended``: YARN's report that its container has ended, while there is no evidence that its child
    has stopped. ``reserved_for``: the processor that a command moves here; it has no holder then.
    """

    resource_id: ResourceId
    host: Host
    request_id: RequestId | None
    is_released: bool = False
    ended: ResourceEnded | None = None
    reserved_for: ProcessorId | None = None


class EarlyPhase(Enum):
    """The phase of an early request."""

    ASKED = "asked"
    """Outstanding; the expiry timer runs."""
    GRANTED = "granted"
    """Skein runs its launcher, which has not checked in; the check-in timer runs."""
    OVER = "over"
    """Its launcher came, or none will. For the same loss there is no second request."""


@dataclass(frozen=True, slots=True)
class EarlyRequest:
    """A request of a host for a container whose last incarnation may still run.

    The host is its home, because its launcher has ended (safety P2), or, with ``is_reservation``,
    the destination of a command. ``story``: why no launcher came, once it is over.
    """

    processor_id: ProcessorId
    request_id: RequestId
    host: Host
    phase: EarlyPhase = EarlyPhase.ASKED
    is_reservation: bool = False
    story: str = ""


@dataclass(frozen=True, slots=True)
class Ending:
    """The result that the job will end with; the phase follows once the hosts are known."""

    result: JobResult
    diagnostics: str


NOWHERE = Host("")
"""The value in the index QUEUED of a container that is queued for no host."""
WITHOUT_TASKS = Host("/")
"""The same of one whose tasks have failed over."""


class Containers(Table[ProcessorId, ContainerState]):
    """The containers by processor."""

    __slots__ = ()

    index_count = 12
    PHASE, RESOURCE, REQUEST, REPLICA_OF, GOING, LISTS, DUE = range(7)
    """The fields of these names; GOING: True for an active that has not ended; LISTS: the other
    processors that its next permit lists; DUE: True for one that runs and is overtaken."""
    ASKED, ASKING, QUEUED, SEEKS_HOME, SEEKS_AWAY = range(7, 12)
    """Of one that seeks a launcher: the host that it requests (ASKING; ASKED: without a grant), the
    host that it is queued for, or NOWHERE or WITHOUT_TASKS (QUEUED), its home (SEEKS_HOME), and its
    phase if it does not seek its home (SEEKS_AWAY)."""

    @staticmethod
    def key_of(row: ContainerState) -> ProcessorId:
        """Return its processor."""
        return row.processor_id

    @staticmethod
    def index_values_of(row: ContainerState) -> IndexValues:
        """Return the values, in the order of their names above."""
        phase, wanted = row.phase, row.requested_host
        going = True if row.replica_of is None and phase not in TERMINAL else None
        owners = frozenset(
            p.incarnation.processor_id
            for p in row.unfenced
            if p.incarnation.processor_id != row.processor_id
        )
        lists = owners or None
        due = True if phase is ContainerPhase.RUNNING and row.is_overtaken else None
        ids = (row.resource_id, row.request_id, row.replica_of)
        shared: IndexValues = (phase, *ids, going, lists, due)
        asked = asking = queued = None
        if phase is ContainerPhase.QUEUED:
            queued = wanted or (WITHOUT_TASKS if row.has_left else NOWHERE)
        elif phase is ContainerPhase.REQUESTED:
            asked = asking = wanted
        elif phase is ContainerPhase.ALLOCATED:
            asking = wanted
        else:
            return (*shared, None, None, None, None, None)
        away = phase if row.home is None or wanted != row.home else None
        return (*shared, asked, asking, queued, row.home, away)


class Resources(Table[ResourceId, ResourceState]):
    """The launchers by resource."""

    __slots__ = ()

    index_count = 3
    HOST, REQUEST, ENDED = range(index_count)
    """Its host, the request that brought it, and whether YARN has reported its end (True)."""

    @staticmethod
    def key_of(row: ResourceState) -> ResourceId:
        """Return its resource."""
        return row.resource_id

    @staticmethod
    def index_values_of(row: ResourceState) -> IndexValues:
        """Return the values, in the order of their names above."""
        return (row.host, row.request_id, None if row.ended is None else True)


class EarlyRequests(Table[ProcessorId, EarlyRequest]):
    """The early requests by processor."""

    __slots__ = ()

    index_count = 3
    REQUEST, ASKED, ASKING = range(index_count)
    """The request and the host (ASKING) of an outstanding one; ASKED: of one without a grant."""

    @staticmethod
    def key_of(row: EarlyRequest) -> ProcessorId:
        """Return its processor."""
        return row.processor_id

    @staticmethod
    def index_values_of(row: EarlyRequest) -> IndexValues:
        """Return the values, in the order of their names above."""
        if row.phase is EarlyPhase.OVER:
            return (None, None, None)
        return (row.request_id, row.host if row.phase is EarlyPhase.ASKED else None, row.host)


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What follows from containers, resources and early requests together: see ``occupancy``.

    ``idle``: the launchers that live, and are neither held nor released. ``loads``: the number of
    containers that run on each host, request it, or are queued for it (absent: 0). ``ranking``:
    None until a container is placed.
    """

    containers: Containers
    resources: Resources
    early: EarlyRequests
    idle: Map[ResourceId, None]
    loads: Map[Host, int]
    ranking: Ranking | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class AllocatorState:
    """All that the allocator knows. Hashable.

    Attributes:
        settings: what the configuration decides.
        phase: the phase of the job.
        model_version: the version of the JobModel in force.
        hosts: the live ones, sorted; None until observed.
        racks: {host: its rack}, where that is known.
        containers: the containers by processor.
        retired: incarnations of processors that the model does not have, which may still run.
        former: {processor that the model does not have: its last epoch}, for temporary standbys.
        older: {processor: the earlier JobModel, with the same tasks, that its next permit names}.
        resources: the launchers that checked in.
        early: the early requests by processor.
        placements: operators' commands under way, by uuid.
        silent: the hosts that fell silent within ``AllocatorSettings.silence_ms``.
        exclusions: {host that is not requested: whether one request may probe it} (safety P3).
        timers: the armed timers.
        cancelled: requests whose launcher may still come, and which YARN is to end.
        ending: the result of the job; None: not decided.
        next_request_id: a number that no request has had.
        stale_events: how many stale events there were.
        room: what the hosts have for a container.
        occupancy: derived; None until needed.
    """

    settings: AllocatorSettings
    phase: JobPhase = JobPhase.NEW
    model_version: int = 0
    hosts: tuple[Host, ...] | None = None
    racks: Map[Host, str] = field(default_factory=Map)
    containers: Containers = field(default_factory=Containers)
    retired: frozenset[Incarnation] = frozenset()
    former: Map[ProcessorId, int] = field(default_factory=Map)
    older: Map[ProcessorId, int] = field(default_factory=Map)
    resources: Resources = field(default_factory=Resources)
    early: EarlyRequests = field(default_factory=EarlyRequests)
    placements: tuple[Placement, ...] = ()
    silent: frozenset[Host] = frozenset()
    exclusions: Map[Host, bool] = field(default_factory=Map)
    timers: PersistentSet[Timer] = field(default_factory=PersistentSet)
    cancelled: PersistentSet[RequestId] = field(default_factory=PersistentSet)
    ending: Ending | None = None
    next_request_id: int = 1
    stale_events: int = 0
    room: Room = field(default_factory=Room)
    occupancy: Occupancy | None = field(default=None, compare=False, repr=False)

    def container(self, processor_id: ProcessorId) -> ContainerState | None:
        """Return the container of ``processor_id``; None where the model has none."""
        return self.containers.get(processor_id)

    def host_of(self, container: ContainerState) -> Host | None:
        """Return the host of the launcher that ``container`` holds; None: it holds none."""
        launcher = self.resources.get(container.resource_id)
        return None if launcher is None else launcher.host

    def holder(self, resource_id: ResourceId) -> ContainerState | None:
        """Return the container that holds this resource; None where none does."""
        holders = self.containers.indexed(Containers.RESOURCE, resource_id)
        return self.containers.get(min(holders, default=None))


def initial_state(settings: AllocatorSettings, next_request_id: int = 1) -> AllocatorState:
    """Return the state before any event; requests are numbered from ``next_request_id``."""
    return AllocatorState(settings, next_request_id=next_request_id)
