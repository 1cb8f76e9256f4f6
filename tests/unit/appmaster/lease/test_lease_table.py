"""Leases and silent launchers as the AM sees them, by a clock that tests move. L 10 s, M 2 s."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.protocol.events import LauncherSilent, ResourceEnded
from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.lease.launcher_table import LauncherEntry, LauncherTable
from homeport.appmaster.lease.lease_table import (
    LeaseTable,
    RenewalGuard,
    limit_ms,
    margin_ms,
    unseen_ms,
)
from homeport.job_coordinator.http.messages import LeaseAnswer
from homeport.job_coordinator.model.ids import Host, ProcessorId, RequestId, ResourceId
from homeport.job_coordinator.model.incarnation import Incarnation

LEASE_MS = 10_000
SPAN_MS = 12_000
A, B = Incarnation(ProcessorId("0"), 1), Incarnation(ProcessorId("1"), 1)


def tick(table: LeaseTable, from_ms: int, until_ms: int) -> None:
    """The keeper looks every second."""
    for now in range(from_ms, until_ms + 1, 1000):
        table.tick(now)


def test_the_margin_is_a_fifth() -> None:
    """The AM's side waits longer than the launcher (safety C1)."""
    assert margin_ms(LEASE_MS) == SPAN_MS - LEASE_MS


def test_an_unregistered_incarnation_is_answered_later_never_no() -> None:
    """Safety L3."""
    table = LeaseTable(LEASE_MS, 0)
    assert table.renew(A, 0) is LeaseAnswer.LATER
    assert table.register(A, 0)
    assert table.renew(A, 0) is LeaseAnswer.GRANTED


def test_a_lease_runs_out_a_margin_after_the_last_answer() -> None:
    """Not a moment earlier, and each by itself."""
    table = LeaseTable(LEASE_MS, 0)
    table.register(A, 0)
    table.register(B, 0)
    tick(table, 0, 5000)
    table.renew(B, 5000)
    tick(table, 5000, SPAN_MS - 1)
    assert table.revoked([A, B], SPAN_MS - 1) == ()
    assert table.revoked([A, B], SPAN_MS) == (A,)


def test_the_last_sign_of_life_is_the_last_renewal_that_was_granted() -> None:
    """Also once it has run out; registering is none, nor is a renewal that is refused."""
    table = LeaseTable(LEASE_MS, 0)
    assert table.renewed_ms(A) is None
    table.register(A, 0)
    assert table.renewed_ms(A) is None
    table.renew(A, 700)
    tick(table, 0, 700 + SPAN_MS)
    assert table.revoked([A], 700 + SPAN_MS) == (A,)
    assert table.renew(A, 700 + SPAN_MS) is LeaseAnswer.NO
    assert table.renewed_ms(A) == 700


def test_the_end_of_a_lease_is_no_evidence_before_the_driver_polls() -> None:
    """A renewal before the poll saves the lease; one after it does not (safety L1)."""
    table = LeaseTable(LEASE_MS, 0)
    table.register(A, 0)
    tick(table, 0, SPAN_MS + 5000)
    assert table.renew(A, SPAN_MS + 5000) is LeaseAnswer.GRANTED
    assert table.revoked([A], SPAN_MS + 5000) == ()
    tick(table, SPAN_MS + 5000, 2 * SPAN_MS + 5000)
    assert table.revoked([A], 2 * SPAN_MS + 5000) == (A,)
    assert table.renew(A, 2 * SPAN_MS + 5000) is LeaseAnswer.NO
    assert not table.register(A, 2 * SPAN_MS + 5000)
    assert table.revoked([A], 2 * SPAN_MS + 6000) == (A,)


def test_a_table_that_is_new_gives_everyone_the_whole_span() -> None:
    """Safety L4: it learns of A by being asked, and expires it only L + M later."""
    table = LeaseTable(LEASE_MS, 50_000)
    assert table.revoked([A], 50_000) == ()
    tick(table, 50_000, 50_000 + SPAN_MS - 1)
    assert table.revoked([A], 50_000 + SPAN_MS - 1) == ()
    assert table.renew(A, 50_000 + SPAN_MS - 1) is LeaseAnswer.GRANTED


def test_a_keeper_that_stood_still_gives_everyone_the_whole_span() -> None:
    """Safety L4: late by more than half a lease, it expires no lease."""
    table = LeaseTable(LEASE_MS, 0)
    table.register(A, 0)
    assert table.revoked([A], 60_000) == ()
    tick(table, 60_000, 60_000 + SPAN_MS)
    assert table.revoked([A], 60_000 + SPAN_MS) == (A,)


def test_a_stopped_incarnation_is_never_renewed_again() -> None:
    """Its launcher's word counts at once, whatever is left of the lease."""
    table = LeaseTable(LEASE_MS, 0)
    table.register(A, 0)
    table.stopped(A)
    assert table.renew(A, 1) is LeaseAnswer.NO
    assert table.revoked([A, B], 1) == (A,)


def test_renewals_depend_on_rank_and_on_a_fetch_within_the_limit() -> None:
    """Safety L2: counted from when the fetch was sent; a higher rank ends them."""
    guard = RenewalGuard(isolation_ms=30_000)
    assert not guard.may_renew(0)
    guard.fetched_ms = 1000
    assert guard.may_renew(30_999)
    assert not guard.may_renew(31_000)
    guard.fetched_ms = 31_000
    guard.is_outranked = True
    assert not guard.may_renew(31_000)


def test_the_table_says_when_the_next_lease_can_run_out() -> None:
    """Of those asked for that still have one; what is past is due now."""
    table = LeaseTable(LEASE_MS, 0)
    assert table.due_ms([A, B], 0) is None
    table.register(A, 0)
    table.register(B, 3000)
    assert table.due_ms([A, B], 4000) == SPAN_MS - 4000
    assert table.due_ms([B], 4000) == SPAN_MS - 1000
    assert table.due_ms([A], SPAN_MS + 1) == 0
    table.stopped(A)
    assert table.due_ms([A, B], 4000) == SPAN_MS - 1000
    assert table.due_ms([A], 4000) is None


def test_a_late_keeper_gives_no_grace_to_a_revoked_incarnation() -> None:
    """Safety L1: a reported end is final, also where L4 then gives all others L + M."""
    table = LeaseTable(LEASE_MS, 0)
    table.register(A, 0)
    tick(table, 0, SPAN_MS)
    assert table.revoked([A], SPAN_MS) == (A,)
    late_ms = SPAN_MS + LEASE_MS
    assert table.tick(late_ms)
    assert table.revoked([A], late_ms) == (A,)
    assert table.renew(A, late_ms) is LeaseAnswer.NO


def test_an_unreachable_container_can_live_for_g_l_and_m() -> None:
    """The keeper renews for G, the launcher lets run for L, and clocks differ by M."""
    assert unseen_ms(30_000, LEASE_MS) == 30_000 + SPAN_MS


def test_a_keeper_is_late_by_more_than_half_a_lease() -> None:
    """Safety L4: at half a lease it is not yet."""
    table = LeaseTable(LEASE_MS, 0)
    assert not table.tick(LEASE_MS // 2)
    assert table.tick(LEASE_MS + 1)


# --- when a launcher counts as silent. Times are given: no test waits


R1, R2 = ResourceId("container_1_1_01_000002"), ResourceId("container_1_1_01_000003")


def entry(resource_id: ResourceId, heard_ms: int) -> LauncherEntry:
    """A launcher without a child."""
    return LauncherEntry(resource_id, RequestId(1), Host("nm1"), 42, None, heard_ms)


@pytest.fixture
def table() -> LauncherTable:
    """Two launchers heard at 0 and 1000 ms."""
    made = LauncherTable(LEASE_MS, 0)
    made.heard(entry(R1, 0))
    made.heard(entry(R2, 1000))
    return made


def look(table: LauncherTable, until_ms: int) -> list[ResourceId]:
    """Looks every half second until then. Returns the launchers that fell silent."""
    return [e.resource_id for now in range(500, until_ms + 1, 500) for e in table.silent(now)]


def test_the_am_waits_longer_than_the_launcher(table: LauncherTable) -> None:
    """At the launcher's own limit none is silent; a fifth later one is, and only that one."""
    assert table.limit_ms == SPAN_MS
    assert look(table, SPAN_MS - 500) == []
    assert [e.resource_id for e in table.silent(SPAN_MS)] == [R1]


def test_silence_is_reported_once(table: LauncherTable) -> None:
    """A silent launcher is forgotten; if it comes back it is a new one."""
    assert look(table, SPAN_MS + 1000) == [R1, R2]
    assert table.find(R1) is None
    assert table.all() == ()


def test_each_check_in_starts_the_time_again(table: LauncherTable) -> None:
    """A launcher that is heard again has the whole limit again."""
    look(table, 5000)
    table.heard(entry(R1, 5000))
    assert look(table, SPAN_MS + 1000) == [R2]


def test_an_am_that_stood_still_gives_everyone_the_whole_time_again(table: LauncherTable) -> None:
    """After a pause of the AM no launcher expires at once (safety L4)."""
    assert table.silent(60_000) == ()
    assert table.silent(60_500) == ()
    late = [e for now in range(61_000, 72_001, 500) for e in table.silent(now)]
    assert [e.resource_id for e in late] == [R1, R2]


@pytest.mark.parametrize(("pause_ms", "silent"), [(LEASE_MS // 2, [R1]), (LEASE_MS // 2 + 1, [])])
def test_an_am_stands_still_where_it_does_not_look_for_half_a_lease(
    pause_ms: int, silent: list[ResourceId], table: LauncherTable
) -> None:
    """To the millisecond; after a shorter pause the limit holds."""
    assert look(table, SPAN_MS - LEASE_MS // 2) == []
    found = table.silent(SPAN_MS - LEASE_MS // 2 + pause_ms)
    assert [e.resource_id for e in found] == silent


def test_a_launcher_whose_lease_is_held_is_neither_silent_nor_forgotten(
    table: LauncherTable,
) -> None:
    """The keeper alone decides when the lease of its child runs out (safety L1)."""
    look(table, SPAN_MS - 500)
    assert table.silent(SPAN_MS, {R1}) == ()
    assert table.find(R1) is not None
    assert [e.resource_id for e in table.silent(SPAN_MS + 500)] == [R1]


def test_the_end_that_yarn_reports_is_kept(table: LauncherTable) -> None:
    """A late check-in of an ended container does not make it live."""
    end = SkeinContainer("h-0_1", None, SkeinContainerState.ENDED, story="killed")
    table.ended(R1, end)
    table.heard(entry(R1, 2000))
    found = table.find(R1)
    assert found is not None
    assert found.gone() == ResourceEnded(RequestId(1), R1, "killed")
    assert entry(R2, 0).gone() == LauncherSilent(R2)
    table.ended(ResourceId("unknown"), end)


# --- an attempt without answers from others: how long it stays


@pytest.mark.parametrize(
    ("unseen_ms", "expiry", "limit"),
    [
        (42_000, "600000", 600_000),
        (42_000, "10000", 42_000),
        (42_000, None, 600_000),
        (42_000, "soon", 600_000),
        (900_000, None, 900_000),
    ],
)
def test_the_limit_is_the_longer_of_yarns_and_the_leases_time(
    unseen_ms: int, expiry: str | None, limit: int
) -> None:
    """Before YARN has given up the node, the attempt is what the job comes back to."""
    assert limit_ms(unseen_ms, expiry) == limit
