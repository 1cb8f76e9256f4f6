"""The records of a decision, as messages of the coordinator stream.

The allocator alone decides which records there are, and in which order.
"""

from collections.abc import Callable, Iterable, Iterator

from homeport.appmaster.allocation.job_state.state import ContainerState
from homeport.appmaster.allocation.protocol.instructions import (
    DeleteLocality,
    DeletePlacementRequest,
    EndFailover,
    Record,
    WriteFailover,
    WriteFailureCount,
    WriteJobEnd,
    WriteLocality,
    WritePlacementResponse,
    WriteProcessorEpoch,
    WriteStop,
)
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.epochs import ProcessorEpoch, processor_epoch_message
from homeport.job_coordinator.metadata.lifecycle import (
    FailoverManager,
    JobEnd,
    JobEndManager,
    RecordedFailover,
    RetryManager,
    RetryState,
    StopManager,
)
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.placement import PlacementResponse

TasksOf = Callable[[ProcessorId], Iterable[TaskName]]
"""Returns the tasks of a processor in the model in force; none where it is not in the model."""

ContainerOf = Callable[[ProcessorId], ContainerState | None]
"""Returns the container of a processor after the decision; None where there is none."""


def messages(
    records: Iterable[Record],
    container_of: ContainerOf,
    tasks_of: TasksOf,
    now_ms: int,
    unseen_ms: int,
    submission: int,
) -> Iterator[CoordinatorStreamMessage]:
    """Yield the records of a decision, in their order.

    ``now_ms``: since 1970. ``unseen_ms``: how long an incarnation that this attempt permits can run
    on under a higher rank. ``submission``: the number of the one that this driver runs.
    """
    for record in records:
        match record:
            case WriteProcessorEpoch():
                permit = ProcessorEpoch(
                    record.epoch, record.model_version, record.fence, unseen_ms=unseen_ms
                )
                yield processor_epoch_message(record.processor_id, permit)
            case WriteFailover():
                yield _failover(record)
            case EndFailover(active=active):
                yield FailoverManager.end(active)
            case WriteLocality(processor_id=processor_id, host=host):
                epoch = _last_epoch(record, container_of(processor_id))
                yield from LocalityManager.messages(
                    processor_id, tasks_of(processor_id), host, epoch
                )
            case DeleteLocality(processor_id=processor_id):
                yield from LocalityManager.messages_to_forget(processor_id, tasks_of(processor_id))
            case WritePlacementResponse():
                said = (record.request, record.status, record.message, now_ms, record.source)
                yield PlacementManager.response_message(PlacementResponse(*said))
            case DeletePlacementRequest(uuid=uuid):
                yield PlacementManager.request_deleted(uuid)
            case WriteFailureCount(processor_id=processor_id, count=count):
                yield _failures(processor_id, count, now_ms, container_of(processor_id))
            case _:
                yield _lifecycle(record, submission)


def _lifecycle(record: WriteStop | WriteJobEnd, submission: int) -> CoordinatorStreamMessage:
    match record:
        case WriteStop(incarnation=incarnation, how=how):
            return StopManager.message(incarnation, how)
        case _:
            end = JobEnd(submission, record.result.value, record.diagnostics)
            return JobEndManager.message(end)


def _failures(
    processor_id: ProcessorId, count: int, now_ms: int, container: ContainerState | None
) -> CoordinatorStreamMessage:
    failure = None if container is None else container.last_failure
    if failure is None or failure.incarnation is None:
        return RetryManager.message(processor_id, RetryState(count, now_ms))
    why = RetryState(count, now_ms, failure.incarnation.epoch, failure.reason)
    return RetryManager.message(processor_id, why)


def _failover(record: WriteFailover) -> CoordinatorStreamMessage:
    failover = RecordedFailover(
        record.epoch, record.standby, record.host, record.step.value, record.used, record.cause
    )
    return FailoverManager.message(record.active, failover)


def _last_epoch(record: WriteLocality, container: ContainerState | None) -> int:
    """Return the epoch that the stream has: a model may have raised it above the last permit's.

    With a lower one the record would pass for one of an incarnation that has been succeeded.
    """
    return record.epoch if container is None else max(record.epoch, container.next_epoch - 1)
