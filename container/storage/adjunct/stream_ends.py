"""StreamEnds: where the streams of adjunct stores end, polled from time to time."""

from collections.abc import Iterator, Mapping
from typing import Protocol

from homeport.container.progress.follow import Followed, HeadPoll
from homeport.container.progress.refusal import Refusal
from homeport.container.storage.task_store import Position
from homeport.job_coordinator.model.job_model import SystemStreamPartition


class Watch(Protocol):
    """Polls the ends of the partitions of one system."""

    def ask(self) -> bool:
        """Begin a poll; return False while an earlier poll is under way."""

    def polled(self) -> Mapping[Position, HeadPoll]:
        """Return the outcome of the last poll; nothing until it is there."""

    def close(self) -> None:
        """End the polls."""


class StreamEnds:
    """One thread; ``watches`` {system: polls the ends of its partitions}."""

    def __init__(
        self, followed: Mapping[SystemStreamPartition, Followed], watches: Mapping[str, Watch]
    ) -> None:
        self._followed = followed
        self._watches = watches

    def poll(self) -> None:
        """Request the ends; a later call of ``faults`` takes them."""
        for system, watch in self._watches.items():
            if watch.ask():
                for partition, followed in self._followed.items():
                    if partition.system == system:
                        followed.ask()

    def faults(self) -> Iterator[tuple[SystemStreamPartition, Refusal]]:
        """Take the answers to the last request; yield why a store cannot go on."""
        for system, watch in self._watches.items():
            for (topic, number), poll in watch.polled().items():
                partition = SystemStreamPartition(system, topic, number)
                fault = self._followed[partition].take_heads(poll)
                if fault is not None:
                    yield partition, fault

    def close(self) -> None:
        """End the threads that poll."""
        for watch in self._watches.values():
            watch.close()
