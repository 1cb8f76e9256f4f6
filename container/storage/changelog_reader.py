"""ChangelogReader: how the stores of a container are handed what their changelogs hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from homeport.config.system_stream import SystemStream
from homeport.container.progress.restore import ChangelogRange, ChangelogTopic, RestorePlan
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.container_report import RestoreProgress


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive records of a changelog: {key: last value}, how many they were, their end."""

    entries: Mapping[bytes, bytes | None]
    records: int
    last_offset: int

    @property
    def size(self) -> int:
        """Return the bytes of all keys and values in ``entries``."""
        values = self.entries.values()
        return sum(map(len, self.entries)) + sum(len(v) for v in values if v is not None)


class RecordReader(Protocol):
    """How the records of a partition are read."""

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        """Yield the committed records of [start, head), in order."""


class ChangelogReader(RecordReader, Protocol):
    """How changelogs are read at a start."""

    def topics(self, changelogs: Sequence[SystemStream]) -> dict[SystemStream, ChangelogTopic]:
        """Return what the broker knows of each stream."""

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[ChangelogRange]:
        """Return the oldest offset and the head of each (stream, partition), in the order given."""


class RestoreListener(Protocol):
    """The receiver of reports on restores."""

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        """Note that the store is about to be read from ``plan.start`` on."""

    def restore_progress(self, progress: RestoreProgress) -> None:
        """Note the progress of a store's restore, about once a second while it reads."""

    def restore_finished(self, store: str, task_name: TaskName, result: Restored) -> None:
        """Note that the store stands at the head."""
