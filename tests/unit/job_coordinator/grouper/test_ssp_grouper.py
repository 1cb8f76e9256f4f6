"""Groupers of partitions into tasks."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeport.config.errors import ConfigError
from homeport.job_coordinator.grouper.ssp_grouper import GroupByPartition, ssp_grouper
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_PARTITIONS = st.builds(
    SystemStreamPartition,
    st.sampled_from(["kafka", "other"]),
    st.sampled_from(["a", "b", "c"]),
    st.integers(0, 12),
)


def _ssp(stream: str, partition: int) -> SystemStreamPartition:
    return SystemStreamPartition("kafka", stream, partition)


def test_partitions_of_one_number_make_a_task() -> None:
    """Samza's G17: a.0, a.1, b.0, c.1 become Partition 0 {a.0, b.0} and Partition 1 {a.1, c.1}."""
    partitions = [_ssp("c", 1), _ssp("b", 0), _ssp("a", 1), _ssp("a", 0)]
    assert dict(GroupByPartition().group(partitions, frozenset())) == {
        "Partition 0": (_ssp("a", 0), _ssp("b", 0)),
        "Partition 1": (_ssp("a", 1), _ssp("c", 1)),
    }


def test_a_broadcast_partition_is_in_every_task() -> None:
    """Samza's G17: broadcast c.0 gives rise to no task and is in each, named as input or not."""
    broadcast = frozenset({_ssp("c", 0)})
    expected = {
        "Partition 1": (_ssp("a", 1), _ssp("c", 0)),
        "Partition 2": (_ssp("a", 2), _ssp("c", 0)),
    }
    inputs = [_ssp("a", 1), _ssp("a", 2)]
    assert dict(GroupByPartition().group(inputs, broadcast)) == expected
    assert dict(GroupByPartition().group([*inputs, _ssp("c", 0)], broadcast)) == expected


def test_without_other_inputs_there_is_no_task() -> None:
    """Broadcast inputs alone give no task."""
    broadcast = frozenset({_ssp("c", 0)})
    assert not GroupByPartition().group(broadcast, broadcast)


@settings(deadline=None)  # the machine may be busy
@given(st.lists(_PARTITIONS), st.frozensets(_PARTITIONS, max_size=3), st.randoms())
def test_the_order_of_the_input_does_not_matter(
    partitions: list[SystemStreamPartition],
    broadcast: frozenset[SystemStreamPartition],
    random: Random,
) -> None:
    """Any order and repetition of the same partitions gives the same answer in the same order."""
    grouper = GroupByPartition()
    shuffled = partitions * 2
    random.shuffle(shuffled)
    first = grouper.group(partitions, broadcast)
    second = grouper.group(shuffled, broadcast)
    assert list(first.items()) == list(second.items())
    own = [ssp for ssps in first.values() for ssp in ssps if ssp not in broadcast]
    assert sorted(own) == sorted(set(partitions) - broadcast)
    assert all(broadcast.issubset(ssps) for ssps in first.values())


def test_the_factory_is_found_by_samzas_name() -> None:
    """The table holds Samza's name; another name is refused with the ones there are."""
    name = "org.apache.samza.container.grouper.stream.GroupByPartitionFactory"
    assert isinstance(ssp_grouper(name), GroupByPartition)
    with pytest.raises(ConfigError, match=r"grouper\.factory = 'x'.*GroupByPartitionFactory"):
        ssp_grouper("x")
