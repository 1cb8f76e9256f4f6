"""The launcher's side of a lease: until when its child may run. Decides only; times are given.

Theory. L counts from the moment a renewal was *sent*, on a clock that goes on while the machine
sleeps (safety C1). An answer that comes after the deadline is none: by then the child is being
ended, and an incarnation that has been ended never runs again (safety C4). The beats of the child
are judged here too (safety C3).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Lease:
    """The lease of one child. Units: ms."""

    deadline_ms: int

    @classmethod
    def first(cls, sent_ms: int, now_ms: int, lease_ms: int) -> Lease | None:
        """The lease from the round trip that a permit waits for; None where it took too long."""
        deadline_ms = sent_ms + lease_ms
        return cls(deadline_ms) if now_ms < deadline_ms else None

    def renewed(self, sent_ms: int, now_ms: int, lease_ms: int) -> bool:
        """A renewal that was sent then is granted; False where it comes too late."""
        if self.is_lost(now_ms):
            return False
        self.deadline_ms = max(self.deadline_ms, sent_ms + lease_ms)
        return True

    def is_lost(self, now_ms: int) -> bool:
        """Whether the child must be gone by now."""
        return now_ms >= self.deadline_ms


@dataclass(slots=True)
class BeatWatch:
    """Distinguishes a child that hangs from a launcher that itself stood still. Units: ms."""

    hang_ms: int
    looked_ms: int
    excused_ms: int

    @classmethod
    def at(cls, now_ms: int, hang_ms: int) -> BeatWatch:
        """Of a child that is started now."""
        return cls(hang_ms, now_ms, now_ms)

    def is_hung(self, beat_ms: int, now_ms: int) -> bool:
        """Whether the child, whose last beat was then, has been silent for the whole limit."""
        if now_ms - self.looked_ms > self.hang_ms // 2:
            self.excused_ms = now_ms
        self.looked_ms = now_ms
        return now_ms - max(beat_ms, self.excused_ms) >= self.hang_ms
