"""ChangelogReader: how a container reads the changelogs of its stores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from homeport.config.system_stream import SystemStream
from homeport.container.progress.restore import ChangelogTopic, OffsetRange, RestorePlan
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.container_report import RestoreProgress


@dataclass(frozen=True, slots=True)
class Chunk:
    """Consecutive records of a changelog: {key: last value}, their number, and their end."""

    entries: Mapping[bytes, bytes | None]
    records: int
    last_offset: int

    @property
    def size(self) -> int:
        """Return the bytes of all keys and values in ``entries``."""
        values = self.entries.values()
        return sum(map(len, self.entries)) + sum(len(v) for v in values if v is not None)


class RecordReader(Protocol):
    """Reads the records of partitions."""

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        """Yield the committed records of [start, head), in order."""


class ChangelogReader(RecordReader, Protocol):
    """Reads changelogs at a start."""

    def topics(self, changelogs: Sequence[SystemStream]) -> dict[SystemStream, ChangelogTopic]:
        """Return the broker's answer about each stream."""

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[OffsetRange]:
        """Return the oldest offset and the head of each (stream, partition), in the order given."""


class RestoreReader(ChangelogReader, Protocol):
    """Reads many partitions together."""

    def read_all(
        self, spans: Mapping[tuple[SystemStream, int], tuple[int, int]]
    ) -> Iterator[tuple[tuple[SystemStream, int], Chunk]]:
        """Yield ((stream, partition), chunk as of ``read``) for each [start, head) of ``spans``."""


class RestoreListener(Protocol):
    """The receiver of reports on restores."""

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        """Note that the store's changelog is read from ``plan.start`` on."""

    def restore_progress(self, progress: RestoreProgress) -> None:
        """Note the progress of a store's restore, about once a second while it reads."""

    def restore_finished(self, store: str, task_name: TaskName, result: Restored) -> None:
        """Note that the store stands at the head."""
