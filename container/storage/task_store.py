"""TaskStore: one store of one task: its directory, its engine, where it stands, its OFFSET."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from homeport.config.errors import StoreError, WireError
from homeport.config.stores_section import StoreConfig
from homeport.config.system_stream import SystemStream
from homeport.container.disk_space import DiskFullError
from homeport.container.progress.commit import Changes
from homeport.container.progress.restore import LocalState
from homeport.container.progress.store_meta import Expectation, StoreMeta, is_meta_due
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.engine import StorageEngine, StorageEngines
from homeport.container.storage.overlay import Overlay
from homeport.job_coordinator.model.job_model import TaskModel

Position = tuple[str, int]
"""(topic, partition) of a changelog."""


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
    engine: StorageEngine | None
    overlay: Overlay | None = None
    position: int | None = None
    committed_offset: int | None = None
    expected: Expectation | None = None
    at_head_ms: int = 0

    @property
    def name(self) -> str:
        """``<store>/<task>``, for people."""
        return f"{self.config.name}/{self.task.task_name}"

    @property
    def changelog(self) -> SystemStream:
        """The store's changelog; StoreError where it has none."""
        if self.config.changelog is None:
            raise StoreError(f"store {self.config.name} has no changelog")
        return self.config.changelog

    def opened(self) -> StorageEngine:
        """The open store."""
        if self.engine is None:
            raise StoreError(f"{self.directory.path}: the store is not open")
        return self.engine

    def rebuild(self) -> None:
        """The directory is empty but for its lock, and the store is not open."""
        if self.engine is not None:
            self.engine.close()
            self.engine = None
        self.directory.empty()
        self.committed_offset = None
        self.local = LocalState(exists=False)

    @property
    def has_first_changes(self) -> bool:
        """Whether the store could have an OFFSET and has none yet."""
        return (
            self.position is not None
            and self.committed_offset is None
            and self.opened().is_persistent
        )

    def changes(self) -> Changes | None:
        """What the open transaction changed and is to send; None where there is nothing of it."""
        if self.config.changelog is None or not (self.overlay and self.overlay.entries()):
            return None
        return Changes(
            self.config.name,
            self.task.task_name,
            self.config.changelog,
            self.task.changelog_partition,
            self.overlay.entries(),
        )

    def apply(self, positions: Mapping[Position, int]) -> None:
        """The open transaction's changes are in the engine; it was committed with ``positions``."""
        if self.overlay is None or not self.overlay.entries():
            return
        if self.config.changelog is not None:
            self.position = positions[self.config.changelog.stream, self.task.changelog_partition]
        self.opened().write(self.overlay.entries(), self.position)
        self.overlay.clear()

    def commit(self) -> bool:
        """The store is flushed and OFFSET names where it stood; whether it had moved.

        OFFSET gets the position that the store had before the flush began (safety S1); STORE-META,
        after it, when that was the head (safety S2).
        """
        position, at_head_ms = self.position, self.at_head_ms
        if position is None or not self.opened().is_persistent:
            return False
        has_moved = position != self.committed_offset
        if has_moved:
            self.opened().flush()
            self.directory.write_offset(self.changelog, self.task.changelog_partition, position)
            self.committed_offset = position
        self._write_meta(at_head_ms, is_wanted=has_moved)
        return has_moved

    def _write_meta(self, at_head_ms: int, *, is_wanted: bool) -> None:
        if self.expected is None:
            return
        meta = replace(self.expected.meta, at_head_ms=at_head_ms)
        if is_wanted or is_meta_due(self.local.meta, meta, self.expected.delete_retention_ms):
            self.directory.write_meta(meta)
            self.local = replace(self.local, meta=meta)

    def close(self) -> None:
        """Neither open nor locked; writes of an open transaction are gone."""
        if self.engine is not None:
            self.engine.close()
        self.directory.release()


def open_task_store(
    config: StoreConfig, task: TaskModel, directory: StoreDirectory, engines: StorageEngines
) -> TaskStore:
    """The store as it was found; one that cannot be opened is marked for a rebuild.

    Raises:
        DiskFullError: there is no room for what opening writes.
    """
    if not config.is_kept:
        directory.empty()
    if not directory.has_content:
        return TaskStore(config, task, directory, LocalState(exists=False), None)
    engine: StorageEngine | None = None
    try:
        offset, meta = _files(directory)
        engine = engines.open(config, directory.path)
        local = LocalState(exists=True, position=engine.position, offset_file=offset, meta=meta)
    except DiskFullError:
        # No fault of the store's: rebuilding it would throw away what is whole.
        raise
    except (StoreError, WireError) as error:
        if engine is not None:
            engine.close()
        local = LocalState(exists=True, fault=str(error))
        return TaskStore(config, task, directory, local, None)
    return TaskStore(config, task, directory, local, engine, committed_offset=offset)


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
