"""Rows of scripts/bench rescale: pauses of tasks by what befell them, and phases of containers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from benchmarks.bed import cluster
from benchmarks.report import Row, at_most, figure, machine_rows, phased, spread
from benchmarks.rescale.phases import STEPS, Begun
from benchmarks.rescale.runs import (
    ALONE,
    FEW,
    MANY,
    MIXED,
    MOVED,
    PIPELINE,
    STAYED,
    UNTOUCHED,
    Bed,
    Change,
)

_LIMITS_S = {STAYED: 0.3, MOVED: 2.0, UNTOUCHED: None}
_PAUSES = {
    STAYED: "of tasks that stay where others move",
    MOVED: "of tasks that move",
    UNTOUCHED: "of tasks of other containers",
}
_SHOWN_S = 0.1


def _measured(nodes: int, overrides: Sequence[str], keys: int) -> Iterator[Row]:
    """More containers, then fewer."""
    print("  it takes some 2 minutes on two cores", flush=True)
    with cluster(nodes) as yarn:
        bed = Bed(yarn, overrides)
        with bed.running(keys):
            found = [bed.change(count) for count in (MANY, FEW)]
    for change in found:
        yield from rows_of(change)
    yield figure("outputs, each count of each key compared", bed.outputs.counts.total(), "")


def rows_of(change: Change) -> Iterator[Row]:
    """The whole, pauses by kind of task, which processes lived on, and where the time goes."""
    was, has = change.counts
    name = f"{was} -> {has} containers"
    yield figure(f"{name}: until all have output of their new run", change.total_s, "s")
    for kind, what in _PAUSES.items():
        pauses = [task.gap.longest_s for task in change.tasks if task.kind == kind]
        if pauses:
            yield at_most(f"  longest pause {what}", max(pauses), _LIMITS_S[kind], "s")
            yield spread(f"    {len(pauses)} tasks, median and range", pauses, "s")
    restarted = [processor for processor, lived in change.lived.items() if not lived]
    yield at_most("  processes restarted of containers that stay", len(restarted), 0, "")
    yield figure("  changelog records that moved tasks read", change.records, "")
    yield from _phases("  containers that stay", [b for b in change.begun if _stays(change, b)])
    yield from _phases("  new containers", [b for b in change.begun if not _stays(change, b)])
    yield from machine_rows([change.load], [change.busy])


def _stays(change: Change, one: Begun) -> bool:
    return one.processor_id in change.lived


def _phases(what: str, found: Sequence[Begun]) -> Iterator[Row]:
    if not found:
        return
    steps = {step: [one.steps_s[step] for one in found] for step in STEPS}
    totals = [one.total_s for one in found]
    yield from phased(f"{what}: key written to first commit", totals, steps, None, "  until {}")
    yield from _seconds([one.seconds for one in found])


def _seconds(reported: Sequence[Mapping[str, float]]) -> Iterator[Row]:
    """What the starts report of themselves, as far as it is worth a line."""
    for name in sorted({name for seconds in reported for name in seconds} - {"total"}):
        values = [seconds.get(name, 0.0) for seconds in reported]
        if max(values) >= _SHOWN_S:
            yield spread(f"      of the start: {name}", values, "s")


_LOAD = "8 tasks with 50 records a second each"
SECTIONS = {
    "task": (
        f"No pipeline, 60,000 keys of each task, which one that moves has to restore; {_LOAD}",
        partial(_measured, MANY, ALONE, 60_000),
    ),
    "mixed": (
        f"As before, with mixed containers: moved tasks are read ahead; {_LOAD}",
        partial(_measured, MANY, MIXED, 60_000),
    ),
    "pipeline": (
        f"A pipeline in Spark, a small state, hosts that have room; {_LOAD}",
        partial(_measured, FEW, PIPELINE, 100),
    ),
}
