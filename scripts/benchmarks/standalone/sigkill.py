"""Section sigkill: a processor dies, and its tasks process elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.bed import Busy
from benchmarks.report import Row, machine_rows, phased
from benchmarks.standalone.runs import SESSION_MS, Bed, bed

RUNS, TASKS, DEBOUNCE_MS = 3, 6, 500
NAMES = ("p1", "p2", "p3")
_TITLE = (
    f"SIGKILL of one of {len(NAMES)} processors with {TASKS} tasks until all of its tasks have"
    f" committed elsewhere; session {SESSION_MS / 1000:g} s, debounce {DEBOUNCE_MS / 1000:g} s"
)
_CONFIGURATIONS: tuple[tuple[str, dict[str, str], float], ...] = (
    ("no standby", {}, SESSION_MS / 1000 + 2),
    ("standby", {"job.standbytasks.replication.factor": "2"}, SESSION_MS / 1000 + 1),
)
PHASES = ("session over", "published", "barrier done", "first commit", "last commit")


@dataclass(frozen=True, slots=True)
class Loss:
    """One death. ``phases_s``: by ``PHASES``, each after the one before it; seconds."""

    total_s: float
    phases_s: tuple[float, ...]
    tasks: int
    load: float
    busy: float


def rows() -> Iterator[Row]:
    """Without standbys, and with one of each task."""
    print(f"  {RUNS} deaths each take some {len(_CONFIGURATIONS) * (1 + RUNS)} minutes", flush=True)
    for name, more, limit_s in _CONFIGURATIONS:
        with bed(TASKS, DEBOUNCE_MS, more) as started:
            for processor in NAMES:
                started.processors.start(processor)
            found = []
            for number in range(RUNS):
                found.append(lose(started, NAMES[number % len(NAMES)]))
                print(f"  {name}, {number + 1} of {RUNS}: {line_of(found[-1])}", flush=True)
        yield from rows_of(name, found, limit_s)


def lose(started: Bed, name: str) -> Loss:
    """The processor dies, others work on its tasks, and it is back with tasks of its own."""
    processors = started.processors
    before = processors.until_settled(NAMES)
    busy = Busy()
    killed_ms = processors.kill(name)
    gone_ms = processors.until_gone(name)
    after = processors.until_settled({*NAMES} - {name})
    share = busy.share()
    lost = [task for task, owner in before.owners.items() if owner == name]
    commits = [after.committed_ms[task] for task in lost]
    moments = (gone_ms, after.published_ms, after.done_ms, min(commits), max(commits))
    processors.start(name)
    processors.until_settled(NAMES)
    steps = zip((killed_ms, *moments), moments, strict=False)
    phases = tuple((b - a) / 1000 for a, b in steps)
    return Loss((max(commits) - killed_ms) / 1000, phases, len(lost), busy.load, share)


def line_of(loss: Loss) -> str:
    """One death in a line."""
    phases = ", ".join(f"{n} +{s:.2f}" for n, s in zip(PHASES, loss.phases_s, strict=True))
    machine = f"load {loss.load:.1f}, cores {loss.busy:.0%} busy"
    return f"{loss.tasks} tasks after {loss.total_s:.2f} s ({phases}); {machine}"


def rows_of(name: str, found: list[Loss], limit_s: float) -> Iterator[Row]:
    """In all and phase by phase: medians and ranges."""
    phases = {name: [loss.phases_s[at] for loss in found] for at, name in enumerate(PHASES)}
    totals = [loss.total_s for loss in found]
    whole = f"{name}: until the last of its tasks has committed"
    yield from phased(whole, totals, phases, limit_s, "{}, after the one before")
    yield from machine_rows([loss.load for loss in found], [loss.busy for loss in found])


SECTIONS = {"sigkill": (_TITLE, rows)}
