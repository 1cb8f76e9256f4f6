"""What an AM attempt waits for before it places anything: what lower ranks may have left.

An incarnation that a lower rank permitted may live on, out of reach: its keeper goes on renewing
until it sees the higher rank, or has seen nothing of Kafka for G. So an incarnation counts as
stopped after G + L + M, or when its stop is recorded (safety A4). G, L and M are those
of the attempt that gave the permit, which another submission may have configured otherwise. Decides
only; times are given, in ms of a clock that goes on while a machine sleeps.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from homeport.job_coordinator.model.incarnation import Incarnation


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What an attempt finds, once, when it has read back its own rank.

    Shapes: ``permitted`` {the last incarnation of each processor, by lower ranks: for how many ms
    it can run on from then}.

    ``since_ms``: when that was.
    """

    since_ms: int
    permitted: Mapping[Incarnation, int] = field(default_factory=dict)


NOTHING = Inheritance(0)


class HoldBack:
    """Until when nothing may be placed.

    Args:
        inheritance: what the attempt found.
        stopped: whose stop is known already.
    """

    def __init__(self, inheritance: Inheritance, stopped: Collection[Incarnation] = ()) -> None:
        self.since_ms = inheritance.since_ms
        self._ends_ms = {
            incarnation: inheritance.since_ms + span_ms
            for incarnation, span_ms in inheritance.permitted.items()
            if incarnation not in stopped
        }

    @property
    def pending(self) -> tuple[Incarnation, ...]:
        """The incarnations with no recorded stop, in order."""
        return tuple(sorted(self._ends_ms))

    def settled(self, stopped: Iterable[Incarnation]) -> tuple[Incarnation, ...]:
        """Note that these have stopped; return those that were waited for until now, in order."""
        news = sorted(self._ends_ms.keys() & set(stopped))
        for incarnation in news:
            del self._ends_ms[incarnation]
        return tuple(news)

    def is_over(self, now_ms: int) -> bool:
        """Return whether all have stopped: by a record, or because their time is over."""
        return all(now_ms >= end_ms for end_ms in self._ends_ms.values())
