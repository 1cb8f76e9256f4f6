"""FilledStore: one adjunct store of a container: its directory, and how it begins and is kept."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, replace
from typing import Any

from homeport.config.errors import StoreError, WireError
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.adjunct.extractor import Bytes
from homeport.container.adjunct.manager import Filling, Layer
from homeport.container.adjunct.recovery import (
    META_FILE,
    NO_STORE,
    AdjunctMeta,
    FoundStore,
    Recovery,
    meta_text,
    parse_meta,
)
from homeport.container.adjunct.steps import AdjunctAction, AdjunctStep, flush_steps
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.adjunct.version_text import CATALOGUE_FILE, parse_catalogue
from homeport.container.adjunct.versions import Catalogue, Run, VersionProgress
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import DamagedStoreError
from homeport.container.host.disk_space import DiskError
from homeport.container.host.executors import Executor
from homeport.container.progress.clock_reading import ClockReading, elapsed_ms
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.store_meta import least_ms
from homeport.container.storage.adjunct.read_only_entries import ReadOnlyEntries
from homeport.container.storage.directory import DirectoryFiles, StoreDirectory
from homeport.container.storage.host_survey import extent_of
from homeport.container.storage.storage_engines import StorageEngines
from homeport.job_coordinator.model.job_model import SystemStreamPartition

Reached = Callable[[AdjunctStep], None]
_RENEWALS = 10
"""How often ``ADJUNCT-META`` is written while the stream keeps a deletion."""


class RefusedStoreError(StoreError):
    """The store that was found cannot go on; ``refusal``: why."""

    def __init__(self, reason: RefusalReason, story: str) -> None:
        super().__init__(story)
        self.refusal = Refusal(reason, story)


@dataclass(frozen=True, slots=True)
class StoreFacts:
    """The facts of one store.

    ``records``: how many it has taken since it was new; with versions, those of the version that
    tasks see. ``size_bytes``: on the disk; None: it is in memory. ``positions`` {partition: next
    offset}. ``since_ms``: the time of the newest record since its container began; with versions,
    of the version's first record; in ms since 1970; None: not known. ``version``: the one that
    tasks see; None: there is none. ``late``: how many versions under way have had no end for too
    long; None: not known, or there are no versions. ``awaits``: what its first version lacks; None:
    nothing, or there are no versions.
    """

    records: int
    size_bytes: int | None
    positions: Mapping[SystemStreamPartition, int]
    since_ms: int | None = None
    version: int | None = None
    late: int | None = None
    awaits: str | None = None

    @staticmethod
    def of_parts(
        parts: VersionProgress, size_bytes: int | None, since_ms: int | None
    ) -> StoreFacts:
        """Return the facts of a store with ``parts``."""
        records = sum(part.records for part in parts.values())
        positions = {partition: part.next for partition, part in parts.items()}
        return StoreFacts(records, size_bytes, positions, since_ms)

    def age_s(self, now_ms: int) -> float | None:
        """Return the seconds since ``since_ms``, by a clock that may be set back."""
        return None if self.since_ms is None else max(0, now_ms - self.since_ms) / 1000


@dataclass(eq=False)
class FilledStore(ABC):
    """Call ``find``, then ``begin``; then it is read, takes records, and is written and flushed.

    Each kind of store decides how many engines are in the directory, which is locked, and what they
    have. ``kept_bytes``: as of ``ReadOnlyEntries``. ``_beside``: makes calls that no batch waits
    for.
    """

    planned: PlannedStore
    _config: StoreConfig
    _directory: StoreDirectory
    _engines: StorageEngines
    kept_bytes: InitVar[int]
    _beside: Executor

    def __post_init__(self, kept_bytes: int) -> None:
        store = self.planned.store
        self.name = str(self.planned.directory)
        self._has_moved = self._has_begun = False
        self.was_reset = False
        self._meta: AdjunctMeta | None = None
        self._is_meta_due = False
        self._kept_ms: int | None = None
        self.entries = ReadOnlyEntries(InMemoryStore(), store.name, str(store.stream), kept_bytes)
        """What tasks see, from ``begin`` on."""

    # -- the part of each kind of store

    @abstractmethod
    def _open_found(self) -> Mapping[SystemStreamPartition, int]:
        """Open what was found; return its positions.

        Raises:
            DiskError: the disk has no room for what opening writes, or may not be used.
            RefusedStoreError, StoreError, WireError: it is no store that can go on.
        """

    @abstractmethod
    def _forget(self) -> None:
        """Forget what was found."""

    @abstractmethod
    def _start(self, starts: Mapping[SystemStreamPartition, InputPosition]) -> None:
        """Open the store; partitions that it does not know begin at ``starts``."""

    @property
    @abstractmethod
    def positions(self) -> Mapping[SystemStreamPartition, int]:
        """Return {partition: the offset that the store has all records below}."""

    @abstractmethod
    def lost(self, partition: SystemStreamPartition, position: InputPosition) -> None:
        """Go on at ``position`` of the partition: the records before it were deleted unread.

        Raises:
            StoreError: the store would lack it; a new start fills it again.
        """

    @abstractmethod
    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        """Implement ``AdjunctSink``; tasks see the entries once the layer is written."""

    @abstractmethod
    def sealed(self) -> Layer | tuple[Filling, ...] | None:
        """Return all that it took since the last call; None where that is nothing."""

    @abstractmethod
    def write(
        self,
        layer: Any,  # noqa: ANN401 - as ``sealed`` of the same kind of store returns it
        reached: Reached,
        begins: Reached,
    ) -> None:
        """Write ``layer`` into an engine, together with its position, for tasks to see."""

    def switch_versions(self, reached: Reached, begins: Reached, *, waits: bool = False) -> None:
        """Show tasks the version that is ready; ``waits``: wait for one that is under way."""

    def awaits(self, _clock_ms: Callable[[], int]) -> str | None:
        """Return what tasks wait for before they read it; None: they may read it as it is.

        Raises:
            StoreError: no record of it has come for too long.
        """

    @abstractmethod
    def facts(self) -> StoreFacts:
        """Return the facts for a report."""

    @abstractmethod
    def _flush_engines(self) -> None:
        """Force what was written to the engines to the disk."""

    @abstractmethod
    def _close_engines(self) -> None:
        """Close all engines; what was not flushed may be gone."""

    # -- the start

    def find(self) -> FoundStore:
        """Return what the directory holds; open a store that can be opened.

        Raises:
            DiskError: the disk has no room for what opening writes, or may not be used.
        """
        found = found_beside(self._directory) if self.planned.store.is_kept else NO_STORE
        if found.meta is None:
            return found
        try:
            return replace(found, positions=self._open_found())
        except DiskError:
            raise
        except RefusedStoreError as error:
            return replace(found, fault=error.refusal)
        except (StoreError, WireError) as error:
            story = error.story if isinstance(error, DamagedStoreError) else str(error)
            return replace(found, fault=Refusal(RefusalReason.DAMAGED_STORE, story))

    @property
    def topic_id(self) -> str:
        """Return the broker's id of the topic that fills it, from ``begin`` on."""
        return "" if self._meta is None else self._meta.topic_id

    def begin(
        self, recovery: Recovery, meta: AdjunctMeta, kept_ms: int | None, now_ms: int
    ) -> None:
        """Open the store as ``recovery`` decided, and write ``meta`` into its directory.

        ``kept_ms``: how long its stream keeps deletions; None: it is not compacted.

        Raises:
            DiskError: there is no room, or no right.
            StoreError: the directory cannot be used.
        """
        self._meta, self._kept_ms = meta, kept_ms
        self.was_reset = not recovery.is_kept
        if self.was_reset:
            # What is thrown away may be damaged.
            with contextlib.suppress(DamagedStoreError):
                self._close_engines()
            self._forget()
            self._directory.empty()
        self._start(recovery.starts)
        if self.was_reset and self.planned.store.is_kept:
            # Only from now on it is a store: a directory without the file is filled again.
            self._flush_engines()
            self._directory.write_text(META_FILE, meta_text(meta))
            self._directory.set_written(META_FILE, now_ms)
            self._has_moved = False
        elif self.planned.store.is_kept:
            # An earlier release wrote no forms.
            self._is_meta_due = self._directory.read_text(META_FILE) != meta_text(meta)
        self._has_begun = True

    # -- its work

    def flush(
        self, now_ms: int, at_head: ClockReading | None, reached: Reached, begins: Reached
    ) -> bool:
        """Flush the store, date its directory ``now_ms``, and return whether it has moved.

        ``at_head``: when it last had all records of its stream; None: that need not be known.

        Raises:
            StoreError: it is not flushed.
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
                self._renew(at_head)
                self._directory.set_written(META_FILE, now_ms)
            reached(step)
        return has_moved

    def _renew(self, at_head: ClockReading | None) -> None:
        """Write ADJUNCT-META where it has changed, and several times within the retention.

        Each time it has the last time at which the store was at its head.
        """
        meta = self._meta
        if meta is not None and self._is_meta_due:
            self._directory.write_text(META_FILE, meta_text(meta))
            self._is_meta_due = False
        if meta is None or at_head is None:
            return
        kept_ms = least_ms(self._kept_ms, meta.kept_ms)
        if kept_ms is None:
            return
        passed_ms = elapsed_ms(meta.at_head, at_head)
        if passed_ms is None or passed_ms * _RENEWALS >= max(1, kept_ms):
            self._meta = replace(meta, at_head=at_head, kept_ms=self._kept_ms)
            self._directory.write_text(META_FILE, meta_text(self._meta))

    def _size_bytes(self) -> int | None:
        is_on_disk = self._config.is_persistent
        return extent_of(self._directory.path).size_bytes if is_on_disk else None

    def close(self) -> None:
        """Close and unlock the store; what was not written is gone."""
        try:
            self._close_engines()
        finally:
            self._directory.release()


def found_beside(files: DirectoryFiles) -> FoundStore:
    """Return what the files beside a store have of it; its positions are not among them.

    Raises:
        DiskError: they may not be read.
    """
    if not files.has_content:
        return NO_STORE
    story = files.read_damage()
    if story is not None:
        return FoundStore(exists=True, fault=Refusal(RefusalReason.DAMAGED_STORE, story))
    try:
        meta = files.read(META_FILE, parse_meta)
        newest_ms = 0 if meta is None else files.written_ms(META_FILE)
    except WireError as error:
        return FoundStore(exists=True, fault=Refusal(RefusalReason.DAMAGED_META, str(error)))
    return FoundStore(exists=True, meta=meta, newest_ms=newest_ms)


def catalogue_in(files: DirectoryFiles) -> Catalogue:
    """Return the catalogue; RefusedStoreError: there is none; WireError: it is damaged."""
    catalogue = files.read(CATALOGUE_FILE, parse_catalogue)
    if catalogue is None:
        raise RefusedStoreError(RefusalReason.MISSING_POSITION, f"{CATALOGUE_FILE} is missing")
    return catalogue


def cannot_follow(store: str, partition: SystemStreamPartition, story: str) -> StoreError:
    """Return the error that ends a container whose store cannot go on."""
    return StoreError(
        f"adjunct store {store} cannot follow its stream {partition.system_stream} partition "
        f"{partition.partition} any more: {story}; the next start fills it again"
    )
