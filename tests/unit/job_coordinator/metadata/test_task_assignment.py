"""What the stream says of tasks: processor, mode, input partitions."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import InMemoryCoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.task_assignment import TaskPartitionManager
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)

P0, P1 = ProcessorId("0"), ProcessorId("1")
T0, T1, T2 = TaskName("Partition 0"), TaskName("Partition 1"), TaskName("Partition 2")


def _keys(stream: InMemoryCoordinatorStream) -> list[tuple[str, bool]]:
    decoded = [wire.decode(*record) for record in stream.log]
    return [(m.key, m.is_tombstone) for m in decoded]


def _task(name: TaskName, partitions: Iterable[int], mode: TaskMode = TaskMode.ACTIVE) -> TaskModel:
    ssps = tuple(SystemStreamPartition("kafka", "in", n) for n in partitions)
    return TaskModel(name, ssps, 0, mode)


def _model(*tasks: TaskModel) -> JobModel:
    container = ContainerModel(P0, {t.task_name: t for t in tasks})
    return JobModel(Config({}), {P0: container})


def _write(stream: InMemoryCoordinatorStream, messages: Iterable[CoordinatorStreamMessage]) -> None:
    stream.write(messages)
    stream.catch_up()


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
