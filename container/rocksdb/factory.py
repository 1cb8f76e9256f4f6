"""RocksDbFactory: how a container, a restore worker and a tool open stores of RocksDB."""

from pathlib import Path

from homeport.config.settings.stores_section import StoreConfig
from homeport.container.engine.storage_engine import OnFailure, Opener
from homeport.container.progress.restore_schedule import WorkerMemory
from homeport.container.rocksdb.bulk_store import BulkStore
from homeport.container.rocksdb.expiring_store import ExpiringStore
from homeport.container.rocksdb.rocksdb_store import CURRENT_FILE, RocksDbMemory, RocksDbStore
from homeport.container.rocksdb.rocksdb_view import RocksDbView


class RocksDbFactory:
    """Implements ``PersistentEngineFactory``."""

    def opener(self, memory_bytes: int, store_count: int, task_count: int) -> Opener:
        """Return what opens stores that share one block cache and one budget of write buffers."""
        shared = RocksDbMemory(memory_bytes, store_count, task_count)

        def opened(config: StoreConfig, path: Path, on_failure: OnFailure) -> RocksDbStore:
            if config.ttl_ms is not None:
                return ExpiringStore(path, shared, config.rocksdb, config.ttl_ms, on_failure)
            return RocksDbStore(path, shared, config.rocksdb, on_failure)

        return opened

    def bulk_loader(
        self, config: StoreConfig, path: Path, memory: WorkerMemory, cores: int
    ) -> BulkStore:
        """Open the store in the directory ``path`` to be filled."""
        return BulkStore(path, memory, cores, config.rocksdb, expires=config.ttl_ms is not None)

    def view(self, path: Path) -> RocksDbView:
        """Return the store in the directory ``path`` as it stands on the disk."""
        return RocksDbView(path)

    def fault(self, path: Path) -> str | None:
        """Return why RocksDB would begin an empty store in ``path``, beside its OFFSET."""
        if (path / CURRENT_FILE).exists():
            return None
        return f"RocksDB's file {CURRENT_FILE} is missing"
