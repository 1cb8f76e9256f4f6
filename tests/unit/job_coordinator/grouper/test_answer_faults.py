"""First fault of what a grouper answers."""

from __future__ import annotations

from itertools import count

import pytest

from homeport.job_coordinator.grouper.job_model_calculator import (
    partition_answer_fault,
    task_answer_fault,
)
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

S0, S1, S9 = (SystemStreamPartition("kafka", "a", n) for n in (0, 1, 9))
A, B = TaskName("a"), TaskName("b - b")


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
    assert task_answer_fault(answer, [A, B]) == fault
