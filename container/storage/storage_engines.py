"""StorageEngines: opens each store with the engine that its configuration names."""

from __future__ import annotations

import functools
import importlib
import logging
from pathlib import Path
from typing import cast

from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StoreConfig
from homeport.config.storage_engines import STORAGE_ENGINES
from homeport.container.engine.storage_engine import (
    DamagedStoreError,
    PersistentEngineFactory,
    StorageEngine,
    StorageEngineFactory,
    StoreView,
)
from homeport.container.storage.directory import condemn

_LOG = logging.getLogger(__name__)


@functools.cache
def _factory(name: str) -> StorageEngineFactory:
    module, _, class_name = STORAGE_ENGINES[name].factory.partition(":")
    factory: StorageEngineFactory = getattr(importlib.import_module(module), class_name)()
    return factory


for _name in STORAGE_ENGINES:
    _factory(_name)  # A spare process imports every engine before its start is due.


@functools.cache
def persistent_engine(name: str) -> PersistentEngineFactory:
    """The engine named ``name`` in the configuration; StoreError where its stores have no files."""
    if not STORAGE_ENGINES[name].is_persistent:
        raise StoreError(f"a store of the kind {name} has no files")
    return cast("PersistentEngineFactory", _factory(name))


def view_of(path: Path) -> StoreView:
    """The store in the directory ``path``, by the engine that its files are of; else the first."""
    engines = [persistent_engine(n) for n, e in STORAGE_ENGINES.items() if e.is_persistent]
    found = (engine for engine in engines if engine.fault(path) is None)
    return next(found, engines[0]).view(path)


class StorageEngines:
    """Opens the stores of one container. Those of one kind share ``memory_bytes``."""

    def __init__(self, memory_bytes: int, store_count: int, task_count: int = 1) -> None:
        memory = memory_bytes, store_count, task_count
        self._opener = functools.cache(lambda name: _factory(name).opener(*memory))
        self._failures: dict[Path, StoreError] = {}

    def open(self, config: StoreConfig, path: Path) -> StorageEngine:
        """The store of the kind ``config`` names; what it keeps on the disk is in ``path``.

        Where a call of it fails later, ``require_sound`` says so from then on; where that is
        damage, so does its directory.

        Raises:
            DiskError: there is no room for what opening writes, or no right to it.
            StoreError: the directory cannot be opened.
        """
        self._failures.pop(path, None)
        return self._opener(config.factory)(config, path, functools.partial(self._failed, path))

    def require_sound(self) -> None:
        """Raises the StoreError of an open store that has failed, even where user code hid it."""
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
