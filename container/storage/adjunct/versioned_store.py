"""VersionedStore: an adjunct store of a bounded data set, one engine for each version.

Source: ADJUNCT, "Bounded dataset". ``container/adjunct/versions.py`` decides what belongs to which
version, which version is whole, and the order of a switch. This module carries it out.
"""

import logging
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future
from functools import partial
from pathlib import Path

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import StoreError
from homeport.container.adjunct.extractor import Bytes
from homeport.container.adjunct.manager import Filling
from homeport.container.adjunct.steps import AdjunctAction, AdjunctStep
from homeport.container.adjunct.version_text import (
    CATALOGUE_FILE,
    PARTS_KEY,
    awaited,
    catalogue_text,
    parse_parts,
    parts_text,
)
from homeport.container.adjunct.versions import (
    Catalogue,
    Run,
    Taken,
    VersionProgress,
    Versions,
    VersionVerdict,
    began_ms,
    flush_step,
    removable,
    verdict_plan,
)
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.host.disk_space import room_on_disk_of
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.refusal import RefusalReason
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.container.storage.adjunct.filled_store import (
    FilledStore,
    Reached,
    RefusedStoreError,
    StoreFacts,
    catalogue_in,
)
from homeport.container.storage.directory import DirectoryFiles
from homeport.container.storage.storage_engines import persistent_engine
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)
_LOOK_S = 0.2
"""One wait ends then, so that the handler of a signal can run."""
_FOLDER = re.compile(r"v([1-9][0-9]{0,17})")


class VersionedStore(FilledStore):
    """A ``FilledStore`` of which tasks see the newest whole version; before that they see nothing.

    The records that it takes wait as they are: each gets its version when the layer is written.
    ``versions``: the versions after all that was written. ``served``: the one that tasks see.
    """

    def __post_init__(self, kept_bytes: int) -> None:
        super().__post_init__(kept_bytes)
        self.versions = Versions(self.planned.partitions)
        self._open: dict[int, StorageEngine] = {}
        self._unflushed: set[int] = set()
        self.served: int | None = None
        self._under_way: tuple[AdjunctStep, Future[None]] | None = None
        self._decided: tuple[VersionVerdict, list[AdjunctStep]] | None = None
        self._dropping: list[tuple[AdjunctStep, Future[None]]] = []
        self._handed: list[Filling] = []
        self._late: tuple[int, ...] = ()
        self._strays = 0
        self._heard_ms: int | None = None

    @property
    def _is_whole(self) -> bool:
        return self.served is not None or not self.planned.partitions

    def awaits(self, clock_ms: Callable[[], int]) -> str | None:
        """Return the first version, as ``FilledStore``, while its stream brings records."""
        if self._is_whole:
            return None
        now_ms, store = clock_ms(), self.planned.store
        if self._heard_ms is None:
            self._heard_ms = now_ms
        silent_ms = now_ms - self._heard_ms
        what = f"adjunct store {self.name}: {awaited(self.versions)}"
        if silent_ms <= store.late_ms:
            return what
        late, bootstrap = keys.STORE_ADSTORE_LATE_MS, keys.STREAM_BOOTSTRAP
        stream = store.stream
        raise StoreError(
            f"{what}; other inputs have waited for it, and nothing came of {stream} for "
            f"{silent_ms / 1000:.0f} s, {late.named(store.name)} is {store.late_ms}: write what is "
            f"missing, or set {bootstrap.named(stream.system, stream.stream)}=false to begin "
            "without it"
        )

    def pairs_of(self, number: int) -> Iterator[tuple[bytes, bytes]]:
        """Yield the entries of that version; none where it is not open."""
        if number in self._open:
            pairs = self._open[number].scan()
            yield from ((k, v) for k, v in pairs if not k.startswith(RESERVED_PREFIX))

    def facts(self) -> StoreFacts:
        """Return the facts of the version that tasks see, and the positions of all versions."""
        served, size_bytes, late = self.served, self._size_bytes(), len(self._late)
        if served is None:
            awaits = None if self._is_whole else awaited(self.versions)
            return StoreFacts(0, size_bytes, self.positions, late=late, awaits=awaits)
        text = self._engine_of(served).get(PARTS_KEY)
        parts = parse_parts((text or b"{}").decode())
        records = sum(part.records for part in parts.values())
        return StoreFacts(records, size_bytes, self.positions, began_ms(parts), served, late)

    # -- the start

    def _open_found(self) -> Mapping[SystemStreamPartition, int]:
        for number in self._found_numbers():
            damage = DirectoryFiles(self._path(number)).read_damage()
            if damage is not None:
                raise StoreError(f"version {number}: {damage}")
        catalogue = catalogue_in(self._directory)
        for number in removable(catalogue, self._found_numbers()):
            self._remove(number)
        stores = self._opened_versions(catalogue)
        self.versions = Versions.found(self.planned.partitions, catalogue, stores)
        known = {*catalogue.settled_below, *(p for parts in stores.values() for p in parts)}
        if len(known) == 1 < len(self.planned.partitions):
            story = "it was of one partition: its versions were counted, and now have numbers"
            raise RefusedStoreError(RefusalReason.FOREIGN, story)
        return {p: self.versions.cursor(p).next for p in known}

    def _opened_versions(self, catalogue: Catalogue) -> dict[int, VersionProgress]:
        """Return {version: its parts} of those that have begun, which are open.

        A death may leave the folder of a version before its first position is on the disk. That
        version is read again from its ``begin``, as one without a folder is.

        Raises:
            StoreError: one cannot be opened, or the one that is served is not there.
            WireError: the position of one is damaged.
        """
        stores: dict[int, VersionProgress] = {}
        kind = persistent_engine(self._config.factory)
        for number in self._found_numbers():
            fault = kind.fault(self._path(number))
            if fault is not None and number == catalogue.served:
                raise StoreError(f"version {number}: {fault}")
            text = self._engine_of(number).get(PARTS_KEY) if fault is None else None
            if text is None:
                _LOG.info("adjunct store %s: version %d is read again", self.name, number)
                self._remove(number)
            else:
                stores[number] = parse_parts(text.decode("utf-8", "replace"))
        if catalogue.served is not None and catalogue.served not in stores:
            raise StoreError(f"version {catalogue.served}, which was served, is missing")
        return stores

    @property
    def positions(self) -> Mapping[SystemStreamPartition, int]:
        """Return the positions, as ``FilledStore``."""
        return {p: self.versions.cursor(p).next for p in self.planned.partitions}

    def lost(self, partition: SystemStreamPartition, position: InputPosition) -> None:
        """Serve no version that was under way in the partition before ``position``."""
        _LOG.warning(
            "adjunct store %s: %d records of partition %d were deleted before they were read: no "
            "version that had them is served",
            self.name,
            position.lost,
            partition.partition,
        )
        self._handed.append((Run(partition, (), (), gone_below=position.offset), (), ()))

    def _start(self, starts: Mapping[SystemStreamPartition, InputPosition]) -> None:
        for partition, position in sorted(starts.items()):
            self.versions = self.versions.begun(partition, position.offset)
            if position.lost:
                self.lost(partition, position)
        for number, parts in self.versions.building.items():
            self._write_to(number, {}, parts)
        self._write_catalogue(self.versions.catalogue)
        self.served = self.versions.catalogue.served
        if self.served is not None:
            self.entries.engine = self._engine_of(self.served)
        self.switch_versions(passed, passed)

    def _forget(self) -> None:
        self._unflushed.clear()
        self.served = None
        self.versions = Versions(self.planned.partitions)

    # -- its work

    def take(self, run: Run, keys: Bytes, values: Bytes) -> None:
        """Take records, as ``FilledStore``."""
        self._handed.append((run, keys, values))

    def sealed(self) -> tuple[Filling, ...] | None:
        """Return the layer, as ``FilledStore``."""
        handed, self._handed = self._handed, []
        return tuple(handed) or None

    def write(self, layer: tuple[Filling, ...], reached: Reached, begins: Reached) -> None:
        """Write ``layer`` into its versions; tasks see the newest that is whole."""
        step = AdjunctStep(AdjunctAction.WRITE, self.name)
        begins(step)
        self._heard_ms = None
        for run, names, values in layer:
            taken = self.versions.take(run)
            entries = dealt(taken, names, values)
            for number in taken.parts:
                parts = taken.versions.building[number]
                self._write_to(number, entries.get(number, {}), parts)
            self.versions = taken.versions
            self._strays += taken.strays
        reached(step)

    def switch_versions(self, reached: Reached, begins: Reached, *, waits: bool = False) -> None:
        """Show tasks the newest whole version, once it and its catalogue are on the disk.

        Both reach the disk beside the batches, unless ``waits``. A version that is not served any
        more is removed beside them, too.
        """
        while self._advance(reached, begins, waits=waits):
            pass
        while self._dropping and self._dropping[0][1].done():
            step, call = self._dropping.pop(0)
            call.result()
            reached(step)

    def _advance(self, reached: Reached, begins: Reached, *, waits: bool) -> bool:
        """Advance by one step; False: a step goes on beside the batches, or none is left."""
        if self._under_way is not None:
            step, call = self._under_way
            if waits:
                self._wait(call)
            if not call.done():
                return False
            self._under_way = None
            call.result()
            reached(step)
        if self._decided is not None:
            self._show(self._decided, reached, begins)
            return True
        verdict = self.versions.verdict(self.planned.store.minimum_share_percent)
        if verdict is None:
            return False
        flush = flush_step(self.name, verdict)
        if flush is not None and verdict.number in self._unflushed:
            # Later writes to it need another flush.
            self._unflushed.discard(verdict.number)
            self._begin_beside(flush, self._engine_of(verdict.number).flush, begins)
            return True
        first, *rest = verdict_plan(self.name, self.versions, verdict)
        # From now on nothing is written to the versions that the catalogue settles.
        self.versions = self.versions.decided(verdict)
        self._decided, catalogue = (verdict, rest), self.versions.catalogue
        self._begin_beside(first, lambda: self._write_catalogue(catalogue), begins)
        return True

    def _begin_beside(self, step: AdjunctStep, work: Callable[[], None], begins: Reached) -> None:
        begins(step)
        self._under_way = step, self._beside.submit(work)

    def _show(
        self, decided: tuple[VersionVerdict, list[AdjunctStep]], reached: Reached, begins: Reached
    ) -> None:
        """Carry out the rest of the verdict; the catalogue is on the disk."""
        self._decided = None
        verdict, steps = decided
        for step in steps:
            begins(step)
            assert step.version is not None  # noqa: S101 - for the type checker: it is about one
            if step.action is AdjunctAction.SWITCH_VERSION:
                self.entries.engine = self._engine_of(step.version)
                self.served = step.version
                reached(step)
            else:
                removal = partial(_removed, self._taken_out(step.version), self._path(step.version))
                self._dropping.append((step, self._beside.submit(removal)))
        self._say(verdict)

    def _say(self, verdict: VersionVerdict) -> None:
        of = f"adjunct store {self.name}: version {verdict.number} of {verdict.records} records"
        if verdict.fault is None:
            _LOG.info("%s is served", of)
        else:
            served = "none" if self.served is None else f"version {self.served}"
            _LOG.warning("%s is not served: %s; %s is served", of, verdict.fault.value, served)

    def flush(
        self, now_ms: int, at_head: ClockReading | None, reached: Reached, begins: Reached
    ) -> bool:
        """Flush the store, as ``FilledStore``.

        The log names each version that has had no end for too long, once. It also has the number of
        records and markers that belong to no version.
        """
        late = self.versions.late(now_ms, self.planned.store.late_ms)
        for number in late:
            if number not in self._late:
                _LOG.warning("adjunct store %s: version %d has no end yet", self.name, number)
        self._late = late
        if self._strays:
            _LOG.warning(
                "adjunct store %s: %d records or markers belong to no version",
                self.name,
                self._strays,
            )
            self._strays = 0
        return super().flush(now_ms, at_head, reached, begins)

    def _flush_engines(self) -> None:
        if self._under_way is not None:
            self._wait(self._under_way[1])
        for number in sorted(self._unflushed):
            self._engine_of(number).flush()
            self._unflushed.discard(number)

    # -- engines and folders

    def _write_to(
        self, number: int, entries: Mapping[bytes, bytes | None], parts: VersionProgress
    ) -> None:
        is_new = number not in self._open
        engine = self._engine_of(number)
        engine.write({**entries, PARTS_KEY: parts_text(parts).encode()}, None)
        self._unflushed.add(number)
        self._has_moved = True
        if is_new:
            # Else a crash would lose the part that its partitions have of it.
            engine.flush()

    def _write_catalogue(self, catalogue: Catalogue) -> None:
        if self.planned.store.is_kept:
            self._directory.write_text(CATALOGUE_FILE, catalogue_text(catalogue))

    def _engine_of(self, number: int) -> StorageEngine:
        if number not in self._open:
            self._open[number] = self._engines.open(self._config, self._path(number))
        return self._open[number]

    def _remove(self, number: int) -> None:
        _removed(self._taken_out(number), self._path(number))

    def _taken_out(self, number: int) -> StorageEngine | None:
        """Return the version's engine, which nothing uses any more; None: it is not open."""
        engine = self._open.pop(number, None)
        self._unflushed.discard(number)
        if engine is not None and self.entries.engine is engine:
            self.entries.engine = InMemoryStore()
        return engine

    def _path(self, number: int) -> Path:
        return self._directory.path / f"v{number}"

    def _found_numbers(self) -> list[int]:
        with room_on_disk_of(self._directory.path):
            names = [entry.name for entry in self._directory.path.iterdir()]
        return sorted(int(match[1]) for name in names if (match := _FOLDER.fullmatch(name)))

    def _close_engines(self) -> None:
        under_way = [] if self._under_way is None else [self._under_way]
        for _, call in (*under_way, *self._dropping):
            self._wait(call)
        self._under_way, self._dropping = None, []
        try:
            for engine in self._open.values():
                engine.close()
        finally:
            self._open.clear()

    def _wait(self, call: Future[None]) -> None:
        while not call.done():
            self._beside.wait(call, _LOOK_S)


def _removed(engine: StorageEngine | None, path: Path) -> None:
    if engine is not None:
        engine.close()
    with room_on_disk_of(path.parent):
        shutil.rmtree(path, ignore_errors=True)


def dealt(taken: Taken, keys: Bytes, values: Bytes) -> dict[int, dict[bytes, bytes | None]]:
    """Return {version: the entries that go into it}."""
    found: dict[int, dict[bytes, bytes | None]] = {}
    for write in taken.writes:
        entries = found.setdefault(write.number, {})
        for index in range(write.start, write.stop):
            key = keys[index]
            if key is not None:
                entries[key] = values[index]
    return found
