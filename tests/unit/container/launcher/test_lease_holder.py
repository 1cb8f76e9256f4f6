"""Until when a child may run, and the threads that renew and watch its lease."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator

import pytest

from homeport.config.errors import UnavailableError
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.launcher.lease_holder import Lease, LeaseHolder
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import LeaseAnswer, LeaseGrant, Renewal
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation

RENEWAL = Renewal(1, Incarnation(ProcessorId("0"), 3))
LEASE_MS = 50
LIMIT_S = 10
HOUR_MS = 3_600_000


class _Keeper(CoordinatorClient):
    """Answers the questions that ``answers`` says, and all later ones."""

    def __init__(self, answers: list[bool]) -> None:
        super().__init__("http://127.0.0.1:1/", None)
        self.answers = answers
        self.has_answered_all = threading.Event()

    def renew(self, message: Renewal) -> LeaseGrant:
        assert message == RENEWAL
        if not self.answers:
            self.has_answered_all.set()
        elif not self.answers.pop(0):
            raise UnavailableError("refused")
        return LeaseGrant(LeaseAnswer.GRANTED, LEASE_MS)


class _Held:
    """A lease of an hour that is being held, often renewed."""

    def __init__(self, keeper: _Keeper) -> None:
        self._lease = Lease(boot_ms() + HOUR_MS)
        self._memory = LeaseMemory.endless()
        self.is_lost = threading.Event()
        self.holder = LeaseHolder(keeper, RENEWAL, self._lease, LEASE_MS)
        others = set(threading.enumerate())
        self.holder.hold(self._memory, self.is_lost.set)
        self.threads = set(threading.enumerate()) - others

    def has_ended(self) -> bool:
        for thread in self.threads:
            thread.join(LIMIT_S)
        return not any(thread.is_alive() for thread in self.threads)

    def end(self) -> None:
        self._lease.deadline_ms = 0
        self.holder.close()
        assert self.has_ended()
        os.close(self._memory.fd)


@pytest.fixture(name="keeper")
def _keeper() -> _Keeper:
    return _Keeper([False, False, True, False])


@pytest.fixture(name="held")
def _held(keeper: _Keeper) -> Iterator[_Held]:
    held = _Held(keeper)
    yield held
    held.end()


def test_a_closed_lease_is_renewed_no_more_and_its_loss_is_not_reported(
    keeper: _Keeper, held: _Held
) -> None:
    """Both threads end, long before the lease does; daemons, they keep no launcher from it."""
    assert [thread.daemon for thread in held.threads] == [True, True]
    assert keeper.has_answered_all.wait(LIMIT_S)
    held.holder.close()
    assert held.has_ended()
    assert not held.is_lost.is_set()


def test_the_log_names_an_absent_keeper_once_each_time(caplog: pytest.LogCaptureFixture) -> None:
    """Many renewals fail meanwhile; it was away twice here, and the lease lives on."""
    keeper = _Keeper([False, False, False, True, False, False])
    with caplog.at_level(logging.WARNING, "launcher"):
        held = _Held(keeper)
        try:
            assert keeper.has_answered_all.wait(LIMIT_S)
        finally:
            held.end()
    warnings = [r for r in caplog.records if "the lease is not renewed" in r.getMessage()]
    assert len(warnings) == 2


L_MS = 10_000


def test_a_lease_counts_from_when_the_renewal_was_sent() -> None:
    """Safety C1: however long the answer took."""
    lease = Lease.first(1000, 4000, L_MS)
    assert lease is not None
    assert not lease.is_lost(10_999)
    assert lease.is_lost(11_000)
    assert lease.renewed(5000, 6000, L_MS)
    assert lease.renewed(4000, 7000, L_MS), "answers out of order do not shorten it"
    assert lease.deadline_ms == 15_000


def test_an_answer_that_took_the_whole_lease_is_none() -> None:
    """For the first renewal as for any other."""
    assert Lease.first(0, L_MS, L_MS) is None
    lease = Lease(L_MS)
    assert lease.renewed(3000, 5000, L_MS)
    assert lease.deadline_ms == 13_000
    assert not lease.renewed(12_000, 13_000, L_MS)
    assert lease.is_lost(13_000)
