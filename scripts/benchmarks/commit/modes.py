"""Section modes: what exactly-once costs against outputs that leave at once."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from benchmarks.commit.runs import Pass, broker, passes
from benchmarks.report import Row, at_most, figure

RECORDS, KEYS = 1_000_000, 10_000
TITLE = "task.exactly.once=true against false, task.transaction.ms=1000 (medians of 5, in turns)"
_ROUNDS = 5


def rows() -> Iterator[Row]:
    """Both have changelog and checkpoints in transactions; outputs are part of them, or not."""
    found: dict[bool, list[Pass]] = {True: [], False: []}
    with broker() as servers:
        for _ in range(_ROUNDS):
            for mode, done in found.items():
                done.append(next(passes(servers, "hot", RECORDS, KEYS, exactly_once=mode)))
    cpu_s = {mode: statistics.median(p.cpu_s for p in done) for mode, done in found.items()}
    time_s = {mode: statistics.median(p.s for p in done) for mode, done in found.items()}
    loss = 100 * (1 - cpu_s[False] / cpu_s[True])
    yield at_most("exactly-once below at-least-once, by CPU", loss, 10, "%")
    yield figure("the same, by the clock", 100 * (1 - time_s[False] / time_s[True]), "%")
    yield figure("exactly-once, per core", RECORDS / cpu_s[True], "/s")
    yield figure("at-least-once, per core", RECORDS / cpu_s[False], "/s")
