"""Groupers of tasks into containers; G1 to G10 are Samza's TestGroupByContainerCount."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.task_name_grouper import (
    GroupByContainerCount,
    SingleContainer,
    TaskLocality,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import TaskModel

Assignment = Mapping[TaskName, ProcessorId]


def _names(numbers: Iterable[int]) -> list[TaskName]:
    return [TaskName(f"Partition {n}") for n in numbers]


def _models(names: Iterable[TaskName]) -> list[TaskModel]:
    return [TaskModel(name, (), 0) for name in names]


def _ids(count: int) -> list[ProcessorId]:
    return [ProcessorId(str(i)) for i in range(count)]


def _assignment(groups: Mapping[str, Iterable[int]]) -> Assignment:
    return {name: ProcessorId(id_) for id_, ns in groups.items() for name in _names(ns)}


def _grouped(
    names: Iterable[TaskName], previous: Assignment, ids: Sequence[ProcessorId]
) -> dict[ProcessorId, list[TaskName]]:
    locality = {name: TaskLocality(id_, Host("h")) for name, id_ in previous.items()}
    processors = dict.fromkeys(ids, Host("h"))
    answer = GroupByContainerCount(Config()).group(_models(names), locality, processors)
    return {id_: sorted(group) for id_, group in answer.items()}


def _group(count: int, tasks: int, previous: Assignment | None = None) -> dict[str, set[int]]:
    grouped = _grouped(_names(range(tasks)), previous or {}, _ids(count))
    return {id_: {int(name.split()[1]) for name in names} for id_, names in grouped.items()}


def test_g3_more_containers_than_tasks_are_refused() -> None:
    """G3: the message names key, value, rule and remedy."""
    with pytest.raises(ConfigError) as caught:
        _group(2, 1)
    assert str(caught.value) == (
        "job.container.count = '2': there are only 1 tasks, and a container without a task has "
        "nothing to do; write 1 or less, or give the input streams more partitions"
    )


def test_a_job_needs_a_container() -> None:
    """No processor at all is refused."""
    with pytest.raises(ConfigError, match=r"job\.container\.count = '0'"):
        _group(0, 4)


def test_g3_a_job_needs_a_task() -> None:
    """G3: no task at all is a fault of the inputs."""
    with pytest.raises(ConfigError, match=r"task\.inputs"):
        _group(1, 0)


def test_g6_two_changes_of_one_assignment() -> None:
    """G6: 9 tasks on 4 containers, to 2 and to 3: every container keeps what it has.

    Samza's test gives both calls the map of the four containers; only so does its answer come out.
    """
    four = _assignment(_group(4, 9))
    assert _group(2, 9, four) == {"0": {0, 2, 4, 6, 8}, "1": {1, 3, 5, 7}}
    assert _group(3, 9, four) == {"0": {0, 4, 8}, "1": {1, 5, 7}, "2": {2, 3, 6}}


def test_containers_that_vanish_give_their_tasks_in_the_order_of_their_numbers() -> None:
    """12 tasks, 12 to 2 containers: container 2, with Partition 10, comes before container 10."""
    twelve = _assignment(_group(12, 12))
    assert _group(2, 12, twelve)["0"] == {0, 10, 11, 2, 3, 4}


def test_g7_an_unchanged_count_keeps_a_lopsided_assignment() -> None:
    """G7: 6 and 3 tasks stay 6 and 3."""
    previous = {"0": range(6), "1": range(6, 9)}
    assert _group(2, 9, _assignment(previous)) == {id_: set(ns) for id_, ns in previous.items()}


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
def test_g9_g10_otherwise_tasks_are_distributed_again(
    count: int, previous: Mapping[str, Iterable[int]]
) -> None:
    """G9, G10: from or to one container, no or strange ids, other tasks: round robin."""
    assert _group(count, 3, _assignment(previous)) == _group(count, 3)


def test_any_texts_are_ids() -> None:
    """Standalone: a leaver gives all, a newcomer gets some, in the order of the processors.

    Ids with hyphens, or in another script, are ids like others.
    """
    names = _names(range(6))
    old = [ProcessorId("host-1-0"), ProcessorId("ü"), ProcessorId("b b")]
    before = {name: id_ for id_, group in _grouped(names, {}, old).items() for name in group}
    answer = _grouped(names, before, [ProcessorId("new"), *old[1:]])
    assert answer == {
        ProcessorId("new"): _names([0, 3]),
        old[1]: _names([1, 4]),
        old[2]: _names([2, 5]),
    }


def test_one_container_may_have_everything() -> None:
    """The container that ``processor.id`` names, else the first; no task at all is refused."""
    models, processors = _models(_names(range(3))), {ProcessorId("7"): None, ProcessorId("1"): None}
    named = SingleContainer(Config({"processor.id": "all-0"}))
    assert named.group(models, {}, processors) == {ProcessorId("all-0"): _names(range(3))}
    assert list(SingleContainer(Config()).group(models, {}, processors)) == [ProcessorId("7")]
    with pytest.raises(ConfigError, match=r"task\.inputs"):
        named.group([], {}, processors)


# ------------------------------------------------------------- a second, naive way, and properties


def _naive(names: list[TaskName], previous: Assignment, count: int) -> dict[str, set[TaskName]]:
    """Reference 3.5 word by word, one task at a time."""
    names = sorted(names)
    used = set(previous.values())
    old = len(used)
    keeps = (
        set(previous) == set(names) and min(old, count) > 1 and used == {str(i) for i in range(old)}
    )
    now: dict[str, list[TaskName]] = {str(i): [] for i in range(max(old, count))}
    if not keeps:
        for position, name in enumerate(names):
            now[str(position % count)].append(name)
        return {str(i): set(now[str(i)]) for i in range(count)}
    for name in names:
        now[previous[name]].append(name)
    if old != count:
        size = {str(i): 0 for i in range(max(old, count))}
        for position in range(len(names)):
            size[str(position % count)] += 1
        queue: list[TaskName] = []
        for i in range(old):
            while len(now[str(i)]) > size[str(i)]:
                queue.append(now[str(i)].pop(-1))
        for i in range(count):
            while len(now[str(i)]) < size[str(i)]:
                now[str(i)].append(queue.pop(0))
    return {str(i): set(now[str(i)]) for i in range(count)}


_SIZES = st.integers(1, 24)


@settings(deadline=None)  # the machine may be busy
@given(_SIZES, _SIZES, st.randoms(), st.data())
def test_every_answer_is_whole_and_that_of_the_naive_way_for_any_order(
    tasks: int, count: int, random: Random, data: st.DataObject
) -> None:
    """Each task once, no empty container, the same for any order, the same as word by word."""
    assume(count <= tasks)
    names = _names(range(tasks))
    ids = st.integers(0, data.draw(st.integers(0, 5))).map(lambda n: ProcessorId(str(n)))
    previous = {name: data.draw(ids) for name in names}
    grouped = _grouped(names, previous, _ids(count))
    shuffled, items = names * 2, list(previous.items())
    random.shuffle(shuffled)
    random.shuffle(items)
    assert _grouped(shuffled, dict(items), _ids(count)) == grouped
    assert {id_: set(group) for id_, group in grouped.items()} == _naive(names, previous, count)
    assert sorted(name for group in grouped.values() for name in group) == sorted(names)
    assert all(grouped.values())


def _moved(previous: Assignment, grouped: Mapping[ProcessorId, list[TaskName]]) -> int:
    return sum(previous[name] != id_ for id_, group in grouped.items() for name in group)


@settings(deadline=None)  # the machine may be busy
@given(st.integers(2, 24), st.lists(st.integers(2, 24), min_size=1, max_size=6))
def test_a_changed_count_moves_no_more_tasks_than_it_must(tasks: int, counts: list[int]) -> None:
    """From sizes it made itself no even answer moves fewer; given back, an answer stays as it is.

    The least: with r processors of size s + 1 and the others of size s, all tasks of those that
    vanish, and of each survivor what exceeds s, less one for each of at most r that may have s + 1.
    """
    names = _names(range(tasks))
    grouped = _grouped(names, {}, _ids(min(2, tasks)))
    for count in (min(count, tasks) for count in counts):
        previous = {name: id_ for id_, group in grouped.items() for name in group}
        sizes = [len(grouped.get(id_, ())) for id_ in _ids(count)]
        grouped = _grouped(names, previous, _ids(count))
        even = sorted(len(group) for group in grouped.values())
        assert even[-1] - even[0] <= 1
        share, larger = divmod(tasks, count)
        kept = sum(min(size, share) for size in sizes)
        kept += min(larger, sum(size > share for size in sizes))
        assert _moved(previous, grouped) == tasks - kept
        again = {name: id_ for id_, group in grouped.items() for name in group}
        assert _grouped(names, again, _ids(count)) == grouped


@settings(deadline=None)  # the machine may be busy
@given(st.integers(2, 24), st.integers(2, 8), st.integers(2, 8), st.data())
def test_from_lopsided_sizes_it_moves_at_most_the_remainder_more(
    tasks: int, before: int, count: int, data: st.DataObject
) -> None:
    """The bound of the docstring: the least that an even answer moves, and tasks modulo count."""
    assume(max(before, count) <= tasks)
    assume(before != count)
    names = _names(range(tasks))
    first = _ids(before)
    rest = [data.draw(st.sampled_from(first)) for _ in range(tasks - before)]
    previous = dict(zip(names, first + rest, strict=True))
    sizes = [sum(id_ == p for p in previous.values()) for id_ in _ids(count)]
    share, larger = divmod(tasks, count)
    kept = sum(min(size, share) for size in sizes)
    kept += min(larger, sum(size > share for size in sizes))
    moved = _moved(previous, _grouped(names, previous, _ids(count)))
    assert tasks - kept <= moved <= tasks - kept + larger
