"""Section swap: how long the loop stands still while versions are built and take their places."""

from __future__ import annotations

import time
from collections.abc import Iterator

from benchmarks.adjunct.stores import (
    BATCH,
    RECORDS,
    Built,
    built_store,
    keys_in_disorder,
    values_of,
)
from benchmarks.report import Row, at_most, figure, progress

_TITLE = f"adjunct store: versions of {RECORDS:,} x 200 B, one after the other, in random order"
_VERSIONS = 4
_TARGET_MS = 50.0
_PAUSE_S = 0.005
"""Between two batches that bring nothing."""


def rows(records: int = RECORDS, versions: int = _VERSIONS) -> Iterator[Row]:
    """The longest pauses of all versions but the first, which nothing is served beside."""
    swaps: list[float] = []
    begins: list[float] = []
    writes: list[float] = []
    beside: list[float] = []
    with built_store() as store:
        for version in range(1, versions + 1):
            progress(f"version {version} of {versions}")
            keys = keys_in_disorder(records, version)
            taken = [
                store.take(part, values_of(part))
                for part in (keys[at : at + BATCH] for at in range(0, records, BATCH))
            ]
            ended = time.perf_counter()
            swap = [store.ends(), *_until_served(store, version)]
            beside.append(time.perf_counter() - ended)
            if version > 1:
                begins.append(taken[0])
                writes += taken[1:]
                swaps.append(max(swap))
        size_mb = (store.sink.facts().size_bytes or 0) / 1e6
    what = f"pause of the swap, the longest of {versions - 1}"
    yield at_most(what, 1000 * max(swaps), _TARGET_MS, "ms")
    yield figure("from the end marker until it is served, the longest", max(beside), "s")
    yield figure("the store on the disk, with one version", size_mb, "MB")
    yield figure(
        f"first batch of a version, {BATCH:,} records, the longest", 1000 * max(begins), "ms"
    )
    yield figure(
        f"another batch of {BATCH:,} records, mean", 1000 * sum(writes) / max(1, len(writes)), "ms"
    )


def _until_served(store: Built, version: int) -> Iterator[float]:
    while store.served != version:
        yield store.settle()
        time.sleep(_PAUSE_S)  # as a loop without input looks again


SECTIONS = {"swap": (_TITLE, rows)}
