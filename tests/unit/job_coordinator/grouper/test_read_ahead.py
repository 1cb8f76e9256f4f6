"""The JobModel before tasks of mixed containers move: what is read ahead, and what is left."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from homeport.config.config import Config
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.grouper.read_ahead import (
    Goal,
    files_on,
    left_to_read,
    with_read_ahead,
)
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.grouper.validation import first_fault
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskModel,
)

A, B, C = (TaskName(name) for name in "abc")
P0, P1, P2, P3 = (ProcessorId(str(n)) for n in range(4))
AHEAD_OF_A = TaskName("Standby-a-1")
CONFIG = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "job.container.count": "3",
        "job.container.mixed-roles": "true",
        "job.standbytasks.replication.factor": "2",
    }
)
TASKS = {
    name: TaskModel(name, (SystemStreamPartition("kafka", "in", number),), number)
    for number, name in enumerate((A, B, C))
}


def model_of(containers: Mapping[str, str]) -> JobModel:
    """A model by the tasks of each container: ``a`` is active, ``a0`` its standby of number 0."""
    found = {}
    for name, own in containers.items():
        tasks = [
            standby_task(TASKS[TaskName(word[0])], int(word[1:]))
            if word[1:]
            else TASKS[TaskName(word)]
            for word in own.split()
        ]
        by_name = {task.task_name: task for task in tasks}
        found[ProcessorId(name)] = ContainerModel(ProcessorId(name), by_name)
    return JobModel(CONFIG, found)


def at(hosts: str) -> Places:
    """Containers from 0 on, each at the host of that letter; a dash: it has none."""
    return Places({ProcessorId(str(n)): Host(h) for n, h in enumerate(hosts) if h != "-"})


BEFORE = model_of({"0": "a b0", "1": "b c0", "2": "c a0"})


def goal_of(containers: Mapping[str, str], before: JobModel = BEFORE) -> Goal:
    """What a change to these containers needs."""
    return Goal.between(before, model_of(containers))


def test_a_goal_has_the_tasks_that_change_their_owner() -> None:
    """Neither one that comes or goes, nor one that stays, nor a standby."""
    before = model_of({"0": "a b0", "1": "b"})
    goal = goal_of({"0": "", "1": "b", "3": "a c b0"}, before)
    assert goal == Goal({A: P3}, frozenset({P0, P1, P3}))


@pytest.mark.parametrize(
    ("after", "hosts", "expected"),
    [
        # To a container that runs on a host without the task.
        ({"0": "b", "1": "a", "2": "c"}, "xyz", {"0": "a b0", "1": "b c0 a1", "2": "c a0"}),
        # To one that has its standby.
        ({"0": "b", "1": "", "2": "c a"}, "xyz", {"0": "a b0", "1": "b c0", "2": "c a0"}),
        # To a new one: it has no host yet; then it has one.
        ({"3": "a"}, "xyz-", {"0": "a b0", "1": "b c0", "2": "c a0", "3": ""}),
        ({"3": "a"}, "xyzw", {"0": "a b0", "1": "b c0", "2": "c a0", "3": "a1"}),
        # To one on the host of its owner, and of its standby: the files are there.
        ({"3": "a"}, "xyzx", {"0": "a b0", "1": "b c0", "2": "c a0", "3": ""}),
        ({"3": "a"}, "xyzz", {"0": "a b0", "1": "b c0", "2": "c a0", "3": ""}),
    ],
)
def test_a_task_that_moves_has_a_standby_where_it_goes(
    after: Mapping[str, str], hosts: str, expected: Mapping[str, str]
) -> None:
    """Where its files are not; owners stay, and so do the standbys of before."""
    found = with_read_ahead(BEFORE, goal_of(after), at(hosts))
    assert found == model_of(expected)
    assert found.owners == BEFORE.owners
    assert first_fault(found) is None


def test_a_goal_that_is_altered_leaves_nothing_of_the_one_before() -> None:
    """Standbys that were added go, and so does a container that came for them, if it has nothing.

    A container of before stays until the change itself.
    """
    ahead = model_of({"0": "a b0", "1": "b c0 a1", "2": "c a0", "3": "b1", "4": ""})
    places = at("xyzwv")
    assert with_read_ahead(ahead, goal_of({"2": "a", "3": ""}), places) == model_of(
        {"0": "a b0", "1": "b c0", "2": "c a0", "3": ""}
    )
    assert with_read_ahead(ahead, Goal.none(ahead), places) == BEFORE
    lost = model_of({"0": "a b0", "1": "b c0 c", "2": ""})
    assert with_read_ahead(lost, Goal.none(lost), places) == lost
    assert Goal.none(model_of({"0": "a"})).containers == {P0}


def test_a_task_that_is_gone_or_whose_standby_would_clash_is_passed_over() -> None:
    """No version is wrong for its sake."""
    named = model_of({"0": "a", "1": "b"})
    other = TaskModel(AHEAD_OF_A, (SystemStreamPartition("kafka", "in", 7),), 7)
    tasks = {**named.containers[P1].tasks, AHEAD_OF_A: other}
    clashing = JobModel(CONFIG, {**named.containers, P1: ContainerModel(P1, tasks)})
    goal = Goal({A: P1, C: P1}, frozenset({P0, P1}))
    found = with_read_ahead(clashing, goal, at("xy"))
    assert found.owners == clashing.owners
    assert all(
        len(c.tasks) == len(clashing.containers[p].tasks) for p, c in found.containers.items()
    )


def test_the_files_of_a_host_are_those_of_all_its_containers() -> None:
    """Tasks and standbys have files; without a known host there are none."""
    assert files_on(Host("x"), BEFORE, at("xyx")) == {A, B, C}
    assert files_on(Host("y"), BEFORE, at("xyx")) == {B, C}
    assert files_on(Host("z"), BEFORE, at("xyx")) == files_on(None, BEFORE, at("-yx")) == set()


@pytest.mark.parametrize(
    ("model", "to", "hosts", "left"),
    [
        ({"0": "a b0", "1": "b c0 a1", "2": "c a0"}, P1, "xyz", 5),
        ({"0": "a b0", "1": "b c0", "2": "c a0"}, P2, "xyz", 7),
        ({"0": "a b0", "1": "b c0 b1", "2": "c"}, P1, "xyz", None),  # not in the model yet
        ({"0": "a b0", "1": "b", "2": "c a0", "3": ""}, P3, "xyz-", None),  # without a host
    ],
)
def test_what_is_left_to_read(
    model: Mapping[str, str], to: ProcessorId, hosts: str, left: int | None
) -> None:
    """By the lag of the standby in the next container."""
    lags = {AHEAD_OF_A: 5, TaskName("Standby-a-0"): 7}
    goal = Goal({A: to}, frozenset())
    assert left_to_read(model_of(model), goal, at(hosts), lags) == {A: left}
    assert left_to_read(model_of(model), goal, at(hosts), {}) == {A: None}


@pytest.mark.parametrize(
    ("goal", "hosts"),
    [
        ({A: P0}, "xyz"),  # it is there
        ({TaskName("gone"): P1}, "xyz"),
        ({A: P1}, "-yz"),  # no one works on it
        ({A: P3}, "xyzz"),  # a container of that host has its files
        ({A: P3}, "xyzx"),
    ],
)
def test_no_other_task_is_waited_for(goal: Mapping[TaskName, ProcessorId], hosts: str) -> None:
    """It gets nothing by that."""
    assert left_to_read(BEFORE, Goal(goal, frozenset()), at(hosts), {}) == {}
