"""Leases: which incarnation may run, until when, what proves its stop; when an attempt is over.

Decides only. The caller gives the times, in ms of a clock that goes on while a machine sleeps.

Theory. A launcher counts a lease from when it *sent* the renewal, this table from its own answer,
plus a margin (safety C1). So when a lease runs out here, the launcher has ended its child. That
alone is no evidence: the driver asks, the incarnation is marked revoked for good, and only this
answer is evidence (safety L1). An unregistered incarnation gets LATER, never NO, since a new table
knows nothing yet (safety L3).

The end of an attempt. An attempt whose machine is cut off cannot see a higher rank and stop. It
does no harm, since its leases run out and it can write nothing, but it need not stay for ever. If
only Kafka or only the ResourceManager is away, for however long, the job comes back to this
attempt. If both are silent, the attempt is probably cut off. When that has lasted until the
ResourceManager must have given up the node, the attempt ends at no cost: another one runs, or will,
and this end is not counted as a failure. G + L + M have passed then, so none of its containers is
left.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from homeport.config.number_text import whole_of
from homeport.job_coordinator.http.messages import LeaseAnswer
from homeport.job_coordinator.model.incarnation import Incarnation

NODE_EXPIRY_KEY = "yarn.nm.liveness-monitor.expiry-interval-ms"
_NODE_EXPIRY_MS = 600_000
"""YARN's default."""
_MARGIN_PART = 5


@dataclass(slots=True)
class _Lease:
    expires_ms: int
    is_revoked: bool = False
    renewed_ms: int | None = None


class LeaseTable:
    """The leases of one keeper. ``lease_ms`` is L; the margin M is a fifth of it."""

    def __init__(self, lease_ms: int, now_ms: int) -> None:
        self._lease_ms = lease_ms
        self._span_ms = lease_ms + margin_ms(lease_ms)
        self._looked_ms = now_ms
        self._leases: dict[Incarnation, _Lease] = {}

    def tick(self, now_ms: int) -> bool:
        """Return whether this call comes L/2 too late; then each lease gets L + M (safety L4)."""
        is_late = now_ms - self._looked_ms > self._lease_ms // 2
        self._looked_ms = now_ms
        if is_late:
            for lease in self._leases.values():
                lease.expires_ms = max(lease.expires_ms, now_ms + self._span_ms)
        return is_late

    def register(self, incarnation: Incarnation, now_ms: int) -> bool:
        """Register the incarnation for renewals, if it is new; return whether it is not revoked.

        It has L + M until its first renewal, also if this table is new (safety L4).
        """
        lease = self._leases.setdefault(incarnation, _Lease(now_ms + self._span_ms))
        return not lease.is_revoked

    def renew(self, incarnation: Incarnation, now_ms: int) -> LeaseAnswer:
        """Return the answer to a launcher's renewal, which counts from now."""
        lease = self._leases.get(incarnation)
        if lease is None:
            return LeaseAnswer.LATER
        if lease.is_revoked:
            return LeaseAnswer.NO
        lease.expires_ms = max(lease.expires_ms, now_ms + self._span_ms)
        lease.renewed_ms = now_ms
        return LeaseAnswer.GRANTED

    def renewed_ms(self, incarnation: Incarnation) -> int | None:
        """Return when this table last granted it a renewal; None: never."""
        lease = self._leases.get(incarnation)
        return None if lease is None else lease.renewed_ms

    def stopped(self, incarnation: Incarnation) -> None:
        """Forbid renewals: its launcher has reported the stop."""
        self._leases[incarnation] = _Lease(0, is_revoked=True)

    def revoked(self, asked: Iterable[Incarnation], now_ms: int) -> tuple[Incarnation, ...]:
        """Revoke those of ``asked`` that have run out, for good; return them in order (safety L1).

        Unknown ones are registered.
        """
        self.tick(now_ms)
        found = []
        for incarnation in sorted(set(asked)):
            self.register(incarnation, now_ms)
            lease = self._leases[incarnation]
            lease.is_revoked = lease.is_revoked or now_ms >= lease.expires_ms
            if lease.is_revoked:
                found.append(incarnation)
        return tuple(found)

    def due_ms(self, asked: Iterable[Incarnation], now_ms: int) -> int | None:
        """Return in how many ms the first of ``asked`` can run out; None: none can."""
        leases = [self._leases[i] for i in asked if i in self._leases]
        left = [lease.expires_ms - now_ms for lease in leases if not lease.is_revoked]
        return max(0, min(left)) if left else None


def margin_ms(lease_ms: int) -> int:
    """Return M: how much longer the AM waits than the launcher."""
    return lease_ms // _MARGIN_PART


def unseen_ms(isolation_ms: int, lease_ms: int) -> int:
    """Return G + L + M: how long a container can run that only an isolated keeper reaches.

    The time begins when a higher rank is in the coordinator stream, or with the last read of Kafka.
    """
    return isolation_ms + lease_ms + margin_ms(lease_ms)


@dataclass(slots=True)
class RenewalGuard:
    """Whether leases may be renewed at all (safety L2). Units: ms.

    ``isolation_ms``: G. ``fetched_ms``: when the last answered fetch of the coordinator stream was
    sent; None: none yet.
    """

    isolation_ms: int
    fetched_ms: int | None = None
    is_outranked: bool = False

    def may_renew(self, now_ms: int) -> bool:
        """Return whether no higher rank was seen, and the coordinator stream was read within G."""
        if self.is_outranked or self.fetched_ms is None:
            return False
        return now_ms - self.fetched_ms < self.isolation_ms


def limit_ms(unseen_ms: int, node_expiry: str | None) -> int:
    """Return after how long without an answer an attempt ends.

    ``unseen_ms``: G + L + M. ``node_expiry``: the ResourceManager's setting; None: not known.
    """
    try:
        return max(unseen_ms, whole_of(node_expiry or ""))
    except ValueError:
        return max(unseen_ms, _NODE_EXPIRY_MS)
