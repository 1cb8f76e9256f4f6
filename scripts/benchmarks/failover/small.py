"""Section small: the host of the active container dies; state of 10 MB."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.failover.rows import host_lost
from benchmarks.report import Row

TITLE = "SIGKILL of all that runs on the host of the active container, state of 10 MB, lease 3 s"


def rows(runs: int) -> Iterator[Row]:
    """Without a standby, with one, with one that is warmed up."""
    return host_lost(10, runs)
