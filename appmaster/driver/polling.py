"""How often launchers are to ask what to do: as configured, unless there are too many of them.

A check-in costs the driver two thirds of a millisecond of CPU (``scripts/bench allocator``). Asked
by a thousand launchers twice a second it would need more than a core, and one that takes over would
never have heard them all. What cannot wait, a child's start and end, is reported at once.

Orders reach a launcher as answers. Of one that is soon to get an order, a recovery would wait for
half an interval: it gets a shorter interval, as long as there are few of them.
"""

from __future__ import annotations

from collections import deque

CHECK_INS_PER_S = 250
"""All launchers together ask no more often than that."""


def poll_interval_ms(configured_ms: int, launchers: int, lease_ms: int) -> int:
    """Return in how many ms a launcher is to ask again, where there are so many of them.

    No longer than half a lease, which a launcher may be silent for (``LauncherTable``) with one
    poll lost, unless more is configured.
    """
    fair_ms = launchers * 1000 // CHECK_INS_PER_S
    return max(configured_ms, min(fair_ms, lease_ms // 2))


HURRIED_MS = 100
"""In how many ms a launcher is to ask again that is about to get an order."""
HURRIES_PER_S = 100
"""So many answers a second say so; beyond that, launchers come as always."""
_SECOND_MS = 1000
_LONGEST_LEASE_PAUSE_MS = 250
_SHORTEST_LEASE_PAUSE_MS = 10


class Hurry:
    """Hands out the few answers that ask a launcher to come sooner. Times are given, in ms."""

    def __init__(self) -> None:
        self._given: deque[int] = deque(maxlen=HURRIES_PER_S)

    def next_ms(self, interval_ms: int, now_ms: int) -> int:
        """Return after how many ms an awaited launcher asks again, else after ``interval_ms``."""
        if len(self._given) == HURRIES_PER_S and now_ms - self._given[0] < _SECOND_MS:
            return interval_ms
        self._given.append(now_ms)
        return min(interval_ms, HURRIED_MS)


def is_overdue(heard_ms: int, now_ms: int, interval_ms: int, lease_ms: int) -> bool:
    """Return whether a launcher that asks in that interval is late: its host may be lost."""
    return now_ms - heard_ms > interval_ms + lease_ms // 4


def lease_pause_ms(due_ms: int | None) -> int:
    """Return when to ask the keeper again for leases that have run out.

    Args:
        due_ms: in how many ms the first one can; None: there is no lease.
    """
    if due_ms is None:
        return _LONGEST_LEASE_PAUSE_MS
    return min(max(due_ms, _SHORTEST_LEASE_PAUSE_MS), _LONGEST_LEASE_PAUSE_MS)
