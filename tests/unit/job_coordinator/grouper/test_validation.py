"""First fault of a JobModel."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.job_coordinator.grouper.validation import first_fault
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)


def _ssp(partition: int) -> SystemStreamPartition:
    return SystemStreamPartition("kafka", "in", partition)


def _task(
    name: str, *partitions: int, changelog: int = 0, mode: TaskMode = TaskMode.ACTIVE
) -> TaskModel:
    return TaskModel(TaskName(name), tuple(_ssp(p) for p in partitions), changelog, mode)


def _container(processor_id: str, *tasks: TaskModel) -> ContainerModel:
    return ContainerModel(ProcessorId(processor_id), {task.task_name: task for task in tasks})


def _job(*containers: ContainerModel, config: Config | None = None) -> JobModel:
    return JobModel(config or Config(), {c.processor_id: c for c in containers})


def test_a_good_model_has_no_fault() -> None:
    """Two containers, three tasks, and a standby that shares input and changelog partition."""
    model = _job(
        _container("0", _task("a", 0, changelog=0), _task("c", 2, 3, changelog=7)),
        _container("1", _task("b", 1, changelog=1)),
        _container("1-0", _task("Standby-b-0", 1, changelog=1, mode=TaskMode.STANDBY)),
    )
    assert first_fault(model) is None


def test_a_broadcast_partition_may_be_in_all_active_tasks() -> None:
    """What ``task.broadcast.inputs`` names belongs to all of them, and to no fewer."""
    config = Config({"task.broadcast.inputs": "kafka.in#9"})
    a, b = _task("a", 0, 9), _task("b", 1, 9, changelog=1)
    assert first_fault(_job(_container("0", a, b), config=config)) is None
    fault = first_fault(_job(_container("0", a, _task("b", 1, changelog=1)), config=config))
    assert fault == (
        "SystemStreamPartition [kafka, in, 9] is broadcast and is not an input of task 'b'"
    )
    twice = _job(_container("0", _task("a", 0, 9, 9)), config=config)
    assert first_fault(twice) is not None


_MISNAMED_CONTAINER = JobModel(
    Config(), {ProcessorId("1"): ContainerModel(ProcessorId("0"), {TaskName("a"): _task("a", 0)})}
)
_MISNAMED_TASK = _job(ContainerModel(ProcessorId("0"), {TaskName("b"): _task("a", 0)}))


@pytest.mark.parametrize(
    ("model", "fault"),
    [
        (_job(), "the job has no container"),
        (_MISNAMED_CONTAINER, "the container listed as '1' says it is '0'"),
        (_job(_container("0")), "container '0' has no task"),
        (_MISNAMED_TASK, "the task listed as 'b' in container '0' says it is 'a'"),
        (
            _job(_container("0", _task("a", 0, changelog=-1))),
            "task 'a' has the changelog partition -1",
        ),
        (
            _job(_container("0", _task("a", 0)), _container("1", _task("a", 1, changelog=1))),
            "task 'a' is in container '0' and in container '1'",
        ),
        (_job(_container("0", _task("a"))), "task 'a' has no input"),
        (
            _job(_container("0", _task("a", 0)), _container("1", _task("b", 0, changelog=1))),
            "SystemStreamPartition [kafka, in, 0] is an input of task 'a' and of task 'b'",
        ),
        (
            _job(_container("0", _task("a", 0, 0))),
            "SystemStreamPartition [kafka, in, 0] is an input of task 'a' and of task 'a'",
        ),
        (
            _job(_container("0", _task("a", 0)), _container("1", _task("b", 1))),
            "tasks 'a' and 'b' share the changelog partition 0",
        ),
    ],
)
def test_each_fault_is_told_in_a_sentence(model: JobModel, fault: str) -> None:
    """The sentence names what is at fault."""
    assert first_fault(model) == fault
