"""The input and output of one processor's machine: events, records and instructions.

PURE. An event is the whole value of a node that the shell has read, or a change of the session or
of the work. The shell writes the records of a decision to ZooKeeper, in their order, and then
carries out its instructions. A refused publication is an event. Every other refused write is none:
ZooKeeper refuses it because a newer value, and so another event, is on its way.
"""

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
    """The purpose of a timer; the shell knows its duration."""

    DEBOUNCE = "debounce"
    BARRIER = "barrier"
    SESSION = "session"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True)
class ProcessorTimer:
    """One timer; ``version``: the barrier's version; 0 for other kinds."""

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
    """A new session with ZooKeeper has begun, without a registration; the last one is over.

    Until this event, events of the last session may come, even after ``RenewSession``; none later.
    """


@dataclass(frozen=True, slots=True)
class Registered:
    """This processor's node exists, with this number."""

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

    ``registrations`` were read after the plan of version ``base``: a member of that plan which they
    lack has lost its session. The rest is as in ``plan.plan_of``.
    """

    base: int
    registrations: tuple[Registration, ...]
    model: JobModel
    fenced: Mapping[ProcessorId, int]


@dataclass(frozen=True, slots=True)
class PublishRefused:
    """ZooKeeper has refused to publish the version: a requirement of ``Publish`` did not hold."""

    version: int


@dataclass(frozen=True, slots=True)
class InputsChanged:
    """Partition counts or configuration differ from those of the newest version."""


@dataclass(frozen=True, slots=True)
class WorkStarted:
    """The incarnation has fenced, checked the newest version, restored, and takes input."""

    generation: int


@dataclass(frozen=True, slots=True)
class WorkOvertaken:
    """The incarnation has seen a newer generation in the newest version; it has no task."""

    generation: int


@dataclass(frozen=True, slots=True)
class WorkEnded:
    """The incarnation has ended and has no store open; ``text``: the reason, one line.

    If ``cause`` is ORDERED, it has committed its work.
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
    """The connection is lost; the session may still exist."""


@dataclass(frozen=True, slots=True)
class Reconnected:
    """The connection is back, in the same session; events of all nodes follow."""


@dataclass(frozen=True, slots=True)
class SessionExpired:
    """The session is over, and the registration with it."""


@dataclass(frozen=True, slots=True)
class ProcessorTimerFired:
    """The timer has run out."""

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
    """Create a node in ``processors``, one for each session; the answer is ``Registered``.

    If an answer was lost, the session has its node already, and the answer has its number.
    """

    processor_id: ProcessorId
    location: Host


@dataclass(frozen=True, slots=True)
class Deregister:
    """Delete the node of this number."""

    sequence: int


@dataclass(frozen=True, slots=True)
class Publish:
    """Make the plan the newest version, with a barrier that is NEW, in one transaction.

    It requires that the leader's node exists, and that the newest version is the one before. It
    also requires that none of ``unreported`` has reported: the plan lists them nowhere (see
    ``plan.unreported``).
    """

    plan: Plan
    leader: int
    unreported: tuple[Incarnation, ...] = ()


@dataclass(frozen=True, slots=True)
class Join:
    """Join the barrier: this registration has no task that the version gives to another one."""

    version: int
    processor_id: ProcessorId
    sequence: int


@dataclass(frozen=True, slots=True)
class CloseBarrier:
    """Give the version's barrier this phase, if it is NEW and its version the newest."""

    version: int
    phase: BarrierPhase


@dataclass(frozen=True, slots=True)
class WriteLocations:
    """Write the last location of the tasks; standbys have names of their own."""

    tasks: tuple[TaskName, ...]
    location: Host


Record = Register | Deregister | Publish | Join | CloseBarrier | WriteLocations


# --- instructions


@dataclass(frozen=True, slots=True)
class ComputeModel:
    """Read the registrations and all else, run the grouper, and answer ``Computed``."""

    base: int


@dataclass(frozen=True, slots=True)
class StopWork:
    """Commit, stop the incarnation and close its stores; the answer is ``WorkEnded``.

    ``kept``: the tasks that it will probably have in the next generation too. Only their stores may
    stay open.
    """

    kept: tuple[TaskName, ...] = ()


@dataclass(frozen=True, slots=True)
class StartWork:
    """Begin as this incarnation: fence, check, restore, read input.

    Without tasks it only keeps its standbys. The answer is ``WorkStarted``, ``WorkOvertaken`` or
    ``WorkEnded``.
    """

    version: int
    generation: int
    tasks: tuple[TaskName, ...]
    fence: tuple[Incarnation, ...]
    standbys: tuple[Standby, ...] = ()


@dataclass(frozen=True, slots=True)
class FollowStandbys:
    """Keep these replicas, and no others; leave the active tasks alone.

    No answer comes: the lock of a directory keeps a second process out of it (safety S5).
    ``version``: its JobModel has these standbys.
    """

    version: int
    standbys: tuple[Standby, ...]


@dataclass(frozen=True, slots=True)
class RenewSession:
    """Close the session and begin a new one; the answer is ``SessionBegun``."""


@dataclass(frozen=True, slots=True)
class StartTimer:
    """Start the timer, or start it again."""

    timer: ProcessorTimer


@dataclass(frozen=True, slots=True)
class StopTimer:
    """Stop the timer."""

    timer: ProcessorTimer


@dataclass(frozen=True, slots=True)
class EndProcessor:
    """End the processor; ``text``: one line for the user's program, empty without a fault."""

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
