"""What the stores of a container report of themselves, on real RocksDB directories."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.container_storage import store_figures
from homeport.container.storage.task_store import TaskStore
from homeport.job_coordinator.status.figures import FIGURES


class _Kept:
    """Stands for a task's store: its name, and its engine."""

    def __init__(self, name: str, engine: object) -> None:
        self.name = name
        self.config = self
        self.engine = engine


def test_figures_are_summed_over_the_tasks_of_a_store(tmp_path: Path) -> None:
    """Entries of both tasks together; the cache, which all share, once."""
    memory = RocksDbMemory(8 << 20, 3)
    stores = [RocksDbStore(tmp_path / name, memory) for name in "abc"]
    for number, store in enumerate(stores):
        store.write({b"%d" % key: b"value" for key in range(10 * (number + 1))}, None)
        store.flush()
    kept = [_Kept("s", stores[0]), _Kept("s", stores[1]), _Kept("t", stores[2])]
    kept += [_Kept("m", InMemoryStore()), _Kept("closed", None)]
    found = {(s.name, *s.labels): s.value for s in store_figures(cast("list[TaskStore]", kept))}
    assert found["store_entries", "s"] == 30
    assert found["store_entries", "t"] == 30
    assert found["store_disk_bytes", "s"] > found["store_disk_bytes", "t"] > 0
    assert found["rocksdb_cache_bytes",] > 0
    assert {labels[0] for _, *labels in found if labels} == {"s", "t"}
    assert {name for name, *_ in found} < set(FIGURES)
    for store in stores:
        store.close()
