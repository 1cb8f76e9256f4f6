"""Stores without Kafka: what a change of a key costs as one grows, and what opening many costs."""

from __future__ import annotations

import random
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.bed import scratch
from benchmarks.commit.tasks import VALUE_BYTES, key_of
from benchmarks.processes import peak_mb, resident_mb, result_of
from benchmarks.report import Row, Spent, at_most, figure
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.overlay import Overlay

_MIB = 1024 * 1024
_BATCH, _BATCHES_A_FLUSH = 10_000, 25
_CHANGES = 1_000_000
_SIZES = 100_000, 1_000_000, 5_000_000, 20_000_000
_STORES = 1_000


def changed(keys: int) -> dict[str, float]:
    """What the first write of each key took, and then 1,000,000 changes of keys by chance.

    Units: µs of CPU a key, MB. ``own``: of the thread that reads and writes.
    """
    chance = random.Random(1)  # noqa: S311 - a benchmark's keys are no secret
    with scratch() as folder:
        (path := folder / "store").mkdir()
        store = RocksDbStore(path, RocksDbMemory(64 * _MIB, 1))
        first_us, _ = _cpu_us(store, range(keys))
        change_us, own_us = _cpu_us(store, [chance.randrange(keys) for _ in range(_CHANGES)])
        disk_mb = sum(file.stat().st_size for file in path.glob("*.sst")) / _MIB
        store.close()
    found = {"first": first_us, "change": change_us, "own": own_us}
    return {**found, "peak_mb": peak_mb(), "disk_mb": disk_mb}


def _cpu_us(store: RocksDbStore, numbers: Sequence[int]) -> tuple[float, float]:
    """The CPU for each key, of all threads and of this one: read, changed, written by batches."""
    pool, overlay = random.Random(2).randbytes(_MIB), Overlay(store)  # noqa: S311 - as above
    spent, own = Spent(), Spent(time.thread_time)
    for begin in range(0, len(numbers), _BATCH):
        keys = list({key_of(number): None for number in numbers[begin : begin + _BATCH]})
        found = dict(zip(keys, overlay.get_all(keys), strict=True))
        for at, (key, before) in enumerate(found.items()):
            count = 1 if before is None else int.from_bytes(before[:8], "big") + 1
            start = (begin + 103 * at) % (_MIB - VALUE_BYTES)
            found[key] = count.to_bytes(8, "big") + pool[start : start + VALUE_BYTES]
        overlay.put_all(found)
        overlay.seal()
        store.write(overlay.sealed(), begin)
        overlay.release()
        if begin // _BATCH % _BATCHES_A_FLUSH == 0:
            store.flush()
    store.flush()
    all_s, own_s = spent.so_far()[1], own.so_far()[1]
    return 1e6 * all_s / len(numbers), 1e6 * own_s / len(numbers)


def keys() -> Iterator[Row]:
    """A process for each size: its memory is that of this store alone."""
    for size in _SIZES:
        found = result_of("commit.growing.changed", size)
        yield figure(f"{size:,} keys: a change, CPU", found["change"], "µs")
        yield figure("  of it in the thread of the task", found["own"], "µs")
        yield figure("  the first write of a key, CPU", found["first"], "µs")
        yield figure("  memory of the process at most", found["peak_mb"], "MB")
        yield figure("  state on the disk", found["disk_mb"], "MB")


def reopened(count: int) -> dict[str, float]:
    """What opening ``count`` stores took that are there already: seconds, CPU seconds, MB."""
    with scratch() as folder:
        for store in _opened(folder, count):
            store.write({b"key": b"value"}, 1)
            store.flush()
            store.close()
        before_mb, spent = resident_mb(), Spent()
        stores = list(_opened(folder, count))
        found = {**spent.found(), "mb": resident_mb() - before_mb}
        for store in stores:
            store.close()
    return found


def _opened(folder: Path, count: int) -> Iterator[RocksDbStore]:
    memory = RocksDbMemory(64 * _MIB, count, count)
    for number in range(count):
        (path := folder / str(number)).mkdir(exist_ok=True)
        yield RocksDbStore(path, memory)


def opening() -> Iterator[Row]:
    """10,000 stores are to open in 10 s."""
    found = result_of("commit.growing.reopened", _STORES)
    yield at_most("one store, by the clock", 1000 * found["s"] / _STORES, 1, "ms")
    yield figure("  CPU", 1000 * found["cpu_s"] / _STORES, "ms")
    yield figure("  memory", 1024 * found["mb"] / _STORES, "KB")


SECTIONS = {
    "keys": (
        "Keys read, changed and written by 10,000; values of 108 random bytes, cache of 32 MB",
        keys,
    ),
    "opening": (f"{_STORES:,} stores of a container, opened again", opening),
}
