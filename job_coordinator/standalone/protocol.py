"""What goes into the machine of one processor, and what comes out of it.

PURE. Events are snapshots: what the shell read of a node, whole, or what befell the session or the
work. The shell writes the records of a decision to ZooKeeper, in their order, then carries out its
instructions. A write that ZooKeeper refuses is an event only where it is a publication: every other
one is refused because a newer snapshot is on its way.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone.plan import Plan, Registration, Standby


class BarrierPhase(Enum):
    """The value of a barrier's node."""

    NEW = "NEW"
    DONE = "DONE"
    TIMED_OUT = "TIMED_OUT"


class ProcessorTimerKind(Enum):
    """What a timer is for. The shell knows how long each takes."""

    DEBOUNCE = "debounce"
    BARRIER = "barrier"
    SESSION = "session"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class ProcessorTimer:
    """One timer; ``version``: of a barrier's, the version, else 0."""

    kind: ProcessorTimerKind
    version: int = 0


class EndCause(Enum):
    """Why a processor ends."""

    STOPPED = "stopped"
    DUPLICATE = "duplicate"
    FAILED = "failed"


# --- events


@dataclass(frozen=True, slots=True)
class SessionBegun:
    """A new session with ZooKeeper stands, and has no registration; the one before is over.

    Events of that one may come until then, also after ``RenewSession``; none comes later.
    """


@dataclass(frozen=True, slots=True)
class Registered:
    """This processor's node is there, with this number."""

    sequence: int


@dataclass(frozen=True, slots=True)
class ProcessorsSeen:
    """All registrations, in the order of their numbers."""

    registrations: tuple[Registration, ...]


@dataclass(frozen=True, slots=True)
class PlanSeen:
    """The newest version."""

    plan: Plan


@dataclass(frozen=True, slots=True)
class BarrierSeen:
    """The barrier of one version. ``joined``: (processor, number of its registration), sorted."""

    version: int
    phase: BarrierPhase
    joined: tuple[tuple[ProcessorId, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Computed:
    """The answer to ``ComputeModel``.

    ``registrations`` were read after the plan of version ``base``, so that a member of that plan
    that is not among them has lost its session. The rest is as in ``plan.plan_of``.
    """

    base: int
    registrations: tuple[Registration, ...]
    model: JobModel
    fenced: Mapping[ProcessorId, int]


@dataclass(frozen=True, slots=True)
class PublishRefused:
    """The version was not the next one: what ``Publish`` requires did not hold."""

    version: int


@dataclass(frozen=True, slots=True)
class InputsChanged:
    """Partition counts or configuration are not those of the newest version."""


@dataclass(frozen=True, slots=True)
class WorkStarted:
    """The incarnation has fenced, checked the newest version, restored, and takes input."""

    generation: int


@dataclass(frozen=True, slots=True)
class WorkOvertaken:
    """The incarnation found a newer generation in the newest version, and holds no task."""

    generation: int


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """The incarnation has ended and has no store open; ``text``: the reason, one line.

    It has committed its work where ``cause`` is ORDERED.
    """

    generation: int
    cause: StopCause
    text: str = ""


@dataclass(frozen=True, slots=True)
class Broken:
    """The processor cannot continue; no incarnation works. ``error``: the reason, one line."""

    error: str


@dataclass(frozen=True, slots=True)
class Disconnected:
    """The connection is lost; the session may stand."""


@dataclass(frozen=True, slots=True)
class Reconnected:
    """The connection stands again, in the same session; each node is read again after it."""


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """The session is over, and the registration with it."""


@dataclass(frozen=True, slots=True)
class ProcessorTimerFired:
    """The timer has come to its end."""

    timer: ProcessorTimer


@dataclass(frozen=True, slots=True)
class StopRequested:
    """The user's program stops the processor."""


Event = (
    SessionBegun
    | Registered
    | ProcessorsSeen
    | PlanSeen
    | BarrierSeen
    | Computed
    | PublishRefused
    | InputsChanged
    | WorkStarted
    | WorkOvertaken
    | WorkEnded
    | Broken
    | Disconnected
    | Reconnected
    | SessionExpired
    | ProcessorTimerFired
    | StopRequested
)


# --- records: writes to ZooKeeper


@dataclass(frozen=True, slots=True)
class Register:
    """A node in ``processors``, one for each session; the answer, ``Registered``, has its number.

    A session that has its node already, as an answer was lost, gets the number of that one.
    """

    processor_id: ProcessorId
    location: Host


@dataclass(frozen=True, slots=True)
class Deregister:
    """The node of this number is gone."""

    sequence: int


@dataclass(frozen=True, slots=True)
class Publish:
    """In one transaction: leader's node is there, the newest version becomes the plan's.

    It was the one before, and the barrier of the new one is NEW. None of ``unreported`` has
    reported: they are in no list of the plan (see ``plan.unreported``).
    """

    plan: Plan
    leader: int
    unreported: tuple[Incarnation, ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """The processor, with this registration, holds nothing that the version gives to another."""

    version: int
    processor_id: ProcessorId
    sequence: int


@dataclass(frozen=True, slots=True)
class CloseBarrier:
    """In one transaction: the version is the newest, its barrier was NEW and has this phase."""

    version: int
    phase: BarrierPhase


@dataclass(frozen=True, slots=True)
class WriteLocations:
    """Each of the tasks, standbys by their own names, was last at this location."""

    tasks: tuple[TaskName, ...]
    location: Host


Record = Register | Deregister | Publish | Join | CloseBarrier | WriteLocations


# --- instructions


@dataclass(frozen=True, slots=True)
class ComputeModel:
    """The shell reads the registrations and all else, runs the grouper, answers ``Computed``."""

    base: int


@dataclass(frozen=True, slots=True)
class StopWork:
    """Commit and stop the incarnation, if there is one; close all stores.

    The answer is ``WorkEnded``.
    """


@dataclass(frozen=True, slots=True)
class StartWork:
    """Begin as this incarnation: fence, check, restore, read input.

    Without tasks it only keeps its standbys.

    The answer is ``WorkStarted``, ``WorkOvertaken`` or ``WorkEnded``.
    """

    version: int
    generation: int
    tasks: tuple[TaskName, ...]
    fence: tuple[Incarnation, ...]
    standbys: tuple[Standby, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowStandbys:
    """The incarnation keeps these replicas, and no others; its tasks are not disturbed.

    No answer comes: the lock of a directory is what keeps two processes out of it (safety S5).
    ``version``: the one that has the JobModel of these.
    """

    version: int
    standbys: tuple[Standby, ...]


@dataclass(frozen=True, slots=True)
class RenewSession:
    """The session is closed, and a new one begins; the answer is ``SessionBegun``."""


@dataclass(frozen=True, slots=True)
class StartTimer:
    """The timer runs from now, also where it ran before."""

    timer: ProcessorTimer


@dataclass(frozen=True, slots=True)
class StopTimer:
    """The timer does not run."""

    timer: ProcessorTimer


@dataclass(frozen=True, slots=True)
class EndProcessor:
    """The processor is over; ``text`` is one line for the user's program, empty without fault."""

    cause: EndCause
    text: str = ""


Instruction = (
    ComputeModel
    | StopWork
    | StartWork
    | FollowStandbys
    | RenewSession
    | StartTimer
    | StopTimer
    | EndProcessor
)
