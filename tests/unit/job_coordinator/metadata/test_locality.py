"""Where processors and tasks last ran, as the stream says it."""

from __future__ import annotations

from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.task_assignment import LocalityManager, TaskAssignmentManager
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName

P0, P1 = ProcessorId("0"), ProcessorId("1")
T0, T1, T2 = TaskName("Partition 0"), TaskName("Partition 1"), TaskName("Partition 2")


def _keys(stream: InMemoryCoordinatorStream) -> list[tuple[str, bool]]:
    decoded = [wire.decode(*record) for record in stream.log]
    return [(m.key, m.is_tombstone) for m in decoded]


def test_tasks_decide_where_a_processor_goes(stream: InMemoryCoordinatorStream) -> None:
    """The host of most of its tasks wins over the processor's own record; ties go by name."""
    TaskAssignmentManager(stream).write({T0: P0, T1: P0, T2: P1})
    stream.write(
        [
            wire.set_container_host_assignment("0", "nm9", 1),
            wire.set_container_host_assignment("7", "NM7"),
            wire.set_task_host_assignment(T0, "nm2", 1),
            wire.set_task_host_assignment(T1, "nm1", 1),
        ]
    )
    stream.catch_up()
    manager = LocalityManager(stream)
    assert manager.read_tasks() == {T0: "nm2", T1: "nm1"}
    assert manager.read_processors() == {P0: "nm1", ProcessorId("7"): "nm7"}
    stream.write([wire.set_task_host_assignment(T1, "nm2", 1)])
    stream.catch_up()
    assert manager.read_processors()[P0] == "nm2"


def test_locality_is_written_for_tasks_and_processor(stream: InMemoryCoordinatorStream) -> None:
    """One record per task and one of the processor, in one write, with the epoch."""
    LocalityManager(stream).write(P0, [T1, T0], Host("nm1"), 4)
    stream.catch_up()
    assert [key for key, _ in _keys(stream)] == [T0, T1, "0"]
    records = stream.latest(MessageType.SET_TASK_HOST)
    assert [wire.epoch(m) for m in records.values()] == [4, 4]


def test_locality_is_forgotten_of_tasks_and_processor(stream: InMemoryCoordinatorStream) -> None:
    """Those of others stay."""
    manager = LocalityManager(stream)
    manager.write(P0, [T0, T1], Host("nm1"), 4)
    manager.write(P1, [T2], Host("nm2"), 1)
    stream.write(manager.messages_to_forget(P0, [T1, T0]))
    stream.catch_up()
    assert manager.read_tasks() == {T2: "nm2"}
    assert set(stream.latest(MessageType.SET_CONTAINER_HOST)) == {P1}


def test_blank_and_missing_hosts_are_left_out(stream: InMemoryCoordinatorStream) -> None:
    """Samza reads a blank host as any host: so is it here."""
    stream.write(
        [
            wire.set_container_host_assignment("0", ""),
            CoordinatorStreamMessage(MessageType.SET_TASK_HOST, T0, {}),
        ]
    )
    stream.catch_up()
    assert LocalityManager(stream).read_processors() == {}
    assert LocalityManager(stream).read_tasks() == {}


def test_the_host_of_most_tasks_is_not_the_first_by_name(stream: InMemoryCoordinatorStream) -> None:
    """Two tasks outweigh one, whatever the names of their hosts."""
    TaskAssignmentManager(stream).write({T0: P0, T1: P0, T2: P0})
    hosts = {T0: "nm2", T1: "nm1", T2: "nm2"}
    stream.write([wire.set_task_host_assignment(task, host, 1) for task, host in hosts.items()])
    stream.catch_up()
    assert LocalityManager(stream).read_processors() == {P0: "nm2"}
