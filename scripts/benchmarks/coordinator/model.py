"""Section model: a very large JobModel."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.processes import result_of
from benchmarks.report import Row, at_most, figure

TITLE = "JobModel of 100,000 tasks in 10,000 containers"


def rows() -> Iterator[Row]:
    """Time, CPU, memory of one process; then a tenth more containers."""
    found = result_of("coordinator.large_job_model")
    seconds = found["compute_s"] + found["serialise_s"]
    yield at_most("computed and serialised", seconds, 10, "s")
    yield figure("of that, to serialise it", found["serialise_s"], "s")
    yield figure("CPU", found["cpu_s"], "s")
    yield at_most("largest memory of the process", found["peak_mb"], 1024, "MB")
    yield figure("its JSON", found["bytes"] / 1e6, "MB")
    yield figure("computed for 11,000 containers after that", found["grow_s"], "s")
    yield at_most(
        "tasks moved by 11,000 containers (target: fewest possible)",
        found["moved"],
        found["fewest"],
        "tasks",
    )
