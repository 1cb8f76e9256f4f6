"""The records of a decision, as the coordinator stream gets them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import own_records
from stream_in_memory import InMemoryCoordinatorStream

from homeport.appmaster.allocation.job_state.state import ContainerState, Failure, FailureKind
from homeport.appmaster.allocation.protocol.events import FailoverStep
from homeport.appmaster.allocation.protocol.instructions import (
    DeleteLocality,
    DeletePlacementRequest,
    EndFailover,
    JobResult,
    Record,
    WriteFailover,
    WriteFailureCount,
    WriteJobEnd,
    WriteLocality,
    WritePlacementResponse,
    WriteProcessorEpoch,
    WriteStop,
    in_order,
)
from homeport.appmaster.driver.decided_records import messages
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.lifecycle import FailoverManager, RetryManager, RetryState
from homeport.job_coordinator.metadata.placement import PlacementManager
from homeport.job_coordinator.metadata.task_assignment import LocalityManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.placement import (
    PlacementRequest,
    PlacementResponse,
    PlacementSource,
    PlacementStatus,
)

P0, S0 = ProcessorId("0"), ProcessorId("0-0")
NM2 = Host("nm2")
TASKS = {P0: ["t1", "t0"], S0: ["Standby-t0-0"]}


def written(
    *records: Record, after: ContainerState | None = None
) -> list[CoordinatorStreamMessage]:
    """The messages of these records."""

    def tasks_of(processor_id: ProcessorId) -> Iterable[TaskName]:
        return (TaskName(name) for name in TASKS.get(processor_id, ()))

    containers = {} if after is None else {after.processor_id: after}
    return list(messages(records, containers.get, tasks_of, 7, 42_000, 3))


def test_a_permit_names_the_incarnations_it_fences() -> None:
    """With its epoch, its version, and how long it can run on under a higher rank."""
    permit = WriteProcessorEpoch(P0, 5, 2, (Incarnation(P0, 4),))
    fence: list[dict[str, object]] = [{"processor_id": "0", "epoch": 4}]
    assert written(permit) == [own_records.set_processor_epoch("0", 5, 2, fence, unseen_ms=42_000)]


def test_a_failover_moves_the_active_and_takes_its_standby_away() -> None:
    """Its record, and the localities of both and of all their tasks; in the order of the records.

    Source: STANDBY, part 3; design 7, "records first".
    """
    failover = WriteFailover(P0, 4, S0, NM2, FailoverStep.STANDBY, (S0,), cause="LauncherSilent r0")
    records = (DeleteLocality(S0), WriteLocality(P0, NM2, 4), failover)
    assert written(*in_order(records)) == [
        own_records.set_failover(
            "0", 4, "0-0", "nm2", step="standby", used=("0-0",), cause="LauncherSilent r0"
        ),
        wire.tombstone("set-task-host-assignment", "Standby-t0-0"),
        wire.tombstone("set-container-host-assignment", "0-0"),
        wire.set_task_host_assignment("t0", "nm2", 4),
        wire.set_task_host_assignment("t1", "nm2", 4),
        wire.set_container_host_assignment("0", "nm2", 4),
    ]


def test_the_host_where_the_active_was_found_counts_with_the_end_of_its_failover() -> None:
    """Its launcher had been thought gone; its incarnation is the one that was moved."""
    stream = InMemoryCoordinatorStream()
    failover = WriteFailover(P0, 4, S0, NM2, FailoverStep.STANDBY, (S0,))
    stream.write(written(*in_order([WriteLocality(P0, NM2, 4), failover])))
    stream.write(written(*in_order([WriteLocality(P0, Host("nm1"), 4), EndFailover(P0)])))
    stream.catch_up()
    assert FailoverManager(stream).read() == {}
    assert LocalityManager(stream).read_processors() == {P0: "nm1"}


def test_a_locality_is_not_older_than_the_epoch_that_a_model_has_raised() -> None:
    """It would pass for that of an incarnation that has been succeeded, and be ignored."""
    for floor, epoch in ((0, 4), (6, 6)):
        after = ContainerState(P0, epoch=4, floor=floor)
        (*_, last) = written(WriteLocality(P0, NM2, 4), after=after)
        assert last == wire.set_container_host_assignment("0", "nm2", epoch)


def test_a_processor_in_no_model_has_no_tasks_in_its_record() -> None:
    """Its own record alone goes."""
    gone = wire.tombstone("set-container-host-assignment", "9")
    assert written(DeleteLocality(ProcessorId("9"))) == [gone]


def test_counts_stops_and_the_end_come_last_in_the_order_of_their_processors() -> None:
    """A count has the time of the step; no failure leaves no record; the end names its run."""
    stop, lost = WriteStop(Incarnation(S0, 4), "ordered"), WriteFailureCount(P0, 2)
    end, forgiven = WriteJobEnd(JobResult.KILLED, "why"), WriteFailureCount(ProcessorId("1"), 0)
    records = in_order([end, forgiven, stop, lost, DeleteLocality(ProcessorId("9"))])
    assert written(*records) == [
        wire.tombstone("set-container-host-assignment", "9"),
        own_records.set_retry_state("0", 2, 7),
        own_records.set_stopped("0-0", 4, "ordered"),
        wire.tombstone("set-retry-state", "1"),
        own_records.set_job_end(3, "KILLED", "why"),
    ]


def test_a_count_has_the_reason_of_the_last_failure() -> None:
    """Also one of nothing charged; not where none was permitted, nor for another processor."""
    why = Failure(FailureKind.STOPPED, "", Incarnation(P0, 4), reason="division by zero")
    after = ContainerState(P0, epoch=4, last_failure=why)
    for count in (2, 0):
        failed = RetryManager.message(P0, RetryState(count, 7, 4, "division by zero"))
        assert written(WriteFailureCount(P0, count), after=after) == [failed]
    other = own_records.set_retry_state("0-0", 1, 7)
    assert written(WriteFailureCount(S0, 1), after=after) == [other]
    unlaunched = replace(after, last_failure=Failure(FailureKind.NO_LAUNCHER, "no launcher"))
    none = own_records.set_retry_state("0", 2, 7)
    assert written(WriteFailureCount(P0, 2), after=unlaunched) == [none]


def test_an_answer_has_time_and_source_and_its_request_is_deleted() -> None:
    """Both in the namespace of placement requests; a later answer takes the place of this one."""
    request = PlacementRequest("u1", "d", P0, "nm2", None, 5)
    source = PlacementSource(4, Host("nm1"))
    stream = InMemoryCoordinatorStream()
    stream.write([PlacementManager.request_message(request)])
    answer = WritePlacementResponse(request, PlacementStatus.IN_PROGRESS, "it stops", source)
    stream.write(written(answer, DeletePlacementRequest("u1")))
    stream.catch_up()
    found = PlacementManager(stream)
    shown = PlacementResponse(request, PlacementStatus.IN_PROGRESS, "it stops", 7, source)
    assert (found.read_requests(), found.read_responses()) == ((), {"u1": shown})
