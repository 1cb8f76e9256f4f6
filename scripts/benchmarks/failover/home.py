"""Section home: the process of the active container dies, its launcher lives; state of 10 MB."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.failover.rows import process_lost
from benchmarks.report import Row

TITLE = "SIGKILL of the container's process, which comes home; state of 10 MB"


def rows(runs: int) -> Iterator[Row]:
    """With a pipeline, with one that is warmed up, and without."""
    return process_lost(10, runs)
