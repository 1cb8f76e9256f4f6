"""Section plan: the next version of a large job."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.processes import result_of
from benchmarks.report import Row, at_most, figure

PROCESSORS, TASKS = 200, 10_000
TITLE = (
    f"A version of {TASKS:,} tasks on {PROCESSORS} processors: JobModel and the leader's step (CPU)"
)
_LIMIT_S = 0.5
_WHAT = {
    "first": "the first version",
    "death": "after the death of one processor",
    "loss": "after the death of a tenth of them",
    "join": "after one has joined",
}


def rows() -> Iterator[Row]:
    """Without standbys, and with one of each task."""
    for standbys, name in ((0, "no standbys"), (1, "a standby each")):
        arguments = map(str, (PROCESSORS, TASKS, standbys))
        found = result_of("standalone.large_plan", *arguments)
        for key, what in _WHAT.items():
            one = found[key]
            yield at_most(f"{name}: {what}", one["cpu_s"], _LIMIT_S, "s")
            yield figure("  by the clock", one["s"], "s")
            yield figure("  then: its bytes for ZooKeeper", one["encode_s"], "s")
        yield figure("  tasks that one death has moved", found["death"]["moved"], "tasks")
        if standbys:
            yield figure(
                "  of those of a dead tenth not started on a backup",
                found["loss"]["unbacked"],
                "tasks",
            )
        yield figure("  largest memory of the process", found["peak_mb"], "MB")
