"""What the stream says of tasks: processor, mode, input partitions."""

from __future__ import annotations

import json
from collections.abc import Iterable

import pytest

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.task_assignment import (
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
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


def _keys(stream: InMemoryCoordinatorStream) -> list[tuple[str, bool]]:
    decoded = [wire.decode(*record) for record in stream.log]
    return [(m.key, m.is_tombstone) for m in decoded]


def test_task_assignment_is_exactly_what_was_written(stream: InMemoryCoordinatorStream) -> None:
    """Deletions of vanished tasks come first, unchanged tasks are not written again."""
    manager = TaskAssignmentManager(stream)
    manager.write({T0: P0, T1: P0})
    stream.catch_up()
    manager.write({T1: P0, T2: P1})
    assert _keys(stream)[2:] == [(T0, True), (T2, False)]
    stream.catch_up()
    assert manager.read() == {T1: P0, T2: P1}


def _task(name: TaskName, partitions: Iterable[int], mode: TaskMode = TaskMode.ACTIVE) -> TaskModel:
    ssps = tuple(SystemStreamPartition("kafka", "in", n) for n in partitions)
    return TaskModel(name, ssps, 0, mode)


def _model(*tasks: TaskModel) -> JobModel:
    container = ContainerModel(P0, {t.task_name: t for t in tasks})
    return JobModel(Config({}), {P0: container})


def _write(stream: InMemoryCoordinatorStream, messages: Iterable[CoordinatorStreamMessage]) -> None:
    stream.write(messages)
    stream.catch_up()


def test_task_modes_are_exactly_those_of_the_model(stream: InMemoryCoordinatorStream) -> None:
    """Gone tasks are deleted first, a task whose mode changed is written, others are not."""
    manager = TaskModeManager(stream)
    _write(stream, manager.messages(_model(_task(T0, [0]), _task(T1, [1]), _task(T2, [2]))))
    standby = TaskMode.STANDBY
    _write(stream, manager.messages(_model(_task(T1, [1]), _task(T2, [2], standby))))
    assert _keys(stream)[3:] == [(T0, True), (T2, False)]
    assert manager.read() == {T1: TaskMode.ACTIVE, T2: standby}


def test_an_unknown_mode_is_left_out(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture
) -> None:
    """A mode that this reader does not know costs a warning and its record only."""
    kind = MessageType.SET_TASK_MODE
    bad = [CoordinatorStreamMessage(kind, T1, {}), CoordinatorStreamMessage(kind, T2, BLANK)]
    _write(stream, [wire.set_task_mode_assignment(T0, TaskMode.ACTIVE), *bad])
    assert TaskModeManager(stream).read() == {T0: TaskMode.ACTIVE}
    for task in (T1, T2):
        assert f"set-task-mode-assignment {task!r}: unknown taskMode" in caplog.text


def test_task_partitions_are_exactly_those_of_the_model(stream: InMemoryCoordinatorStream) -> None:
    """One record a partition with all its tasks; those of partitions that are gone are deleted."""
    manager = TaskPartitionManager(stream)
    broadcast = SystemStreamPartition("kafka", "in", 9)
    _write(stream, manager.messages(_model(_task(T1, [1, 9]), _task(T0, [0, 9]))))
    assert manager.read()[broadcast] == (T0, T1)
    zero, one = (SystemStreamPartition("kafka", "in", number) for number in (0, 1))
    assert manager.read_inputs() == {T0: {zero, broadcast}, T1: {one, broadcast}}
    assert len(stream.log) == 3
    _write(stream, manager.messages(_model(_task(T0, [0]), _task(T1, [9]))))
    keys = _keys(stream)[3:]
    assert [(json.loads(key)["partition"], gone) for key, gone in keys] == [(1, True), (9, False)]
    first = SystemStreamPartition("kafka", "in", 0)
    assert manager.read() == {first: (T0,), broadcast: (T1,)}
    assert manager.messages(_model(_task(T0, [0]), _task(T1, [9]))) == ()


def test_a_partition_under_foreign_bytes_is_read_and_replaced(
    stream: InMemoryCoordinatorStream,
) -> None:
    """A key with spaces is another key to Kafka: it is read, deleted as it is, written as ours."""
    foreign = '{"system": "kafka", "stream": "in", "partition": 0}'
    values = {"taskNames": '["Partition 0"]'}
    _write(stream, [CoordinatorStreamMessage(MessageType.SET_TASK_PARTITION, foreign, values)])
    manager = TaskPartitionManager(stream)
    assert manager.read() == {SystemStreamPartition("kafka", "in", 0): (T0,)}
    _write(stream, manager.messages(_model(_task(T0, [0]))))
    assert _keys(stream)[1:] == [
        (foreign, True),
        ('{"system":"kafka","partition":0,"stream":"in","keyBucket":-1}', False),
    ]
    assert manager.read() == {SystemStreamPartition("kafka", "in", 0): (T0,)}


@pytest.mark.parametrize(
    ("key", "names"),
    [
        ("no json", "[]"),
        ("[]", "[]"),
        ('{"system":"kafka","stream":"in"}', "[]"),
        ('{"system":"kafka","stream":"in","partition":"0"}', "[]"),
        ('{"system":"kafka","stream":"in","partition":0}', "no json"),
        ('{"system":"kafka","stream":"in","partition":0}', "{}"),
        ('{"system":"kafka","stream":"in","partition":0}', "[1]"),
    ],
)
def test_a_damaged_partition_is_left_out_and_deleted(
    stream: InMemoryCoordinatorStream, caplog: pytest.LogCaptureFixture, key: str, names: str
) -> None:
    """A record that says nothing costs a warning, and goes with the next model."""
    _write(
        stream,
        [CoordinatorStreamMessage(MessageType.SET_TASK_PARTITION, key, {"taskNames": names})],
    )
    manager = TaskPartitionManager(stream)
    assert manager.read() == {}
    assert "record left out: set-task-partition-assignment" in caplog.text
    _write(stream, manager.messages(_model()))
    assert stream.latest(MessageType.SET_TASK_PARTITION) == {}
