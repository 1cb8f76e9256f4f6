"""Groupers of tasks into containers; G1 to G10 are Samza's TestGroupByContainerCount."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.task_name_grouper import (
    GroupByContainerCount,
    task_name_grouper,
)
from homeport.job_coordinator.model.ids import ProcessorId, TaskName

Assignment = Mapping[TaskName, ProcessorId]


def _names(numbers: Iterable[int]) -> list[TaskName]:
    return [TaskName(f"Partition {n}") for n in numbers]


def _assignment(groups: Mapping[str, Iterable[int]]) -> Assignment:
    return {name: ProcessorId(id_) for id_, ns in groups.items() for name in _names(ns)}


def _group(count: int, tasks: int, previous: Assignment | None = None) -> dict[str, set[int]]:
    grouped = GroupByContainerCount().group(_names(range(tasks)), previous or {}, count)
    return {id_: {int(name.split()[1]) for name in names} for id_, names in grouped.items()}


def test_g1_tasks_are_dealt_round_robin() -> None:
    """5 tasks, 2 containers: 0, 2, 4 and 1, 3."""
    assert _group(2, 5) == {"0": {0, 2, 4}, "1": {1, 3}}


def test_g2_tasks_are_dealt_in_the_order_of_their_names() -> None:
    """21 tasks, 2 containers: Partition 10 comes before Partition 2."""
    grouped = _group(2, 21)
    assert grouped["0"] == {0, 10, 12, 14, 16, 18, 2, 3, 5, 7, 9}
    assert grouped["1"] == set(range(21)) - grouped["0"]


def test_g3_more_containers_than_tasks_are_refused() -> None:
    """The message names key, value, rule and remedy."""
    with pytest.raises(ConfigError) as caught:
        _group(2, 1)
    assert str(caught.value) == (
        "job.container.count = '2': there are only 1 tasks, and a container without a task has "
        "nothing to do; write 1 or less, or give the input streams more partitions"
    )


@pytest.mark.parametrize("count", [0, -1])
def test_a_job_needs_a_container(count: int) -> None:
    """A count below 1 is refused."""
    with pytest.raises(ConfigError, match=rf"job\.container\.count = '{count}'"):
        _group(count, 4)


def test_a_job_needs_a_task() -> None:
    """No task at all is a fault of the inputs."""
    with pytest.raises(ConfigError, match=r"task\.inputs"):
        _group(1, 0)


def test_g4_more_containers() -> None:
    """9 tasks from 2 to 4 containers: the first give up their last tasks, nothing else moves."""
    assert _group(4, 9, _assignment(_group(2, 9))) == {
        "0": {0, 2, 4},
        "1": {1, 3},
        "2": {6, 8},
        "3": {5, 7},
    }


def test_g5_fewer_containers() -> None:
    """9 tasks from 4 to 2 containers: the tasks of the two that vanish fill the others."""
    assert _group(2, 9, _assignment(_group(4, 9))) == {"0": {0, 2, 4, 6, 8}, "1": {1, 3, 5, 7}}


def test_g6_fewer_containers_with_room_in_each() -> None:
    """9 tasks from 4 to 3 containers: every container keeps what it has and gets some."""
    assert _group(3, 9, _assignment(_group(4, 9))) == {
        "0": {0, 4, 8},
        "1": {1, 5, 7},
        "2": {2, 3, 6},
    }


def test_g7_an_unchanged_count_keeps_a_lopsided_assignment() -> None:
    """6 and 3 tasks stay 6 and 3."""
    previous = {"0": range(6), "1": range(6, 9)}
    assert _group(2, 9, _assignment(previous)) == {id_: set(ns) for id_, ns in previous.items()}


def test_g8_a_lopsided_assignment_is_evened_out_when_the_count_changes() -> None:
    """1 and 5 tasks, 3 containers: two each."""
    previous = _assignment({"0": [0], "1": range(1, 6)})
    assert _group(3, 6, previous) == {"0": {0, 5}, "1": {1, 2}, "2": {3, 4}}


@pytest.mark.parametrize(
    ("count", "previous"),
    [
        (3, {"0": range(3)}),
        (1, {"0": [0], "1": [1], "2": [2]}),
        (2, {}),
        (2, {"0": [0], "2": [1, 2]}),
        (2, {"0": [0], "01": [1, 2]}),
        (2, {"a": [0], "b": [1, 2]}),
        (2, {"0": [0, 1, 2], "1": [3]}),
        (2, {"0": [0], "1": [1]}),
        (2, {"0": [0, 1], "1": [7]}),
    ],
)
def test_g9_g10_otherwise_tasks_are_dealt_anew(
    count: int, previous: Mapping[str, Iterable[int]]
) -> None:
    """From or to one container, no or strange ids, more, fewer or other tasks: round robin."""
    assert _group(count, 3, _assignment(previous)) == _group(count, 3)


_SIZES = st.integers(1, 24)


@settings(deadline=None)  # the machine may be busy
@given(_SIZES, _SIZES, st.data())
def test_every_answer_is_whole_and_the_same_for_any_order(
    tasks: int, count: int, data: st.DataObject
) -> None:
    """Each task once, no empty container, ids 0 to n - 1, whatever the order of arguments."""
    assume(count <= tasks)
    names = _names(range(tasks))
    ids = st.integers(0, data.draw(st.integers(0, 5))).map(lambda n: ProcessorId(str(n)))
    previous = {name: data.draw(ids) for name in names}
    grouper = GroupByContainerCount()
    grouped = grouper.group(names, previous, count)
    random = data.draw(st.randoms())
    assert list(grouped.items()) == list(_shuffled(grouper, names, previous, count, random).items())
    assert list(grouped) == [str(i) for i in range(count)]
    assert sorted(name for group in grouped.values() for name in group) == sorted(names)
    assert all(grouped.values())


def _shuffled(
    grouper: GroupByContainerCount,
    names: list[TaskName],
    previous: Assignment,
    count: int,
    random: Random,
) -> Mapping[ProcessorId, tuple[TaskName, ...]]:
    names = names * 2
    items = list(previous.items())
    random.shuffle(names)
    random.shuffle(items)
    return grouper.group(names, dict(items), count)


@settings(deadline=None)  # the machine may be busy
@given(st.integers(2, 24), st.lists(st.integers(2, 24), min_size=1, max_size=6))
def test_a_changed_count_moves_no_more_tasks_than_it_must(tasks: int, counts: list[int]) -> None:
    """From even sizes, only what exceeds the new sizes moves, and the new sizes are even again."""
    grouper = GroupByContainerCount()
    names = _names(range(tasks))
    grouped = grouper.group(names, {}, min(2, tasks))
    for count in (min(count, tasks) for count in counts):
        previous = {name: id_ for id_, group in grouped.items() for name in group}
        sizes = {id_: len(group) for id_, group in grouped.items()}
        grouped = grouper.group(names, previous, count)
        even = sorted(len(group) for group in grouped.values())
        assert even[-1] - even[0] <= 1
        kept = sum(previous[name] == id_ for id_, group in grouped.items() for name in group)
        assert kept == sum(min(sizes.get(id_, 0), len(group)) for id_, group in grouped.items())


def test_the_factory_is_found_by_samzas_name() -> None:
    """The table holds Samza's name; another name is refused with the ones there are."""
    name = "org.apache.samza.container.grouper.task.GroupByContainerCountFactory"
    assert isinstance(task_name_grouper(name), GroupByContainerCount)
    with pytest.raises(ConfigError, match=r"grouper\.factory = 'x'.*GroupByContainerCountFactory"):
        task_name_grouper("x")
