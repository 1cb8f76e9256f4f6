"""Adjunct stores in ``homeport state``: where they stand, and whether they are right.

They are right where they hold what their streams hold, up to where they stand.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from confluent_kafka import Message

from homeport.cli.formatting import number
from homeport.cli.host.job_on_host import JobFolder, RecordedJob
from homeport.cli.host.state_verify import Answer
from homeport.config.errors import ConfigError, HomeportError, StoreError
from homeport.config.settings.stores_section import StorageConfig
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.extractor import Bytes
from homeport.container.adjunct.manager import TableManager, markers_in
from homeport.container.adjunct.recovery import StreamNow, recover
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.adjunct.user_manager import ManagerFailedError
from homeport.container.adjunct.versions import Progress, Run
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation.adjunct_start import replaying_manager
from homeport.container.kafka.arrow_records import records_of
from homeport.container.kafka.batch_tables import Piece, table_of
from homeport.container.kafka.client_properties import PartitionError
from homeport.container.kafka.log_reader import LogReader, offset_ranges, topic_ids
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.restore import OffsetRange
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.adjunct.store_look import AdjunctLook, VisibleView, look
from homeport.container.storage.changelog_reader import Chunk
from homeport.container.storage.state_comparison import (
    Changelog,
    Comparison,
    compare_with_changelogs,
)
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_SCRATCH_BYTES = 32 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class ShownAdjunct:
    """One adjunct store on this host.

    ``behind``: offsets up to the ends of its stream; None: not known. ``reason``: why a start would
    fill it again; None: it would not.
    """

    planned: PlannedStore
    look: AdjunctLook
    behind: int | None
    reason: str | None

    def fields(self) -> dict[str, Any]:
        """Return how its directory stands, as fields of ``ShownDirectory``."""
        store, facts = self.planned.store, self.look.facts
        return {
            "kind": "broadcast" if store.is_broadcast else "partitioned",
            "behind": self.behind,
            "is_valid": self.reason is None,
            "reason": self.reason,
            "input": str(store.stream),
            "records": None if facts is None else facts.records,
            "version": None if facts is None else facts.version,
            "positions": _texts(self.look.found.positions),
        }

    def __str__(self) -> str:
        parts = [f"from {self.planned.store.stream} up to {_at(self.look.found.positions)}"]
        if self.behind is not None:
            parts.append(f"{self.behind} behind")
        facts = self.look.facts
        if facts is not None:
            parts.append(number(facts.records, "record"))
            if facts.version is not None:
                parts.append(f"version {facts.version}")
        return ", ".join(parts)


def shown(
    job: RecordedJob,
    planned: PlannedStore,
    path: Path,
    readers: Mapping[str, LogReader],
    now: ClockReading,
) -> ShownAdjunct:
    """Look at the store ``planned``, whose directory is ``path``."""
    store = planned.store
    # Before the request of the ends: a store that goes on is never seen ahead of them.
    looked = look(path, planned, StorageConfig.of(job.config).stores[store.name].factory)
    own = {store.stream.system: readers[store.stream.system]}
    try:
        topic_id = topic_ids(own, [store.stream])[store.stream]
        ranges = offset_ranges(own, planned.partitions)
        names = [] if store.is_bounded else [store.stream.stream]
        kept = own[store.stream.system].deletions_kept(names)
    except PartitionError as error:
        return ShownAdjunct(planned, looked, None, str(error))
    stream = StreamNow(topic_id, ranges, now, kept.get(store.stream.stream))
    recovery = recover(store, looked.found, stream, lambda ssp: InputPosition(ranges[ssp].oldest))
    positions = looked.found.positions
    behind = sum(max(0, ranges[p].head - at) for p, at in positions.items() if p in ranges)
    reason = None if recovery.refusal is None else recovery.refusal.story
    if not looked.found.exists:
        reason = "nothing is in it"
    return ShownAdjunct(planned, looked, behind, reason)


def _texts(positions: Mapping[SystemStreamPartition, int]) -> dict[str, int]:
    return {str(ssp.partition): at for ssp, at in sorted(positions.items())}


def _at(positions: Mapping[SystemStreamPartition, int]) -> str:
    return ", ".join(f"{p}: {at}" for p, at in _texts(positions).items()) or "no partition"


def with_streams(
    job: RecordedJob, folders: Sequence[JobFolder], store: str | None, task: str | None
) -> Iterator[Answer]:
    """Compare each adjunct store that is there with its stream, up to its own position.

    ``store``, ``task``: as for ``chosen_stores`` and ``chosen_tasks``; a store of a container
    is of each of its tasks.
    """
    names = None if task is None else {t.task_name for t in job.chosen_tasks(task)}
    with job.readers() as readers:
        for folder in folders:
            for directory, planned in job.adjuncts.items():
                is_wanted = store in {None, planned.store.name}
                if names is not None and names.isdisjoint(planned.readers):
                    is_wanted = False
                path = folder.path / directory
                if is_wanted and path.is_dir():
                    yield _with_stream(job, planned, path, readers)


def _with_stream(
    job: RecordedJob, planned: PlannedStore, path: Path, readers: Mapping[str, LogReader]
) -> Answer:
    store = planned.store
    task = path.name if store.is_broadcast else str(planned.writer)
    against = f"{store.stream} partition {', '.join(str(p.partition) for p in planned.partitions)}"
    answer = Answer(path, store.name, task, against)
    try:
        # The store before its stream: what it has was in the stream by then.
        factory = StorageConfig.of(job.config).stores[store.name].factory
        with closing(VisibleView(path, factory)) as view:
            positions = {ssp: part.next for ssp, part in view.parts.items()}
            ranges = offset_ranges({store.stream.system: readers[store.stream.system]}, positions)
            for ssp, at in positions.items():
                if at > ranges[ssp].head:
                    fault = f"position {at} is beyond the end {ranges[ssp].head} of {ssp}"
                    return replace(answer, fault=fault)
            found = _compared(job, planned, view, ranges, readers[store.stream.system])
            return replace(answer, positions=_texts(positions), comparison=found)
    except (StoreError, PartitionError, ConfigError, ManagerFailedError) as error:
        return replace(answer, fault=str(error))


def _compared(
    job: RecordedJob, planned: PlannedStore, view: VisibleView, ranges: Ranges, reader: LogReader
) -> Comparison:
    store = planned.store
    policy = job.cleanup_policy(store.stream)
    owner = next(name for name, c in job.model.containers.items() if planned.writer in c.tasks)
    entries = Replay(job.view_of(owner), planned, reader)
    kept = ranges
    if store.is_bounded:
        # A version is whole, whatever came before it, unless something of it was deleted.
        kept, is_whole = entries.of_version(ranges, view.parts)
        forgets = "compact" in policy or not is_whole
    else:
        # Without bootstrap a store begins where the checkpoint was: it need not have what lies
        # before.
        forgets = "delete" in policy or not store.is_bootstrap
    logs = [
        Changelog(store.stream, ssp.partition, kept[ssp], part.next - 1, forgets)
        for ssp, part in sorted(view.parts.items())
    ]
    memory = RocksDbMemory(_SCRATCH_BYTES, len(logs))
    with tempfile.TemporaryDirectory(prefix="homeport-") as scratch:
        stores = [RocksDbStore(Path(scratch, str(n)), memory) for n in range(len(logs))]
        try:
            return compare_with_changelogs(view.scan(), logs, entries, stores)
        finally:
            for digests in stores:
                digests.close()


Ranges = Mapping[SystemStreamPartition, OffsetRange]


@dataclass
class _Caught:
    """Implements ``AdjunctSink``: the entries of the last table that the manager was given."""

    entries: dict[bytes, bytes | None] = field(default_factory=dict)

    def take(self, _run: Run, keys: Bytes, values: Bytes) -> None:
        pairs = zip(keys, values, strict=True)
        self.entries = {key: value for key, value in pairs if key is not None}


@dataclass(frozen=True)
class _Storage:
    """Implements ``BaseStorageManager``: every store of its kind has the one sink."""

    names: Collection[str]
    sink: _Caught

    def adjunct(self, store: str) -> _Caught | None:
        return self.sink if store in self.names else None

    def reset_partitions(self) -> Collection[SystemStreamPartition]:
        return []


class Replay:
    """Reads partitions of the stream of one store as the entries that its manager makes of them.

    Records that cannot be stored make none: a container has dropped them, or has ended.
    """

    def __init__(self, job: ContainerJob, planned: PlannedStore, reader: LogReader) -> None:
        """``job``: the view of the container that has the store. ``reader``: of its system."""
        self._planned = planned
        self._reader = reader
        self._sink = _Caught()
        kind = {n for n, s in job.adjuncts.items() if s.is_broadcast == planned.is_of_container}
        self._manager: TableManager = replaying_manager(job, planned, _Storage(kind, self._sink))

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        """Yield the committed records of [start, head), per chunk the last value of a key.

        StoreError: a class of the job's own failed. UnavailableError: the stream cannot be
        read.
        """
        ssp = SystemStreamPartition(stream.system, stream.stream, partition)
        for messages in self._reader.read(stream.stream, partition, start, head):
            self._sink.entries = {}
            try:
                self._manager.process_table(self._rows(ssp, messages))
            except HomeportError as error:
                raise StoreError(
                    f"{ssp.name} from offset {messages[0].offset()} on: {error}"
                ) from None
            yield Chunk(self._sink.entries, len(messages), messages[-1].offset() or 0)

    def of_version(
        self, ranges: Ranges, parts: Mapping[SystemStreamPartition, Progress]
    ) -> tuple[Ranges, bool]:
        """Return where the records of an ended version lie; whether all of them are there.

        ``ranges``: what Kafka has. ``parts``: of the version. It begins behind the marker
        before its end, which the stream may have deleted.
        """
        found: dict[SystemStreamPartition, OffsetRange] = {}
        is_whole = True
        for ssp, part in sorted(parts.items()):
            oldest, end = ranges[ssp].oldest, part.next - 1
            start = self._behind_last_marker(ssp, oldest, end)
            is_whole &= start is not None or oldest == 0
            found[ssp] = OffsetRange(oldest if start is None else start, end)
        return found, is_whole

    def _rows(self, ssp: SystemStreamPartition, messages: Sequence[Message]) -> pa.Table:
        records = records_of(messages)
        # No batch has a bound here: the size is not read.
        return table_of([Piece(self._planned.writer, ssp, records, 0, len(messages), 0)])

    def _behind_last_marker(self, ssp: SystemStreamPartition, start: int, end: int) -> int | None:
        """Return the offset behind the last marker of [start, end); None: there is none."""
        found = None
        for messages in (
            self._reader.read(ssp.stream, ssp.partition, start, end) if start < end else ()
        ):
            rows = self._rows(ssp, messages)
            for index in markers_in(rows, self._planned.store.markers):
                found = (messages[index].offset() or 0) + 1
        return found
