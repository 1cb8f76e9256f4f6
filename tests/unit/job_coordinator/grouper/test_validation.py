"""First fault of a JobModel."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import pytest

from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.answers import partition_answer_fault, task_answer_fault
from homeport.job_coordinator.grouper.validation import first_fault, uneven_inputs
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


def test_a_broadcast_partition_may_be_in_all_active_tasks() -> None:
    """What ``task.broadcast.inputs`` names belongs to all of them, and to no fewer."""
    config = Config({"task.broadcast.inputs": "kafka.in#9"})
    a, b = _task("a", 0, 9), _task("b", 1, 9, changelog=1)
    assert first_fault(_job(_container("0", a, b), config=config)) is None
    fault = first_fault(_job(_container("0", a, _task("b", 1, changelog=1)), config=config))
    assert fault == (
        "SystemStreamPartition [kafka, in, 9] is for every task and is not an input of task 'b'"
    )
    twice = _job(_container("0", _task("a", 0, 9, 9)), config=config)
    assert first_fault(twice) is not None


def test_all_to_one_tasks_share_every_partition() -> None:
    """With the grouper for that every task must have every input partition, in either name."""
    for name in (
        "all-ssp-to-single-task",
        "org.apache.samza.container.grouper.stream.AllSspToSingleTaskGrouperFactory",
    ):
        config = Config({"job.systemstreampartition.grouper.factory": name})
        a, b = _task("Task-0", 0, 1), _task("Task-1", 0, 1, changelog=1)
        assert first_fault(_job(_container("0", a), _container("1", b), config=config)) is None
        c = _task("Task-1", 1, changelog=1)
        fault = first_fault(_job(_container("0", a), _container("1", c), config=config))
        assert fault == (
            "SystemStreamPartition [kafka, in, 0] is for every task and is not an input of task "
            "'Task-1'"
        )


def _standby(name: str, *partitions: int, changelog: int = 0, of: str | None = None) -> TaskModel:
    task = _task(name, *partitions, changelog=changelog, mode=TaskMode.STANDBY)
    return replace(task, active_task=TaskName(of) if of else None)


def _replica(processor_id: str, of: str, *tasks: TaskModel) -> ContainerModel:
    return replace(_container(processor_id, *tasks), active_processor=ProcessorId(of))


_A, _B = _container("0", _task("a-b", 0)), _container("1", _task("b", 1, changelog=1))


@pytest.mark.parametrize(
    ("containers", "fault"),
    [
        ([_A, _replica("0-0", "0", _standby("s", 0, of="a-b"))], None),
        ([_A, _replica("0-0", "0", _standby("s", 0)), _replica("x", "0", _standby("t", 0))], None),
        (
            [_A, _container("0-0", _standby("s", 1))],
            "standby task 's' has inputs and changelog partition of no active task",
        ),
        (
            [_A, _container("0-0", _standby("s", 0, changelog=1))],
            "standby task 's' has inputs and changelog partition of no active task",
        ),
        (
            [_A, _container("0-0", _standby("s", 0, of="a"))],
            "standby task 's' says it is of 'a' and mirrors 'a-b'",
        ),
        (
            [_container("0", _task("a", 0), _standby("s", 0))],
            "standby task 's' shares container '0' with its active task 'a'",
        ),
        (
            [_A, _container("0-0", _standby("s", 0), _standby("t", 0))],
            "'s' and 't', standbys of one task, share '0-0'",
        ),
        (
            [_A, _B, _replica("0-0", "1", _standby("s", 0))],
            "container '0-0' is a standby of '1', and its task 's' mirrors one of '0'",
        ),
        (
            [_A, _replica("0-0", "0", _task("b", 1, changelog=1))],
            "task 'b' is active, in the standby container '0-0'",
        ),
    ],
)
def test_a_standby_mirrors_its_active(containers: list[ContainerModel], fault: str | None) -> None:
    """Inputs, changelog partition and the fields agree, and no two replicas share a container."""
    assert first_fault(_job(*containers)) == fault


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
def test_each_fault_is_reported_in_a_sentence(model: JobModel, fault: str) -> None:
    """The sentence names what is at fault."""
    assert first_fault(model) == fault


GROUPER = "job.systemstreampartition.grouper.factory"
A, B = SystemStream("kafka", "a"), SystemStream("kafka", "b")


@pytest.mark.parametrize(
    ("counts", "more", "is_uneven"),
    [
        ({A: 3, B: 2}, {}, True),
        ({A: 3, B: 3}, {}, False),
        ({A: 3}, {}, False),
        ({A: 3, B: 2}, {"task.inputs": "kafka.a", "task.broadcast.inputs": "kafka.b#[0-1]"}, False),
        ({A: 3, B: 2}, {GROUPER: "group-by-system-stream-partition"}, False),
        ({A: 3, B: 2}, {GROUPER: "all-ssp-to-single-task"}, False),
    ],
)
def test_inputs_that_a_task_cannot_join_are_named(
    counts: dict[SystemStream, int], more: dict[str, str], *, is_uneven: bool
) -> None:
    """One key lies in partitions of different numbers there."""
    own = {"job.name": "j", "job.default.system": "kafka", "task.inputs": "kafka.a,kafka.b"}
    found = uneven_inputs(Config({**own, **more}), counts)
    assert (found is not None) is is_uneven
    if found is not None:
        assert "different numbers of partitions (kafka.a has 3, kafka.b has 2)" in found


S0, S1, S9 = (SystemStreamPartition("kafka", "a", n) for n in (0, 1, 9))
FIRST, SECOND = TaskName("a"), TaskName("b - b")


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"x": [S0], "y": {S1}}, None),
        ({"x": (S0, S1)}, None),
        (None, "it is None and no mapping"),
        ([("x", S0)], "it is a list and no mapping"),
        ({7: [S0, S1]}, "a task is called 7, which is no name"),
        ({"": [S0, S1]}, "a task is called '', which is no name"),
        ({"x": S0}, f"task 'x' has {S0}, which is no collection"),
        ({"x": "S0"}, "task 'x' has 'S0', which is no collection"),
        ({"x": count()}, "task 'x' has a count, which is no collection"),
        ({"x": [S0, S1], "y": []}, "task 'y' has no input"),
        ({"x": [S0, S1, S9]}, f"task 'x' has {S9}, which is none of the input partitions"),
        ({"x": [S0, S1, "S"]}, "task 'x' has 'S', which is none of the input partitions"),
        ({"x": [S0, S1], "y": [S1]}, f"{S1} is an input of task 'x' and of task 'y'"),
        ({"x": [S0]}, f"{S1} belongs to no task"),
    ],
)
def test_the_fault_of_a_grouper_of_partitions(answer: object, fault: str | None) -> None:
    """Whatever it answers, there is one sentence, which names what is at fault."""
    assert partition_answer_fault(answer, [S0, S1]) == fault


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"0": ["a"], "x": {"b - b"}}, None),
        ("0", "it is '0' and no mapping"),
        ({0: ["a", "b - b"]}, "a container is called 0, which is no name"),
        ({"0": "a"}, "container '0' has 'a', which is no collection"),
        ({"0": ["a", "b - b"], "1": ()}, "container '1' has no task"),
        ({"0": ["a", "b - b", "c"]}, "container '0' has 'c', which is none of the tasks"),
        ({"0": ["a", "b - b", 3]}, "container '0' has 3, which is none of the tasks"),
        ({"0": ["a", "b - b"], "1": ["a"]}, "task 'a' is in container '0' and in '1'"),
        ({"0": ["a"]}, "task 'b - b' is in no container"),
    ],
)
def test_the_fault_of_a_grouper_of_tasks(answer: object, fault: str | None) -> None:
    """Whatever it answers, there is one sentence, which names what is at fault."""
    assert task_answer_fault(answer, [FIRST, SECOND]) == fault
