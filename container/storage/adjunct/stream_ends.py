"""StreamEnds: where the streams of adjunct stores end, by looks from time to time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Protocol

from homeport.container.adjunct.following import FollowedPartition
from homeport.container.progress.follow import Look
from homeport.container.progress.refusal import Refusal
from homeport.container.storage.task_store import Position
from homeport.job_coordinator.model.job_model import SystemStreamPartition


class Watch(Protocol):
    """Where the partitions of one system end."""

    def ask(self) -> bool:
        """Begin a look; return False while the one before it is under way."""

    def looks(self) -> Mapping[Position, Look]:
        """Return the outcome of the last look; nothing until it is there."""

    def close(self) -> None:
        """End the looks."""


class StreamEnds:
    """One thread.

    Args:
        followed: {partition: where its store stands}.
        watches: {system: where those of its partitions end that are looked at}.
    """

    def __init__(
        self,
        followed: Mapping[SystemStreamPartition, FollowedPartition],
        watches: Mapping[str, Watch],
    ) -> None:
        self._followed = followed
        self._watches = watches
        self._asked: dict[SystemStreamPartition, int] = {}

    def look(self) -> None:
        """Request the ends; a later call of ``looked`` has them."""
        for system, watch in self._watches.items():
            if watch.ask():
                for partition, followed in self._followed.items():
                    if partition.system == system:
                        self._asked[partition] = followed.next

    def looked(self) -> Iterator[tuple[SystemStreamPartition, Refusal]]:
        """Take the answers to the last request; yield why a store cannot go on."""
        for system, watch in self._watches.items():
            for (topic, number), look in watch.looks().items():
                partition = SystemStreamPartition(system, topic, number)
                fault = self._followed[partition].looked(look, self._asked[partition])
                if fault is not None:
                    yield partition, fault

    def close(self) -> None:
        """End the threads that look."""
        for watch in self._watches.values():
            watch.close()
