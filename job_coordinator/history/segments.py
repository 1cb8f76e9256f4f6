"""Segments: the files of a history on one host, and how old ones make room for new ones.

A history has two kinds of events: those of every transaction, and all others, which are few and are
kept for much longer. Each process has a series of segments of each kind. A name says which lines a
segment holds, so that a missing one is seen:

``<role>-<host>-<pid>-<start, ns>-<kind>-<number of its first line>.jsonl``

A process holds a lock on the segment that it writes. What is locked is never removed. On a file
system without locks, which the log says once, the last segment of each series is never removed, as
no process writes another one of its series.
"""

import fcntl
import json
import logging
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from homeport.job_coordinator.own_folders import close_file_to_others, open_own_file

_LOG = logging.getLogger(__name__)

EVENTS, TRANSACTIONS = "events", "transactions"
KINDS = (EVENTS, TRANSACTIONS)

_SEGMENTS = {EVENTS: 1024, TRANSACTIONS: 64}
"""A kind's bytes lie in so many segments: what is removed at once is a small part of all.

Each process has one of events open, which counts as full: hundreds of them must find room.
"""
_LEAST_PART = 64
_LEAST_BYTES = 64 * 1024
"""A segment has as much, unless that is more than this part of its kind's bytes."""
_MOST_FILES = 2_048
_SHARE_OF_EVENTS = 4
_MIB = 1024 * 1024
_TAIL_BYTES = 65_536
_TRIMMED = re.compile(rf"trimmed-(?P<kind>{'|'.join(KINDS)})-(?P<ms>[0-9]+)")
_LOST = re.compile(rf"lost-(?P<ms>[0-9]+)-.+-(?P<kind>{'|'.join(KINDS)})")
_NAME = re.compile(rf"-({'|'.join(KINDS)})-[0-9]+\.jsonl$")


def kind_bytes(max_mb: int, kind: str) -> int:
    """Return how many bytes a kind's segments may have on a host, for ``max_mb`` MiB of history."""
    events = max_mb * _MIB // _SHARE_OF_EVENTS
    return events if kind == EVENTS else max_mb * _MIB - events


def segment_bytes(max_mb: int, kind: str) -> int:
    """Return the size at which a segment is full."""
    most = kind_bytes(max_mb, kind)
    return max(most // _SEGMENTS[kind], min(_LEAST_BYTES, most // _LEAST_PART))


@dataclass(frozen=True, slots=True)
class Segment:
    """One file. ``written_ns``: its last write; ``is_open``: a process may write more."""

    name: str
    size: int
    written_ns: int
    is_open: bool


def superfluous(segments: Iterable[Segment], most_bytes: int, full_bytes: int) -> list[Segment]:
    """Return the segments to remove so that one more fits, the oldest first. PURE.

    An open segment counts as full and stays. A small one counts for more than its size, which
    bounds the number of files.
    """

    def counts(segment: Segment) -> int:
        return max(segment.size, full_bytes if segment.is_open else most_bytes // _MOST_FILES)

    found = sorted(segments, key=lambda s: (s.written_ns, s.name))
    total = full_bytes + sum(map(counts, found))
    result: list[Segment] = []
    for segment in found:
        if total <= most_bytes:
            break
        if not segment.is_open:
            result.append(segment)
            total -= counts(segment)
    return result


def make_room(directory: Path, kind: str, max_mb: int) -> None:
    """Make room for one more segment of ``kind`` in the directory; the oldest ones go.

    Before they go, the name of an empty file, ``trimmed-<kind>-<ms>``, records until when lines may
    be missing: a crash in between costs nothing but room. Where another process makes room now,
    nothing happens.
    """
    with _alone(directory) as is_alone:
        if not is_alone:
            return
        segments = list(_segments(directory, kind))
        most, full = kind_bytes(max_mb, kind), segment_bytes(max_mb, kind)
        going = superfluous(segments, most, full)
        for marked in KINDS:
            # A file of an earlier release has lines of both kinds.
            lost = [s for s in going if _kind_of(s.name) in {marked, None}]
            if lost:
                _mark(directory, marked, max(_last_ms(directory / s.name, s) for s in lost))
        for segment in going:
            (directory / segment.name).unlink(missing_ok=True)
        _forget_lost(directory)


def opened(directory: Path, stem: str, kind: str, first_line: int) -> int:
    """Return a new segment, locked where that can be, as a file descriptor for appending."""
    path = directory / f"{stem}-{kind}-{first_line:010}.jsonl"
    new = path.with_suffix(".new")
    # For writing and reading: NFS gives an exclusive lock only of a file that is open for writing,
    # a shared one only of a file that is open for reading.
    file = open_own_file(new, os.O_RDWR | os.O_APPEND)
    try:
        _lock(file, directory)  # no other process looks at it under this name: it is free
        new.rename(path)
    except OSError:
        os.close(file)
        raise
    return file


def mark_lost(directory: Path, series: str, until_ms: int, before: Path | None) -> Path | None:
    """Make an empty file whose name says that lines of ``series`` up to that time may be lost.

    A full disk often has room for an empty file or a new name. The mark outlives the process, and
    unwritten lines do not. ``before``: the mark of an earlier time, which is renamed. Returns None
    where it cannot be made.
    """
    mark = directory / f"lost-{until_ms}-{series}"
    try:
        if before is not None and before.exists():
            return before.rename(mark)
        mark.touch()
    except OSError:
        return None
    return mark


def _kind_of(name: str) -> str | None:
    """Return the kind; None: a file of an earlier release, which has both."""
    found = _NAME.search(name)
    return found.group(1) if found else None


def _series_of(name: str) -> str:
    return name.rpartition("-")[0] if _kind_of(name) else name


def _lock(file: int, directory: Path) -> bool | None:
    """Return whether the lock of an open segment was free, and is ours; None: no locks here."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        _say_without_locks(directory, str(error))
        return None
    return True


@cache
def _say_without_locks(directory: Path, why: str) -> None:
    _LOG.warning(
        "history in %s: its file system gives no locks (%s): the last file of each process, also "
        "of one that has ended, is kept whatever its age",
        directory,
        why,
    )


@contextmanager
def _alone(directory: Path) -> Iterator[bool]:
    """Yield whether this process may trim the directory: no other one does, or there are no locks.

    NFS gives no lock of a directory. There two processes may trim it at once, which does no harm:
    each marks before it removes, and skips what the other has removed.
    """
    lock = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        is_alone = True
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_alone = False
        except OSError:
            pass
        yield is_alone
    finally:
        os.close(lock)


def _segments(directory: Path, kind: str) -> Iterator[Segment]:
    paths = [p for p in directory.glob("*.jsonl") if (_kind_of(p.name) or EVENTS) == kind]
    # Line numbers have the same number of digits.
    last = {_series_of(path.name): path.name for path in sorted(paths)}
    for path in paths:
        try:
            file = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            continue
        try:
            with suppress(OSError):  # an earlier release let all users read it
                close_file_to_others(path, file)
            stat, free = os.fstat(file), _lock(file, directory)
            is_last = last[_series_of(path.name)] == path.name
            is_open = is_last if free is None else not free
            yield Segment(path.name, stat.st_size, stat.st_mtime_ns, is_open)
        finally:
            os.close(file)


def _last_ms(path: Path, segment: Segment) -> int:
    with suppress(FileNotFoundError), path.open("rb") as file:
        file.seek(max(0, segment.size - _TAIL_BYTES))
        for line in reversed(file.read().split(b"\n")):
            try:
                return int(json.loads(line)["ts_ms"])
            except (ValueError, KeyError, TypeError):
                continue
    return segment.written_ns // 1_000_000


def _forget_lost(directory: Path) -> None:
    """Remove the marks of lost lines that are older than all that is kept."""
    trimmed = [_TRIMMED.fullmatch(path.name) for path in directory.glob("trimmed-*")]
    until_ms = {found["kind"]: int(found["ms"]) for found in trimmed if found is not None}
    for path in directory.glob("lost-*"):
        found = _LOST.fullmatch(path.name)
        if found is not None and int(found["ms"]) <= until_ms.get(found["kind"], -1):
            path.unlink(missing_ok=True)


def _mark(directory: Path, kind: str, until_ms: int) -> None:
    # A name is written by the file system as a whole, without waiting for the disk.
    earlier = {int(p.name.rpartition("-")[2]): p for p in directory.glob(f"trimmed-{kind}-*")}
    newest_ms = max(earlier, default=-1)
    if newest_ms >= until_ms:
        return
    mark = directory / f"trimmed-{kind}-{until_ms}"
    try:
        earlier.pop(newest_ms, mark).rename(mark)
    except FileNotFoundError:  # the first one, or another process without locks has renamed it
        mark.touch()
    for path in earlier.values():
        path.unlink(missing_ok=True)
