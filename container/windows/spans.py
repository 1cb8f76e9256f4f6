"""Spans of event time: which windows a time belongs to.

PURE. A window [start, end) has its start and not its end; times are in ms since 1970.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Hopping:
    """Windows of ``size_ms`` that begin every ``step_ms``; a time belongs to size / step of them.

    Raises:
        ValueError: the size is no multiple of the step.
    """

    size_ms: int
    step_ms: int

    def __post_init__(self) -> None:
        """The numbers fit each other."""
        if self.step_ms < 1 or self.size_ms < self.step_ms or self.size_ms % self.step_ms:
            raise ValueError(
                f"windows of {self.size_ms} ms every {self.step_ms} ms: the size must be a "
                "multiple of the step, and the step at least 1"
            )

    def starts(self, time_ms: int) -> Iterator[int]:
        """The starts of the windows that have ``time_ms``, the oldest first."""
        last = time_ms - time_ms % self.step_ms
        return iter(range(last - self.size_ms + self.step_ms, last + 1, self.step_ms))


class Tumbling(Hopping):
    """Windows of ``size_ms``, one after the other: a time belongs to one of them."""

    __slots__ = ()

    def __init__(self, size_ms: int) -> None:
        """The first one begins in 1970."""
        super().__init__(size_ms, size_ms)


@dataclass(frozen=True, slots=True)
class Session:
    """A window that lasts as long as no two records of its key are ``gap_ms`` apart, and the gap.

    Raises:
        ValueError: the gap is below 1.
    """

    gap_ms: int

    def __post_init__(self) -> None:
        """There is a gap."""
        if self.gap_ms < 1:
            raise ValueError(f"a session with a gap of {self.gap_ms} ms: it must be at least 1")


Span = Hopping | Session
