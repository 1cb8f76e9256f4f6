"""Groupers of partitions into tasks."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import groupby
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.input_expansion import expanded
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.grouper.ssp_grouper import (
    AllSspToSingleTask,
    GroupByPartition,
    GroupBySystemStreamPartition,
    SystemStreamPartitionGrouper,
    TaskPartitions,
    broadcast_partitions,
)
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream, SystemStreamPartition

CONFIG = Config()
IDS = [ProcessorId("0"), ProcessorId("1")]
_PARTITIONS = st.builds(
    SystemStreamPartition,
    st.sampled_from(["kafka", "other"]),
    st.sampled_from(["a", "b.c", "d-e f", "ü'\""]),
    st.integers(0, 12),
)


def _ssp(stream: str, partition: int) -> SystemStreamPartition:
    return SystemStreamPartition("kafka", stream, partition)


def _sets(tasks: TaskPartitions) -> dict[str, set[SystemStreamPartition]]:
    return {name: set(ssps) for name, ssps in tasks.items()}


def test_g18_each_partition_may_be_a_task() -> None:
    """G18: the name of such a task is Samza's text of the partition, whatever is in it."""
    partitions = [_ssp("a", 0), _ssp("a", 1), _ssp("b.c, d]-1", 0)]
    assert _sets(GroupBySystemStreamPartition(CONFIG).group(partitions, IDS)) == {
        "SystemStreamPartition [kafka, a, 0]": {_ssp("a", 0)},
        "SystemStreamPartition [kafka, a, 1]": {_ssp("a", 1)},
        "SystemStreamPartition [kafka, b.c, d]-1, 0]": {_ssp("b.c, d]-1", 0)},
    }


def test_g19_a_task_that_reads_everything_needs_no_broadcast_and_some_input() -> None:
    """G19: broadcast inputs beside it are refused, and no input partition at all."""
    config = Config({"task.broadcast.inputs": "kafka.rules#0"})
    with pytest.raises(ConfigError, match=r"task\.broadcast\.inputs = 'kafka\.rules#0'"):
        AllSspToSingleTask(config).group([_ssp("a", 0)], IDS)
    with pytest.raises(ConfigError, match=r"task\.inputs is missing.*needs an input partition"):
        AllSspToSingleTask(CONFIG).group([], IDS)


def _naive_by_partition(
    partitions: list[SystemStreamPartition],
) -> dict[str, set[SystemStreamPartition]]:
    ordered = sorted(partitions, key=lambda ssp: ssp.partition)
    return {f"Partition {n}": set(ssps) for n, ssps in groupby(ordered, lambda ssp: ssp.partition)}


def _naive_by_ssp(partitions: list[SystemStreamPartition]) -> dict[str, set[SystemStreamPartition]]:
    text = "SystemStreamPartition [{0.system}, {0.stream}, {0.partition}]"
    return {text.format(ssp): {ssp} for ssp in partitions}


@settings(deadline=None)  # the machine may be busy
@given(st.lists(_PARTITIONS), st.randoms())
def test_every_partition_once_for_any_order_as_in_the_naive_way(
    partitions: list[SystemStreamPartition], random: Random
) -> None:
    """Any order and repetition gives the same tasks, each partition in one: those of a plain loop.

    The names distinguish the partitions, whatever characters the streams' names have.
    """
    shuffled = partitions * 2
    random.shuffle(shuffled)
    groupers: list[SystemStreamPartitionGrouper] = [
        GroupByPartition(CONFIG),
        GroupBySystemStreamPartition(CONFIG),
    ]
    for grouper, naive in zip(groupers, (_naive_by_partition, _naive_by_ssp), strict=True):
        answer = _sets(grouper.group(partitions, IDS))
        assert answer == _sets(grouper.group(shuffled, IDS[::-1])) == naive(partitions)
        assert sorted(s for ssps in answer.values() for s in ssps) == sorted(set(partitions))


@pytest.mark.parametrize(
    "item",
    ["kafka.r", "r#0", "kafka.r#", "kafka.r#-1", "kafka.r#[0]", "kafka.r#[2-1]", "kafka.r#[0-x]"],
)
def test_any_other_form_is_refused(item: str) -> None:
    """The message names the key and the item; a range that ends before it begins is one of them."""
    with pytest.raises(ConfigError) as caught:
        broadcast_partitions(Config({"task.broadcast.inputs": f"kafka.good#0,{item}"}))
    assert str(caught.value).startswith(f"task.broadcast.inputs = {item!r}: ")


EXPANDED = Config(
    {
        "job.name": "j",
        "job.default.system": "kafka",
        "task.inputs": "kafka.a,kafka.b",
        "stores.s.factory": "rocksdb",
        "stores.s.key.serde": "string",
        "stores.s.msg.serde": "string",
    }
)
A, B = SystemStream("kafka", "a"), SystemStream("kafka", "b")
BY_SSP = {"job.systemstreampartition.grouper.factory": "group-by-system-stream-partition"}


def _model(counts: Mapping[SystemStream, int], before: JobModel | None, **over: str) -> JobModel:
    config = EXPANDED.merged({key.replace("__", "."): value for key, value in over.items()})
    return calculate_job_model(config, counts, _previous(before) if before else NOTHING)


def _previous(model: JobModel) -> PreviousAssignment:
    tasks = {n: t for c in model.containers.values() for n, t in c.tasks.items()}
    return PreviousAssignment(
        task_partitions={n: frozenset(t.system_stream_partitions) for n, t in tasks.items()},
        changelog_partitions={n: t.changelog_partition for n, t in tasks.items()},
    )


def _partitions(model: JobModel) -> dict[str, dict[str, list[int]]]:
    found: dict[str, dict[str, list[int]]] = {}
    for container in model.containers.values():
        for name, task in container.tasks.items():
            for ssp in task.system_stream_partitions:
                found.setdefault(name, {}).setdefault(ssp.stream, []).append(ssp.partition)
    return found


@pytest.mark.parametrize("count", [3, 5, 1])
def test_g18_other_counts_are_refused(count: int) -> None:
    """G18: no multiple, or fewer: keys would leave their state; the message says what to do."""
    with pytest.raises(ConfigError) as caught:
        _model({A: count, B: 2}, _model({A: 2, B: 2}, None))
    key = "job.systemstreampartition.input.expansion.enabled"
    assert str(caught.value).startswith(
        f"{key} = 'true': input kafka.a has {count} partitions and had 2: "
    )
    assert str(caught.value).endswith(
        f"give it a multiple of 2 partitions, or set {key}=false and reset the state"
    )


def test_a_new_stream_is_grouped_as_ever() -> None:
    """Only streams that were read before can have state to follow."""
    before = _model({A: 2}, None, task__inputs="kafka.a")
    assert _partitions(_model({A: 4, B: 3}, before)) == {
        "Partition 0": {"a": [0, 2], "b": [0]},
        "Partition 1": {"a": [1, 3], "b": [1]},
        "Partition 2": {"b": [2]},
    }


def test_a_new_stream_joins_only_tasks_that_were_there() -> None:
    """Where each partition is a task, no task of before has a partition of the new stream."""
    over = {**BY_SSP, "stores.s.changelog": "kafka.c"}
    config = EXPANDED.merged(over)
    group = GroupBySystemStreamPartition(config).group
    before = {t: frozenset(own) for t, own in group([_ssp("a", 0), _ssp("a", 1)], IDS).items()}
    grown = group([_ssp(stream, n) for stream in "ab" for n in range(2)], IDS)
    assert _sets(expanded(config, grown, before)) == _sets(grown)


def test_a_task_that_reads_everything_goes_on_reading_everything() -> None:
    """A partition that several tasks had has no owner to go back to."""
    over = {
        "job__systemstreampartition__grouper__factory": "all-ssp-to-single-task",
        "job__container__count": "2",
    }
    grown = _model({A: 4, B: 1}, _model({A: 2, B: 1}, None, **over), **over)
    everything = {"a": [0, 1, 2, 3], "b": [0]}
    assert _partitions(grown) == {"Task-0": everything, "Task-1": everything}


def _naive(
    grouped: TaskPartitions, before: Mapping[TaskName, frozenset[SystemStreamPartition]]
) -> dict[SystemStreamPartition, TaskName]:
    """{partition: its task}, one partition at a time."""
    found = {}
    for task, ssps in grouped.items():
        for ssp in ssps:
            old = [s for o in before.values() for s in o if s.system_stream == ssp.system_stream]
            number = ssp.partition % len(old) if old else -1
            owners = [
                owner
                for owner, theirs in before.items()
                if any(s.partition == number and s.stream == ssp.stream for s in theirs)
            ]
            found[ssp] = owners[0] if owners else task
    return found


@settings(deadline=None)  # the machine may be busy
@given(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), min_size=1, max_size=3), st.data())
def test_every_partition_once_where_the_naive_way_puts_it(
    streams: list[tuple[int, int]], data: st.DataObject
) -> None:
    """Previous tasks of any names: each partition is in one task, that of its ancestor."""
    before: dict[TaskName, set[SystemStreamPartition]] = {}
    grouped: dict[TaskName, set[SystemStreamPartition]] = {}
    for i, (count, factor) in enumerate(streams):
        for n in range(count * factor):
            ssp = SystemStreamPartition("kafka", f"s.{i}", n)
            grouped.setdefault(TaskName(f"Partition {n}"), set()).add(ssp)
            if n < count:
                owner = TaskName(data.draw(st.sampled_from(["x-1", "Partition 0", "ü"])))
                before.setdefault(owner, set()).add(ssp)
    frozen = {task: frozenset(ssps) for task, ssps in before.items()}
    answer = expanded(EXPANDED, grouped, frozen)
    placed = [(ssp, task) for task, ssps in answer.items() for ssp in ssps]
    assert len(placed) == len(dict(placed))
    assert dict(placed) == _naive(grouped, frozen)
    assert all(answer.values())
