"""The engines alone: bytes to bytes, in batches as transactions and restores make them."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.report import Row
from benchmarks.store.runs import (
    BATCH,
    KEYS,
    VALUE_BYTES,
    batches,
    engine,
    long_keys,
    timed,
    values,
)
from homeport.container.engine.storage_engine import StorageEngine

TITLE = f"engines: {KEYS:,} keys of 8 B in random order, values of {VALUE_BYTES} B"


def rows() -> Iterator[Row]:
    """Written, read one by one and in batches, scanned."""
    keys = long_keys(KEYS)
    for kind in ("RocksDB", "in memory"):
        with engine(kind) as store:
            yield from _measured(kind, store, keys)


def _measured(kind: str, store: StorageEngine, keys: list[int]) -> Iterator[Row]:
    packed = [key.to_bytes(8, "big") for key in keys]
    pairs = dict(zip(packed, values(), strict=False))

    def write() -> None:
        for number, part in enumerate(batches(range(len(packed)))):
            store.write({packed[i]: pairs[packed[i]] for i in part}, number)
        store.flush()

    yield timed(f"{kind}: write and flush, batches of {BATCH:,}", KEYS, write)
    some = packed[: KEYS // 5]
    yield timed(f"{kind}: get", len(some), lambda: [store.get(key) for key in some])
    parts = [[packed[i] for i in part] for part in batches(range(len(packed)))]
    yield timed(
        f"{kind}: get_all, batches of {BATCH:,}",
        KEYS,
        lambda: [store.get_all(part) for part in parts],
    )
    yield timed(f"{kind}: scan of all", KEYS, lambda: sum(1 for _ in store.scan()))
    starts = [key[:7] for key in packed[:50_000]]
    yield timed(
        f"{kind}: scan of a short prefix",
        len(starts),
        lambda: [list(store.scan(start, start + b"\xff")) for start in starts],
    )
