"""How often launchers ask: as configured, and less often where they are many."""

from __future__ import annotations

import pytest

from homeport.appmaster.driver import polling
from homeport.appmaster.lease.launcher_table import LauncherEntry, LauncherTable
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId

LEASE_MS = 10_000


@pytest.mark.parametrize(
    ("launchers", "configured_ms", "interval_ms"),
    [
        *((launchers, 500, 500) for launchers in (0, 1, polling.CHECK_INS_PER_S // 2)),
        *((n * polling.CHECK_INS_PER_S, 500, n * 1000) for n in (1, 2, 4)),
        (1_000_000, 500, LEASE_MS // 2),
        (1_000_000, 8_000, 8_000),
    ],
)
def test_launchers_ask_as_configured_unless_they_are_many(
    launchers: int, configured_ms: int, interval_ms: int
) -> None:
    """Many share what the driver can answer; none waits longer than half a lease for it.

    One poll that is lost must not make a launcher silent.
    """
    assert polling.poll_interval_ms(configured_ms, launchers, LEASE_MS) == interval_ms


def test_the_table_counts_the_launchers_that_are_not_gone() -> None:
    """A second check-in of one counts once."""
    table = LauncherTable(LEASE_MS, 0)
    for number in (1, 2, 2):
        entry = LauncherEntry(ResourceId(f"r{number}"), RequestId(number), Host("h"), 1, None, 0)
        table.heard(entry)
    assert len(table) == 2
    table.forget(ResourceId("r1"))
    assert len(table) == 1


def test_a_launcher_that_is_awaited_comes_sooner_while_there_are_few() -> None:
    """Beyond what the driver can answer they come as always, until a second has passed."""
    hurry = polling.Hurry()
    given = [hurry.next_ms(500, n) for n in range(polling.HURRIES_PER_S + 2)]
    assert given == [polling.HURRIED_MS] * polling.HURRIES_PER_S + [500, 500]
    assert hurry.next_ms(500, 999) == 500
    assert hurry.next_ms(500, 1000) == polling.HURRIED_MS
    assert polling.Hurry().next_ms(polling.HURRIED_MS // 2, 0) == polling.HURRIED_MS // 2


def test_a_launcher_is_overdue_a_quarter_of_a_lease_after_its_time() -> None:
    """Long before its lease has run out, and not for one poll that was late."""
    assert not polling.is_overdue(0, 500 + LEASE_MS // 4, 500, LEASE_MS)
    assert polling.is_overdue(0, 501 + LEASE_MS // 4, 500, LEASE_MS)


@pytest.mark.parametrize(
    ("due_ms", "pause_ms"), [(None, 250), (9000, 250), (250, 250), (40, 40), (3, 10), (0, 10)]
)
def test_the_keeper_is_polled_when_a_lease_can_run_out(due_ms: int | None, pause_ms: int) -> None:
    """Often enough to send it the permitted incarnations, and not without a pause."""
    assert polling.lease_pause_ms(due_ms) == pause_ms
