"""Incarnations that an earlier driver permitted, and that are not accounted for yet.

Until each is found running, or known to have stopped, nothing is placed: a successor would end a
container that is well. Decides only; no clock.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from homeport.job_coordinator.model.ids import ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation


class Adoption:
    """The incarnations that a new driver still has to account for."""

    def __init__(self, permitted: Iterable[Incarnation] = ()) -> None:
        self._pending = set(permitted)

    @property
    def pending(self) -> tuple[Incarnation, ...]:
        """The incarnations that are not accounted for yet, in order."""
        return tuple(sorted(self._pending))

    @property
    def is_complete(self) -> bool:
        """Whether all are accounted for: placing may begin."""
        return not self._pending

    def still(self, permitted: Mapping[ProcessorId, int]) -> dict[ProcessorId, int]:
        """Return those of {processor: epoch} that are not accounted for yet."""
        return {
            p: epoch for p, epoch in permitted.items() if Incarnation(p, epoch) in self._pending
        }

    def settled(self, incarnation: Incarnation) -> bool:
        """Note that it was found running, or has stopped; return whether that was news."""
        if incarnation not in self._pending:
            return False
        self._pending.discard(incarnation)
        return True


class Unheard:
    """Containers that an earlier driver asked for, and whose launchers this driver has not heard.

    One that stays silent for L + M has ended its child, or stands still, and then it holds its
    memory, and its state directories' locks, against those that come after it: it must be ended.
    Where an incarnation that is not accounted for has lost its lease, one stands still already.

    Args:
        first_own: the first request of this driver. now_ms: when it began. patience_ms: L + M.
    """

    def __init__(self, first_own: int, now_ms: int, patience_ms: int) -> None:
        self._first_own = first_own
        self._until_ms = now_ms + patience_ms
        self._settled: set[RequestId] = set()

    def lease_lost(self) -> None:
        """Stop waiting for an incarnation that has lost its lease."""
        self._until_ms = 0

    def overdue(
        self, running: Mapping[RequestId, ResourceId], heard: Collection[ResourceId], now_ms: int
    ) -> tuple[RequestId, ...]:
        """Return those that must be ended now, each returned once, in order.

        Args:
            running: the containers that the cluster manager calls running.
            heard: whose launchers have checked in and are not known to be gone.
            now_ms: the time.
        """
        inherited = {r for r in running if r < self._first_own} - self._settled
        self._settled |= {r for r in inherited if running[r] in heard}
        if now_ms < self._until_ms:
            return ()
        found = tuple(sorted(inherited - self._settled))
        self._settled.update(found)
        return found
