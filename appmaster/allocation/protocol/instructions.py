"""What ``step`` decides: records to write first, then instructions to carry out in order.

PURE. Contract for the shell:

1. It flushes all records of a decision to the coordinator stream **before** it runs any of its
   instructions.
2. It runs the instructions in the order given. Repeating an instruction changes nothing.
3. It answers a check-in with ``order_for(decision.instructions, resource_id)``, where ``decision``
   is the one that this very check-in led to. None means ``wait``; a launcher with a child goes on.
   PermitContainer comes only as such an answer. The shell need not keep orders to launchers in
   other decisions (StopContainer, ReleaseResource): they come again at the next check-in.
4. It hands in the outcome of each instruction as an event, also if the instruction was refused:
   ``ResourceEnded`` of the request if a container could not be added.

``cause`` names, for people, the event that led to a record or instruction. Comparisons ignore it.
"""

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
    cause: str = field(default="", compare=False, kw_only=True)


@dataclass(frozen=True, slots=True)
class WriteProcessorEpoch(_Caused):
    """Record: this epoch will be permitted; it must fence those in ``fence`` (safety I1, L3)."""

    processor_id: ProcessorId
    epoch: int
    model_version: int
    fence: tuple[Incarnation, ...]


@dataclass(frozen=True, slots=True)
class WriteFailover(_Caused):
    """Record: the active goes to ``host``, to take the place of ``standby``.

    A later choice for the same active replaces it. The fields are those of ``FailoverRecord``.
    """

    active: ProcessorId
    epoch: int
    standby: ProcessorId | None
    host: Host | None
    step: FailoverStep
    used: tuple[ProcessorId, ...] = ()


@dataclass(frozen=True, slots=True)
class EndFailover(_Caused):
    """Record: the failover of this active has ended."""

    active: ProcessorId


@dataclass(frozen=True, slots=True)
class WriteLocality(_Caused):
    """Record: the processor, last permitted with ``epoch``, and its tasks belong on ``host``."""

    processor_id: ProcessorId
    host: Host
    epoch: int


@dataclass(frozen=True, slots=True)
class DeleteLocality(_Caused):
    """Record: the processor and its tasks belong on no host."""

    processor_id: ProcessorId


@dataclass(frozen=True, slots=True)
class WritePlacementResponse(_Caused):
    """Record: the answer to the request so far; it replaces the request's earlier answer.

    ``source``: where the container of an action in progress was; the next driver needs it.
    ``standby``: the standby whose place the container takes; only reports use it.
    """

    request: PlacementRequest
    status: PlacementStatus
    message: str
    source: PlacementSource | None = None
    standby: ProcessorId | None = field(default=None, compare=False)


@dataclass(frozen=True, slots=True)
class DeletePlacementRequest(_Caused):
    """Record: the request has been read; an answer in the same decision is written with this."""

    uuid: str


@dataclass(frozen=True, slots=True)
class WriteFailureCount(_Caused):
    """Record: how many failures the processor is now charged with, and why the last one failed."""

    processor_id: ProcessorId
    count: int


@dataclass(frozen=True, slots=True)
class WriteStop(_Caused):
    """Record: the incarnation has stopped; no later permit of its processor will show that.

    ``how``: the cause of the stop, as a ``set-stopped`` record names it.
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
    """Request one YARN container on ``host`` alone; None: on any host.

    The launcher finds the request's number in its environment and sends it with its check-ins.
    """

    request_id: RequestId
    host: Host | None


@dataclass(frozen=True, slots=True)
class CancelRequest(_Caused):
    """Cancel this request and end its Skein container, if it has one that still runs."""

    request_id: RequestId


@dataclass(frozen=True, slots=True)
class PermitContainer(_Caused):
    """Send the launcher ``run``; repeated until the launcher has a child with this incarnation.

    An epoch has one child (safety C4): a launcher that has already run it answers ``stopped``.
    """

    resource_id: ResourceId
    incarnation: Incarnation
    model_version: int
    fence: tuple[Incarnation, ...]


@dataclass(frozen=True, slots=True)
class StopContainer(_Caused):
    """Send the launcher ``stop`` for this incarnation; repeated until a stop is reported.

    A launcher that does not run it also reports ``stopped``, and never runs it afterwards.
    ``keeps_process``: the process lets go of its tasks, and waits for the next permit.
    """

    resource_id: ResourceId
    incarnation: Incarnation
    keeps_process: bool = False


@dataclass(frozen=True, slots=True)
class PrepareProcess(_Caused):
    """Have the launcher make a process ready for the next permit of this processor."""

    resource_id: ResourceId
    processor_id: ProcessorId


@dataclass(frozen=True, slots=True)
class ReleaseResource(_Caused):
    """Send the launcher ``exit``: it is not needed."""

    resource_id: ResourceId


@dataclass(frozen=True, slots=True)
class FailTasksOver(_Caused):
    """Give the tasks of this container, which cannot go home, to those with their standbys.

    The next JobModel does it; without it the container goes on to another host with its tasks.
    """

    processor_id: ProcessorId


@dataclass(frozen=True, slots=True)
class SetTimer(_Caused):
    """Hand in ``TimerFired(timer)`` after ``delay_ms``; an armed timer starts afresh."""

    timer: Timer
    delay_ms: int


@dataclass(frozen=True, slots=True)
class CancelTimer(_Caused):
    """Forget this timer."""

    timer: Timer


@dataclass(frozen=True, slots=True)
class SuspectOurselves(_Caused):
    """Report that over half of the hosts fell silent at once: the AM is at fault (safety L5)."""

    hosts: tuple[Host, ...]


@dataclass(frozen=True, slots=True)
class EndJob(_Caused):
    """End the application with this result. Given once, when nothing of the job runs any more."""

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

LauncherOrder = PermitContainer | StopContainer | PrepareProcess | ReleaseResource

Instruction = (
    RequestResource
    | CancelRequest
    | LauncherOrder
    | FailTasksOver
    | SetTimer
    | CancelTimer
    | SuspectOurselves
    | EndJob
)


def in_order(records: Iterable[Record]) -> tuple[Record, ...]:
    """Return the records of one decision in the order in which the stream gets them.

    Begins and ends of failovers come before localities, because a reader ignores a locality that is
    written during a failover of its processor. Failure counts and stops are sorted by processor.
    """
    return tuple(sorted(records, key=_sort_key))


def _sort_key(record: Record) -> tuple[int, str]:
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
        case PrepareProcess(resource_id=resource_id) | ReleaseResource(resource_id=resource_id):
            return f"{name} {resource_id}"
        case FailTasksOver(processor_id=of) | SetTimer(timer=of) | CancelTimer(timer=of):
            return f"{name} {of}"
        case SuspectOurselves(hosts=hosts):
            what = f"{', '.join(hosts)} silent at once"
        case _:
            what = instruction.result.value
    return f"{name} {what}"
