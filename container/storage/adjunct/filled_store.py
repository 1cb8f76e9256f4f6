"""FilledStore: one adjunct store of a container: its directory, its engine, where it stands."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from homeport.config.errors import StoreError, WireError
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.adjunct.extractor import Bytes
from homeport.container.adjunct.intake import Intake, Layer
from homeport.container.adjunct.meta_text import META_FILE, meta_text, parse_meta
from homeport.container.adjunct.recovery import (
    NO_STORE,
    AdjunctMeta,
    FoundStore,
    Recovery,
    StoreAction,
)
from homeport.container.adjunct.steps import AdjunctAction, AdjunctStep, flush_steps
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.adjunct.version_text import PARTS_KEY, parse_parts, parts_text
from homeport.container.adjunct.versions import Part, Parts, Run
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import DamagedStoreError, StorageEngine
from homeport.container.host.disk_space import DiskError
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.storage.adjunct.read_only_entries import ReadOnlyEntries
from homeport.container.storage.adjunct.store_facts import StoreFacts
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.host_survey import extent_of
from homeport.container.storage.storage_engines import StorageEngines, persistent_engine
from homeport.job_coordinator.model.job_model import SystemStreamPartition

Reached = Callable[[AdjunctStep], None]
Handed = tuple[Run, Bytes, Bytes]
"""What one call of ``take`` hands over."""


class FilledStore:
    """``find``, then ``begin``; from then on it is read, handed records, written and flushed.

    Of a data set without versions: one engine in the directory, written while it is read.
    """

    def __init__(
        self,
        planned: PlannedStore,
        config: StoreConfig,
        directory: StoreDirectory,
        engines: StorageEngines,
    ) -> None:
        """Nothing is open; the directory is locked."""
        self.planned = planned
        self.name = str(planned.directory)
        self._config = config
        self._directory = directory
        self._engines = engines
        self._engine: StorageEngine | None = None
        self._parts: Parts = {}
        self._intake = Intake({})
        self._has_moved = self._has_begun = False
        self._newest_ms: int | None = None
        self.was_reset = False
        store = planned.store
        self.entries = ReadOnlyEntries(InMemoryStore(), store.name, str(store.stream))
        """What tasks see, from ``begin`` on."""

    def find(self) -> FoundStore:
        """What the directory holds; a store that can be opened is open.

        Raises:
            DiskError: there is no room for what opening writes, or no right to it.
        """
        directory = self._directory
        if not (self.planned.store.is_kept and directory.has_content):
            return NO_STORE
        meta: AdjunctMeta | None = None
        story = directory.read_damage() or self._story_of_files()
        reason = RefusalReason.DAMAGED_STORE
        if story is None:
            try:
                text = directory.read_text(META_FILE)
                meta = None if text is None else parse_meta(text)
            except WireError as error:
                story, reason = f"{META_FILE} is damaged: {error}", RefusalReason.DAMAGED_META
        if story is not None:
            return FoundStore(exists=True, fault=Refusal(reason, story))
        if meta is None:
            return FoundStore(exists=True)
        positions, fault = self._open_found()
        return FoundStore(
            exists=True,
            meta=meta,
            positions=positions,
            newest_ms=directory.written_ms(META_FILE),
            fault=fault,
        )

    def _story_of_files(self) -> str | None:
        """Why the files that are there are no store; None where they may be one."""
        return persistent_engine(self._config.factory).fault(self._directory.path)

    def _open_found(self) -> tuple[Mapping[SystemStreamPartition, int], Refusal | None]:
        """The positions that the store has; why it has none."""
        try:
            self._engine = self._engines.open(self._config, self._directory.path)
            text = self._engine.get(PARTS_KEY)
            if text is None:
                return {}, Refusal(RefusalReason.MISSING_POSITION, "it does not say where it is")
            self._parts = parse_parts(text.decode("utf-8", "replace"))
        except DiskError:
            raise
        except (StoreError, WireError) as error:
            story = error.story if isinstance(error, DamagedStoreError) else str(error)
            return {}, Refusal(RefusalReason.DAMAGED_STORE, story)
        return {ssp: part.next for ssp, part in self._parts.items()}, None

    def begin(self, recovery: Recovery, meta: AdjunctMeta, now_ms: int) -> None:
        """The store is open and stands where ``recovery`` says; its directory says whose it is.

        Raises:
            DiskError: there is no room, or no right.
            StoreError: the directory cannot be used.
        """
        self.was_reset = recovery.action is not StoreAction.KEEP
        if self.was_reset:
            self._throw_away()
            self._directory.empty()
        self._start({ssp: position.offset for ssp, position in recovery.starts.items()})
        if self.was_reset and self.planned.store.is_kept:
            # A directory without the file is filled again: only now it is a store.
            self._flush_engines()
            self._directory.write_text(META_FILE, meta_text(meta))
            self._directory.set_written(META_FILE, now_ms)
            self._has_moved = False
        self._has_begun = True

    def _start(self, starts: Mapping[SystemStreamPartition, int]) -> None:
        """The store is open; partitions that it does not know begin at ``starts``."""
        if self._engine is None:
            self._engine = self._engines.open(self._config, self._directory.path)
        self._parts = {**{ssp: Part(offset) for ssp, offset in starts.items()}, **self._parts}
        self._intake = Intake(self._parts)
        self._write({}, self._parts)
        self.entries.engine = self._engine

    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        """As ``AdjunctSink``; tasks see it once the layer is written."""
        self._intake.take(run, keys, values)
        self._newest_ms = max(self._newest_ms or 0, *run.timestamps)

    def sealed(self) -> Layer | tuple[Handed, ...] | None:
        """All that it was handed since the last call; None where that is nothing."""
        return self._intake.sealed()

    def write(
        self,
        layer: Any,  # noqa: ANN401 - as ``sealed`` of the same kind of store returns it
        reached: Reached,
        begins: Reached,
    ) -> None:
        """Tasks see what ``layer`` has, which is in the engine together with its position."""
        step = AdjunctStep(AdjunctAction.WRITE, self.name)
        begins(step)
        self._write(layer.entries, layer.parts)
        reached(step)

    def _write(self, entries: Mapping[bytes, bytes | None], parts: Parts) -> None:
        position = parts_text(parts).encode()
        self._opened_engine().write({**entries, PARTS_KEY: position}, None)
        self._parts, self._has_moved = parts, True

    def flush(self, now_ms: int, reached: Reached, begins: Reached) -> bool:
        """All that was written is on the disk, and the directory has this time; whether it moved.

        Raises:
            StoreError: it is not.
        """
        if not (self.planned.store.is_kept and self._has_begun):
            return False
        has_moved = self._has_moved
        for step in flush_steps(self.name, has_moved=has_moved):
            begins(step)
            if step.action is AdjunctAction.FLUSH:
                self._flush_engines()
                self._has_moved = False
            else:
                self._directory.set_written(META_FILE, now_ms)
            reached(step)
        return has_moved

    def facts(self) -> StoreFacts:
        """What a report has of the store."""
        # A record without a time of its own has -1.
        return StoreFacts.of_parts(self._parts, self._size_bytes(), self._newest_ms or None)

    def _size_bytes(self) -> int | None:
        is_on_disk = self._config.is_persistent
        return extent_of(self._directory.path).size_bytes if is_on_disk else None

    @property
    def partitions(self) -> Collection[SystemStreamPartition]:
        """Those that fill it."""
        return self.planned.partitions

    @property
    def is_whole(self) -> bool:
        """Whether tasks may read it as it is."""
        return True

    def _flush_engines(self) -> None:
        self._opened_engine().flush()

    def _opened_engine(self) -> StorageEngine:
        if self._engine is None:
            raise StoreError(f"{self._directory.path}: the store is not open")
        return self._engine

    def _throw_away(self) -> None:
        """Nothing of what was found is open or known."""
        self._parts = {}
        # What is thrown away may be damaged.
        with contextlib.suppress(DamagedStoreError):
            self._close_engines()
        self._engine = None

    def _close_engines(self) -> None:
        if self._engine is not None:
            self._engine.close()

    def close(self) -> None:
        """Neither open nor locked; what was not written is gone."""
        try:
            self._close_engines()
        finally:
            self._engine = None
            self._directory.release()
