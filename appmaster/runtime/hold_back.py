"""Whom an AM attempt waits for before it places anything: what lower ranks may have left running.

An incarnation that a lower rank permitted may live on, out of reach: its keeper goes on renewing
until it sees the higher rank, or has seen nothing of Kafka for G. So nobody is taken for stopped
before G + L + M, but for those whose stop somebody has witnessed (safety A4). Decides only; times
are given, in ms of a clock that goes on while a machine sleeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from homeport.job_coordinator.model.incarnation import Incarnation


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What an attempt finds, once, when it has read back its own rank.

    ``since_ms``: when that was; ``permitted``: the last incarnation of each processor, by lower
    ranks.
    """

    since_ms: int
    permitted: tuple[Incarnation, ...] = ()


NOTHING = Inheritance(0)


class HoldBack:
    """Until when nothing may be placed.

    Args:
        inheritance: what the attempt found.
        span_ms: G + L + M.
        stopped: whose stop is known already.
    """

    def __init__(
        self, inheritance: Inheritance, span_ms: int, stopped: Collection[Incarnation] = ()
    ) -> None:
        self.since_ms = inheritance.since_ms
        self.until_ms = inheritance.since_ms + span_ms
        self._pending = set(inheritance.permitted) - set(stopped)

    @property
    def pending(self) -> tuple[Incarnation, ...]:
        """Those of whose stop nobody has told, in order."""
        return tuple(sorted(self._pending))

    def settled(self, stopped: Iterable[Incarnation]) -> tuple[Incarnation, ...]:
        """These have stopped; those of them that were waited for until now, in order."""
        news = self._pending.intersection(stopped)
        self._pending -= news
        return tuple(sorted(news))

    def is_over(self, now_ms: int) -> bool:
        """Whether all have stopped: somebody has said so, or the time has."""
        return not self._pending or now_ms >= self.until_ms
