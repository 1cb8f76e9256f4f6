"""Reads an adjunct stream as the entries that a container makes of it, by the job's own classes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from homeport.config.errors import HomeportError, StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.extractor import Bytes
from homeport.container.adjunct.manager import TableManager
from homeport.container.adjunct.markers import markers_in
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.adjunct.versions import Progress, Run
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation.adjunct_start import replaying_manager
from homeport.container.kafka.input_consumer import table_of
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.restore import ChangelogRange
from homeport.container.storage.changelog_reader import Chunk
from homeport.job_coordinator.model.job_model import SystemStreamPartition

Ranges = Mapping[SystemStreamPartition, ChangelogRange]


@dataclass
class _Caught:
    """Implements ``AdjunctSink``: the entries of the last table that the manager was given."""

    entries: dict[bytes, bytes | None] = field(default_factory=dict)

    def take(self, _run: Run, keys: Bytes, values: Bytes) -> None:
        """The entries are the caller's."""
        pairs = zip(keys, values, strict=True)
        self.entries = {key: value for key, value in pairs if key is not None}


@dataclass(frozen=True)
class _Storage:
    """Implements ``BaseStorageManager``: every store of its kind has the one sink."""

    names: Collection[str]
    sink: _Caught

    def adjunct(self, store: str) -> _Caught | None:
        """The sink, where the store is of this storage."""
        return self.sink if store in self.names else None

    def reset_partitions(self) -> Collection[SystemStreamPartition]:
        """None: nothing is begun."""
        return []


class Replay:
    """Reads partitions of the stream of one store as the entries that its manager makes of them.

    Records that cannot be stored make none: a container has dropped them, or has ended.
    """

    def __init__(self, job: ContainerJob, planned: PlannedStore, reader: LogReader) -> None:
        """Nothing is read.

        Args:
            job: the view of the container whose store it is.
            planned: the store.
            reader: of the stream's system.

        Raises:
            ConfigError: a class of the job's own, or a serde, cannot be had.
            ManagerFailedError: the job's factory of managers failed.
        """
        self._planned = planned
        self._reader = reader
        self._sink = _Caught()
        kind = {n for n, s in job.adjuncts.items() if s.is_broadcast == planned.is_of_container}
        self._manager: TableManager = replaying_manager(job, planned, _Storage(kind, self._sink))

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        """The committed records of [start, head), the last value of each key per chunk.

        Raises:
            StoreError: a class of the job's own failed.
            UnavailableError: the stream cannot be read.
        """
        ssp = SystemStreamPartition(stream.system, stream.stream, partition)
        for messages in self._reader.read(stream.stream, partition, start, head):
            self._sink.entries = {}
            try:
                self._manager.process_table(table_of(self._planned.writer, ssp, messages))
            except HomeportError as error:
                raise StoreError(
                    f"{ssp.name} from offset {messages[0].offset()} on: {error}"
                ) from None
            yield Chunk(self._sink.entries, len(messages), messages[-1].offset() or 0)

    def of_version(
        self, ranges: Ranges, parts: Mapping[SystemStreamPartition, Progress]
    ) -> tuple[Ranges, bool]:
        """Where the records of a version that has ended lie; whether all of them are there.

        ``ranges``: what Kafka has. ``parts``: of the version. It begins behind the marker before
        its end, which the stream may have deleted.
        """
        found: dict[SystemStreamPartition, ChangelogRange] = {}
        is_whole = True
        for ssp, part in sorted(parts.items()):
            oldest, end = ranges[ssp].oldest, part.next - 1
            start = self._behind_last_marker(ssp, oldest, end)
            is_whole &= start is not None or oldest == 0
            found[ssp] = ChangelogRange(oldest if start is None else start, end)
        return found, is_whole

    def _behind_last_marker(self, ssp: SystemStreamPartition, start: int, end: int) -> int | None:
        """The offset behind the last marker of [start, end); None: there is none."""
        found = None
        for messages in (
            self._reader.read(ssp.stream, ssp.partition, start, end) if start < end else ()
        ):
            rows = table_of(self._planned.writer, ssp, messages)
            for index in markers_in(rows, self._planned.store.markers):
                found = (messages[index].offset() or 0) + 1
        return found
