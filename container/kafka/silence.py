"""Silence: how long Kafka lets a transaction wait without a sign that it is there."""

from __future__ import annotations

from collections.abc import Callable

_LEAST_S = 1.0
"""A shorter wait is how long a request takes."""


class Silence:
    """Adds up the waits of one transaction in which nothing of it arrives.

    ``clock``: seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        """Begin without a wait."""
        self._clock = clock
        self._since_s: float | None = None
        self._past_s = 0.0

    def waits(self) -> None:
        """Begin a wait for Kafka; one that lasts ends, as something has arrived."""
        self.ends()
        self._since_s = self._clock()

    def ends(self) -> None:
        """End the wait: what it was for has arrived."""
        self._past_s, self._since_s = self.total_s, None

    @property
    def total_s(self) -> float:
        """Seconds of silence so far, with those of a wait that lasts."""
        own_s = 0.0 if self._since_s is None else self._clock() - self._since_s
        return self._past_s + (own_s if own_s >= _LEAST_S else 0.0)
