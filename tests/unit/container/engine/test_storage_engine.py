"""Both kinds of engine, and which of them a configuration asks for."""

from __future__ import annotations

from pathlib import Path

import pytest
from storage_engine_conformance import StorageEngineConformance

from homeport.config.config import Config
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.rocksdb.expiring_store import ExpiringStore
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.storage_engines import StorageEngines


class TestRocksDbStore(StorageEngineConformance):
    """On a directory of its own."""

    @pytest.fixture
    def engine(self, tmp_path: Path) -> StorageEngine:
        """A new store."""
        return RocksDbStore(tmp_path, RocksDbMemory(1 << 24, 1))

    def test_an_open_scan_does_not_keep_the_directory(self, tmp_path: Path) -> None:
        """RocksDB holds its lock while an iterator lives; a store that was closed has none."""
        store = RocksDbStore(tmp_path / "own", RocksDbMemory(1 << 24, 1))
        store.write({b"a": b"1", b"b": b"1"}, 1)
        begun, untouched = store.scan(), store.scan()
        next(begun)
        store.close()
        store = RocksDbStore(tmp_path / "own", RocksDbMemory(1 << 24, 1))
        assert store.position == 1
        store.close()
        assert [*begun, *untouched] == []


class TestInMemoryStore(StorageEngineConformance):
    """In this process."""

    @pytest.fixture
    def engine(self) -> StorageEngine:
        """A new store."""
        return InMemoryStore()


@pytest.mark.parametrize(
    ("factory", "ttl_ms", "kind"),
    [
        ("org.apache.samza.storage.kv.RocksDbKeyValueStorageEngineFactory", "-1", RocksDbStore),
        ("rocksdb", "1000", ExpiringStore),
        ("in-memory", "1000", InMemoryStore),
    ],
)
def test_the_factory_names_the_kind(tmp_path: Path, factory: str, ttl_ms: str, kind: type) -> None:
    """Java's names too; an in-memory store leaves the directory as it is."""
    serdes = {"stores.s.key.serde": "bytes", "stores.s.msg.serde": "bytes"}
    more = {"stores.s.factory": factory, "stores.s.rocksdb.ttl.ms": ttl_ms}
    config = StoreConfig.of(Config({**serdes, **more}), "s")
    store = StorageEngines(1 << 24, 1).open(config, tmp_path)
    assert type(store) is kind
    assert config.is_persistent == any(tmp_path.iterdir())
    store.close()
