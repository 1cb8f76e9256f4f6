"""The table of storage engines: everything outside an engine's own folder that depends on its kind.

A new engine is a class that derives from ``StorageEngineFactory`` of
``homeport.container.engine.storage_engine``, and an entry here. Its stores pass
``tests/support/storage_engine_conformance.py``.
"""

from dataclasses import dataclass

ROCKSDB = "rocksdb"


@dataclass(frozen=True, slots=True)
class EngineEntry:
    """One engine. ``is_persistent``: whether its files can outlive the container that wrote them.

    ``factory``: ``module:Class`` of the container's side, a text because config imports no package.
    """

    java_name: str
    is_persistent: bool
    factory: str


STORAGE_ENGINES = {
    ROCKSDB: EngineEntry(
        "org.apache.samza.storage.kv.RocksDbKeyValueStorageEngineFactory",
        is_persistent=True,
        factory="homeport.container.rocksdb.factory:RocksDbFactory",
    ),
    "in-memory": EngineEntry(
        "org.apache.samza.storage.kv.inmemory.InMemoryKeyValueStorageEngineFactory",
        is_persistent=False,
        factory="homeport.container.engine.in_memory_store:InMemoryFactory",
    ),
}
"""{value of ``stores.<store>.factory``: its engine}."""
