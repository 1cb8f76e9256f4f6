"""A rolling restart, searched exhaustively: each fault at every point."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator

import pytest
from suites import long

from homeport.appmaster.upgrade import rolling
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import RollingRestart
from tests.exhaustive.search import FoundError, Search
from tests.exhaustive.upgrade.rolling_world import BROKEN, RollingWorld
from tests.exhaustive.upgrade.small_world import LAG, LAUNCHER, RESTART, START, World

Announce = Callable[[str], None]
GROUP = ("0-0", "0")
GROUPS = (*GROUP, "1-0", "1")


def searched(rules: RollingWorld, faults: int) -> Search[World]:
    """All worlds within the faults, as they must be."""
    search: Search[World] = Search(rules, faults)
    search.visit(rules.begun())
    return search


@pytest.mark.parametrize(
    ("ids", "kinds", "faults"),
    [
        (GROUP, ("new_may_fail", "old_may_fail", "am_may_die", "may_lag"), 2),
        (GROUP, ("new_may_fail", "am_may_die", "may_hang", "host_may_be_lost"), 2),
        (GROUP, (LAUNCHER, START, RESTART, LAG), 1),
        (GROUP, (BROKEN,), 1),
        (GROUPS, ("new_may_fail", "old_may_fail", "am_may_die", "may_hang"), 1),
        long(GROUPS, ("new_may_fail", "old_may_fail", "am_may_die"), 2),
    ],
    ids=str,
)
def test_a_rolling_restart_is_safe_and_ends(
    ids: tuple[str, ...], kinds: tuple[str, ...], faults: int, announce: Announce
) -> None:
    """All run with the new values, or all with those from before, which are in force then."""
    rules = RollingWorld(ids, frozenset(kinds))
    found = searched(rules, faults)
    announce(f"{rules.bound(faults)}: {found.stated()}")
    assert len(found.worlds) > 50


def test_without_the_new_values_what_fails_waits_for_its_turn_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The mutant that keeps it at the values from before is found."""
    older_for = rolling.older_for

    def stubborn(
        record: RollingRestart, processors: Iterable[ProcessorId], failing: Collection[ProcessorId]
    ) -> Iterator[ProcessorId]:
        del failing
        return older_for(record, processors, ())

    monkeypatch.setattr(rolling, "older_for", stubborn)
    with pytest.raises(FoundError, match="nothing leads to a good one"):
        searched(RollingWorld(GROUP, frozenset({BROKEN})), 1)


def test_a_restart_before_the_values_from_before_are_in_force_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It could end with the new values in force."""
    monkeypatch.setattr(RollingWorld, "waits_for_former", False)
    with pytest.raises(FoundError, match="the new values are in force"):
        searched(RollingWorld(GROUP, frozenset({"new_may_fail"})), 1)
