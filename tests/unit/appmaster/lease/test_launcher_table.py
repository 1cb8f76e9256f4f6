"""When a launcher counts as silent. Times are given: no test waits."""

from __future__ import annotations

import pytest

from homeport.appmaster.allocation.protocol.events import LauncherSilent, ResourceEnded
from homeport.appmaster.allocation.protocol.observation import SkeinContainer, SkeinContainerState
from homeport.appmaster.lease.launcher_table import LauncherEntry, LauncherTable
from homeport.job_coordinator.model.ids import Host, RequestId, ResourceId

LOST_MS = 10_000
LIMIT_MS = 12_000
R1, R2 = ResourceId("container_1_1_01_000002"), ResourceId("container_1_1_01_000003")


def entry(resource_id: ResourceId, heard_ms: int) -> LauncherEntry:
    """A launcher without a child."""
    return LauncherEntry(resource_id, RequestId(1), Host("nm1"), 42, None, heard_ms)


@pytest.fixture
def table() -> LauncherTable:
    """Two launchers heard at 0 and 1000 ms."""
    made = LauncherTable(LOST_MS, 0)
    made.heard(entry(R1, 0))
    made.heard(entry(R2, 1000))
    return made


def tick(table: LauncherTable, until_ms: int) -> list[ResourceId]:
    """Looks every half second until then. Returns the launchers that fell silent."""
    return [e.resource_id for now in range(500, until_ms + 1, 500) for e in table.silent(now)]


def test_the_am_waits_longer_than_the_launcher(table: LauncherTable) -> None:
    """At the launcher's own limit none is silent; a fifth later one is, and only that one."""
    assert table.limit_ms == LIMIT_MS
    assert tick(table, LIMIT_MS - 500) == []
    assert [e.resource_id for e in table.silent(LIMIT_MS)] == [R1]


def test_silence_is_reported_once(table: LauncherTable) -> None:
    """A silent launcher is forgotten; if it comes back it is a new one."""
    assert tick(table, LIMIT_MS + 1000) == [R1, R2]
    assert table.find(R1) is None
    assert table.all() == ()


def test_each_check_in_starts_the_time_again(table: LauncherTable) -> None:
    """A launcher that is heard again has the whole limit again."""
    tick(table, 5000)
    table.heard(entry(R1, 5000))
    assert tick(table, LIMIT_MS + 1000) == [R2]


def test_an_am_that_stood_still_gives_everyone_the_whole_time_again(table: LauncherTable) -> None:
    """After a pause of the AM no launcher expires at once (safety L4)."""
    assert table.silent(60_000) == ()
    assert table.silent(60_500) == ()
    late = [e for now in range(61_000, 72_001, 500) for e in table.silent(now)]
    assert [e.resource_id for e in late] == [R1, R2]


@pytest.mark.parametrize(("pause_ms", "silent"), [(LOST_MS // 2, [R1]), (LOST_MS // 2 + 1, [])])
def test_an_am_stands_still_where_it_does_not_look_for_half_a_lease(
    pause_ms: int, silent: list[ResourceId], table: LauncherTable
) -> None:
    """To the millisecond; after a shorter pause the limit holds."""
    assert tick(table, LIMIT_MS - LOST_MS // 2) == []
    found = table.silent(LIMIT_MS - LOST_MS // 2 + pause_ms)
    assert [e.resource_id for e in found] == silent


def test_a_launcher_whose_lease_is_held_is_neither_silent_nor_forgotten(
    table: LauncherTable,
) -> None:
    """The keeper alone decides when the lease of its child runs out (safety L1)."""
    tick(table, LIMIT_MS - 500)
    assert table.silent(LIMIT_MS, {R1}) == ()
    assert table.find(R1) is not None
    assert [e.resource_id for e in table.silent(LIMIT_MS + 500)] == [R1]


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
