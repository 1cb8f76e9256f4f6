"""Section distinct: each record another key, read from RocksDB, changed and written."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.commit.runs import broker, passes, rows_of
from benchmarks.report import Row, figure

KEYS = 1_000_000
TITLE = "Read-modify-write of 1,000,000 distinct keys in random order, RocksDB's cache 32 MB"


def rows() -> Iterator[Row]:
    """The first pass finds an empty store; the second reads every key that the first has left."""
    with broker() as servers:
        first, second = passes(servers, "distinct", KEYS, KEYS, count=2)
    yield from rows_of(second, "keys", 50_000)
    yield figure("keys into an empty store, per core", first.rate_per_core, "/s")
    yield figure("keys into an empty store, by the clock", first.rate, "/s")
