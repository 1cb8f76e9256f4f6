"""Ends: when windows end, so that the store is read only where one does.

PURE. A scan of a store costs more than all else that is done for a record.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterable

_SOME = 1 << 60
"""How many windows end at a time that the store had before: it is not known, and never none."""


class Ends:
    """The ends of open windows, and of closed ones that are kept.

    Args:
        closed_ms: windows that end then or before are closed.
        found: the ends of those that the store has, in their order.
    """

    def __init__(self, closed_ms: int, found: Iterable[int]) -> None:
        self._counts: dict[int, int] = {}
        self._heap: list[int] = []
        self._kept: deque[int] = deque()
        for end_ms in found:
            if end_ms <= closed_ms:
                self._kept.append(end_ms)
            else:
                self._counts[end_ms] = _SOME
                self._heap.append(end_ms)

    def add(self, end_ms: int) -> None:
        """One more open window ends then."""
        if end_ms not in self._counts:
            heapq.heappush(self._heap, end_ms)
        self._counts[end_ms] = self._counts.get(end_ms, 0) + 1

    def remove(self, end_ms: int) -> None:
        """One window fewer ends then."""
        self._counts[end_ms] -= 1

    def close(self, to_ms: int) -> bool:
        """Windows that end by then are closed, and kept; whether there are any."""
        before = len(self._kept)
        while self._heap and self._heap[0] <= to_ms:
            end_ms = heapq.heappop(self._heap)
            if self._counts.pop(end_ms) > 0:
                self._kept.append(end_ms)
        return len(self._kept) > before

    def purge(self, until_ms: int) -> int | None:
        """Windows that ended by then are no longer kept; the first end of them, None: no window."""
        first = None
        while self._kept and self._kept[0] <= until_ms:
            end_ms = self._kept.popleft()
            first = end_ms if first is None else first
        return first
