"""Section rolling: every processor is restarted, one after the other, in two ways.

SIGTERM, then a new start; and a new start, then SIGTERM of the process before.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from benchmarks.report import BenchmarkError, Row, at_most, figure, spread
from benchmarks.standalone.runs import Bed, bed, longest_pause_ms

PROCESSORS, TASKS, DEBOUNCE_MS = 10, 20, 5000
_TITLE = (
    f"Rolling restart of {PROCESSORS} processors with {TASKS} tasks;"
    f" debounce {DEBOUNCE_MS / 1000:g} s"
)
_PAUSE_S = 1.0
_MORE = {"job.coordinator.zk.session.timeout.ms": "30000"}
"""As by default: a process that leaves ends its session, and one that is new waits for two."""


def rows() -> Iterator[Row]:
    """What has moved, how long each task stood still, how often its work began again."""
    names = [f"p{number:02d}" for number in range(PROCESSORS)]
    print("  it takes some 3 minutes", flush=True)
    with bed(TASKS, DEBOUNCE_MS, _MORE) as started:
        for name in names:
            started.processors.start(name)
        yield from restarted(started, names, "SIGTERM, new start", started.processors.restart)
        yield from restarted(started, names, "new start, SIGTERM", started.processors.replace)


def restarted(
    started: Bed, names: list[str], way: str, again: Callable[[str], object]
) -> Iterator[Row]:
    """The rows of a rolling restart of these processors, which run; ``again`` restarts one."""
    processors = started.processors
    first = processors.until_settled(names)
    began_ms, back_s, begun_again = time.time() * 1000, [], dict.fromkeys(first.owners, 0)
    settled = first
    for number, name in enumerate(names, start=1):
        began = time.monotonic()
        again(name)
        was, settled = settled, processors.until_settled(names)
        for task, owner in settled.owners.items():
            changed = was.owners[task], was.generations[was.owners[task]]
            begun_again[task] += changed != (owner, settled.generations[owner])
        back_s.append(time.monotonic() - began)
        print(
            f"  {way}, {number} of {len(names)}: {name} back after {back_s[-1]:.1f} s", flush=True
        )
    ended_ms = time.time() * 1000
    commits = started.commits()
    if commits.keys() != first.owners.keys():
        raise BenchmarkError(f"of {len(first.owners)} tasks {len(commits)} have committed")
    pauses = [longest_pause_ms(times, began_ms, ended_ms) / 1000 for times in commits.values()]
    moved = sum(first.owners[task] != owner for task, owner in settled.owners.items())
    yield at_most(f"{way}: tasks that have another processor afterwards", moved, 0, "tasks")
    yield at_most("  how often a task's work began again", max(begun_again.values()), 1, "")
    yield spread("  longest time between two commits of a task", pauses, "s", _PAUSE_S)
    yield figure("  of the task with the longest one", max(pauses), "s")
    yield spread("  from the first step until the processor works again", back_s, "s")


SECTIONS = {"rolling": (_TITLE, rows)}
