"""HistoryWriter: facts about a run, as they happen, in a file that outlives the process.

A history that cannot be written is logged once and never stops a container. Unwritten lines are
kept, and are written first at the next event. A line is one ``write`` to a file opened for
appending: a killed process leaves whole lines, and threads do not mix theirs.
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

_LOG = logging.getLogger(__name__)
_WAITING_LINES = 10_000
"""How many lines are kept while the history cannot be written; later ones are left out."""

Role = Literal["driver", "keeper", "launcher", "container"]


def history_directory(
    configured: str | None, logged_store_base_dir: str | Path, job_directory_name: str
) -> Path:
    """``job.history.dir`` where configured, else ``.history`` among the job's state directories."""
    if configured is not None:
        return Path(configured)
    return Path(logged_store_base_dir) / job_directory_name / ".history"


class HistoryWriter:
    """Appends this process's events to a file of its own in ``directory``, made at the first."""

    def __init__(self, directory: str | Path, role: Role, host: str) -> None:
        self._directory = Path(directory)
        self._role = role
        self._host = host
        self._pid = os.getpid()
        self._file: int | None = None
        self._waiting: deque[bytes] = deque()
        self._has_failed = False
        self._lock = threading.Lock()

    def event(
        self,
        name: str,
        processor_id: str | None = None,
        epoch: int | None = None,
        **fields: object,
    ) -> None:
        """One line says that ``name`` happened now.

        ``fields`` must be such that JSON can hold them, else their text.

        Units: ``ts_ms`` milliseconds since 1970; ``boot_ms`` milliseconds since the machine's
            start, sleep included.
        """
        line = {
            "ts_ms": wall_ms(),
            "boot_ms": boot_ms(),
            "host": self._host,
            "pid": os.getpid(),
            "role": self._role,
            "event": name,
            "processor_id": processor_id,
            "epoch": epoch,
        }
        line |= {key: value for key, value in fields.items() if key not in line}
        data = json.dumps(line, separators=(",", ":"), ensure_ascii=False, default=str) + "\n"
        with self._lock:
            if self._pid != os.getpid():  # file and lines of a forked child are its parent's
                self._pid, self._file = os.getpid(), None
                self._waiting.clear()
            if len(self._waiting) < _WAITING_LINES:
                self._waiting.append(data.encode(errors="replace"))
            self._write()

    def close(self) -> None:
        """The file is closed after one more attempt to write; a later event opens a new one."""
        with self._lock:
            if self._pid == os.getpid():
                self._write()
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def _write(self) -> None:
        """All kept lines are written, unless the disk is full or gone."""
        try:
            while self._waiting:
                line = self._waiting[0]
                written = os.write(self._opened(), line)
                if written < len(line):
                    self._waiting[0] = line[written:]  # the disk is full: the rest stays
                else:
                    self._waiting.popleft()
        except OSError as error:
            if not self._has_failed:
                _LOG.warning("history in %s cannot be written: %s", self._directory, error)
            self._has_failed = True

    def _opened(self) -> int:
        if self._file is None:
            self._directory.mkdir(parents=True, exist_ok=True)
            path = self._directory / f"{self._role}-{self._host}-{self._pid}-{time.time_ns()}.jsonl"
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
            self._file = os.open(path, flags, 0o644)
        return self._file
