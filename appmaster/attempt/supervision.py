"""When a supervisor starts a child again, and when it takes one for hung.

Decides only: no process, no clock. Times are given by the caller, in ms of one clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

EXIT_ENDED = 0
"""The application's result is reported to YARN, and through the child's pipe too."""
EXIT_FINAL = 70
"""This attempt is over for good: another start would end the same way."""
EXIT_UNFIT_HOST = 71
"""This host keeps the child from its work, as by a port that another program has."""

BEAT_INTERVAL_MS = 250
HANG_LIMIT_MS = 5000
"""A child that has not beaten for this long hangs (safety A3)."""
START_LIMIT_MS = 60_000
"""How long a child may take to its first beat: on a busy machine, imports take seconds."""

SPARE_PAUSE_MS = 60_000
"""How long after the end of a spare, or a start of one that failed, the next one is tried."""

SHORT_LIVES_LIMIT = 15
"""After so many short lives in a row another start here is not worth it: the attempt ends."""
UNFIT_HOST_LIMIT = 3
"""The same, of lives that end with ``EXIT_UNFIT_HOST``: the next attempt may be elsewhere."""

_STANDSTILL_MS = 1500
_HEALTHY_MS = 5000
_PAUSES_MS = (0, 100, 250, 500, 1000)


class ChildVerdict(Enum):
    """What the end of a child means."""

    RESTART = "restart"
    END = "end"


def verdict_of(exit_code: int, *, has_reported_end: bool) -> ChildVerdict:
    """Return the verdict: a child's own report ends the application, no signal and no fault does.

    ``has_reported_end``: the child has said through its pipe that ``EXIT_ENDED`` is to come.
    Without that the code says nothing: any code that runs in a process can exit with 0.
    """
    is_end = exit_code == EXIT_FINAL or (exit_code == EXIT_ENDED and has_reported_end)
    return ChildVerdict.END if is_end else ChildVerdict.RESTART


def exit_without_port(earlier: int | None) -> int:
    """Return the exit code of a child that cannot listen.

    ``earlier``: the port that a process of the child before it had. That process may still hold it
    as it ends, or a connection of its may: it is free before long.
    """
    return EXIT_UNFIT_HOST if earlier is None else 1


@dataclass(slots=True)
class Vitals:
    """One child's beats and restarts.

    ``looked_ms``: time of the last look. It distinguishes a child that stands still from a
    supervisor that stood still.
    """

    started_ms: int
    beat_ms: int
    looked_ms: int
    has_beaten: bool = False
    has_served: bool = False
    in_a_row: int = 0

    @classmethod
    def at(cls, now_ms: int) -> Vitals:
        """Return the vitals of a child that is started now."""
        return cls(now_ms, now_ms, now_ms)

    def beaten(self, now_ms: int) -> None:
        """Note a beat of the child."""
        self.has_beaten = True
        self.beat_ms = now_ms

    def served(self) -> None:
        """Note that others can reach the child."""
        self.has_served = True

    @property
    def is_hopeless(self) -> bool:
        """Whether every start of late has failed."""
        return self.in_a_row >= SHORT_LIVES_LIMIT

    def is_hung(self, now_ms: int) -> bool:
        """Return whether the child has been silent for the whole limit while we were watching."""
        if now_ms - self.looked_ms > _STANDSTILL_MS:
            self.beat_ms = now_ms
        self.looked_ms = now_ms
        return now_ms - self.beat_ms >= (HANG_LIMIT_MS if self.has_beaten else START_LIMIT_MS)

    def died(self, now_ms: int, exit_code: int | None = None) -> int:
        """Note the child's end; return how long to wait before the next start, in ms.

        At once after a healthy life; each short life in a row makes it longer, up to a bound. A
        life that never came to serve anybody counts as short.
        """
        if self.has_served and now_ms - self.started_ms >= _HEALTHY_MS:
            self.in_a_row = 0
        pause_ms = _PAUSES_MS[min(self.in_a_row, len(_PAUSES_MS) - 1)]
        is_unfit_host = exit_code == EXIT_UNFIT_HOST
        self.in_a_row += SHORT_LIVES_LIMIT // UNFIT_HOST_LIMIT if is_unfit_host else 1
        return pause_ms

    def started(self, now_ms: int) -> None:
        """Note that the child has been started again."""
        self.started_ms = self.beat_ms = self.looked_ms = now_ms
        self.has_beaten = self.has_served = False
