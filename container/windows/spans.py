"""Spans of event time: which windows a time belongs to, and when windows end.

PURE. A window [start, end) has its start and not its end. Times are in ms since 1970; earlier ones
are negative.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from homeport.container.serde.exact_values import whole

LIMIT_MS = 10**15
"""Windows lie within so many ms around 1970, some 31,000 years: times in stores have 15 digits."""
_LONGEST_MS = LIMIT_MS // 10


def whole_ms(name: str, given: object) -> int:
    """Return ms as an int; raise TypeError, which gives ``name``, where it is no whole number."""
    try:
        return whole(given)
    except TypeError:
        kind = type(given).__name__
        raise TypeError(f"{name} must be whole ms, not {kind}: give an int") from None


@dataclass(frozen=True, slots=True)
class Hopping:
    """Windows of ``size_ms`` that begin every ``step_ms``; a time belongs to size / step of them.

    Raises:
        TypeError: one of them is no whole number.
        ValueError: the size is no multiple of the step, or too long.
    """

    size_ms: int
    step_ms: int

    def __post_init__(self) -> None:
        _keep_whole(self, "size_ms", "step_ms")
        if self.step_ms < 1 or self.size_ms < self.step_ms or self.size_ms % self.step_ms:
            raise ValueError(
                f"windows of {self.size_ms} ms every {self.step_ms} ms: the size must be a "
                "multiple of the step, and the step at least 1"
            )
        _require_short(self.size_ms)

    @property
    def reach_ms(self) -> int:
        """Return how far a window goes beyond a time in it."""
        return self.size_ms

    @property
    def text(self) -> str:
        """Return the name of these windows, for stores and people."""
        return f"windows of {self.size_ms} ms every {self.step_ms} ms"

    def windows(self, time_ms: int) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of each window that has ``time_ms``, the oldest first."""
        last = time_ms - time_ms % self.step_ms
        for start_ms in range(last - self.size_ms + self.step_ms, last + 1, self.step_ms):
            yield start_ms, start_ms + self.size_ms


class Tumbling(Hopping):
    """Windows of ``size_ms``, one after the other: a time belongs to one of them.

    One of them begins with 1970.
    """

    __slots__ = ()

    def __init__(self, size_ms: int) -> None:
        super().__init__(size_ms, size_ms)


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that grow with the records of a key; a gap of ``gap_ms`` without a record ends one.

    Windows of one key that overlap become one, and their aggregates are merged.

    Raises:
        TypeError: the gap is no whole number.
        ValueError: the gap is below 1, or too long.
    """

    gap_ms: int

    def __post_init__(self) -> None:
        _keep_whole(self, "gap_ms")
        if self.gap_ms < 1:
            raise ValueError(f"a session with a gap of {self.gap_ms} ms: it must be at least 1")
        _require_short(self.gap_ms)

    @property
    def reach_ms(self) -> int:
        """Return how far a window goes beyond a time in it."""
        return self.gap_ms

    @property
    def text(self) -> str:
        """Return the name of these windows, for stores and people."""
        return f"sessions with a gap of {self.gap_ms} ms"

    def windows(self, time_ms: int) -> Iterator[tuple[int, int]]:
        """Yield (start, end) of each window that has ``time_ms``, the oldest first."""
        yield time_ms, time_ms + self.gap_ms


Span = Hopping | Session
"""Which windows a time belongs to."""


def _keep_whole(span: Span, *names: str) -> None:
    for name in names:
        object.__setattr__(span, name, whole_ms(name, getattr(span, name)))


def _require_short(span_ms: int) -> None:
    if span_ms > _LONGEST_MS:
        raise ValueError(f"a span of {span_ms} ms: it must be at most {_LONGEST_MS}")


_SOME = 1 << 60
"""The count for an end found in the store: how many windows end then is unknown, but not zero."""


class Ends:
    """The ends of open windows, and of closed ones that are kept.

    ``closed_ms``: windows that end then or before are closed. ``found``: the ends of the windows in
    the store, ascending.
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
        """Count one more open window with this end."""
        if end_ms not in self._counts:
            heapq.heappush(self._heap, end_ms)
        self._counts[end_ms] = self._counts.get(end_ms, 0) + 1

    def remove(self, end_ms: int) -> None:
        """Count one open window fewer with this end."""
        self._counts[end_ms] -= 1

    def close(self, to_ms: int) -> bool:
        """Move windows that end by ``to_ms`` to the closed ones; return whether there are any."""
        before = len(self._kept)
        while self._heap and self._heap[0] <= to_ms:
            end_ms = heapq.heappop(self._heap)
            if self._counts.pop(end_ms) > 0:
                self._kept.append(end_ms)
        return len(self._kept) > before

    def purge(self, until_ms: int) -> int | None:
        """Forget closed windows that ended by ``until_ms``; return their first end, or None."""
        first = None
        while self._kept and self._kept[0] <= until_ms:
            end_ms = self._kept.popleft()
            first = end_ms if first is None else first
        return first
