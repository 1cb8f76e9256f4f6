"""What the allocator knows, as one frozen value.

PURE. Rules for editing: a field that can be computed from others is not stored; a time is never
stored (deadlines and windows are timers that the shell holds); everything that changes a phase
goes through ``transitions``.

Theory. A *container* here is a processor on its way to a resource: it waits, is permitted on a
launcher, runs, stops. A *resource* is a launcher that checked in; it outlives the stream
containers it runs. A request belongs to one waiting container; its grant, the check-in, may serve
another (matching is by host).

Normal flow: QUEUED, REQUESTED, ALLOCATED, STARTING, RUNNING, then FINISHED. Irregular: an expired
request leads back to QUEUED; an active that cannot go home waits in FAILING_OVER for its standby,
which goes through STOPPING to QUEUED and leaves it the launcher; a stop on a launcher that lives
leads to ASSIGNED on the same launcher; a new model leads the containers that it affects through
STOPPING to ASSIGNED, on the same launcher, and takes away those that it does not have; the job's
end leads every waiting container to STOPPED and every other through STOPPING.

What this module does not know: time, Kafka, YARN, the tasks of a processor.
"""

from __future__ import annotations

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
    """Where a processor is on its way."""

    FAILING_OVER = "failing-over"
    """Waits for the evidence that the standby whose place it takes has stopped (Invariant-2)."""
    QUEUED = "queued"
    """Needs a resource, has not asked: hosts unknown, or its host is being asked for another."""
    BACKING_OFF = "backing-off"
    """Has failed, and waits before it is placed again; the retry delay's timer runs."""
    REQUESTED = "requested"
    """Its request is outstanding; the expiry timer runs."""
    ALLOCATED = "allocated"
    """Skein runs its launcher, which has not checked in; the check-in timer runs."""
    ASSIGNED = "assigned"
    """A launcher that lives is set aside for it and gets the permit with its next check-in."""
    STARTING = "starting"
    """Permitted; it fences, restores, writes its locality."""
    RUNNING = "running"
    """Reported started."""
    STOPPING = "stopping"
    """Ordered to stop, by a new model or the job's end; no evidence of the stop yet."""
    STOPPED = "stopped"
    """Stopped, or never started, because the job ends."""
    FINISHED = "finished"
    """Its tasks came to their end. Not restarted, unless a new model gives it others."""
    FAILED = "failed"
    """Given up: its failures exceeded the retry keys, and the job goes on without it.

    The next model tries it again, or a command of an operator."""

    __hash__ = object.__hash__
    """As equality: of the object. Enum's own is of the name, and a fifth of the time of a step."""


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
"""Phases without an incarnation that may run, on the way to one."""

ASKING = frozenset({ContainerPhase.REQUESTED, ContainerPhase.ALLOCATED})
"""Phases with a request of its own."""

LIVE = frozenset({ContainerPhase.STARTING, ContainerPhase.RUNNING, ContainerPhase.STOPPING})
"""Phases with an incarnation that must be taken to run."""

TERMINAL = frozenset({ContainerPhase.STOPPED, ContainerPhase.FINISHED, ContainerPhase.FAILED})
"""Phases that only a new model leads out of, and, of FAILED, an operator's command."""


class JobPhase(Enum):
    """Where the job is."""

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

    ``story``: for people. ``incarnation``: None where none was permitted. ``cause`` and
    ``exit_code``: as its launcher reported them; None where no launcher did. ``host``: where it
    ran, or where a launcher was requested; None: anywhere.
    """

    kind: FailureKind
    story: str
    incarnation: Incarnation | None = None
    host: Host | None = None
    cause: StopCause | None = None
    exit_code: int | None = None

    def __str__(self) -> str:
        return self.story


@dataclass(frozen=True, slots=True)
class Predecessor:
    """An incarnation to be fenced by its successors; ``is_stopped``: its launcher waited for it."""

    incarnation: Incarnation
    is_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Failover:
    """An active that cannot go home, on its way to another place; fields as in the record of it."""

    step: FailoverStep
    standby: ProcessorId | None = None
    host: Host | None = None
    used: tuple[ProcessorId, ...] = ()


@dataclass(frozen=True, slots=True)
class ContainerState:
    """One processor and where it is.

    ``epoch`` is the last one ever permitted, ``floor`` the one that a model has raised it to, which
    no container uses (below ``epoch``: a permit came after it), ``has_gained`` whether it has tasks
    or input that ``epoch`` did not have, ``is_retired`` whether the model has it no more and only
    its stop is waited for, ``model_version`` the version that incarnation runs, ``fence`` the list
    of its permit (empty where an earlier driver gave it). ``home`` is the host with its state
    (None: none known, or affinity off). ``requested_host`` is the host that it requests, or is
    queued for; None: none or any. ``tried`` are the hosts that had no room in this round of
    requests, sorted. ``unfenced`` is what the next permit must list, oldest first. ``failures``
    counts those charged within the window; ``last_failure`` is the last one. ``launch_failures``
    counts those in a row since a launcher last came, as far as rests grow. ``replica_of`` is the
    active one that it is a standby of; None: it is active itself. ``lag``: how many records it is
    behind as a standby, or has to read in its start (None: unknown); ``has_spark``: whether the
    spare beside it has a Spark ready. ``failover`` is what is under way of an active that could
    not go home, from the choice until it has started. ``is_temporary``: it is no processor of the
    JobModel, but a standby for one warm move; see ``commands.warm_moves``.
    """

    processor_id: ProcessorId
    replica_of: ProcessorId | None = None
    phase: ContainerPhase = ContainerPhase.QUEUED
    epoch: int = 0
    floor: int = 0
    has_gained: bool = False
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
        """What its tasks do."""
        return ContainerRole.ACTIVE if self.replica_of is None else ContainerRole.STANDBY

    @property
    def group(self) -> ProcessorId:
        """The active of its group: of an active and its standbys."""
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
        """Return it with ``host`` among those that it has tried; None: as it is."""
        if host is None:
            return self
        return replace(self, tried=tuple(sorted({*self.tried, host})))

    @property
    def is_overtaken(self) -> bool:
        """Whether the incarnation of the last permit must not go on: a model has overtaken it."""
        return self.is_retired or self.floor > self.epoch


@dataclass(frozen=True, slots=True)
class ResourceState:
    """One launcher that checked in. A released one is kept until it is known to be gone.

    ``ended``: YARN's report that its container has ended, while there is no evidence yet that what
    it runs has stopped. ``reserved_for``: it has no holder, but this processor is to be moved here.
    """

    resource_id: ResourceId
    host: Host
    request_id: RequestId | None
    is_released: bool = False
    ended: ResourceEnded | None = None
    reserved_for: ProcessorId | None = None


class EarlyPhase(Enum):
    """Where an early request is."""

    ASKED = "asked"
    """Outstanding; the expiry timer runs."""
    GRANTED = "granted"
    """Skein runs its launcher, which has not checked in; the check-in timer runs."""
    OVER = "over"
    """Its launcher came, or none will. Not asked again for the same loss."""


@dataclass(frozen=True, slots=True)
class EarlyRequest:
    """A host is requested for a container whose stop is not proven yet.

    Its home, as its launcher has ended (safety P2); with ``is_reservation`` where a command wants
    it, which runs as yet. ``story``: of one that is over, why no launcher came.
    """

    processor_id: ProcessorId
    request_id: RequestId
    host: Host
    phase: EarlyPhase = EarlyPhase.ASKED
    is_reservation: bool = False
    story: str = ""


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A host that is not asked; once ``is_probed``, one launcher may be asked of it (safety P3)."""

    host: Host
    is_probed: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """The result that the job will end with; the phase follows once the hosts are known."""

    result: JobResult
    diagnostics: str


NOWHERE = Host("")
"""What a container is filed under that is queued, but for no host."""


class Containers(Table[ProcessorId, ContainerState]):
    """The containers by processor."""

    __slots__ = ()

    index_count = 11
    PHASE, RESOURCE, REQUEST, REPLICA_OF, GOING, LISTS = range(6)
    ASKED, ASKING, QUEUED, SEEKS_HOME, SEEKS_AWAY = range(6, 11)
    """Its phase, resource, request, active; True for an active that has not come to its end; the
    other processors whose incarnations it is to fence; the host that a request not allocated names,
    any request names, and that it is queued for (or NOWHERE); of a seeker its home, and, if it does
    not ask for that, its phase."""

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
        shared: IndexValues = (phase, row.resource_id, row.request_id, row.replica_of, going, lists)
        asked = asking = queued = None
        if phase is ContainerPhase.QUEUED:
            queued = wanted or NOWHERE
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
    """Its host, the request it came of, and whether YARN has said that it ended (True)."""

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
    """Of an outstanding one its request and host; ASKED: of one that is not granted."""

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


class Exclusions(Table[Host, Exclusion]):
    """The exclusions by host."""

    __slots__ = ()

    @staticmethod
    def key_of(row: Exclusion) -> Host:
        """Return its host."""
        return row.host


@dataclass(frozen=True, slots=True)
class Occupancy:
    """What follows from containers, resources and early requests together: see ``occupancy``.

    ``idle``: the launchers that live, unheld and not released. ``loads``: how many containers
    each host has, is requested for, or is queued for (absent: none). ``ranking``: of hosts that
    containers were placed on lately, None where there was none to place.
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

    Order: containers, resources, early requests and placements by id, exclusions and hosts by name;
    ``hosts`` is None until observed. ``silent`` are the hosts that fell silent just now.
    ``retired`` are incarnations of processors that the model does not have, which an earlier driver
    has perhaps left running. ``former`` {processor that the model does not have: its last epoch},
    by which temporary standbys go on. ``cancelled``: requests of which a launcher may still come,
    that YARN is to end. ``older`` {processor: the JobModel that its next permit names}, where that
    is not the one in force, which has the same tasks for it. ``racks`` {host: its rack}, where it
    is known. ``room`` is what the hosts have for a container. ``occupancy`` is derived, and None
    where it has not been needed yet.
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
    exclusions: Exclusions = field(default_factory=Exclusions)
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

    def resource(self, resource_id: ResourceId) -> ResourceState | None:
        """Return the launcher ``resource_id``; None where it is not known."""
        return self.resources.get(resource_id)

    def holder(self, resource_id: ResourceId) -> ContainerState | None:
        """Return the container that holds this resource; None where none does."""
        holders = self.containers.indexed(Containers.RESOURCE, resource_id)
        return self.containers.get(min(holders, default=None))


def initial_state(settings: AllocatorSettings, next_request_id: int = 1) -> AllocatorState:
    """Return the state before any event; requests are numbered from ``next_request_id``."""
    return AllocatorState(settings, next_request_id=next_request_id)
