"""Section placement: the allocator before a very large job."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.processes import result_of
from benchmarks.report import Row, at_least, at_most, figure

ACTIVES, HOSTS, LOST = 10_000, 1_000, 100
TITLE = "10,000 active containers with a standby each, placed on 1,000 hosts (CPU times)"


def rows() -> Iterator[Row]:
    """Placing all, single events, the loss of a tenth of the hosts, and memory."""
    found = result_of(
        "allocator.large_job_placement",
        *("--actives", str(ACTIVES), "--standbys-each", "1"),
        *("--hosts", str(HOSTS), "--lost", str(LOST)),
    )
    placing, loss = found["placing"], found["loss"]
    seconds = found["first_s"] + placing["total_s"]
    yield at_most("full placement, until all run", seconds, 20, "s")
    yield figure("of that, JobModel and hosts", found["first_s"], "s")
    yield at_most("an event while it is placed: p99", placing["p99_ms"], 2, "ms")
    yield figure("p50", placing["p50_ms"], "ms")
    yield figure("longest", placing["max_ms"], "ms")
    yield at_most("a check-in of a launcher that runs: p99", found["check_ins"]["p99_ms"], 2, "ms")
    yield at_most(
        "an event of 1,000 containers that fail: p99", found["failures"]["p99_ms"], 2, "ms"
    )
    yield at_most("loss of 100 hosts, decided", loss["total_s"] + loss["observed_s"], 2, "s")
    yield at_most("an event of that: p99", loss["p99_ms"], 2, "ms")
    yield figure("until all run again", found["recovery"]["total_s"], "s")
    yield at_least("containers that run again", found["running_again"], 2 * ACTIVES, "")
    yield at_most("largest memory of the process", found["peak_mb"], 1024, "MB")
