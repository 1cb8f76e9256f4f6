"""What the measurements of stores share: keys in random order, stores that are full, and clocks."""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.report import Row, at_least, figure
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore

KEYS = 500_000
BATCH = 50_000
MEMORY_BYTES = 128 << 20
VALUE_BYTES = 100


def long_keys(count: int) -> list[int]:
    """So many different numbers in no order, the same in each run."""
    numbers = random.Random(1)  # noqa: S311 - for a measurement
    return numbers.sample(range(10 * count), count)


def batches(keys: Sequence[int], size: int = BATCH) -> Iterator[Sequence[int]]:
    """``keys`` in parts."""
    return (keys[start : start + size] for start in range(0, len(keys), size))


def values() -> Iterator[bytes]:
    """Random bytes without end, which nothing compresses."""
    numbers = random.Random(2)  # noqa: S311 - for a measurement
    pool = numbers.randbytes(1 << 22)
    while True:
        start = numbers.randrange(len(pool) - VALUE_BYTES)
        yield pool[start : start + VALUE_BYTES]


@contextmanager
def engine(kind: str) -> Iterator[StorageEngine]:
    """An empty engine; RocksDB's in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        memory = RocksDbMemory(MEMORY_BYTES, 1)
        store = RocksDbStore(Path(folder), memory) if kind == "RocksDB" else InMemoryStore()
        yield store
        store.close()


def timed(what: str, count: int, work: Callable[[], object], least: float | None = None) -> Row:
    """How many of ``count`` things ``work`` does in a CPU second of the whole process.

    RocksDB's own threads are part of it. ``least``: the target.
    """
    began, cpu = time.perf_counter(), time.process_time()
    work()
    cpu_s, wall_s = time.process_time() - cpu, time.perf_counter() - began
    said = f"{what} ({cpu_s:.2f} CPU s, {wall_s:.2f} s)"
    rate = count / cpu_s
    return figure(said, rate, "/CPU s") if least is None else at_least(said, rate, least, "/CPU s")
