"""What the directory of an adjunct store holds, read beside its owner: nothing is written there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from homeport.config.errors import StoreError, WireError
from homeport.container.adjunct.recovery import (
    META_FILE,
    NO_STORE,
    AdjunctMeta,
    FoundStore,
    parse_meta,
)
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.adjunct.version_text import (
    CATALOGUE_FILE,
    PARTS_KEY,
    parse_catalogue,
    parse_parts,
)
from homeport.container.adjunct.versions import Catalogue, VersionProgress, Versions
from homeport.container.engine.storage_engine import PersistentEngineFactory, StoreView
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.container.storage.adjunct.store_facts import StoreFacts
from homeport.container.storage.directory_files import DirectoryFiles
from homeport.container.storage.storage_engines import persistent_engine
from homeport.job_coordinator.model.job_model import SystemStreamPartition


@dataclass(frozen=True, slots=True)
class AdjunctLook:
    """``found``: what a start would find; ``facts``: what it holds; None: it cannot be read."""

    found: FoundStore
    facts: StoreFacts | None = None


def is_adjunct(path: Path) -> bool:
    """Whether the directory is an adjunct store's, as far as it may be read."""
    try:
        return (path / META_FILE).exists()
    except OSError:
        return False


class VisibleView:
    """Implements ``StoreView``: what tasks see of an adjunct store, as it is on the disk."""

    def __init__(self, path: Path, factory: str) -> None:
        """Raises StoreError where nothing can be read.

        ``path``: the store's directory; ``factory``: the engine's.
        """
        self._view = persistent_engine(factory).view(_served_path(path))

    @property
    def position(self) -> int | None:
        """It has one for each partition: ``parts``."""
        return None

    @property
    def parts(self) -> VersionProgress:
        """Where it stands in each partition; StoreError where it does not say so."""
        return _parts_of(self._view)

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``; None where there is none."""
        return None if key.startswith(RESERVED_PREFIX) else self._view.get(key)

    def scan(self, start: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Pairs from ``start`` on, in byte order; StoreError where a file is damaged."""
        return (pair for pair in self._view.scan(start) if not pair[0].startswith(RESERVED_PREFIX))

    def close(self) -> None:
        """Nothing of the view is open or left."""
        self._view.close()


def look(path: Path, planned: PlannedStore, factory: str) -> AdjunctLook:
    """What is in the directory ``path``, which is there, of the store ``planned``.

    ``factory``: the store's engine. What a container has not flushed is not seen.
    """
    files = DirectoryFiles(path)
    if not files.has_content:
        return AdjunctLook(NO_STORE)
    story, reason, meta = files.read_damage(), RefusalReason.DAMAGED_STORE, None
    if story is None:
        try:
            text = files.read_text(META_FILE)
            meta = None if text is None else parse_meta(text)
        except WireError as error:
            story, reason = f"{META_FILE} is damaged: {error}", RefusalReason.DAMAGED_META
    if story is not None:
        return AdjunctLook(FoundStore(exists=True, fault=Refusal(reason, story)))
    return _looked(files, meta, planned, persistent_engine(factory))


def _looked(
    files: DirectoryFiles,
    meta: AdjunctMeta | None,
    planned: PlannedStore,
    kind: PersistentEngineFactory,
) -> AdjunctLook:
    fault, facts, newest_ms = None, None, 0
    try:
        newest_ms = 0 if meta is None else files.written_ms(META_FILE)
        found = _of_versions if planned.store.is_bounded else _of_one
        facts = found(files, planned, kind)
    except (StoreError, WireError) as error:
        fault = Refusal(RefusalReason.DAMAGED_STORE, str(error))
    positions: Mapping[SystemStreamPartition, int] = {} if facts is None else facts.positions
    return AdjunctLook(
        FoundStore(exists=True, meta=meta, positions=positions, newest_ms=newest_ms, fault=fault),
        facts,
    )


def _of_one(
    files: DirectoryFiles, _planned: PlannedStore, kind: PersistentEngineFactory
) -> StoreFacts:
    return StoreFacts.of_parts(_parts_at(files.path, kind), None, None)


def _of_versions(
    files: DirectoryFiles, planned: PlannedStore, kind: PersistentEngineFactory
) -> StoreFacts:
    catalogue = _catalogue(files)
    names = [path.name[1:] for path in files.path.glob("v[1-9]*")]
    folders = {int(n): files.path / f"v{n}" for n in names if n.isascii() and n.isdigit()}
    stores = dict(_begun(folders, catalogue.served, kind))
    versions = Versions.found(planned.partitions, catalogue, stores)
    known = {*catalogue.settled_below, *(p for parts in stores.values() for p in parts)}
    positions = {p: versions.cursor(p).next for p in known}
    served = stores.get(catalogue.served or 0, {})
    began = [part.began_ms for part in served.values() if part.began_ms is not None]
    since_ms = min(began, default=None)
    return StoreFacts(catalogue.records, None, positions, since_ms, catalogue.served)


def _begun(
    folders: Mapping[int, Path], served: int | None, kind: PersistentEngineFactory
) -> Iterator[tuple[int, VersionProgress]]:
    """Yield the versions whose first position is on the disk; the served one in any case."""
    for number, path in folders.items():
        if number == served or kind.fault(path) is None:
            with closing(kind.view(path)) as view:
                if number == served or view.get(PARTS_KEY) is not None:
                    yield number, _parts_of(view)


def _catalogue(files: DirectoryFiles) -> Catalogue:
    text = files.read_text(CATALOGUE_FILE)
    if text is None:
        raise StoreError(f"{files.path}: {CATALOGUE_FILE} is missing")
    return parse_catalogue(text)


def _served_path(path: Path) -> Path:
    if not (path / CATALOGUE_FILE).exists():
        return path
    served = _catalogue(DirectoryFiles(path)).served
    if served is None:
        raise StoreError(f"{path}: the store has no whole version yet")
    return path / f"v{served}"


def _parts_at(path: Path, kind: PersistentEngineFactory) -> VersionProgress:
    with closing(kind.view(path)) as view:
        return _parts_of(view)


def _parts_of(view: StoreView) -> VersionProgress:
    text = view.get(PARTS_KEY)
    if text is None:
        raise StoreError("it does not say where it is in its stream")
    return parse_parts(text.decode("utf-8", "replace"))
