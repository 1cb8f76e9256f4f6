"""History files into events, by job, on one clock."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, Literal

EVENTS, TRANSACTIONS = "events", "transactions"
KINDS = (EVENTS, TRANSACTIONS)

_SEGMENT = re.compile(r"(?P<stem>.+-(?P<start>\d+))-(?P<kind>events|transactions)-(?P<line>\d+)")
_MARKER = re.compile(r"trimmed-(?P<kind>events|transactions)-(?P<ms>\d+)")
_LOST = re.compile(r"lost-(?P<ms>\d+)-(?P<series>.+-(?P<kind>events|transactions))")


@dataclass(frozen=True)
class _Begin:
    """A series whose first segment is not there. ``start_ms``: when its process began it."""

    series: str
    kind: str
    line: int
    start_ms: int


@dataclass
class Folder:
    """The history files of one folder, taken in the order of their names.

    The writer names a segment by its process, its kind and the number of its first line, and marks
    up to when it has trimmed: ``trimmed-<kind>-<ms since 1970>``. A process that could not write,
    as on a full disk, leaves a mark too: ``lost-<ms since 1970>-<process>-<kind>``.

    ``trimmed_ms``: {kind: up to when, by the wall clock, its lines may be gone}.
    ``missing``: a sentence for each place where lines are gone that were neither trimmed nor marked
    as lost.
    """

    path: Path
    trimmed_ms: dict[str, int] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    _begins: list[_Begin] = field(default_factory=list)
    _expected: dict[str, int] = field(default_factory=dict)
    _gaps: list[tuple[str, int, int]] = field(default_factory=list)

    def follows(self, path: Path) -> bool:
        """Return whether the file goes on where the one before it in its series ended.

        What begins a series does, even where it has lost its begin.
        """
        found = _SEGMENT.fullmatch(path.stem)
        if found is None:
            return True
        series, line = f"{found['stem']}-{found['kind']}", int(found["line"])
        expected = self._expected.get(series)
        if expected is None and line > 0:
            start_ms = int(found["start"]) // 1_000_000
            self._begins.append(_Begin(series, found["kind"], line, start_ms))
        if expected is None or expected == line:
            return True
        self._gaps.append((series, expected, line))
        return False

    def has(self, path: Path, lines: int) -> None:
        """Know that the file has so many whole lines."""
        found = _SEGMENT.fullmatch(path.stem)
        if found is not None:
            self._expected[f"{found['stem']}-{found['kind']}"] = int(found["line"]) + lines

    def look_for_marks(self) -> None:
        """Look for marks after all files: what was trimmed meanwhile is marked before it goes."""
        lost: set[str] = set()
        for path in self.path.iterdir():
            found = _MARKER.fullmatch(path.name) or _LOST.fullmatch(path.name)
            if found is not None:
                known = self.trimmed_ms.get(found["kind"], 0)
                self.trimmed_ms[found["kind"]] = max(known, int(found["ms"]))
                lost.add(found.groupdict().get("series", ""))
        self.missing += [
            _missing(self.path / series, expected, line)
            for series, expected, line in self._gaps
            if series not in lost
        ]
        self.missing += self._untrimmed()

    def _untrimmed(self) -> Iterator[str]:
        for begin in self._begins:
            # What is trimmed was written after its process began.
            if self.trimmed_ms.get(begin.kind, -1) < begin.start_ms:
                yield _missing(self.path / begin.series, 0, begin.line)


def _missing(series: Path, first: int, following: int) -> str:
    return f"{series}: lines {first + 1} to {following} are missing, and were not trimmed"


Clock = Literal["auto", "boot", "wall"]

#: Two machines that started within this time of each other look like one; ``--clock`` decides.
ONE_BOOT_MS = 2_000

_FOLDER = ".history"
_INTEGERS = ("ts_ms", "boot_ms", "pid")
_TEXTS = ("host", "role", "event")
_SAME = ("host", "pid", "role", "processor_id", "epoch")
"""A line without these has those of the line before it in its file."""
_NOTHING: Mapping[str, Any] = {}
_OWN = frozenset({*_INTEGERS, *_TEXTS, *_SAME})


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
    #: Whether the line before it in its series is there, or it is the first that is.
    follows: bool = True

    @property
    def place(self) -> str:
        """Where it is written."""
        return f"{self.path.name}, line {self.line}"


@dataclass
class Job:
    """Everything that was written about one job, by time."""

    name: str
    events: list[Event] = field(default_factory=list)
    files: int = 0
    torn: int = 0
    damaged: list[str] = field(default_factory=list)
    folders: list[Folder] = field(default_factory=list)
    #: {kind: up to when its lines may be gone, on the job's clock}.
    trimmed: dict[str, int] = field(default_factory=dict)
    tolerance_ms: int = 0
    clock: str = "boot"


def read_jobs(roots: Sequence[Path], clock: Clock, tolerance_ms: int) -> list[Job]:
    """Return the jobs below the directories, by name; files in ``X/.history`` belong to job X.

    Args:
        roots: one directory per node.
        clock: ``boot`` where all events come from one machine, ``wall`` where not; ``auto`` finds
            out from the two clocks of each event.
        tolerance_ms: how far wall clocks may be apart; the boot clock of one machine is exact.

    UnreadableError: a directory is not there, or no history is below them.
    """
    jobs: dict[str, Job] = {}
    for root in roots:
        if not root.is_dir():
            raise UnreadableError(f"{root} is not a directory; give one directory per node")
        found: dict[Path, list[Path]] = {}
        for name, _, names in os.walk(root, onerror=_say_unread):
            paths = sorted(Path(name, own) for own in names if own.endswith(".jsonl"))
            if paths:
                found[Path(name)] = paths
        for folder, paths in sorted(found.items()):
            name = folder.parent.resolve().name if folder.name == _FOLDER else ""
            _read_folder(jobs.setdefault(name, Job(name)), root, Folder(folder), paths)
    if not jobs:
        raise UnreadableError(f"no *.jsonl below {', '.join(map(str, roots))}")
    for job in jobs.values():
        _on_one_clock(job, clock, tolerance_ms)
    return [jobs[name] for name in sorted(jobs)]


def _say_unread(error: OSError) -> None:
    """A job's folder is its user's alone: what another user has is not judged, and that is said."""
    print(f"not judged: {error.filename}: {error.strerror}", file=sys.stderr)


def values_in(path: Path) -> list[dict[str, Any]]:
    """Return the fields of each whole line of a file, those of lines before it included."""
    return [values for _, _, values in _lines(path.read_bytes()) if values is not None]


def _read_folder(job: Job, root: Path, folder: Folder, paths: Sequence[Path]) -> None:
    for path in paths:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            continue  # trimmed meanwhile
        job.files += 1
        folder.has(path, _read_file(job, root, path, data, follows=folder.follows(path)))
    folder.look_for_marks()
    job.damaged += folder.missing
    job.folders.append(folder)


def _read_file(job: Job, root: Path, path: Path, data: bytes, *, follows: bool) -> int:
    whole = data.count(b"\n")
    for number, line, values in _lines(data):
        if values is not None:
            job.events.append(_event(values, root, path, number, follows=follows))
            follows = True
        elif number <= whole:
            job.damaged.append(f"{path}, line {number}: not an event: {line[:80]!r}")
        else:
            # The file's process was killed while it wrote: what is whole counts.
            job.torn += 1
    return whole


def _lines(data: bytes) -> Iterator[tuple[int, bytes, dict[str, Any] | None]]:
    """(number from 1, line, its fields) of each; None: it is no event. The last may be torn."""
    *lines, tail = data.split(b"\n")
    same: dict[str, Any] = {}
    for number, line in enumerate([*lines, tail] if tail else lines, start=1):
        values = _values(line, same)
        if values is not None:
            same = {key: values[key] for key in _SAME}
        yield number, line, values


def _values(line: bytes, same: Mapping[str, Any]) -> dict[str, Any] | None:
    """The fields of a line, with ``same`` of the line before it; None: it is no event."""
    try:
        values = json.loads(line)
    except ValueError:
        return None
    if not isinstance(values, dict):
        return None
    values = {**same, **values}
    for key in ("processor_id", "epoch"):
        values.setdefault(key, None)
    return values if _is_whole(values) else None


def _event(values: dict[str, Any], root: Path, path: Path, number: int, *, follows: bool) -> Event:
    return Event(
        at=values["boot_ms"],
        wall_ms=values["ts_ms"],
        boot_ms=values["boot_ms"],
        host=values["host"],
        pid=values["pid"],
        role=values["role"],
        name=sys.intern(values["event"]),
        processor_id=values["processor_id"],
        epoch=values["epoch"],
        fields={key: value for key, value in values.items() if key not in _OWN} or _NOTHING,
        root=root,
        path=path,
        line=number,
        follows=follows,
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
        job.events = [replace(event, at=event.wall_ms) for event in job.events]
    offset = 0 if job.clock == "wall" else median(boots or [0])
    for folder in job.folders:
        for kind, until_ms in folder.trimmed_ms.items():
            known = job.trimmed.get(kind)
            at = math.ceil(until_ms - offset)
            job.trimmed[kind] = at if known is None else max(known, at)
    # Within a file the order of the lines is the order of the facts; the sort keeps it.
    job.events.sort(key=lambda event: event.at)


def offsets_of(event: Event, *, first: bool = False) -> dict[str, int]:
    """Return {input partition: offset} of the last or first records of a transaction.

    A partition of several tasks gets one entry per task: ``task / partition``. One that had no
    records has only a last offset.
    """
    tasks = event.fields.get("offsets")
    if first and isinstance(event.fields.get("first"), dict):
        tasks = event.fields["first"]  # an earlier release's form
    elif first:
        return dict(_flat(tasks, 0))
    return dict(_flat(tasks, -1))


def _flat(tasks: object, which: int) -> Iterator[tuple[str, int]]:
    for task, partitions in tasks.items() if isinstance(tasks, dict) else ():
        if isinstance(partitions, dict):
            for partition, span in partitions.items():
                if isinstance(span, list) and len(span) == 2:  # noqa: PLR2004 - first and last
                    yield _entry(task, partition), span[which]
                elif isinstance(span, int) and which == -1:
                    yield _entry(task, partition), span


@cache
def _entry(task: str, partition: str) -> str:
    # A history has millions of transactions, of few partitions.
    return f"{task} / {partition}"
