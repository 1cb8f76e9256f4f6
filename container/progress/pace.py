"""How soon a step that takes time follows on the one before: commits, and micro-batches.

PURE: times are the caller's, in seconds of one clock that only goes on.
"""

import math
from collections.abc import Callable

ENOUGH_ROWS = 1_000
"""So many rows are worth a micro-batch of their own: most of its time then goes to rows."""


class Pace:
    """Bounds the share of the time that steps take, by the times of the last ones.

    The time of a step counts half at the next, a quarter at the one after that. ``share``: greater
    than 0, at most 1, which bounds nothing.
    """

    def __init__(self, share: float) -> None:
        self._rest_per_cost = 1 / share - 1
        self._cost_s: float | None = None
        self._ended_s = -math.inf

    def took(self, began_s: float, ended_s: float) -> None:
        """Note between which times the step was taken."""
        cost_s = ended_s - began_s
        self._cost_s = cost_s if self._cost_s is None else (self._cost_s + cost_s) / 2
        self._ended_s = ended_s

    def left_s(self, now_s: float, *, least_s: float = 0.0, most_s: float = math.inf) -> float:
        """Return the seconds until the next step; 0: it may come now, as before the first one.

        It comes ``least_s`` after the last one at the earliest, and ``most_s`` at the latest. Where
        they contradict, ``most_s`` counts.
        """
        rest_s = min(most_s, max(least_s, (self._cost_s or 0.0) * self._rest_per_cost))
        return max(0.0, self._ended_s + rest_s - now_s)


class Filling:
    """Decides how long the next micro-batch fills, so that small ones do not take all of the time.

    They take ``share`` of it at most. After a pause of the input the first record does not wait: a
    batch rests after the one before, and never waits for records.
    """

    def __init__(self, share: float) -> None:
        self._pace = Pace(share)
        self._was_full = False

    def took(self, began_s: float, ended_s: float, rows: int) -> None:
        """Note between which times a batch of so many rows was processed."""
        self._pace.took(began_s, ended_s)
        self._was_full = rows >= ENOUGH_ROWS

    def left_s(self, now_s: float, most_s: float, waiting: Callable[[], int]) -> float:
        """Return the seconds until the next batch is taken, at most ``most_s``; 0: now.

        ``waiting``: how many rows wait; called only where their number matters.
        """
        if self._was_full:
            return 0.0
        left_s = self._pace.left_s(now_s, most_s=most_s)
        return left_s if left_s > 0 and waiting() < ENOUGH_ROWS else 0.0


FEWEST_ROWS = 100
"""The size of the first batch, which is the slowest, and which readers wait for."""
_STEP = 4
_LEAST_SHARES = 4


class BatchSize:
    """The size of micro-batches: it grows after a full one, and shrinks after one that was slow.

    A batch may take the target, or four times as long as the quickest one so far, where that is
    longer: where each batch has a large fixed cost, small ones would be nothing else. ``rows``: how
    many the next batch may have; ``most`` is the limit.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._quickest_s = math.inf
        self.rows = min(FEWEST_ROWS, most)

    def took(self, seconds: float, rows: int, target_s: float) -> None:
        """Note how long a batch of so many rows took; one should take ``target_s``."""
        self._quickest_s = min(self._quickest_s, seconds)
        allowed_s = max(target_s, _LEAST_SHARES * self._quickest_s)
        if rows >= self.rows or seconds > allowed_s:
            grown = _STEP if seconds <= 0 else min(_STEP, allowed_s / seconds)
            self.rows = min(self._most, max(FEWEST_ROWS, int(rows * grown)))
