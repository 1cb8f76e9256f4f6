"""How often launchers check in: as configured, unless there are too many of them.

A check-in costs the driver two thirds of a millisecond of CPU (``scripts/bench allocator``). With
two check-ins a second from each of a thousand launchers it would need more than a core, and a
driver that takes over would never have heard all of them. A child's start and end cannot wait: they
are reported at once.

A launcher gets its orders as answers, so a recovery would wait for half an interval on average. A
launcher that will get an order soon has a shorter interval, as long as there are few of them.
"""

from collections import deque

CHECK_INS_PER_S = 250
"""The most check-ins of all launchers together."""


def poll_interval_ms(configured_ms: int, launchers: int, lease_ms: int) -> int:
    """Return after how many ms a launcher checks in again, where there are ``launchers`` of them.

    At most half a lease, unless more is configured: a launcher that loses one poll is silent for a
    lease then, which it may be (``LauncherTable``).
    """
    fair_ms = launchers * 1000 // CHECK_INS_PER_S
    return max(configured_ms, min(fair_ms, lease_ms // 2))


HURRIED_MS = 100
"""After how many ms a launcher checks in again that will get an order soon."""
HURRIES_PER_S = 100
"""The most such answers; beyond that, launchers check in at the usual interval."""
_SECOND_MS = 1000
_LONGEST_LEASE_PAUSE_MS = 250
_SHORTEST_LEASE_PAUSE_MS = 10


class Hurry:
    """Limits how many answers ask a launcher to check in sooner. Times are given, in ms."""

    def __init__(self) -> None:
        self._given: deque[int] = deque(maxlen=HURRIES_PER_S)

    def next_ms(self, interval_ms: int, now_ms: int) -> int:
        """Return after how many ms an awaited launcher checks in; at most ``interval_ms``."""
        if len(self._given) == HURRIES_PER_S and now_ms - self._given[0] < _SECOND_MS:
            return interval_ms
        self._given.append(now_ms)
        return min(interval_ms, HURRIED_MS)


def is_overdue(heard_ms: int, now_ms: int, interval_ms: int, lease_ms: int) -> bool:
    """Return whether a launcher with that interval is late: its host may be lost."""
    return now_ms - heard_ms > interval_ms + lease_ms // 4


def lease_pause_ms(due_ms: int | None) -> int:
    """Return after how many ms to ask the keeper again for leases that have run out.

    ``due_ms``: after how many ms the first one can run out; None: there is no lease.
    """
    if due_ms is None:
        return _LONGEST_LEASE_PAUSE_MS
    return min(max(due_ms, _SHORTEST_LEASE_PAUSE_MS), _LONGEST_LEASE_PAUSE_MS)
