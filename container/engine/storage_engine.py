"""The parts of a storage engine: open stores, views of their files, and the factory of both."""

from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, runtime_checkable

from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.progress.restore_schedule import WorkerMemory


class StorageEngine(Protocol):
    """Bytes to bytes, together with the changelog position they stand at. One owner, one thread.

    ``flush`` may come from a second thread, while the first one reads and writes.
    """

    @property
    def position(self) -> int | None:
        """The changelog offset up to which the store holds everything; None: not known."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None where there is none."""

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of ``keys``, in their order."""

    def scan(
        self, start: bytes | None = None, end: bytes | None = None
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Return pairs with start <= key < end in byte order, as they stand at the call.

        What holds them there is let go at their end, at its ``close``, and when the store closes.
        """

    def write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        """Apply all of ``entries`` (None deletes) and the position, or nothing."""

    def flush(self) -> None:
        """Force all that was written to the disk, where the store keeps anything there."""

    def close(self) -> None:
        """Free the directory for another."""


@runtime_checkable
class MeasuredEngine(Protocol):
    """An open store that reports figures of itself."""

    def figures(self) -> Mapping[str, int]:
        """Return {name of a figure of ``/metrics`` with the store's labels, or none: its value}."""


@runtime_checkable
class StayingEngine(Protocol):
    """An open store that may stay open while its process goes from one run to the next."""

    def end_scans(self) -> None:
        """End all scans that are open."""


class StoreView(Protocol):
    """Reads a store's files beside its owner; writes nothing and takes no lock."""

    @property
    def position(self) -> int | None:
        """The changelog offset up to which the store holds everything; None: it names none."""

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None where there is none."""

    def scan(self, start: bytes | None = None) -> Iterator[tuple[bytes, bytes]]:
        """Return pairs from ``start`` on, in byte order; StoreError where a file is damaged."""

    def close(self) -> None:
        """Close the view and remove it."""


class BulkLoader(Protocol):
    """A store that a restore worker fills from its changelog."""

    def write(
        self, keys: Iterable[bytes | None], values: Iterable[bytes | None], position: int
    ) -> None:
        """Apply all records in their order (None deletes) and the position, or nothing.

        A record without a key is passed over.
        """

    def flush(self) -> None:
        """Force all that was written to the disk."""

    def compact(self, report: Callable[[int], None]) -> None:
        """Make the store fit for use. ``report`` gets the number of merged files, if any."""

    def close(self) -> None:
        """Free the directory for another; what was not flushed may be gone."""


OnFailure = Callable[[StoreError], None]
"""Gets each error of a call of an open store, before it is raised."""
Opener = Callable[[StoreConfig, Path, OnFailure], StorageEngine]
"""Opens the store of a configuration in a directory, whose lock the caller holds.

It raises DiskError if the disk has no room for what opening writes, or may not be used, and
StoreError if the directory cannot be opened.
"""


class StorageEngineFactory(Protocol):
    """One kind of engine. It holds no store."""

    def opener(self, memory_bytes: int, store_count: int, task_count: int) -> Opener:
        """Return the opener of one container's stores, which share ``memory_bytes``."""


class PersistentEngineFactory(StorageEngineFactory, Protocol):
    """One kind of engine that keeps its stores on the disk."""

    def bulk_loader(
        self, config: StoreConfig, path: Path, memory: WorkerMemory, cores: int
    ) -> BulkLoader:
        """The store in the directory ``path``, open to be filled; errors as of an ``Opener``."""

    def view(self, path: Path) -> StoreView:
        """Return the store in the directory ``path`` as it stands on the disk.

        StoreError: there is none, or it is damaged or may not be read.
        """

    def fault(self, path: Path) -> str | None:
        """Return why the files in ``path`` are no store of this kind; None: they may be one."""


class DamagedStoreError(StoreError):
    """An engine cannot read what it wrote: only the changelog can bring the store back.

    ``story``: what the engine says, in one line.
    """

    def __init__(self, path: Path, story: str) -> None:
        self.story = story
        super().__init__(f"{path}: {story}; the next start restores this store from its changelog")
