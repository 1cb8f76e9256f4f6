"""Section hot: records of few keys, with changelog, output and transaction."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.commit.runs import broker, passes, rows_of
from benchmarks.report import Row

RECORDS, KEYS = 1_000_000, 10_000
TITLE = "Sum and count per key: 1,000,000 JSON records of 10,000 keys, the median of 3 by CPU"
_ROUNDS = 3


def rows() -> Iterator[Row]:
    """Records per second of the whole path, from the fetch to the stores' commit."""
    with broker() as servers:
        found = [next(passes(servers, "hot", RECORDS, KEYS)) for _ in range(_ROUNDS)]
    yield from rows_of(sorted(found, key=lambda one: one.cpu_s)[_ROUNDS // 2], "records", 200_000)
