"""HistoryWriter: writes facts about a run, as they happen, to files that outlive the process.

A failure to write is logged once and never stops a container. Unwritten lines are kept, and are
written first at the next event; meanwhile a mark shows that they may be lost. Each line is one
``write`` to a file opened for appending: a killed process leaves whole lines, and lines of threads
do not mix.

All files of a job on a host have a bounded size (``job.history.max.mb``); see ``segments``.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections import deque
from pathlib import Path
from typing import Literal

from homeport.job_coordinator.clocks import boot_ms, wall_ms
from homeport.job_coordinator.history.segments import (
    EVENTS,
    KINDS,
    TRANSACTIONS,
    make_room,
    mark_lost,
    opened,
    segment_bytes,
)
from homeport.job_coordinator.own_folders import NotOwnError, make_own_folder

_LOG = logging.getLogger(__name__)
_WAITING_LINES = 10_000
"""How many lines are kept while the history cannot be written; later ones are left out."""
_MARKED_MS = 5_000
"""A mark of lost lines is made for a time so far ahead, so that each line need not renew it."""
OWN_NAME = ".history"
"""In the job's folder."""
_COMMITTED = "transaction-committed"
_OF_TRANSACTIONS = frozenset({"transaction-ending", _COMMITTED, "commit"})
"""Frequent events: what all have in common stands in the first line of a segment alone."""

_NONE = -1
"""No file."""

Role = Literal["driver", "keeper", "launcher", "container", "processor"]


def history_directory(
    configured: str | None, logged_store_base_dir: str | Path, job_directory_name: str
) -> Path:
    """Return ``job.history.dir``, by default ``.history`` among the job's state directories."""
    if configured is not None:
        return Path(configured)
    return Path(logged_store_base_dir) / job_directory_name / OWN_NAME


class HistoryWriter:
    """Appends this process's events to files of its own in ``directory``, made at the first.

    ``max_mb``: the history of the job on this host has at most so many MiB.
    """

    def __init__(self, directory: str | Path, role: Role, host: str, max_mb: int) -> None:
        self._directory = Path(directory)
        self._role = role
        self._host = host
        self._max_mb = max_mb
        self._has_failed = False
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        stem = f"{self._role}-{self._host}-{self._pid}-{time.time_ns()}"
        self._series = {k: _Series(self._directory, stem, k, self._max_mb) for k in KINDS}

    def event(
        self, name: str, processor_id: str | None = None, epoch: int | None = None, **fields: object
    ) -> None:
        """Add one line: ``name`` happened now; of a field that JSON cannot hold, its text.

        Units: ``ts_ms`` milliseconds since 1970; ``boot_ms`` milliseconds since the machine's
            start, sleep included.
        """
        now = {"ts_ms": wall_ms(), "boot_ms": boot_ms()}
        process = {"host": self._host, "pid": os.getpid(), "role": self._role}
        fact = {"event": name, "processor_id": processor_id, "epoch": epoch}
        whole = now | process | fact
        own = {key: value for key, value in fields.items() if key not in whole}
        with self._lock:
            if self._pid != os.getpid():  # files and lines of a forked child are its parent's
                self._begin()
            if name in _OF_TRANSACTIONS:
                series, short = self._series[TRANSACTIONS], now | {"event": name} | own
                # A commit's line is read together with the one before it.
                series.add(whole | own, short, (processor_id, epoch), stays=name == _COMMITTED)
            else:
                series = self._series[EVENTS]
                series.add(whole | own)
            self._write(series)

    def close(self) -> None:
        """Close the files after one more attempt to write; a later event opens new ones."""
        with self._lock:
            if self._pid == os.getpid():
                for series in self._series.values():
                    self._write(series)
                    series.end()

    def _write(self, series: _Series) -> None:
        try:
            series.write()
        except (OSError, NotOwnError) as error:
            if not self._has_failed:
                _LOG.warning("history in %s cannot be written: %s", self._directory, error)
            self._has_failed = True
            if isinstance(error, OSError):  # nothing is made in a folder of another user
                series.mark_lost()


class _Series:
    """The segments of one kind, one after the other. Not thread-safe."""

    def __init__(self, directory: Path, stem: str, kind: str, max_mb: int) -> None:
        self._directory = directory
        self._stem = stem
        self._kind = kind
        self._max_mb = max_mb
        self._full = segment_bytes(max_mb, kind)
        self._file = _NONE
        # (number of the line that begins a new segment, else None; what is to be written)
        self._waiting: deque[tuple[int | None, bytes]] = deque()
        self._lines = 0
        self._size: int | None = None
        self._common: object = None
        self._mark: Path | None = None
        self._marked_ms = 0
        self._is_short = False  # lines were left out, and are in no file for good

    def add(
        self,
        whole: dict[str, object],
        short: dict[str, object] | None = None,
        common: object = None,
        *,
        stays: bool = False,
    ) -> None:
        """Add one line to be written: ``short`` where the one before it has the rest.

        Args:
            whole: all fields.
            short: the fields that differ from line to line.
            common: what ``short`` leaves out; ``short`` is used if the line before had the same.
            stays: the line goes to the segment of the one before it, even where that is full.
        """
        if len(self._waiting) >= _WAITING_LINES:
            self._lines += 1
            self._is_short = True
            self._size = None  # the next segment's number shows what is missing
            return
        begins = None
        if self._size is None or (self._size >= self._full and not stays):
            begins, self._size, self._common = self._lines, 0, None
        values = short if short is not None and self._common == (common,) else whole
        self._common = (common,)
        data = json.dumps(values, separators=(",", ":"), ensure_ascii=False, default=str) + "\n"
        line = data.encode(errors="replace")
        self._waiting.append((begins, line))
        self._lines += 1
        self._size += len(line)

    def write(self) -> None:
        """Write all waiting lines; OSError or NotOwnError where that fails, and the rest waits."""
        while self._waiting:
            begins, line = self._waiting[0]
            if begins is not None:
                self._begin_segment(begins)
                self._waiting[0] = (None, line)
            written = os.write(self._file, line)
            if written < len(line):
                self._waiting[0] = (None, line[written:])  # the disk is full: the rest stays
            else:
                self._waiting.popleft()
        if self._mark is not None and not self._is_short:
            self._mark.unlink(missing_ok=True)
            self._mark, self._marked_ms = None, 0

    def mark_lost(self) -> None:
        """Leave a mark that lines may be lost: the process may end before it can write them."""
        now_ms = wall_ms()
        if now_ms < self._marked_ms:
            return
        until_ms, series = now_ms + _MARKED_MS, f"{self._stem}-{self._kind}"
        self._mark = mark_lost(self._directory, series, until_ms, self._mark)
        self._marked_ms = 0 if self._mark is None else until_ms

    def _begin_segment(self, first_line: int) -> None:
        self._close()
        folder = self._directory.absolute()
        if folder.name == OWN_NAME:
            make_own_folder(folder, below=folder.parents[1])
        else:
            # ``job.history.dir`` is the operator's: its mode lets others read.
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        make_room(self._directory, self._kind, self._max_mb)
        self._file = opened(self._directory, self._stem, self._kind, first_line)

    def end(self) -> None:
        """Close the segment, unless lines wait for it; another line begins a new one."""
        if not self._waiting:
            self._close()
            self._size = None

    def _close(self) -> None:
        if self._file != _NONE:
            os.close(self._file)
        self._file = _NONE
