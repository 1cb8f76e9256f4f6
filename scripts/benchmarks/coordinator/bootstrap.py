"""Section bootstrap: reading a long coordinator stream to its head."""

from __future__ import annotations

import os
from collections.abc import Iterator

from benchmarks.processes import result_of
from benchmarks.report import Row, at_most, figure
from homeport.local_cluster.cluster import LocalCluster, remove_abandoned

TITLE = "Bootstrap of a coordinator stream of 200,000 records (median of 3)"
_PREFIX = "bench-"


def rows() -> Iterator[Row]:
    """Time, CPU and rate, against a loop that does nothing with the records."""
    remove_abandoned(_PREFIX)
    with LocalCluster(f"{_PREFIX}{os.getpid()}", nodes=0) as broker:
        found = result_of("coordinator.long_stream", broker.bootstrap_servers)
    seconds, bare = found["bootstrap_s"], found["bare_s"]
    yield at_most("read and applied", seconds, 3, "s")
    yield figure("CPU", found["bootstrap_cpu_s"], "s")
    yield figure("rate", found["records"] / seconds, "records/s")
    yield figure("the bare loop", bare, "s")
    yield figure("CPU of the bare loop", found["bare_cpu_s"], "s")
    yield figure("time, as a multiple of the bare loop's", seconds / bare, "x")
    yield figure("memory that the state takes", found["state_mb"], "MB")
