"""KeptStores: the open stores of tasks that stay, between two incarnations of one process.

A kept store keeps its lock, its caches, and what is not flushed yet. Nothing of the ended run
reaches it (``Overlay.end``). The next incarnation takes over the stores of its own tasks, and the
others are closed before its start; all of them are, where no permit comes for a while and at the
end of the process. A kept store is judged as one that was found: by its own position, and by the
head of its changelog.

Stores that begin empty in each container (``StoreConfig.is_kept``), in-memory ones and adjunct
stores are never kept.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

from homeport.config.errors import HomeportError
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.storage.directory_lock import Holder
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import TaskStore
from homeport.job_coordinator.model.job_model import TaskModel

_LOG = logging.getLogger(__name__)

Wanted = Mapping[Path, tuple[StoreConfig, TaskModel]]
"""The stores of an incarnation, by their directories."""


class KeptStores:
    """Belongs to the process, for its main thread."""

    def __init__(self) -> None:
        self._stores: dict[Path, TaskStore] = {}
        self._engines: StorageEngines | None = None

    def put(self, store: TaskStore, engines: StorageEngines) -> None:
        """Keep the store, which stays open; its overlay has ended."""
        store.rest()
        self._engines = engines
        self._stores[store.directory.path] = store

    def retain(self, wanted: Wanted, shares: tuple[int, int, int]) -> None:
        """Close all but the stores that are ``wanted``; ``shares``: as of ``StorageEngines``."""
        is_served = self._engines is not None and self._engines.serves(*shares)
        for path, store in list(self._stores.items()):
            if not (is_served and path in wanted and store.serves(*wanted[path])):
                self._close(path)
        if not self._stores:
            self._engines = None

    def engines(self) -> StorageEngines | None:
        """Return what opened the stores, which share memory with it; None: there is no store."""
        return self._engines

    def take(self, path: Path, task: TaskModel, holder: Holder | None) -> TaskStore | None:
        """Return the store of ``path``, for ``task`` of this holder; None: none is kept."""
        store = self._stores.pop(path, None)
        if store is not None:
            store.task = task
            store.directory.name_holder(holder)
        return store

    def close(self) -> None:
        """Flush and close all."""
        for path in list(self._stores):
            self._close(path)
        self._engines = None

    def _close(self, path: Path) -> None:
        store = self._stores.pop(path)
        try:
            if self._engines is not None:
                self._engines.require_sound()
                store.flush()
        except HomeportError as error:
            # Its last flush counts: what came later is read from the changelog.
            _LOG.warning("%s is closed without a flush: %s", path, error)
        try:
            store.close()
        except HomeportError as error:
            _LOG.warning("%s: %s", path, error)
