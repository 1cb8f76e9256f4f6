"""Input expansion: more partitions, the same tasks."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.input_expansion import expanded
from homeport.job_coordinator.grouper.job_model_calculator import calculate_job_model
from homeport.job_coordinator.grouper.previous_assignment import NOTHING, PreviousAssignment
from homeport.job_coordinator.grouper.ssp_grouper import TaskPartitions
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStream, SystemStreamPartition

CONFIG = Config(
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
    config = CONFIG.merged({key.replace("__", "."): value for key, value in over.items()})
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
    answer = expanded(CONFIG, grouped, frozen)
    placed = [(ssp, task) for task, ssps in answer.items() for ssp in ssps]
    assert len(placed) == len(dict(placed))
    assert dict(placed) == _naive(grouped, frozen)
    assert all(answer.values())
