"""What earlier drivers and attempts have left: containers that may run, and charged failures.

Decides only; times are given, in ms of a clock that goes on while a machine sleeps.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from homeport.appmaster.allocation.protocol.events import ChargedFailures
from homeport.job_coordinator.metadata.lifecycle import RetryState
from homeport.job_coordinator.model.ids import ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation


class Adoption:
    """The incarnations that an earlier driver of this attempt permitted.

    The new driver places nothing before it has found each of them running or stopped: a successor
    would end a container that is well.
    """

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
        is_news = incarnation in self._pending
        self._pending.discard(incarnation)
        return is_news


class Unheard:
    """Containers that an earlier driver requested, and whose launchers this driver has not heard.

    A launcher that is silent for L + M has ended its child, or stands still. One that stands still
    keeps memory and the locks of state directories from its successors, so it must be ended. Where
    an incarnation that is not accounted for has lost its lease, a launcher stands still already.

    ``first_own``: the first request of this driver, which began at ``now_ms``. ``patience_ms``: L +
    M.
    """

    def __init__(self, first_own: int, now_ms: int, patience_ms: int) -> None:
        self._first_own = first_own
        self._until_ms = now_ms + patience_ms
        self._settled: set[RequestId] = set()

    def lease_lost(self) -> None:
        """Stop waiting: an incarnation that is not accounted for has lost its lease."""
        self._until_ms = 0

    def overdue(
        self, running: Mapping[RequestId, ResourceId], heard: Collection[ResourceId], now_ms: int
    ) -> tuple[RequestId, ...]:
        """Return the requests whose containers must be ended now, each once, in order.

        ``running``: the containers that the cluster manager calls running. ``heard``: those whose
        launchers have checked in and are not known to be gone.
        """
        inherited = {r for r in running if r < self._first_own} - self._settled
        self._settled |= {r for r in inherited if running[r] in heard}
        if now_ms < self._until_ms:
            return ()
        found = tuple(sorted(inherited - self._settled))
        self._settled.update(found)
        return found


@dataclass(frozen=True, slots=True)
class Inheritance:
    """What an attempt finds, once, when it has read back its own rank at ``since_ms``.

    ``permitted``: {the last incarnation of each processor that lower ranks permitted: for how many
    ms from then it can run on}.
    """

    since_ms: int = 0
    permitted: Mapping[Incarnation, int] = field(default_factory=dict)


class HoldBack:
    """Holds placing back while incarnations of lower ranks may live on, out of reach.

    The keeper of a lower rank renews leases until it sees the higher rank, or has seen nothing of
    Kafka for G. So an incarnation counts as stopped after G + L + M, or when its stop is recorded
    (safety A4). G, L and M are those of the attempt that gave the permit: another submission may
    have configured them otherwise.

    ``stopped``: incarnations whose stop is known already.
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

    def settled(self, incarnation: Incarnation) -> bool:
        """Note that it has stopped; return whether that was news."""
        return self._ends_ms.pop(incarnation, None) is not None

    def is_over(self, now_ms: int) -> bool:
        """Return whether all have stopped: by a record, or because their time is over."""
        return all(now_ms >= end_ms for end_ms in self._ends_ms.values())


def charged_failures(
    states: Mapping[ProcessorId, RetryState], *, retry_count: int, window_ms: int, now_ms: int
) -> dict[ProcessorId, ChargedFailures]:
    """Return the charges of earlier drivers that still count.

    A container that was given up stays so. A clock that went back forgives nothing.
    """
    found = {}
    for processor_id, state in states.items():
        left_ms = min(window_ms, state.since_ms + window_ms - now_ms)
        if state.count and (left_ms > 0 or 0 <= retry_count < state.count):
            found[processor_id] = ChargedFailures(state.count, max(left_ms, 1))
    return found
