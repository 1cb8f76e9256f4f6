"""What the stream says of tasks: processor, mode, input partitions."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest
from own_records import put, written_keys
from stream_in_memory import InMemoryCoordinatorStream

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata import task_assignment
from homeport.job_coordinator.metadata.state_reset import state_removed
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
    UsedHostManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)

BLANK = {"taskMode": ""}
P0, P1 = ProcessorId("0"), ProcessorId("1")
T0, T1, T2 = TaskName("Partition 0"), TaskName("Partition 1"), TaskName("Partition 2")


def test_task_assignment_is_exactly_what_was_written(stream: InMemoryCoordinatorStream) -> None:
    """Deletions of vanished tasks come first, unchanged tasks are not written again."""
    manager = TaskAssignmentManager(stream)
    stream.write(manager.messages({T0: P0, T1: P0}))
    stream.catch_up()
    stream.write(manager.messages({T1: P0, T2: P1}))
    assert written_keys(stream)[2:] == [(T0, True), (T2, False)]
    stream.catch_up()
    assert manager.read() == {T1: P0, T2: P1}


def _task(name: TaskName, partitions: Iterable[int], mode: TaskMode = TaskMode.ACTIVE) -> TaskModel:
    ssps = tuple(SystemStreamPartition("kafka", "in", n) for n in partitions)
    return TaskModel(name, ssps, 0, mode)


def _model(*tasks: TaskModel) -> JobModel:
    container = ContainerModel(P0, {t.task_name: t for t in tasks})
    return JobModel(Config({}), {P0: container})


def test_task_modes_are_exactly_those_of_the_model(stream: InMemoryCoordinatorStream) -> None:
    """Gone tasks are deleted first, a task whose mode changed is written, others are not."""
    manager = TaskModeManager(stream)
    put(stream, *manager.messages(_model(_task(T0, [0]), _task(T1, [1]), _task(T2, [2]))))
    standby = TaskMode.STANDBY
    put(stream, *manager.messages(_model(_task(T1, [1]), _task(T2, [2], standby))))
    assert written_keys(stream)[3:] == [(T0, True), (T2, False)]
    assert manager.read() == {T1: TaskMode.ACTIVE, T2: standby}


def test_an_unknown_mode_is_left_out(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture
) -> None:
    """A mode that this reader does not know costs a warning and its record only."""
    kind = MessageType.SET_TASK_MODE
    bad = [CoordinatorStreamMessage(kind, T1, {}), CoordinatorStreamMessage(kind, T2, BLANK)]
    put(stream, wire.set_task_mode_assignment(T0, TaskMode.ACTIVE), *bad)
    assert TaskModeManager(stream).read() == {T0: TaskMode.ACTIVE}
    for task in (T1, T2):
        assert f"set-task-mode-assignment {task!r}: unknown taskMode" in caplog.text


def test_task_partitions_are_exactly_those_of_the_model(stream: InMemoryCoordinatorStream) -> None:
    """One record a partition with all its tasks; those of partitions that are gone are deleted."""
    manager = TaskPartitionManager(stream)
    broadcast = SystemStreamPartition("kafka", "in", 9)
    put(stream, *manager.messages(_model(_task(T1, [1, 9]), _task(T0, [0, 9]))))
    assert manager.read()[broadcast] == (T0, T1)
    zero, one = (SystemStreamPartition("kafka", "in", number) for number in (0, 1))
    assert manager.read_inputs() == {T0: {zero, broadcast}, T1: {one, broadcast}}
    assert len(stream.log) == 3
    put(stream, *manager.messages(_model(_task(T0, [0]), _task(T1, [9]))))
    keys = written_keys(stream)[3:]
    assert [(json.loads(key)["partition"], gone) for key, gone in keys] == [(1, True), (9, False)]
    assert manager.read() == {zero: (T0,), broadcast: (T1,)}
    assert manager.messages(_model(_task(T0, [0]), _task(T1, [9]))) == ()


def test_a_partition_under_foreign_bytes_is_read_and_replaced(
    stream: InMemoryCoordinatorStream,
) -> None:
    """A key with spaces is another key to Kafka: it is read, deleted as it is, written as ours."""
    foreign = '{"system": "kafka", "stream": "in", "partition": 0}'
    values = {"taskNames": '["Partition 0"]'}
    put(stream, CoordinatorStreamMessage(MessageType.SET_TASK_PARTITION, foreign, values))
    manager = TaskPartitionManager(stream)
    assert manager.read() == {SystemStreamPartition("kafka", "in", 0): (T0,)}
    put(stream, *manager.messages(_model(_task(T0, [0]))))
    assert written_keys(stream)[1:] == [
        (foreign, True),
        ('{"system":"kafka","partition":0,"stream":"in","keyBucket":-1}', False),
    ]
    assert manager.read() == {SystemStreamPartition("kafka", "in", 0): (T0,)}


SSP = '{"system":"kafka","stream":"in","partition":0}'


@pytest.mark.parametrize(
    ("key", "values"),
    [
        ("no json", {"taskNames": "[]"}),
        ("[]", {"taskNames": "[]"}),
        ('{"system":"kafka","stream":"in"}', {"taskNames": "[]"}),
        ('{"system":"kafka","stream":"in","partition":"0"}', {"taskNames": "[]"}),
        (SSP, {"taskNames": "no json"}),
        (SSP, {"taskNames": "{}"}),
        (SSP, {"taskNames": "[1]"}),
        (SSP, {}),
    ],
)
def test_a_damaged_partition_is_left_out_and_deleted(
    stream: InMemoryCoordinatorStream,
    caplog: pytest.LogCaptureFixture,
    key: str,
    values: dict[str, str],
) -> None:
    """A record that says nothing costs a warning, and goes with the next model."""
    put(stream, CoordinatorStreamMessage(MessageType.SET_TASK_PARTITION, key, values))
    manager = TaskPartitionManager(stream)
    assert manager.read() == {}
    assert "record left out: set-task-partition-assignment" in caplog.text
    put(stream, *manager.messages(_model()))
    assert stream.latest(MessageType.SET_TASK_PARTITION) == {}


def test_tasks_decide_where_a_processor_goes(stream: InMemoryCoordinatorStream) -> None:
    """The host of most of its tasks wins over the processor's own record; ties go by name."""
    stream.write(TaskAssignmentManager(stream).messages({T0: P0, T1: P0, T2: P1}))
    put(
        stream,
        wire.set_container_host_assignment("0", "nm9", 1),
        wire.set_container_host_assignment("7", "NM7"),
        wire.set_task_host_assignment(T0, "nm2", 1),
        wire.set_task_host_assignment(T1, "nm1", 1),
    )
    manager = LocalityManager(stream)
    assert manager.read_tasks() == {T0: "nm2", T1: "nm1"}
    assert manager.read_processors() == {P0: "nm1", ProcessorId("7"): "nm7"}
    put(stream, wire.set_task_host_assignment(T1, "nm2", 1))
    assert manager.read_processors()[P0] == "nm2"
    put(
        stream,
        wire.set_task_host_assignment(T2, "nm3", 1),
        wire.tombstone(MessageType.SET_TASK_CONTAINER, T2),
    )
    assert P1 not in manager.read_processors()


def test_locality_is_written_for_tasks_and_processor(stream: InMemoryCoordinatorStream) -> None:
    """One record per task and one of the processor, in one write, with the epoch."""
    LocalityManager(stream).write(P0, [T1, T0], Host("nm1"), 4)
    stream.catch_up()
    assert [key for key, _ in written_keys(stream)] == [T0, T1, "0"]
    records = stream.latest(MessageType.SET_TASK_HOST)
    assert [wire.epoch(m) for m in records.values()] == [4, 4]


def test_locality_is_forgotten_of_tasks_and_processor(stream: InMemoryCoordinatorStream) -> None:
    """Those of others stay."""
    manager = LocalityManager(stream)
    manager.write(P0, [T0, T1], Host("nm1"), 4)
    manager.write(P1, [T2], Host("nm2"), 1)
    put(stream, *manager.messages_to_forget(P0, [T1, T0]))
    assert manager.read_tasks() == {T2: "nm2"}
    assert set(stream.latest(MessageType.SET_CONTAINER_HOST)) == {P1}


def test_blank_and_missing_hosts_are_left_out(stream: InMemoryCoordinatorStream) -> None:
    """Samza reads a blank host as any host: so is it here."""
    put(
        stream,
        wire.set_container_host_assignment("0", ""),
        CoordinatorStreamMessage(MessageType.SET_TASK_HOST, T0, {}),
    )
    assert LocalityManager(stream).read_processors() == {}
    assert LocalityManager(stream).read_tasks() == {}


def test_the_host_of_most_tasks_is_not_the_first_by_name(stream: InMemoryCoordinatorStream) -> None:
    """Two tasks outweigh one, whatever the names of their hosts."""
    stream.write(TaskAssignmentManager(stream).messages({T0: P0, T1: P0, T2: P0}))
    hosts = {T0: "nm2", T1: "nm1", T2: "nm2"}
    put(stream, *[wire.set_task_host_assignment(task, host, 1) for task, host in hosts.items()])
    assert LocalityManager(stream).read_processors() == {P0: "nm2"}


DAY_MS = 86_400_000


def test_a_host_that_was_used_is_known_after_the_job_has_left_it(
    stream: InMemoryCoordinatorStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written once a day; a reset of the state leaves its directories, and so the record."""
    manager, first, second = UsedHostManager(stream), Host("nm1"), Host("nm2")
    now_ms = 20_000 * DAY_MS
    for host, at_ms in ((first, now_ms), (second, now_ms), (first, now_ms + DAY_MS)):
        monkeypatch.setattr(InMemoryCoordinatorStream, "now_ms", at_ms)
        manager.write(host, at_ms)
        stream.catch_up()
        manager.write(host, at_ms + DAY_MS - 1)
        stream.catch_up()
    assert written_keys(stream) == [(first, False), (second, False), (first, False)]
    put(stream, *state_removed(stream))
    assert manager.read() == {first: now_ms + DAY_MS, second: now_ms}


def test_of_too_many_hosts_the_oldest_are_forgotten(
    stream: InMemoryCoordinatorStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cluster may give each machine a name of its own."""
    monkeypatch.setattr(task_assignment, "_MOST_HOSTS", 3)
    manager, now_ms = UsedHostManager(stream), 20_000 * DAY_MS
    for number, name in enumerate(("nm3", "nm1", "nm2", "nm4", "nm5")):
        monkeypatch.setattr(InMemoryCoordinatorStream, "now_ms", now_ms + number)
        manager.write(Host(name), now_ms + number)
        stream.catch_up()
    assert {*manager.read()} == {"nm2", "nm4", "nm5"}
