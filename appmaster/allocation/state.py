"""What the allocator knows, as one frozen value, and the table of what may befall a container.

PURE. Rules for editing: a field that can be computed from others is not stored; a time is never
stored (deadlines and windows are timers that the shell holds); everything that changes a phase
goes through ``TRANSITIONS``.

Theory. A *container* here is a processor on its way to a resource: it waits, is permitted on a
launcher, runs, stops. A *resource* is a launcher that checked in; it outlives the stream
containers it runs. A request belongs to one waiting container; its grant, the check-in, may serve
another (matching is by host). What the table cannot express is in ``invariants``: who holds which
resource, which timers are armed.

Normal flow: QUEUED, REQUESTED, ALLOCATED, STARTING, RUNNING, then FINISHED. Irregular: an expired
request leads back to QUEUED; an active that cannot go home waits in FAILING_OVER for its standby,
which goes through STOPPING to QUEUED and leaves it the launcher; a stop on a launcher that lives
leads to ASSIGNED on the same launcher; a new model leads whom it affects through STOPPING to
ASSIGNED, on the same launcher, and takes away whom it does not have; the job's end leads every
waiting container to STOPPED and every other through STOPPING.

What this module does not know: time, Kafka, YARN, the tasks of a processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType

from homeport.appmaster.allocation.events import FailoverStep, ResourceEnded, Timer, TimerKind
from homeport.appmaster.allocation.instructions import JobResult
from homeport.appmaster.allocation.settings import AllocatorSettings
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation


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
    RESTING = "resting"
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

    The next model tries it again."""


WAITING = frozenset(
    {
        ContainerPhase.FAILING_OVER,
        ContainerPhase.QUEUED,
        ContainerPhase.RESTING,
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
"""Phases that only a new model leads out of."""


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


class Happening(Enum):
    """What befalls one container: the first group by events, the second by our own decisions."""

    CHECKED_IN = "launcher checked in"
    ALLOCATED = "request allocated"
    EXPIRED = "request expired"
    LAUNCH_FAILED = "no launcher came of the request"
    STARTED = "container started"
    STOPPED = "container stopped"
    RESOURCE_LOST = "resource lost"
    RESTED = "retry delay over"

    PLACED = "placed"
    FAILS_OVER = "fails over to a standby"
    MAKES_WAY = "makes way for its active"
    WAY_IS_CLEAR = "its standby has stopped"
    GIVEN_AWAY = "its grant served another"
    MODEL_CHANGED = "model changed"
    JOB_ENDING = "job ends"


_P = ContainerPhase
_H = Happening

TRANSITIONS: Mapping[ContainerPhase, Mapping[Happening, frozenset[ContainerPhase]]] = (
    MappingProxyType(
        {
            _P.FAILING_OVER: {
                _H.WAY_IS_CLEAR: frozenset({_P.QUEUED, _P.ASSIGNED}),
                _H.CHECKED_IN: frozenset({_P.RUNNING, _P.STOPPING}),
                _H.STOPPED: frozenset({_P.FINISHED}),
                _H.JOB_ENDING: frozenset({_P.STOPPED}),
            },
            _P.QUEUED: {
                _H.PLACED: frozenset({_P.REQUESTED, _P.ASSIGNED}),
                _H.FAILS_OVER: frozenset({_P.FAILING_OVER}),
                _H.CHECKED_IN: frozenset({_P.ASSIGNED, _P.STARTING, _P.RUNNING, _P.STOPPING}),
                _H.STOPPED: frozenset({_P.FINISHED}),
                _H.JOB_ENDING: frozenset({_P.STOPPED}),
            },
            _P.RESTING: {
                _H.RESTED: frozenset({_P.QUEUED}),
                _H.CHECKED_IN: frozenset({_P.RUNNING, _P.STOPPING}),
                _H.STOPPED: frozenset({_P.FINISHED}),
                _H.JOB_ENDING: frozenset({_P.STOPPED}),
            },
            _P.REQUESTED: {
                _H.ALLOCATED: frozenset({_P.ALLOCATED}),
                _H.EXPIRED: frozenset({_P.QUEUED}),
                _H.LAUNCH_FAILED: frozenset({_P.QUEUED, _P.RESTING, _P.FAILED}),
                _H.CHECKED_IN: frozenset({_P.ASSIGNED, _P.STARTING, _P.RUNNING, _P.STOPPING}),
                _H.STOPPED: frozenset({_P.FINISHED}),
                _H.GIVEN_AWAY: frozenset({_P.QUEUED}),
                _H.JOB_ENDING: frozenset({_P.STOPPED}),
            },
            _P.ALLOCATED: {
                _H.EXPIRED: frozenset({_P.QUEUED}),
                _H.LAUNCH_FAILED: frozenset({_P.QUEUED, _P.RESTING, _P.FAILED}),
                _H.CHECKED_IN: frozenset({_P.ASSIGNED, _P.STARTING, _P.RUNNING, _P.STOPPING}),
                _H.STOPPED: frozenset({_P.FINISHED}),
                _H.GIVEN_AWAY: frozenset({_P.QUEUED}),
                _H.JOB_ENDING: frozenset({_P.STOPPED}),
            },
            _P.ASSIGNED: {
                _H.CHECKED_IN: frozenset({_P.STARTING, _P.RUNNING, _P.STOPPING}),
                _H.STOPPED: frozenset({_P.FINISHED}),
                _H.RESOURCE_LOST: frozenset({_P.QUEUED, _P.RESTING, _P.FAILED}),
                _H.GIVEN_AWAY: frozenset({_P.QUEUED}),
                _H.JOB_ENDING: frozenset({_P.STOPPED}),
            },
            _P.STARTING: {
                _H.CHECKED_IN: frozenset({_P.STARTING}),
                _H.STARTED: frozenset({_P.RUNNING}),
                _H.STOPPED: frozenset({_P.QUEUED, _P.ASSIGNED, _P.RESTING, _P.FINISHED, _P.FAILED}),
                _H.RESOURCE_LOST: frozenset({_P.QUEUED, _P.RESTING, _P.FAILED}),
                _H.JOB_ENDING: frozenset({_P.STOPPING}),
                _H.MODEL_CHANGED: frozenset({_P.STOPPING}),
                _H.MAKES_WAY: frozenset({_P.STOPPING}),
            },
            _P.RUNNING: {
                _H.CHECKED_IN: frozenset({_P.RUNNING}),
                _H.STARTED: frozenset({_P.RUNNING}),
                _H.STOPPED: frozenset({_P.QUEUED, _P.ASSIGNED, _P.RESTING, _P.FINISHED, _P.FAILED}),
                _H.RESOURCE_LOST: frozenset({_P.QUEUED, _P.RESTING, _P.FAILED}),
                _H.JOB_ENDING: frozenset({_P.STOPPING}),
                _H.MODEL_CHANGED: frozenset({_P.STOPPING}),
                _H.MAKES_WAY: frozenset({_P.STOPPING}),
            },
            _P.STOPPING: {
                _H.CHECKED_IN: frozenset({_P.STOPPING}),
                _H.STARTED: frozenset({_P.STOPPING}),
                _H.STOPPED: frozenset({_P.STOPPED, _P.FINISHED, _P.QUEUED, _P.ASSIGNED}),
                _H.RESOURCE_LOST: frozenset({_P.STOPPED, _P.QUEUED}),
                _H.JOB_ENDING: frozenset({_P.STOPPING}),
            },
            _P.STOPPED: {},
            _P.FINISHED: {_H.MODEL_CHANGED: frozenset({_P.QUEUED})},
            _P.FAILED: {_H.MODEL_CHANGED: frozenset({_P.QUEUED})},
        }
    )
)
"""phase -> what befalls the container -> the phases it may be in afterwards.

A happening of the first group that is missing in a row is stale there: counted, and nothing
changes. One of the second group that is missing is a bug of ours.
"""


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
    nobody uses (below ``epoch``: a permit came after it), ``has_gained`` whether it has tasks or
    input that ``epoch`` did not have, ``is_retired`` whether the model has it no more and only its
    stop is waited for, ``model_version`` the version that incarnation runs,
    ``fence`` the list of its permit (empty where an earlier driver gave it). ``home`` is the host
    with its state (None: none known, or affinity off). ``wanted`` is the host it asks for, or is
    queued for; None: none or any. ``tried`` are the hosts that had no room in this round of
    asking, sorted. ``unfenced`` are the incarnations that the next permit must list, oldest first.
    ``failures`` counts those charged within the window; ``last_failure`` is the story of the last.
    ``launch_failures`` counts those in a row since a launcher last came, as far as rests grow.
    ``replica_of`` is the active one that it is a standby of; None: it is active itself. ``lag``:
    how many records it is behind as a standby (None: unknown). ``failover`` is what is under way of
    an active that could not go home, from the choice until it has started.
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
    wanted: Host | None = None
    tried: tuple[Host, ...] = ()
    request_id: RequestId | None = None
    resource_id: ResourceId | None = None
    unfenced: tuple[Predecessor, ...] = ()
    failures: int = 0
    launch_failures: int = 0
    last_failure: str = ""
    lag: int | None = None
    failover: Failover | None = None

    @property
    def role(self) -> ContainerRole:
        """What its tasks do."""
        return ContainerRole.ACTIVE if self.replica_of is None else ContainerRole.STANDBY

    @property
    def incarnation(self) -> Incarnation:
        """The incarnation of the last permit."""
        return Incarnation(self.processor_id, self.epoch)

    @property
    def next_epoch(self) -> int:
        """The epoch of the next permit."""
        return max(self.epoch, self.floor) + 1

    @property
    def is_overtaken(self) -> bool:
        """Whether the incarnation of the last permit must not go on: a model has overtaken it."""
        return self.is_retired or self.floor > self.epoch


@dataclass(frozen=True, slots=True)
class ResourceState:
    """One launcher that checked in. A released one is kept until it is known to be gone.

    ``ended``: YARN's word that its container has ended, while there is no evidence yet that what it
    runs has stopped.
    """

    resource_id: ResourceId
    host: Host
    request_id: RequestId | None
    is_released: bool = False
    ended: ResourceEnded | None = None


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
    """Home is asked for on behalf of a container whose stop is not proven yet (safety P2)."""

    processor_id: ProcessorId
    request_id: RequestId
    host: Host
    phase: EarlyPhase = EarlyPhase.ASKED


@dataclass(frozen=True, slots=True)
class Exclusion:
    """A host that is not asked; once ``is_probed``, one launcher may be asked of it (safety P3)."""

    host: Host
    is_probed: bool = False


@dataclass(frozen=True, slots=True)
class Ending:
    """The result that the job will end with."""

    result: JobResult
    diagnostics: str


@dataclass(frozen=True, slots=True)
class AllocatorState:
    """All that the allocator knows. Hashable.

    Order: containers, resources and early requests by id, hosts by name; ``hosts`` is None until
    observed. ``silent`` are the hosts that fell silent just now. ``retired`` are incarnations of
    processors that the model does not have, which an earlier driver has perhaps left running.
    """

    settings: AllocatorSettings
    phase: JobPhase = JobPhase.NEW
    model_version: int = 0
    hosts: tuple[Host, ...] | None = None
    containers: tuple[ContainerState, ...] = ()
    retired: tuple[Incarnation, ...] = ()
    resources: tuple[ResourceState, ...] = ()
    early: tuple[EarlyRequest, ...] = ()
    silent: tuple[Host, ...] = ()
    exclusions: tuple[Exclusion, ...] = ()
    timers: frozenset[Timer] = frozenset()
    ending: Ending | None = None
    next_request_id: int = 1
    stale_events: int = 0

    def container(self, processor_id: ProcessorId) -> ContainerState | None:
        """The container of ``processor_id``; None where the model has none."""
        return next((c for c in self.containers if c.processor_id == processor_id), None)

    def resource(self, resource_id: ResourceId) -> ResourceState | None:
        """The launcher ``resource_id``; None where it is not known."""
        return next((r for r in self.resources if r.resource_id == resource_id), None)

    def holder(self, resource_id: ResourceId) -> ContainerState | None:
        """The container that holds this resource; None where none does."""
        return next((c for c in self.containers if c.resource_id == resource_id), None)


def initial_state(settings: AllocatorSettings, next_request_id: int = 1) -> AllocatorState:
    """The state before any event; requests are numbered from ``next_request_id``."""
    return AllocatorState(settings, next_request_id=next_request_id)


def expiry_timer(request_id: RequestId) -> Timer:
    """The timer that limits how long this request may stay without a resource."""
    return Timer(TimerKind.REQUEST_EXPIRY, request_id=request_id)


def check_in_timer(request_id: RequestId) -> Timer:
    """The timer that limits how long the launcher of this request may take to check in."""
    return Timer(TimerKind.CHECK_IN, request_id=request_id)


def retry_window_timer(processor_id: ProcessorId) -> Timer:
    """The timer whose end forgets the failures of this processor."""
    return Timer(TimerKind.RETRY_WINDOW, processor_id=processor_id)


def retry_delay_timer(processor_id: ProcessorId) -> Timer:
    """The timer whose end has this processor placed again."""
    return Timer(TimerKind.RETRY_DELAY, processor_id=processor_id)


def silence_timer(host: Host) -> Timer:
    """The timer while which this host counts as just fallen silent."""
    return Timer(TimerKind.SILENCE, host=host)


def exclusion_timer(host: Host) -> Timer:
    """The timer whose end lets this excluded host be probed."""
    return Timer(TimerKind.EXCLUSION, host=host)
