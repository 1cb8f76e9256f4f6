"""An example of a further storage engine: one JSON file per store."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from homeport.config import java_names
from homeport.config.errors import StoreError
from homeport.config.java_names import Kind
from homeport.config.settings.stores_section import StoreConfig
from homeport.config.storage_engines import STORAGE_ENGINES, EngineEntry
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import OnFailure, Opener
from homeport.container.progress.restore_schedule import WorkerMemory

TOY = "toy"
TOY_FILE = "toy.json"


def register(patch: pytest.MonkeyPatch) -> None:
    """The table has the engine until the end of the test, and so has what was made of the table."""
    entry = EngineEntry("org.example.Toy", is_persistent=True, factory="toy_engine:ToyFactory")
    patch.setitem(STORAGE_ENGINES, TOY, entry)
    patch.setitem(java_names._TABLE[Kind.STORE], TOY, entry.java_name)


class ToyStore(InMemoryStore):
    """Its file has what was there at the last flush."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._file = path / TOY_FILE
        if self._file.exists():
            self._load()

    def _load(self) -> None:
        try:
            position, *pairs = json.loads(self._file.read_bytes())
        except ValueError as error:
            raise StoreError(f"{self._file}: it is no JSON: {error}") from None
        self.write({bytes.fromhex(k): bytes.fromhex(v) for k, v in pairs}, position)

    def flush(self) -> None:
        """The file has all that was written."""
        pairs = [(key.hex(), value.hex()) for key, value in self.scan()]
        self._file.write_text(json.dumps([self.position, *pairs]), encoding="ascii")


class ToyLoader:
    """Implements ``BulkLoader``."""

    def __init__(self, path: Path) -> None:
        self._store = ToyStore(path)
        self.flush, self.close = self._store.flush, self._store.close

    def write(
        self, keys: Iterable[bytes | None], values: Iterable[bytes | None], position: int
    ) -> None:
        """The records are in the store."""
        pairs = zip(keys, values, strict=True)
        self._store.write({key: value for key, value in pairs if key is not None}, position)

    def compact(self, _announce: Callable[[int], None]) -> None:
        """Nothing has to be merged."""


class ToyFactory:
    """Implements ``PersistentEngineFactory``."""

    def opener(self, *_memory: int) -> Opener:
        """Stores that take what memory they need."""

        def opened(_config: StoreConfig, path: Path, _on_failure: OnFailure) -> ToyStore:
            return ToyStore(path)

        return opened

    def bulk_loader(
        self, _config: StoreConfig, path: Path, _memory: WorkerMemory, _cores: int
    ) -> ToyLoader:
        """The store of ``path``."""
        return ToyLoader(path)

    def view(self, path: Path) -> ToyStore:
        """The store of ``path``, as of its last flush."""
        return ToyStore(path)

    def fault(self, path: Path) -> str | None:
        """Whether the file is missing."""
        return None if (path / TOY_FILE).exists() else f"the file {TOY_FILE} is missing"
