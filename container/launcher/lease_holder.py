"""LeaseHolder: renews one child's lease at the keeper, and reports its loss.

One thread renews, another watches the deadline, so that a call that hangs delays nothing. The child
has the deadline in its memory and watches it too.

L counts from the moment when a renewal was *sent*, on a clock that goes on while the machine sleeps
(safety C1). An answer after the deadline does not count: by then the child is being ended, and an
incarnation that was ended never runs again (safety C4).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass

from homeport.config.errors import HomeportError
from homeport.container.host.lease_memory import LeaseMemory
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import LeaseAnswer, Renewal

_PARTS = 5
"""A lease is renewed five times in its length."""
_WATCH_STEP_S = 0.5

log = logging.getLogger("launcher")


@dataclass(slots=True)
class Lease:
    """The time until which one child may run. It reads no clock. Units: ms."""

    deadline_ms: int

    @classmethod
    def first(cls, sent_ms: int, now_ms: int, lease_ms: int) -> Lease | None:
        """Return the lease after its first round trip; None: that took too long."""
        deadline_ms = sent_ms + lease_ms
        return cls(deadline_ms) if now_ms < deadline_ms else None

    def renewed(self, sent_ms: int, now_ms: int, lease_ms: int) -> bool:
        """Take a granted renewal that was sent at ``sent_ms``; return False if it is too late."""
        if self.is_lost(now_ms):
            return False
        self.deadline_ms = max(self.deadline_ms, sent_ms + lease_ms)
        return True

    def is_lost(self, now_ms: int) -> bool:
        """Return whether the child must have ended by now."""
        return now_ms >= self.deadline_ms


class LeaseHolder:
    """The lease of one child, between ``acquire`` and ``close``."""

    def __init__(
        self, client: CoordinatorClient, renewal: Renewal, lease: Lease, lease_ms: int
    ) -> None:
        self._client = client
        self._renewal = renewal
        self._lease = lease
        self._lease_ms = lease_ms
        self._changed = threading.Condition()
        self._closed = False
        self._memory: LeaseMemory | None = None
        self._on_lost: Callable[[], None] = lambda: None

    @classmethod
    def acquire(cls, client: CoordinatorClient, renewal: Renewal) -> LeaseHolder | None:
        """Return the lease after one round trip (safety C4); None: it is not granted now.

        ``client`` is closed with the last renewal. HomeportError: the keeper did not answer.
        """
        sent_ms = boot_ms()
        lease = None
        try:
            grant = client.renew(renewal)
            if grant.answer is LeaseAnswer.GRANTED:
                lease = Lease.first(sent_ms, boot_ms(), grant.lease_ms)
            return None if lease is None else cls(client, renewal, lease, grant.lease_ms)
        finally:
            if lease is None:
                client.close()

    def hold(self, memory: LeaseMemory, on_lost: Callable[[], None]) -> None:
        """Renew the lease from now on, and write its deadline into the child's ``memory``.

        A thread calls ``on_lost`` once, when the lease is lost.
        """
        self._memory, self._on_lost = memory, on_lost
        memory.deadline_ms = self._lease.deadline_ms
        for target in (self._renew, self._watch):
            threading.Thread(target=target, name=target.__name__, daemon=True).start()

    def close(self) -> None:
        """Stop the renewals; the loss of the lease has no effect from now on."""
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._changed.notify_all()

    def _renew(self) -> None:
        was_answered = True
        with closing(self._client):
            while self._pause(self._lease_ms / _PARTS / 1000):
                sent_ms = boot_ms()
                try:
                    grant = self._client.renew(self._renewal)
                except HomeportError as e:
                    if was_answered:
                        log.warning("the lease is not renewed, trying again: %s", e)
                    was_answered = False
                    continue
                was_answered = True
                with self._changed:
                    self._take(sent_ms, grant.answer, grant.lease_ms)

    def _take(self, sent_ms: int, answer: LeaseAnswer, lease_ms: int) -> None:
        memory = self._memory
        if self._closed or memory is None:
            return
        if answer is LeaseAnswer.GRANTED and self._lease.renewed(sent_ms, boot_ms(), lease_ms):
            memory.deadline_ms = self._lease.deadline_ms
        elif answer is LeaseAnswer.NO:
            self._lease.deadline_ms = memory.deadline_ms = 0
            self._changed.notify_all()

    def _watch(self) -> None:
        with self._changed:
            while not self._closed and not self._lease.is_lost(now_ms := boot_ms()):
                # Waits are on a clock that stands still while the machine sleeps, hence short.
                left_s = (self._lease.deadline_ms - now_ms) / 1000
                self._changed.wait(min(left_s, _WATCH_STEP_S))
            if self._closed:
                return
        self._on_lost()

    def _pause(self, seconds: float) -> bool:
        with self._changed:
            self._changed.wait_for(
                lambda: self._closed or self._lease.is_lost(boot_ms()), timeout=seconds
            )
            return not self._closed and not self._lease.is_lost(boot_ms())
