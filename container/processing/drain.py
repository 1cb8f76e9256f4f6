"""Drain: whether a container has processed what its input held when it was to end with that."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

Offsets = Mapping[SystemStreamPartition, int]


class Ends(Protocol):
    """What Kafka says of the ends of partitions."""

    def heads(self, partitions: Collection[SystemStreamPartition]) -> Offsets:
        """One past the last offset of each, undecided records included."""

    def holds_nothing(self, partition: SystemStreamPartition, start: int, head: int) -> bool:
        """Return whether [start, head) has no committed record and will have none."""

    def close(self) -> None:
        """No request follows."""


class Drain:
    """One order to drain: the heads as they are at the first question count, and no later ones.

    Args:
        ends: of Kafka.
    """

    def __init__(self, ends: Ends) -> None:
        self._ends = ends
        self._left: dict[SystemStreamPartition, int] | None = None

    def is_done(self, processed: Mapping[TaskName, Offsets], *, is_quiet: bool) -> bool:
        """Return whether everything below the heads is processed.

        Args:
            processed: of each task, the last processed offset of each of its partitions.
            is_quiet: whether no input comes for now. The last offsets may be ends of transactions,
                which are no records: a request to Kafka says so where a partition stands still.
        """
        following: dict[SystemStreamPartition, int] = {}
        for offsets in processed.values():
            for partition, offset in offsets.items():
                following[partition] = min(following.get(partition, offset + 1), offset + 1)
        if self._left is None:
            self._left = dict(self._ends.heads(following))
        for partition, head in list(self._left.items()):
            start = following[partition]
            if start >= head or (is_quiet and self._ends.holds_nothing(partition, start, head)):
                del self._left[partition]
        if self._left:
            return False
        self._ends.close()
        return True
