"""StorageEngine: what keeps the bytes of one store of one task; who opens the kind asked for."""

from __future__ import annotations

import functools
import logging
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.rocksdb.expiring_store import ExpiringStore
from homeport.container.rocksdb.rocksdb_store import DamagedStoreError, RocksDbMemory, RocksDbStore
from homeport.container.storage.directory import condemn
from homeport.container.storage.in_memory_store import InMemoryStore

_LOG = logging.getLogger(__name__)


class StorageEngine(Protocol):
    """Bytes to bytes, together with the changelog position they stand at. One owner, one thread."""

    @property
    def is_persistent(self) -> bool:
        """Whether anything of it outlives its container; if not, every start reads all."""

    @property
    def position(self) -> int | None:
        """The changelog offset up to which the store holds everything; None: not known."""

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``; None where there is none."""

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys``, in their order."""

    def scan(
        self, start: bytes | None = None, end: bytes | None = None
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Pairs with start <= key < end in byte order, as they stand at the call.

        What holds them there is let go at their end, at its ``close``, and when the store closes.
        """

    def write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        """Applies all of ``entries`` (None deletes) and the position, or nothing."""

    def flush(self) -> None:
        """All that was written is on the disk, where the store keeps anything there."""

    def close(self) -> None:
        """The directory may be opened by another."""


class StorageEngines:
    """Opens the stores of one container. Those of RocksDB share ``memory_bytes``."""

    def __init__(self, memory_bytes: int, store_count: int, task_count: int = 1) -> None:
        self._memory = RocksDbMemory(memory_bytes, store_count, task_count)
        self._failures: dict[Path, StoreError] = {}

    def open(self, config: StoreConfig, path: Path) -> StorageEngine:
        """The store of the kind ``config`` names; what it keeps on the disk is in ``path``.

        Where a call of it fails later, ``require_sound`` says so from then on; where that is
        damage, so does its directory.

        Raises:
            DiskError: there is no room for what opening writes, or no right to it.
            StoreError: the directory cannot be opened.
        """
        if not config.is_persistent:
            return InMemoryStore()
        self._failures.pop(path, None)
        on_failure = functools.partial(self._failed, path)
        if config.ttl_ms is not None:
            return ExpiringStore(path, self._memory, config.rocksdb, config.ttl_ms, on_failure)
        return RocksDbStore(path, self._memory, config.rocksdb, on_failure)

    def require_sound(self) -> None:
        """Nothing; the StoreError of an open store that has failed, whoever may have hidden it."""
        for failure in self._failures.values():
            raise failure

    def _failed(self, path: Path, failure: StoreError) -> None:
        self._failures.setdefault(path, failure)
        if not isinstance(failure, DamagedStoreError):
            return
        try:
            condemn(path, failure.story)
        except OSError as error:
            _LOG.warning("%s: it cannot be marked as damaged: %s", path, error.strerror)
