"""Leases: which incarnation may run, until when, what proves its stop; when an attempt is over.

Decides only; times are given by the caller, in ms of a clock that goes on while a machine sleeps.

Theory. A launcher counts a lease from the moment it *sent* the renewal, this table from its own
answer, plus a margin (safety C1): when a lease has run out here, its launcher has ended the child
before. Running out alone is no evidence: the driver asks, the incarnation is marked revoked for
good, and only that answer is (safety L1). An incarnation that is not registered gets LATER, never
NO: a table that is new knows nothing yet (safety L3).

An attempt whose machine is cut off sees no higher rank, which would make it stop. It does no harm:
its leases run out, and it can write nothing. But it need not stay for ever. Kafka alone may be away
for any time, and so may the ResourceManager: the job then comes back to this attempt. Where both
are silent, it is rather the attempt that is cut off; and when that has lasted until the
ResourceManager must have given up the node, ending costs nothing: another attempt runs, or will,
and this one's end is not counted as a failure. No container of it is left by then either, as G + L
+ M have passed.
"""

from __future__ import annotations

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
    """The leases of one keeper. ``lease_ms`` is L, the margin M is a fifth of it."""

    def __init__(self, lease_ms: int, now_ms: int) -> None:
        self._lease_ms = lease_ms
        self._span_ms = lease_ms + margin_ms(lease_ms)
        self._looked_ms = now_ms
        self._leases: dict[Incarnation, _Lease] = {}

    def tick(self, now_ms: int) -> bool:
        """Return whether this call was late by L/2, which gives all L + M (safety L4)."""
        is_late = now_ms - self._looked_ms > self._lease_ms // 2
        self._looked_ms = now_ms
        if is_late:
            for lease in self._leases.values():
                lease.expires_ms = max(lease.expires_ms, now_ms + self._span_ms)
        return is_late

    def register(self, incarnation: Incarnation, now_ms: int) -> bool:
        """Register the incarnation for renewals; False where it is revoked. Twice is as once.

        A new one has L + M until its first renewal, also when this table is new (safety L4).
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
        """Return when this table last granted it a renewal, its last sign of life; None: never."""
        lease = self._leases.get(incarnation)
        return None if lease is None else lease.renewed_ms

    def stopped(self, incarnation: Incarnation) -> None:
        """Never renew it again: its launcher waited for it."""
        self._leases[incarnation] = _Lease(0, is_revoked=True)

    def revoked(self, asked: Iterable[Incarnation], now_ms: int) -> tuple[Incarnation, ...]:
        """Those of ``asked`` that have run out, revoked for good from now on; in order (safety L1).

        One that is unknown is registered by being asked for.
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
        """Return in how many ms the first of ``asked`` can run out; None where none runs."""
        leases = [self._leases[i] for i in asked if i in self._leases]
        left = [lease.expires_ms - now_ms for lease in leases if not lease.is_revoked]
        return max(0, min(left)) if left else None


def margin_ms(lease_ms: int) -> int:
    """Return M: how much longer the AM's side waits than the launcher."""
    return lease_ms // _MARGIN_PART


def unseen_ms(isolation_ms: int, lease_ms: int) -> int:
    """Return G + L + M: how long a container can run that only an isolated keeper reaches.

    From when a higher rank is in the coordinator stream, or Kafka was last read.
    """
    return isolation_ms + lease_ms + margin_ms(lease_ms)


@dataclass(slots=True)
class RenewalGuard:
    """Whether leases may be renewed at all (safety L2). Units: ms.

    ``isolation_ms`` is G; ``fetched_ms`` when the last answered fetch of the coordinator stream was
    sent (None: none yet).
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
    """Return how long an attempt has no answer before it ends.

    Args:
        unseen_ms: how long a container can live that an isolated attempt has permitted: G + L + M.
        node_expiry: of the ResourceManager's configuration; None where it is not known.
    """
    try:
        return max(unseen_ms, whole_of(node_expiry or ""))
    except ValueError:
        return max(unseen_ms, _NODE_EXPIRY_MS)
