"""History files into events, by job, on one clock."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

Clock = Literal["auto", "boot", "wall"]

#: Two machines that started within this time of each other look like one; ``--clock`` decides.
ONE_BOOT_MS = 2_000

_FOLDER = ".history"
_INTEGERS = ("ts_ms", "boot_ms", "pid")
_TEXTS = ("host", "role", "event")


class UnreadableError(Exception):
    """There is nothing to judge; the message is one line."""


@dataclass(frozen=True, slots=True)
class Event:
    """One line. ``at``: its time in ms on the clock by which the job is judged."""

    at: int
    wall_ms: int
    boot_ms: int
    host: str
    pid: int
    role: str
    name: str
    processor_id: str | None
    epoch: int | None
    fields: Mapping[str, Any]
    #: The directory, of those given, that the file lies below; the file; the line, from 1.
    root: Path
    path: Path
    line: int


@dataclass
class Job:
    """Everything that was written about one job, by time."""

    name: str
    events: list[Event] = field(default_factory=list)
    files: int = 0
    torn: int = 0
    damaged: list[str] = field(default_factory=list)
    tolerance_ms: int = 0
    clock: str = "boot"


def read_jobs(roots: Sequence[Path], clock: Clock, tolerance_ms: int) -> list[Job]:
    """The jobs below the directories, by name; files in ``X/.history`` belong to job X.

    Args:
        roots: one directory per node.
        clock: ``boot`` where all events come from one machine, ``wall`` where not; ``auto`` finds
            out from the two clocks of each event.
        tolerance_ms: how far wall clocks may be apart; the boot clock of one machine is exact.

    Raises:
        UnreadableError: a directory is not there, or no history is below them.
    """
    jobs: dict[str, Job] = {}
    for root in roots:
        if not root.is_dir():
            raise UnreadableError(f"{root} is not a directory; give one directory per node")
        for path in sorted(root.rglob("*.jsonl")):
            folder = path.parent
            name = folder.parent.resolve().name if folder.name == _FOLDER else ""
            _read_file(jobs.setdefault(name, Job(name)), root, path)
    if not jobs:
        raise UnreadableError(f"no *.jsonl below {', '.join(map(str, roots))}")
    for job in jobs.values():
        _on_one_clock(job, clock, tolerance_ms)
    return [jobs[name] for name in sorted(jobs)]


def _read_file(job: Job, root: Path, path: Path) -> None:
    *lines, tail = path.read_bytes().split(b"\n")
    job.files += 1
    for number, line in enumerate(lines, start=1):
        event = _event(line, root, path, number)
        if event is None:
            job.damaged.append(f"{path}, line {number}: not an event: {line[:80]!r}")
        else:
            job.events.append(event)
    if tail:
        # The file's process was killed while it wrote: what is whole counts.
        event = _event(tail, root, path, len(lines) + 1)
        if event is None:
            job.torn += 1
        else:
            job.events.append(event)


def _event(line: bytes, root: Path, path: Path, number: int) -> Event | None:
    try:
        values = json.loads(line)
    except ValueError:
        return None
    if not isinstance(values, dict) or not _is_whole(values):
        return None
    return Event(
        at=values["boot_ms"],
        wall_ms=values["ts_ms"],
        boot_ms=values["boot_ms"],
        host=values["host"],
        pid=values["pid"],
        role=values["role"],
        name=values["event"],
        processor_id=values.get("processor_id"),
        epoch=values.get("epoch"),
        fields=values,
        root=root,
        path=path,
        line=number,
    )


def _is_whole(values: Mapping[str, Any]) -> bool:
    return (
        all(isinstance(values.get(key), int) for key in _INTEGERS)
        and all(isinstance(values.get(key), str) for key in _TEXTS)
        and isinstance(values.get("processor_id"), str | None)
        and isinstance(values.get("epoch"), int | None)
    )


def _on_one_clock(job: Job, clock: Clock, tolerance_ms: int) -> None:
    starts: dict[str, list[int]] = {}
    for event in job.events:
        starts.setdefault(event.host, []).append(event.wall_ms - event.boot_ms)
    # The median: a process may stand still between looking at the one clock and at the other.
    boots = [median(found) for found in starts.values()]
    is_one_boot = not boots or max(boots) - min(boots) <= ONE_BOOT_MS
    if clock == "wall" or (clock == "auto" and not is_one_boot):
        job.clock, job.tolerance_ms = "wall", tolerance_ms
        job.events = [_at_wall(event) for event in job.events]
    # Within a file the order of the lines is the order of the facts; the sort keeps it.
    job.events.sort(key=lambda event: event.at)


def _at_wall(event: Event) -> Event:
    values = {name: getattr(event, name) for name in Event.__dataclass_fields__}
    return Event(**{**values, "at": event.wall_ms})


def offsets_of(event: Event, key: str) -> dict[str, int] | None:
    """{input partition: offset} of an event's field {task: {partition: offset}}; None without it.

    A partition of several tasks gets one entry per task: ``task / partition``.
    """
    tasks = event.fields.get(key)
    if not isinstance(tasks, dict):
        return None
    return dict(_flat(tasks))


def _flat(tasks: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    for task, partitions in tasks.items():
        if isinstance(partitions, dict):
            for partition, offset in partitions.items():
                if isinstance(offset, int):
                    yield f"{task} / {partition}", offset
