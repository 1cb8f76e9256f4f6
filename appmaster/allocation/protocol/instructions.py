"""What ``step`` wants done: records to write first, then instructions to carry out in order.

PURE. Contract for the shell:

1. All records of a decision are flushed to the coordinator stream **before** any of its
instructions is run. 2. Instructions are run in the order given. Every one may be repeated and must
then change nothing. 3. The answer to a check-in is ``order_for(decision.instructions,
resource_id)`` of the decision that this very check-in led to; None means ``wait`` (with a child:
go on). PermitContainer comes only as such an answer. Orders given to a launcher by other decisions
(StopContainer, ReleaseResource) come again at its next check-in, so the shell need not keep them.
4. What comes of an instruction returns as an event; a refusal too (adding a container failed:
``ResourceEnded`` of its request).

``cause`` names the event that an instruction follows from; it is for people and takes no part in
comparisons.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from homeport.appmaster.allocation.protocol.events import FailoverStep, Timer
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.placement import (
    PlacementRequest,
    PlacementSource,
    PlacementStatus,
)


class JobResult(Enum):
    """How the application ends; the names are YARN's final states."""

    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    KILLED = "KILLED"


@dataclass(frozen=True, slots=True)
class _Caused:
    """What has a cause: set where it is recorded, or instructed."""

    cause: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class WriteProcessorEpoch(_Caused):
    """Record: this epoch is about to be permitted, and must fence these (safety I1, L3)."""

    processor_id: ProcessorId
    epoch: int
    model_version: int
    fence: tuple[Incarnation, ...]


@dataclass(frozen=True, slots=True)
class WriteFailover(_Caused):
    """Record: the active is on its way to ``host``, to take the place of ``standby``.

    One record per active, so a later choice replaces the one before; fields as in
    ``FailoverRecord``.
    """

    active: ProcessorId
    epoch: int
    standby: ProcessorId | None
    host: Host | None
    step: FailoverStep
    used: tuple[ProcessorId, ...] = ()


@dataclass(frozen=True, slots=True)
class EndFailover(_Caused):
    """Record: no failover of this active is under way any more."""

    active: ProcessorId


@dataclass(frozen=True, slots=True)
class WriteLocality(_Caused):
    """Record: the processor and its tasks belong on ``host``; ``epoch``: of its last permit."""

    processor_id: ProcessorId
    host: Host
    epoch: int


@dataclass(frozen=True, slots=True)
class DeleteLocality(_Caused):
    """Record: the processor, and its tasks, belong nowhere."""

    processor_id: ProcessorId


@dataclass(frozen=True, slots=True)
class WritePlacementResponse(_Caused):
    """Record: what became of the request so far; it takes the place of what was said before.

    ``source``: of an action that is in progress, for the driver that finds it. ``standby``: which
    gives way to the container, for people.
    """

    request: PlacementRequest
    status: PlacementStatus
    message: str
    source: PlacementSource | None = None
    standby: ProcessorId | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DeletePlacementRequest(_Caused):
    """Record: the request has been read; its answer, if it is to have one, is written with this."""

    uuid: str


@dataclass(frozen=True, slots=True)
class WriteFailureCount(_Caused):
    """Record: so many failures are charged to the processor now."""

    processor_id: ProcessorId
    count: int


@dataclass(frozen=True, slots=True)
class WriteStop(_Caused):
    """Record: the incarnation has stopped, and no later permit of its processor says so.

    ``how``: the cause of the stop, as ``set-stopped`` has it.
    """

    incarnation: Incarnation
    how: str


@dataclass(frozen=True, slots=True)
class WriteJobEnd(_Caused):
    """Record: the job ends with this result, whichever driver completes the end."""

    result: JobResult
    diagnostics: str


@dataclass(frozen=True, slots=True)
class RequestResource(_Caused):
    """Ask for one container: on ``host`` and nowhere else, or where there is room (None).

    The request's number travels in the container's environment and comes back with its check-in.
    """

    request_id: RequestId
    host: Host | None


@dataclass(frozen=True, slots=True)
class CancelRequest(_Caused):
    """End the Skein container of this request, whatever became of it; it may have ended."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class PermitContainer(_Caused):
    """Send the launcher ``run``. It comes again, the same, until the launcher has such a child.

    One child per epoch (safety C4): a launcher that has run it already answers ``stopped``.
    """

    resource_id: ResourceId
    incarnation: Incarnation
    model_version: int
    fence: tuple[Incarnation, ...]


@dataclass(frozen=True, slots=True)
class StopContainer(_Caused):
    """Send the launcher ``stop`` for this incarnation. It comes again until a stop is reported.

    A launcher that does not run it reports ``stopped`` as well, and never runs it from then on.
    """

    resource_id: ResourceId
    incarnation: Incarnation


@dataclass(frozen=True, slots=True)
class ReleaseResource(_Caused):
    """Send the launcher ``exit``: it is not needed, or no longer."""

    resource_id: ResourceId


@dataclass(frozen=True, slots=True)
class SetTimer(_Caused):
    """Hand in ``TimerFired(timer)`` after this long; a timer that is armed starts again."""

    timer: Timer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimer(_Caused):
    """Forget this timer."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class SuspectOurselves(_Caused):
    """Report: so many hosts fell silent at once that the fault is the AM's (safety L5)."""

    hosts: tuple[Host, ...]


@dataclass(frozen=True, slots=True)
class EndJob(_Caused):
    """End the application with this result: nothing of the job runs any more. Given once, last."""

    result: JobResult
    diagnostics: str


Record = (
    WriteProcessorEpoch
    | WriteFailover
    | EndFailover
    | WriteLocality
    | DeleteLocality
    | WritePlacementResponse
    | DeletePlacementRequest
    | WriteFailureCount
    | WriteStop
    | WriteJobEnd
)

LauncherOrder = PermitContainer | StopContainer | ReleaseResource

Instruction = (
    RequestResource
    | CancelRequest
    | LauncherOrder
    | SetTimer
    | CancelTimer
    | SuspectOurselves
    | EndJob
)


def in_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return the records of one decision, in the order in which the stream gets them.

    A reader ignores a locality that is written while the failover of its processor is under way;
    so the begin, or the end, of a failover comes before localities. Failure counts and stops have
    the order of their processors.
    """
    return tuple(sorted(records, key=_place))


def _place(record: Record) -> tuple[int, str]:
    match record:
        case WriteLocality() | DeleteLocality():
            return 1, ""
        case WriteFailureCount(processor_id=processor_id):
            return 2, processor_id
        case WriteStop(incarnation=incarnation):
            return 2, incarnation.processor_id
        case WriteJobEnd():
            return 3, ""
    return 0, ""


def order_for(instructions: Iterable[Instruction], resource_id: ResourceId) -> LauncherOrder | None:
    """Return the last order for this launcher; None where there is none."""
    order: LauncherOrder | None = None
    for instruction in instructions:
        if isinstance(instruction, LauncherOrder) and instruction.resource_id == resource_id:
            order = instruction
    return order


def brief(instruction: Instruction) -> str:
    """Return one instruction in a few words, for logs."""
    name = type(instruction).__name__
    match instruction:
        case RequestResource(request_id=request_id, host=host):
            return f"{name} {request_id} on {host or 'any host'}"
        case CancelRequest(request_id=request_id):
            return f"{name} {request_id}"
        case PermitContainer(incarnation=i) | StopContainer(incarnation=i):
            return f"{name} {i.processor_id}@{i.epoch} in {instruction.resource_id}"
        case ReleaseResource(resource_id=resource_id):
            return f"{name} {resource_id}"
        case SetTimer(timer=timer) | CancelTimer(timer=timer):
            return f"{name} {timer}"
        case SuspectOurselves(hosts=hosts):
            what = f"{', '.join(hosts)} silent at once"
        case _:
            what = instruction.result.value
    return f"{name} {what}"
