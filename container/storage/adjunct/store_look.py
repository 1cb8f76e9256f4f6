"""Reads the directory of an adjunct store beside its owner; nothing is written there."""

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

from homeport.config.errors import StoreError, WireError
from homeport.container.adjunct.recovery import META_FILE, FoundStore
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.adjunct.version_text import CATALOGUE_FILE, PARTS_KEY, parse_parts
from homeport.container.adjunct.versions import VersionProgress, Versions, began_ms
from homeport.container.engine.storage_engine import PersistentEngineFactory, StoreView
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.container.storage.adjunct.filled_store import StoreFacts, catalogue_in, found_beside
from homeport.container.storage.directory import DirectoryFiles
from homeport.container.storage.storage_engines import persistent_engine


@dataclass(frozen=True, slots=True)
class AdjunctLook:
    """``found``: what a start would find; ``facts`` None: the store cannot be read."""

    found: FoundStore
    facts: StoreFacts | None = None


def is_adjunct(path: Path) -> bool:
    """Return whether the directory is an adjunct store's, as far as it may be read."""
    try:
        return (path / META_FILE).exists()
    except OSError:
        return False


class VisibleView:
    """Implements ``StoreView``: what tasks see of an adjunct store, as it is on the disk."""

    def __init__(self, path: Path, factory: str) -> None:
        """Open the store in the directory ``path``; StoreError where nothing can be read."""
        self._view = persistent_engine(factory).view(_served_path(path))

    @property
    def position(self) -> int | None:
        """Return None: it has one for each partition, in ``parts``."""
        return None

    @property
    def parts(self) -> VersionProgress:
        """Return its progress in each partition; StoreError where it has none."""
        return _parts_of(self._view)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None where there is none."""
        return None if key.startswith(RESERVED_PREFIX) else self._view.get(key)

    def scan(self, start: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Yield the pairs from ``start`` on, in byte order; StoreError where a file is damaged."""
        return (pair for pair in self._view.scan(start) if not pair[0].startswith(RESERVED_PREFIX))

    def close(self) -> None:
        """Close the view; nothing of it is left."""
        self._view.close()


def look(path: Path, planned: PlannedStore, factory: str) -> AdjunctLook:
    """Return what the directory ``path``, which exists, has of the store ``planned``.

    ``factory``: the store's engine. Records that a container has not flushed are not seen.
    """
    files = DirectoryFiles(path)
    found, kind = found_beside(files), persistent_engine(factory)
    if found.fault is not None or not found.exists:
        return AdjunctLook(found)
    try:
        if planned.store.is_bounded:
            facts = _of_versions(files, planned, kind)
        else:
            with closing(kind.view(path)) as view:
                facts = StoreFacts.of_parts(_parts_of(view), None, None)
    except (StoreError, WireError) as error:
        fault = Refusal(RefusalReason.DAMAGED_STORE, str(error))
        return AdjunctLook(replace(found, fault=fault))
    return AdjunctLook(replace(found, positions=facts.positions), facts)


def _of_versions(
    files: DirectoryFiles, planned: PlannedStore, kind: PersistentEngineFactory
) -> StoreFacts:
    catalogue = catalogue_in(files)
    names = [path.name[1:] for path in files.path.glob("v[1-9]*")]
    folders = {int(n): files.path / f"v{n}" for n in names if n.isascii() and n.isdigit()}
    stores = dict(_begun(folders, catalogue.served, kind))
    versions = Versions.found(planned.partitions, catalogue, stores)
    known = {*catalogue.settled_below, *(p for parts in stores.values() for p in parts)}
    positions = {p: versions.cursor(p).next for p in known}
    since_ms = began_ms(stores.get(catalogue.served or 0, {}))
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


def _served_path(path: Path) -> Path:
    if not (path / CATALOGUE_FILE).exists():
        return path
    served = catalogue_in(DirectoryFiles(path)).served
    if served is None:
        raise StoreError(f"{path}: the store has no whole version yet")
    return path / f"v{served}"


def _parts_of(view: StoreView) -> VersionProgress:
    text = view.get(PARTS_KEY)
    if text is None:
        raise StoreError("it does not say where it is in its stream")
    return parse_parts(text.decode("utf-8", "replace"))
