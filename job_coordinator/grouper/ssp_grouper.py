"""SystemStreamPartitionGrouper: which input partitions make up which task.

PURE. A grouper is a function of the set it is given: no order of arrival, no metadata, no
configuration. Task names are identities (of state, of checkpoints), so a grouper must give the same
partitions the same name for ever.

Broadcast partitions take no part in the grouping: they are added to every task that the others gave
rise to, so a job whose inputs are all broadcast has no tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Protocol

from homeport.config import keys
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

TaskPartitions = Mapping[TaskName, tuple[SystemStreamPartition, ...]]
"""{task name: its input partitions, sorted}, in the order of the names."""


class SystemStreamPartitionGrouper(Protocol):
    """A way to form tasks."""

    def group(
        self,
        partitions: Iterable[SystemStreamPartition],
        broadcast: frozenset[SystemStreamPartition],
    ) -> TaskPartitions:
        """The tasks of these input partitions; every one of ``broadcast`` is in every task."""


class GroupByPartition:
    """All partitions of one number, of whatever stream, make up one task: ``Partition <n>``.

    Streams that are to be joined must therefore be partitioned alike.
    """

    def group(
        self,
        partitions: Iterable[SystemStreamPartition],
        broadcast: frozenset[SystemStreamPartition],
    ) -> TaskPartitions:
        """The tasks ``Partition <n>``; see the protocol."""
        tasks: dict[TaskName, set[SystemStreamPartition]] = {}
        for ssp in partitions:
            if ssp not in broadcast:
                tasks.setdefault(TaskName(f"Partition {ssp.partition}"), set(broadcast)).add(ssp)
        return {name: tuple(sorted(tasks[name])) for name in sorted(tasks)}


SSP_GROUPERS: Mapping[str, Callable[[], SystemStreamPartitionGrouper]] = MappingProxyType(
    {"org.apache.samza.container.grouper.stream.GroupByPartitionFactory": GroupByPartition}
)
"""Groupers by Samza's name of their factory."""


def ssp_grouper(factory: str) -> SystemStreamPartitionGrouper:
    """The grouper that ``factory`` (Samza's name) stands for; ConfigError where there is none."""
    if factory not in SSP_GROUPERS:
        known = ", ".join(sorted(SSP_GROUPERS))
        raise ConfigError(
            keys.JOB_SSP_GROUPER_FACTORY.name,
            factory,
            "no such grouper of partitions",
            f"use one of: {known}",
        )
    return SSP_GROUPERS[factory]()
