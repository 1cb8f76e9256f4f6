"""The stores of one container: opened, restored, changed by transactions, committed, closed."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from homeport.config.errors import StoreError, WireError
from homeport.config.sections import StoreConfig
from homeport.config.system_stream import SystemStream
from homeport.container.disk_space import DiskFullError
from homeport.container.progress.commit import Changes
from homeport.container.progress.directories import task_directory
from homeport.container.progress.restore import (
    ChangelogRange,
    ChangelogTopic,
    LocalState,
    RestorePlan,
    plan_restore,
    restored,
)
from homeport.container.progress.store_meta import Expectation, StoreMeta, is_meta_due
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.overlay import Overlay
from homeport.job_coordinator.http.messages import Restored
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel

_LOG = logging.getLogger(__name__)

Position = tuple[str, int]
"""(topic, partition) of a changelog."""


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True)
class Chunk:
    """Some consecutive records of a changelog: {key: last value}, how many they were, their end."""

    entries: Mapping[bytes, bytes | None]
    records: int
    last_offset: int


class ChangelogReader(Protocol):
    """How changelogs are read at a start."""

    def topics(self, changelogs: Sequence[SystemStream]) -> dict[SystemStream, ChangelogTopic]:
        """What the broker says of each stream."""

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[ChangelogRange]:
        """Oldest offset and head of each (stream, partition), in the order given."""

    def read(self, stream: SystemStream, partition: int, start: int, head: int) -> Iterator[Chunk]:
        """The committed records of [start, head), in order."""


class RestoreListener(Protocol):
    """Who is told how restores go."""

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        """The store is about to be read from ``plan.start`` on."""

    def restore_finished(self, store: str, task_name: TaskName, result: Restored) -> None:
        """The store stands at the head."""


@dataclass
class TaskStore:
    """One store of one task. ``committed_offset`` is what OFFSET says; None: there is no file.

    ``expected``: what STORE-META is to say; None before the restore, and without a changelog.
    ``at_head_ms``: when the store was last known to hold all that its changelog held.
    """

    config: StoreConfig
    task: TaskModel
    directory: StoreDirectory
    local: LocalState
    rocks: RocksDbStore | None
    overlay: Overlay | None = None
    position: int | None = None
    committed_offset: int | None = None
    expected: Expectation | None = None
    at_head_ms: int = 0

    @property
    def name(self) -> str:
        """``<store>/<task>``, for people."""
        return f"{self.config.name}/{self.task.task_name}"

    def opened(self) -> RocksDbStore:
        """The open store."""
        if self.rocks is None:
            raise StoreError(f"{self.directory.path}: the store is not open")
        return self.rocks


@dataclass
class ContainerStorage:
    """All stores of all tasks of one container.

    ``logged_root`` holds stores with a changelog, ``scratch_root`` those without, which live no
    longer than their container. ``grouper``: the class that made the tasks of the input.
    """

    logged_root: Path
    scratch_root: Path
    stores: Sequence[StoreConfig]
    tasks: Sequence[TaskModel]
    memory_bytes: int
    grouper: str
    wall_ms: Callable[[], int] = _wall_ms
    _opened: list[TaskStore] = field(default_factory=list)
    _sending_ms: int = 0

    def open(self) -> None:
        """Every directory is locked and every store that can be opened is open.

        A store that cannot be is marked for a rebuild.

        Raises:
            StoreError: another process holds a directory.
        """
        self._memory = RocksDbMemory(self.memory_bytes, len(self.stores) * len(self.tasks))
        for config in self.stores:
            root = self.scratch_root if config.changelog is None else self.logged_root
            for task in self.tasks:
                directory = StoreDirectory(root / task_directory(config.name, task.task_name))
                self._opened.append(self._open_one(config, task, directory))

    def _open_one(
        self, config: StoreConfig, task: TaskModel, directory: StoreDirectory
    ) -> TaskStore:
        if config.changelog is None:
            directory.empty()
        if not directory.has_content:
            return TaskStore(config, task, directory, LocalState(exists=False), None)
        try:
            offset, meta = _files(directory)
        except WireError as error:
            local = LocalState(exists=True, fault=str(error))
            return TaskStore(config, task, directory, local, None)
        rocks: RocksDbStore | None = None
        try:
            rocks = RocksDbStore(directory.path, self._memory)
            local = LocalState(exists=True, position=rocks.position, offset_file=offset, meta=meta)
        except DiskFullError:
            # No fault of the store's: rebuilding it would throw away what is whole.
            raise
        except StoreError as error:
            if rocks is not None:
                rocks.close()
            local, rocks = LocalState(exists=True, fault=str(error)), None
        return TaskStore(config, task, directory, local, rocks, committed_offset=offset)

    def restore(
        self, reader: ChangelogReader, listener: RestoreListener
    ) -> dict[str, dict[str, Restored]]:
        """Every store holds what its changelog holds, up to its head; {store: {task: how}}.

        OFFSET of each names that head, and STORE-META when it stood there.
        """
        logged = [s for s in self._opened if s.config.changelog is not None]
        places = [(_changelog(s), s.task.changelog_partition) for s in logged]
        topics = reader.topics([stream for stream, _ in places])
        # Before the heads are asked for: at that time each store will have held all there was.
        now_ms = self.wall_ms()
        results: dict[str, dict[str, Restored]] = {}
        for store, changelog in zip(logged, reader.ranges(places), strict=True):
            expected = self._expectation(store, topics[_changelog(store)], now_ms)
            plan = plan_restore(store.local, changelog, expected)
            listener.restore_started(store.config.name, store.task.task_name, plan)
            result = restored(plan, self._read(store, plan, reader))
            store.expected, store.at_head_ms = expected, now_ms
            listener.restore_finished(store.config.name, store.task.task_name, result)
            results.setdefault(store.config.name, {})[store.task.task_name] = result
        for store in self._opened:
            if store.rocks is None:
                store.rocks = RocksDbStore(store.directory.path, self._memory)
            store.overlay = Overlay(store.rocks)
        self.commit()
        return results

    def _expectation(self, store: TaskStore, topic: ChangelogTopic, now_ms: int) -> Expectation:
        task, changelog = store.task, _changelog(store)
        meta = StoreMeta(
            changelog=f"{changelog} partition {task.changelog_partition}",
            topic_id=topic.topic_id,
            ssps=tuple(sorted(str(ssp) for ssp in task.system_stream_partitions)),
            grouper=self.grouper,
            at_head_ms=now_ms,
        )
        return Expectation(meta, topic.delete_retention_ms)

    def _read(self, store: TaskStore, plan: RestorePlan, reader: ChangelogReader) -> int:
        if plan.reason is not None:
            level = logging.WARNING if plan.rebuild else logging.INFO
            _LOG.log(level, "store %s is read in full: %s", store.name, plan.reason)
        if plan.rebuild:
            if store.rocks is not None:
                store.rocks.close()
                store.rocks = None
            store.directory.empty()
            store.committed_offset = None
            store.local = LocalState(exists=False)
        if store.rocks is None:
            store.rocks = RocksDbStore(store.directory.path, self._memory)
        records = 0
        if plan.start < plan.head:
            partition = store.task.changelog_partition
            for chunk in reader.read(_changelog(store), partition, plan.start, plan.head):
                store.rocks.write(chunk.entries, chunk.last_offset)
                records += chunk.records
        if plan.head > 0:
            # The head may lie beyond the last record: transaction markers take offsets too.
            store.position = plan.head - 1
            if store.rocks.position != store.position:
                store.rocks.write({}, store.position)
        return records

    def overlay(self, store: str, task_name: TaskName) -> Overlay:
        """The overlay of one store of one task; StoreError before ``restore``."""
        for item in self._opened:
            if (item.config.name, item.task.task_name) == (store, task_name) and item.overlay:
                return item.overlay
        raise StoreError(f"store {store} of task {task_name} is not open")

    @property
    def size_bytes(self) -> int:
        """Bytes written to all stores by the open transaction."""
        return sum(item.overlay.size_bytes for item in self._opened if item.overlay)

    def changes(self) -> list[Changes]:
        """What the open transaction changed in stores with a changelog; it is to be sent now."""
        self._sending_ms = self.wall_ms()
        return [
            Changes(
                item.config.name,
                item.task.task_name,
                item.config.changelog,
                item.task.changelog_partition,
                item.overlay.entries(),
            )
            for item in self._opened
            if item.overlay and item.config.changelog is not None and item.overlay.entries()
        ]

    def apply(self, positions: Mapping[Position, int]) -> None:
        """The open transaction's changes are in RocksDB; it was committed with these positions.

        Shapes: ``positions`` {(changelog topic, partition): offset of the last record}.
        """
        for item in self._opened:
            # A commit shows that nobody else had written by then, to any of these changelogs.
            item.at_head_ms = self._sending_ms
            if item.overlay is None or not item.overlay.entries():
                continue
            if item.config.changelog is not None:
                place = (item.config.changelog.stream, item.task.changelog_partition)
                item.position = positions[place]
            item.opened().write(item.overlay.entries(), item.position)
            item.overlay.clear()

    def drop(self) -> None:
        """The open transaction's changes are gone."""
        for item in self._opened:
            if item.overlay is not None:
                item.overlay.clear()

    def has_first_changes(self) -> bool:
        """Whether a store holds something but has no OFFSET yet.

        A crash would have it rebuilt in full, so its first commit is not put off.
        """
        return any(
            item.position is not None and item.committed_offset is None for item in self._opened
        )

    def commit(self) -> int:
        """Every store that moved is flushed and its OFFSET names where it stood; how many moved.

        OFFSET gets the position that the store had before the flush began (safety S1); STORE-META,
        after it, when that was the head (safety S2).
        """
        moved = 0
        for item in self._opened:
            position, at_head_ms = item.position, item.at_head_ms
            if position is None:
                continue
            has_moved = position != item.committed_offset
            if has_moved:
                item.opened().flush()
                place = item.task.changelog_partition
                item.directory.write_offset(_changelog(item), place, position)
                item.committed_offset = position
                moved += 1
            self._write_meta(item, at_head_ms, is_wanted=has_moved)
        return moved

    def _write_meta(self, item: TaskStore, at_head_ms: int, *, is_wanted: bool) -> None:
        if item.expected is None:
            return
        meta = replace(item.expected.meta, at_head_ms=at_head_ms)
        if is_wanted or is_meta_due(item.local.meta, meta, item.expected.delete_retention_ms):
            item.directory.write_meta(meta)
            item.local = replace(item.local, meta=meta)

    def close(self) -> None:
        """Nothing is open or locked; writes of an open transaction are gone."""
        for item in self._opened:
            if item.rocks is not None:
                item.rocks.close()
            item.directory.release()
        self._opened.clear()


def _files(directory: StoreDirectory) -> tuple[int | None, StoreMeta | None]:
    """What OFFSET and STORE-META say; WireError, in one line, where one of them is damaged."""
    try:
        offset = directory.read_offset()
    except WireError as error:
        raise WireError(f"OFFSET is damaged: {error}") from None
    try:
        return offset, directory.read_meta()
    except WireError as error:
        raise WireError(f"STORE-META is damaged: {error}") from None


def _changelog(store: TaskStore) -> SystemStream:
    if store.config.changelog is None:
        raise StoreError(f"store {store.config.name} has no changelog")
    return store.config.changelog
