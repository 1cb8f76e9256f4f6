"""Groupers of partitions into tasks."""

from __future__ import annotations

from itertools import groupby
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.ssp_grouper import (
    AllSspToSingleTask,
    GroupByPartition,
    GroupBySystemStreamPartition,
    SystemStreamPartitionGrouper,
    TaskPartitions,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import SystemStreamPartition

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
