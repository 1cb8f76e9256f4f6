"""How many rows the next micro-batch takes: as many as fit into the time that it should take.

PURE: times are the caller's, in seconds.
"""

from __future__ import annotations

import math

FEWEST_ROWS = 100
"""A container begins with so many: its first batch is the slowest, and its readers wait for it."""
_STEP = 4
_LEAST_SHARES = 4


class BatchSize:
    """Grows from full batch to full batch, and shrinks at once where one took too long.

    A batch may take the target; or four times as long as the quickest one so far, where that is
    longer. Where a batch costs much by itself, small ones would be little else.

    ``rows``: of the next batch, at most.

    Args:
        most: rows of any batch, at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._quickest_s = math.inf
        self.rows = min(FEWEST_ROWS, most)

    def took(self, seconds: float, rows: int, target_s: float) -> None:
        """A batch of so many rows took so long; one should take ``target_s``."""
        self._quickest_s = min(self._quickest_s, seconds)
        allowed_s = max(target_s, _LEAST_SHARES * self._quickest_s)
        if rows >= self.rows or seconds > allowed_s:
            grown = _STEP if seconds <= 0 else min(_STEP, allowed_s / seconds)
            self.rows = min(self._most, max(FEWEST_ROWS, int(rows * grown)))
