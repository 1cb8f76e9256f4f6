"""StorageEngines: opens each store with the engine that its configuration names."""

import functools
import importlib
import logging
import threading
from pathlib import Path
from typing import cast

from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StoreConfig
from homeport.config.storage_engines import STORAGE_ENGINES
from homeport.container.engine.storage_engine import (
    DamagedStoreError,
    Opener,
    PersistentEngineFactory,
    StorageEngine,
    StorageEngineFactory,
    StoreView,
)
from homeport.container.storage.directory import mark_damaged

_LOG = logging.getLogger(__name__)


class StorageEngines:
    """Opens the stores of one container. Those of one kind share ``memory_bytes``."""

    def __init__(self, memory_bytes: int, store_count: int, task_count: int = 1) -> None:
        self._shares = memory_bytes, store_count, task_count
        self._openers: dict[str, Opener] = {}
        self._making = threading.Lock()
        self._failures: dict[Path, StoreError] = {}

    def serves(self, memory_bytes: int, store_count: int, task_count: int) -> bool:
        """Return whether its stores share their memory nearly as these would."""
        own_bytes, *own = self._shares
        counts = zip(own, (store_count, task_count), strict=True)
        return own_bytes == memory_bytes and all(a <= 2 * b and b <= 2 * a for a, b in counts)

    def open(self, config: StoreConfig, path: Path) -> StorageEngine:
        """Open the store of ``config``, whose files are in ``path``.

        Once a call of the store has failed, ``require_sound`` raises. A directory with damage is
        also marked.

        Raises:
            DiskError: the disk has no room for what opening writes, or may not be used.
            StoreError: the directory cannot be opened.
        """
        self._failures.pop(path, None)
        kind = config.factory
        with self._making:  # what the stores of a kind share is made once
            if kind not in self._openers:
                self._openers[kind] = _factory_of(kind).opener(*self._shares)
        return self._openers[kind](config, path, functools.partial(self._failed, path))

    def require_sound(self) -> None:
        """Raise the StoreError of an open store that has failed, even if user code caught it."""
        for failure in self._failures.values():
            raise failure

    def _failed(self, path: Path, failure: StoreError) -> None:
        self._failures.setdefault(path, failure)
        if not isinstance(failure, DamagedStoreError):
            return
        try:
            mark_damaged(path, failure.story)
        except OSError as error:
            _LOG.warning("%s: it cannot be marked as damaged: %s", path, error.strerror)


def persistent_engine(name: str) -> PersistentEngineFactory:
    """Return the engine of that name; StoreError where its stores have no files."""
    if not STORAGE_ENGINES[name].is_persistent:
        raise StoreError(f"a store of the kind {name} has no files")
    return cast("PersistentEngineFactory", _factory_of(name))


def view_of(path: Path) -> StoreView:
    """Return a view of the store in ``path`` by the engine that knows its files, else the first."""
    engines = [persistent_engine(n) for n, e in STORAGE_ENGINES.items() if e.is_persistent]
    found = (engine for engine in engines if engine.fault(path) is None)
    return next(found, engines[0]).view(path)


@functools.cache
def _factory_of(name: str) -> StorageEngineFactory:
    module, _, class_name = STORAGE_ENGINES[name].factory.partition(":")
    factory: StorageEngineFactory = getattr(importlib.import_module(module), class_name)()
    return factory


for _name in STORAGE_ENGINES:
    _factory_of(_name)  # A spare process has imported every engine before it gets its job.
