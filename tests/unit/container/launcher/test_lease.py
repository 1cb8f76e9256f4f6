"""Until when a child may run, by a clock that the test moves. L is 10 s."""

from __future__ import annotations

from homeport.container.launcher.lease_holder import Lease

LEASE_MS = 10_000


def test_a_lease_counts_from_when_the_renewal_was_sent() -> None:
    """Safety C1: however long the answer took."""
    lease = Lease.first(1000, 4000, LEASE_MS)
    assert lease is not None
    assert not lease.is_lost(10_999)
    assert lease.is_lost(11_000)


def test_an_answer_that_took_the_whole_lease_is_none() -> None:
    """For the first renewal as for any other."""
    assert Lease.first(0, LEASE_MS, LEASE_MS) is None
    lease = Lease(LEASE_MS)
    assert lease.renewed(3000, 5000, LEASE_MS)
    assert lease.deadline_ms == 13_000
    assert not lease.renewed(12_000, 13_000, LEASE_MS)
    assert lease.is_lost(13_000)


def test_answers_out_of_order_do_not_shorten_it() -> None:
    """The latest sending counts."""
    lease = Lease(LEASE_MS)
    lease.renewed(5000, 6000, LEASE_MS)
    lease.renewed(4000, 7000, LEASE_MS)
    assert lease.deadline_ms == 15_000
