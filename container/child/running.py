"""RunningChild: how the parent of an incarnation judges its silence and its end.

The parent is a launcher or a standalone processor. Nothing here reads a clock.
"""

from __future__ import annotations

import signal
from dataclasses import dataclass

from homeport.container.child.process import ChildProcess
from homeport.container.host.exit_codes import (
    EXIT_CUT_OFF,
    EXIT_DISK_FULL,
    EXIT_LEASE_LOST,
    EXIT_OVERTAKEN,
    EXIT_TERMINATED,
    EXIT_UNAVAILABLE,
)
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause

LAST_LINES = 20
EXITED = "exit code 0 before the tasks have finished: code of the job, or a library, has exited"
"""The last line of a child that exits as if it had finished."""
_TAIL_BYTES = 32 * 1024
_KILL_AGAIN_MS = 1000
"""The shortest time between two kills of a process that the kernel does not let go."""

_CAUSES = {
    EXIT_UNAVAILABLE: StopCause.UNAVAILABLE,
    EXIT_CUT_OFF: StopCause.CUT_OFF,
    EXIT_OVERTAKEN: StopCause.ORDERED,
    EXIT_DISK_FULL: StopCause.DISK_FULL,
}
"""Exit codes by which the child itself names the cause."""


def cause_of(
    exit_code: int, *, finished: bool, ordered: bool, signalled: bool = False
) -> StopCause:
    """Return the cause of a child's end, from Python's exit code (minus its signal) and our orders.

    ``finished``: the mark in its lease memory; only an orderly end writes it. ``signalled``:
    whether its launcher got a signal. YARN signals the whole process group, also the child's JVM,
    so that then no exit code of the child shows a fault of its own.
    """
    if exit_code == 0 and finished:
        return StopCause.FINISHED
    if ordered and exit_code in {EXIT_TERMINATED, -signal.SIGTERM, -signal.SIGKILL}:
        return StopCause.ORDERED
    if signalled or exit_code in {EXIT_TERMINATED, -signal.SIGTERM}:
        return StopCause.SIGNALLED
    if exit_code == -signal.SIGKILL:
        return StopCause.KILLED
    return _CAUSES.get(exit_code, StopCause.FAILED)


def last_lines(text: bytes, count: int = LAST_LINES) -> tuple[str, ...]:
    """Return the last ``count`` lines of ``text`` that are not blank."""
    lines = text.decode("utf-8", "replace").splitlines()
    return tuple([line.rstrip() for line in lines if line.strip()][-count:])


@dataclass(slots=True)
class BeatWatch:
    """Distinguishes a child that hangs from a parent that itself stood still. Units: ms."""

    hang_ms: int
    checked_ms: int
    excused_ms: int

    @classmethod
    def at(cls, now_ms: int, hang_ms: int) -> BeatWatch:
        """Return the watch over a child that is started now."""
        return cls(hang_ms, now_ms, now_ms)

    def is_hung(self, beat_ms: int, now_ms: int) -> bool:
        """Return whether the child, whose last beat is given, was silent for the whole limit."""
        if now_ms - self.checked_ms > self.hang_ms // 2:
            self.excused_ms = now_ms
        self.checked_ms = now_ms
        return now_ms - max(beat_ms, self.excused_ms) >= self.hang_ms


@dataclass(slots=True)
class RunningChild:
    """One incarnation in a process, under the watch of its parent.

    ``shutdown_ms``: its time to stop. ``kill_at_ms``: when that is over; None: it has no order to
    stop. ``is_ordered``: whether its coordinator wants the end.
    """

    incarnation: Incarnation
    process: ChildProcess
    beats: BeatWatch
    shutdown_ms: int
    is_ordered: bool = False
    has_hung: bool = False
    has_lost_lease: bool = False
    kill_at_ms: int | None = None

    def reason_to_kill(self, now_ms: int) -> str | None:
        """Return why the child must be killed now; None: it goes on (safety C3).

        A child that does not stop is killed again and again until it has ended.
        """
        if self.kill_at_ms is not None and now_ms >= self.kill_at_ms:
            self.kill_at_ms = now_ms + max(self.shutdown_ms, _KILL_AGAIN_MS)
            return "did not stop in time"
        if not self.has_hung and self.beats.is_hung(self.process.memory.beat_ms, now_ms):
            self.has_hung = True
            return "does not beat"
        return None

    def end(self, exit_code: int, *, is_signalled: bool = False) -> tuple[StopCause, list[str]]:
        """Return the cause of the end of a child that has exited, and its last lines.

        ``is_signalled``: as ``signalled`` of ``cause_of``.
        """
        finished = self.process.memory.is_finished
        cause = cause_of(
            exit_code, finished=finished, ordered=self.is_ordered, signalled=is_signalled
        )
        lines = [*last_lines(self.process.log_tail(_TAIL_BYTES))]
        if exit_code == 0 and cause is StopCause.FAILED:
            lines.append(EXITED)
        if self.has_hung:
            lines.append(f"killed: silent for task.hang.ms ({self.beats.hang_ms})")
            return StopCause.FAILED, lines
        if exit_code == EXIT_LEASE_LOST or self.has_lost_lease:
            return StopCause.LEASE_LOST, lines
        return cause, lines
