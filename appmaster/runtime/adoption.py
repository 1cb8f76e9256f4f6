"""What an earlier driver has permitted, and of which nobody knows yet whether it still runs.

Until each is found running, or known to have stopped, nothing is placed: a successor would end a
container that is well. Decides only; no clock.
"""

from __future__ import annotations

from collections.abc import Iterable

from homeport.job_coordinator.model.incarnation import Incarnation


class Adoption:
    """The incarnations that a new driver still has to account for."""

    def __init__(self, permitted: Iterable[Incarnation] = ()) -> None:
        self._pending = set(permitted)

    @property
    def pending(self) -> tuple[Incarnation, ...]:
        """Those that nobody has spoken for yet, in order."""
        return tuple(sorted(self._pending))

    @property
    def is_complete(self) -> bool:
        """Whether all are accounted for: placing may begin."""
        return not self._pending

    def settled(self, incarnation: Incarnation) -> bool:
        """It was found running, or has stopped; whether that was news."""
        if incarnation not in self._pending:
            return False
        self._pending.discard(incarnation)
        return True
