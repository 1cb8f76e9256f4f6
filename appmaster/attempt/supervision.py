"""Decides when the supervisor starts a child again, and when a child hangs.

It has no process and no clock. Times are given, in ms of one clock.
"""

from __future__ import annotations

from dataclasses import dataclass

EXIT_ENDED = 0
"""The application's result is reported to YARN, and the end through the child's pipe."""
EXIT_FINAL = 70
"""This attempt is over for good: another start would end the same way."""
EXIT_UNFIT_HOST = 71
"""The child cannot work on this host, for example as another program has its port."""

BEAT_INTERVAL_MS = 250
HANG_LIMIT_MS = 5000
"""A child without a beat for this long hangs (safety A3)."""
START_LIMIT_MS = 60_000
"""The time to a child's first beat: on a busy machine, imports take seconds."""

SPARE_DELAY_MS = 5000
"""From the start of a child to that of its spare: the AM's own start needs the cores first."""
SPARE_PAUSE_MS = 60_000
"""The pause between the end of a spare, or its failed start, and the next start."""

SHORT_LIVES_LIMIT = 15
"""After so many short lives in a row the attempt ends, instead of another start here."""
UNFIT_HOST_LIMIT = 3
"""The same for lives that end with ``EXIT_UNFIT_HOST``: the next attempt may be elsewhere."""

_STANDSTILL_MS = 1500
_HEALTHY_MS = 5000
_PAUSES_MS = (0, 100, 250, 500, 1000)


def is_the_end(exit_code: int, *, has_reported_end: bool) -> bool:
    """Return whether the supervisor ends with this child: by its own report alone, by no fault.

    ``has_reported_end``: the child has announced ``EXIT_ENDED`` through its pipe. Without that the
    code means nothing: any code that runs in a process can exit with 0.
    """
    return exit_code == EXIT_FINAL or (exit_code == EXIT_ENDED and has_reported_end)


def exit_without_port(earlier: int | None) -> int:
    """Return the exit code of a child that cannot listen.

    ``earlier``: the port of the child's earlier process, if any. That process, or one of its
    connections, may still hold the port, which is free before long.
    """
    return EXIT_UNFIT_HOST if earlier is None else 1


@dataclass(slots=True)
class Vitals:
    """One child's beats and restarts.

    ``looked_ms``: time of the last look: it shows whether the child or the supervisor stood still.
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

    @property
    def is_hopeless(self) -> bool:
        """Whether all recent starts have failed."""
        return self.in_a_row >= SHORT_LIVES_LIMIT

    def is_hung(self, now_ms: int) -> bool:
        """Return whether the child was silent for the whole limit while the supervisor looked."""
        if now_ms - self.looked_ms > _STANDSTILL_MS:
            self.beat_ms = now_ms
        self.looked_ms = now_ms
        return now_ms - self.beat_ms >= (HANG_LIMIT_MS if self.has_beaten else START_LIMIT_MS)

    def died(self, now_ms: int, exit_code: int | None = None) -> int:
        """Note the child's end; return the pause before the next start, in ms.

        There is none after a healthy life; each short life in a row makes it longer, up to a bound.
        A life in which the child never served counts as short.
        """
        if self.has_served and now_ms - self.started_ms >= _HEALTHY_MS:
            self.in_a_row = 0
        pause_ms = _PAUSES_MS[min(self.in_a_row, len(_PAUSES_MS) - 1)]
        is_unfit_host = exit_code == EXIT_UNFIT_HOST
        self.in_a_row += SHORT_LIVES_LIMIT // UNFIT_HOST_LIMIT if is_unfit_host else 1
        return pause_ms

    def is_settled(self, now_ms: int) -> bool:
        """Return whether the child has served, and has run for as long as a start may last."""
        return self.has_served and now_ms - self.started_ms >= SPARE_DELAY_MS

    def started(self, now_ms: int) -> None:
        """Note that the child has been started again."""
        self.started_ms = self.beat_ms = self.looked_ms = now_ms
        self.has_beaten = self.has_served = False
