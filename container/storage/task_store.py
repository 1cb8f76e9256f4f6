"""TaskStore: one store of one task: its directory, its engine, where it stands, its OFFSET."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from homeport.config.errors import StoreError, WireError
from homeport.config.settings.stores_section import StoreConfig
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.steps import AdjunctStep
from homeport.container.engine.storage_engine import (
    DamagedStoreError,
    PersistentEngineFactory,
    StayingEngine,
    StorageEngine,
)
from homeport.container.host.disk_space import DiskError
from homeport.container.progress.clock_reading import NEVER, ClockReading
from homeport.container.progress.offset_file import ForeignOffsetError
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.restore import LocalState
from homeport.container.progress.store_meta import (
    FORMAT,
    META_FILE,
    StoreMeta,
    is_meta_due,
    meta_text,
    parse_meta,
)
from homeport.container.progress.transaction_plan import (
    Changes,
    FlushAction,
    FlushStep,
    Step,
    StoreId,
    StoreProgress,
    flush_plan,
)
from homeport.container.storage.directory import DirectoryFiles, StoreDirectory
from homeport.container.storage.overlay import Overlay
from homeport.container.storage.storage_engines import StorageEngines, persistent_engine
from homeport.job_coordinator.model.job_model import TaskMode, TaskModel

Position = tuple[str, int]
"""(topic, partition) of a changelog."""
Reached = Callable[[Step | FlushStep | AdjunctStep], None]
"""Gets each step of a plan, before it or when it is done. A job itself uses ``passed``."""


def passed(_step: Step | FlushStep | AdjunctStep) -> None:
    """Do nothing between two steps."""


@dataclass
class TaskStore:
    """One store of one task. ``flushed_offset``: the offset in OFFSET; None: there is no file.

    ``expected``: the STORE-META of its directory; None before the restore, and without a changelog.
    ``at_head``: when the store was last known to have all records of its changelog.
    ``firsts``: the stores of its container that hold something and have no OFFSET yet, nor get one.
    """

    config: StoreConfig
    task: TaskModel
    directory: StoreDirectory
    local: LocalState
    engine: StorageEngine | None
    overlay: Overlay | None = None
    position: int | None = None
    flushed_offset: int | None = None
    expected: StoreMeta | None = None
    at_head: ClockReading = NEVER
    firsts: dict[StoreId, TaskStore] = field(default_factory=dict, repr=False, compare=False)
    _has_first: bool = False
    """Whether a flush has begun that writes its first OFFSET."""

    @property
    def name(self) -> str:
        """Return ``<store>/<task>``, for people."""
        return str(self.id)

    @property
    def id(self) -> StoreId:
        """Return the names of store and task."""
        return StoreId(self.config.name, self.task.task_name)

    @property
    def changelog(self) -> SystemStream:
        """Return the store's changelog; StoreError where it has none."""
        if self.config.changelog is None:
            raise StoreError(f"store {self.config.name} has no changelog")
        return self.config.changelog

    @property
    def place(self) -> Position:
        """Return the changelog partition of the store."""
        return self.changelog.stream, self.task.changelog_partition

    def opened(self) -> StorageEngine:
        """Return the open store."""
        if self.engine is None:
            raise StoreError(f"{self.directory.path}: the store is not open")
        return self.engine

    def rebuild(self) -> None:
        """Close the store, and empty its directory but for the lock."""
        if self.engine is not None:
            # What is thrown away may be damaged.
            with contextlib.suppress(DamagedStoreError):
                self.engine.close()
            self.engine = None
        self.directory.empty()
        self.flushed_offset = None
        self._has_first = False
        self.local = LocalState(exists=False)

    def changes(self) -> Changes | None:
        """Return what the sealed transaction is to send; None where there is nothing of it."""
        sealed = self.overlay.sealed() if self.overlay else {}
        if self.config.changelog is None or not sealed:
            return None
        return Changes(self.id, self.config.changelog, self.task.changelog_partition, sealed)

    def apply(self, positions: Mapping[Position, int]) -> None:
        """Put the sealed transaction's changes, committed with these positions, into the engine."""
        if self.overlay is None:
            return
        sealed = self.overlay.sealed()
        if sealed:
            position = None if self.config.changelog is None else positions[self.place]
            self._write(sealed, position)
        self.overlay.release()

    def follow(self, entries: Mapping[bytes, bytes | None], position: int) -> None:
        """Put ``entries``, which its changelog holds up to ``position``, into the engine."""
        self._write(entries, position)

    def _write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        self.opened().write(entries, position)
        self.position = position
        is_first = self.flushed_offset is None and not self._has_first
        if is_first and position is not None and self.config.is_persistent:
            self.firsts[self.id] = self

    def due_flush(self) -> StoreFlush | None:
        """Return the flush of all that the store has now; None where there is nothing to do.

        Position and time are those of this call: what is written later may be flushed as well.
        """
        meta = self._meta()
        progress = self._progress(meta)
        steps = flush_plan(self.id, progress)
        if progress.has_moved:
            self._has_first = True
            self.firsts.pop(self.id, None)
        return StoreFlush(self, steps, meta, progress.has_moved) if steps else None

    def flush(self, reached: Reached = passed, begins: Reached = passed) -> bool:
        """Flush the store, write its position into OFFSET, and return whether it had moved."""
        flush = self.due_flush()
        if flush is not None:
            flush.run(reached, begins)
        return flush is not None and flush.has_moved

    def flush_restored(self, records: int) -> bool:
        """Flush the store after a restore that has read so many records; return as ``flush``.

        Where that were none, its files are right: a start that finds them reads the markers again.
        """
        is_new = self.flushed_offset is None
        is_due = records or is_new or self._progress(self._meta()).is_meta_due
        return bool(is_due) and self.flush()

    def _progress(self, meta: StoreMeta | None) -> StoreProgress:
        is_due = meta is not None and is_meta_due(self.local.meta, meta)
        position = self.position if self.config.is_persistent else None
        return StoreProgress(position, self.flushed_offset, meta is not None, is_due)

    def _meta(self) -> StoreMeta | None:
        return None if self.expected is None else replace(self.expected, at_head=self.at_head)

    def carry_out(self, step: FlushStep, meta: StoreMeta | None) -> None:
        """Carry out one step of a flush; ``meta``: the STORE-META as of its begin."""
        if step.action is FlushAction.FLUSH:
            self.opened().flush()
        elif step.action is FlushAction.WRITE_META and meta is not None:
            self._put_meta(meta)
        elif step.offset is not None and step.action is FlushAction.WRITE_OFFSET:
            self.directory.write_offset(step.offset)
        elif step.offset is not None:
            partition = self.task.changelog_partition
            is_standby = self.task.task_mode is TaskMode.STANDBY
            self.directory.write_offset_v2(
                self.changelog, partition, step.offset, is_standby=is_standby
            )
            self.flushed_offset = step.offset

    def flushed_elsewhere(self, position: int) -> None:
        """Write ``position`` into OFFSET: a worker that has the store open has flushed so far."""
        progress = StoreProgress(position, self.flushed_offset, keeps_meta=False, is_meta_due=False)
        for step in flush_plan(self.id, progress):
            if step.action is not FlushAction.FLUSH:
                self.carry_out(step, None)
        self.directory.sync()

    def write_meta(self, meta: StoreMeta) -> None:
        """Write ``meta`` into STORE-META; it lasts through a power cut."""
        self._put_meta(meta)
        self.directory.sync()

    def _put_meta(self, meta: StoreMeta) -> None:
        self.directory.put_text(META_FILE, meta_text(meta))
        self.local = replace(self.local, meta=meta)

    @property
    def may_stay(self) -> bool:
        """Return whether the next run of the process may take it over, as it could find it."""
        has_offset = self.config.is_kept and self.flushed_offset is not None
        return has_offset and isinstance(self.engine, StayingEngine)

    def serves(self, config: StoreConfig, task: TaskModel) -> bool:
        """Return whether it is the store of that configuration and task."""
        own, other = ((t.state_of, t.changelog_partition, t.task_mode) for t in (self.task, task))
        return self.config == config and own == other

    def rest(self) -> None:
        """Stay open without an owner; what a start would find in its files is noted."""
        engine = self.opened()
        if isinstance(engine, StayingEngine):
            engine.end_scans()
        if self.overlay is not None:
            self.overlay.end()
            self.overlay = None
        self.local = LocalState(
            exists=True,
            offset_file=self.flushed_offset,
            offset_time_ms=self.local.offset_time_ms,
            meta=self._meta(),
            position=engine.position,
        )

    def close(self) -> None:
        """Close and unlock the store; writes of an open transaction are gone."""
        if self.overlay is not None:
            self.overlay.end()
        try:
            if self.engine is not None:
                self.engine.close()
        finally:
            self.directory.release()


@dataclass(frozen=True, slots=True)
class StoreFlush:
    """The flush of one store, from what it had when the flush began (safety S1).

    ``meta``: its STORE-META as of then. ``has_moved``: whether OFFSET lay behind.
    """

    store: TaskStore
    steps: tuple[FlushStep, ...]
    meta: StoreMeta | None
    has_moved: bool

    def run(self, reached: Reached = passed, begins: Reached = passed) -> None:
        """Carry out the steps, in any thread; tasks may use the store meanwhile."""
        for step in self.steps:
            begins(step)
            self.store.carry_out(step, self.meta)
            reached(step)
        self.store.directory.sync()


def open_task_store(
    config: StoreConfig, task: TaskModel, directory: StoreDirectory, engines: StorageEngines
) -> TaskStore:
    """Return the store as it was found; one that cannot be opened is marked for a rebuild.

    Raises:
        DiskError: the disk has no room for what opening writes, or may not be used. The store is
            not rebuilt then, since that would throw away data that are whole.
    """
    if not config.is_kept:
        directory.empty()
    if config.changelog is None or not directory.has_content:
        return TaskStore(config, task, directory, LocalState(exists=False), None)
    kind = persistent_engine(config.factory)
    fault, local = found_files(config.changelog, task, directory, kind)
    engine = None
    if fault is None and not (local.meta and local.meta.version != FORMAT):
        try:
            engine = engines.open(config, directory.path)
            local = replace(local, position=engine.position)
        except DiskError:
            raise
        except StoreError as error:
            if engine is not None:
                with contextlib.suppress(DamagedStoreError):
                    engine.close()
                engine = None
            story = error.story if isinstance(error, DamagedStoreError) else str(error)
            fault = Refusal(RefusalReason.DAMAGED_STORE, story)
    store = TaskStore(config, task, directory, replace(local, fault=fault), engine)
    if engine is not None:
        store.flushed_offset = local.offset_file
    return store


def found_files(
    changelog: SystemStream,
    task: TaskModel,
    directory: DirectoryFiles,
    kind: PersistentEngineFactory,
) -> tuple[Refusal | None, LocalState]:
    """Return the fault of the directory's files, and the state that they show."""
    local = LocalState(exists=True)
    damage = directory.read_damage()
    if damage is not None:
        return Refusal(RefusalReason.DAMAGED_STORE, damage), local
    try:
        offset, written_ms = directory.read_offset(changelog, task.changelog_partition)
    except ForeignOffsetError as error:
        return Refusal(RefusalReason.FOREIGN, str(error)), local
    except WireError as error:
        return Refusal(RefusalReason.DAMAGED_OFFSET, str(error)), local
    try:
        meta = directory.read(META_FILE, parse_meta)
    except WireError as error:
        return Refusal(RefusalReason.DAMAGED_META, str(error)), local
    local = LocalState(exists=True, offset_file=offset, offset_time_ms=written_ms, meta=meta)
    story = kind.fault(directory.path)
    return None if story is None else Refusal(RefusalReason.DAMAGED_STORE, story), local
