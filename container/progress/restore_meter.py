"""How far a restore has come and how fast it goes, in one unit: records.

PURE: times are given, in seconds of any clock that never goes back.
"""

from __future__ import annotations

from collections import deque

from homeport.container.progress.restore import RestorePlan
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.status.container_report import RestoreProgress

_WINDOW_S = 10.0
_BAR = 20
_MB = 1_000_000


class RestoreMeter:
    """Counts what one restore has read, in offsets; the rate is that of the last ten seconds."""

    def __init__(self, store: str, task: TaskName, plan: RestorePlan, now_s: float) -> None:
        """Nothing of ``plan`` has been read at ``now_s``."""
        self._store = store
        self._task = task
        self._head = plan.head
        self._next = plan.start
        self._records = 0
        self._bytes = 0
        self._past = deque([(now_s, 0, plan.start)])
        """(when, records by then, next offset by then) within the window, oldest first."""

    def read(self, records: int, size: int, last_offset: int) -> None:
        """So many more records, of ``size`` bytes together, up to ``last_offset``."""
        self._records += records
        self._bytes += size
        self._next = last_offset + 1

    def progress(self, now_s: float) -> RestoreProgress:
        """Return how far it has come by ``now_s``."""
        while len(self._past) > 1 and now_s - self._past[0][0] > _WINDOW_S:
            self._past.popleft()
        since_s, records, offset = self._past[0]
        self._past.append((now_s, self._records, self._next))
        passed_s = now_s - since_s
        remaining = max(0, self._head - self._next)
        is_moving = passed_s > 0 and self._next > offset
        seconds_left = remaining * passed_s / (self._next - offset) if is_moving else None
        return RestoreProgress(
            store=self._store,
            task=self._task,
            records=self._records,
            bytes=self._bytes,
            remaining=remaining,
            records_per_s=round((self._records - records) / passed_s, 1) if passed_s > 0 else 0.0,
            seconds_left=None if seconds_left is None else round(seconds_left, 1),
        )


def progress_line(progress: RestoreProgress) -> str:
    """``progress`` for people, with a bar."""
    whole = progress.records + progress.remaining
    part = progress.records / whole if whole else 1.0
    full = int(part * _BAR)
    left = "" if progress.seconds_left is None else f", {progress.seconds_left:,.0f} s left"
    return (
        f"restoring {progress.store}/{progress.task} "
        f"[{'#' * full}{'.' * (_BAR - full)}] {part:.0%}: "
        f"{progress.records:,} records ({progress.bytes / _MB:,.1f} MB), "
        f"{progress.remaining:,} to go, {progress.records_per_s:,.0f} records/s{left}"
    )
