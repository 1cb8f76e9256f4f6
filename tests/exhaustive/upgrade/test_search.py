"""An upgrade container by container, searched exhaustively: each fault at every point.

In every world: one container at most is down because of the upgrade, what runs follows from the
record, groups are in order with standbys first, the next processor is begun only when the last one
was watched and is not behind, a failure of the new package turns the upgrade back and is charged
once for each container. From every world what happens by itself leads to one where all run the new
package, or all run the one from before.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from suites import long

from tests.exhaustive.search import Search
from tests.exhaustive.upgrade.small_world import (
    ALL,
    LAG,
    LAUNCHER,
    OLD,
    RESTART,
    SILENT,
    START,
    SmallWorld,
    World,
)

Announce = Callable[[str], None]
GROUP = ("0-0", "0")
GROUPS = ("0-0", "0", "1-0", "1")


def searched(rules: SmallWorld, faults: int, announce: Announce) -> Search[World]:
    """All worlds within the faults, as they must be."""
    search: Search[World] = Search(rules, faults)
    search.visit(rules.begun())
    announce(f"{rules.bound(faults)}: {search.stated()}")
    return search


@pytest.mark.parametrize("previous", [OLD, None])
@pytest.mark.parametrize("faults", [0, 1, pytest.param(2, marks=pytest.mark.long)])
def test_a_group_is_safe_and_ends(faults: int, previous: str | None, announce: Announce) -> None:
    """An active container with its standby; the submission's package is from before, or another."""
    found = searched(SmallWorld(GROUP, previous=previous), faults, announce)
    assert len(found.worlds) > 20


@pytest.mark.parametrize(
    ("previous", "kinds"),
    [
        (OLD, ("new_may_fail", "old_may_fail", "am_may_die", "may_undo", "may_lag")),
        (None, ("new_may_fail", "am_may_die", "may_undo", "may_hang")),
        (OLD, ("new_may_fail", "may_not_prepare", "host_may_be_lost")),
        (OLD, ("may_undo", "may_have_no_place", "host_may_be_lost")),
        (OLD, ("may_undo", "may_be_ordered_twice", "am_may_die")),
    ],
    ids=str,
)
def test_a_group_may_suffer_two_faults(
    previous: str | None, kinds: tuple[str, ...], announce: Announce
) -> None:
    """Each kind beside those with which it has to do."""
    found = searched(SmallWorld(GROUP, frozenset(kinds), previous), 2, announce)
    assert len(found.worlds) > 100


@pytest.mark.parametrize(
    ("kinds", "faults"),
    [
        ((LAUNCHER, START, RESTART, LAG), 1),
        ((LAUNCHER, START, RESTART, LAG, "may_undo"), 2),
        long((LAUNCHER, START, RESTART, LAG, "am_may_die", "may_undo"), 3),
    ],
    ids=str,
)
def test_each_partner_may_fall_silent(
    kinds: tuple[str, ...], faults: int, announce: Announce
) -> None:
    """It ends all the same, or its wait names what people can do; and it can be taken back."""
    assert set(kinds) >= SILENT
    assert len(searched(SmallWorld(GROUP, frozenset(kinds)), faults, announce).worlds) > 500


@pytest.mark.parametrize(
    "kinds",
    [
        ("new_may_fail", "old_may_fail", "am_may_die", "may_undo", "may_lag", "may_hang"),
        ("host_may_be_lost", "may_have_no_place"),
        pytest.param(tuple(ALL), marks=pytest.mark.long),
    ],
    ids=str,
)
def test_two_groups_are_safe_and_end_after_each_fault(
    kinds: tuple[str, ...], announce: Announce
) -> None:
    """Each kind of fault, at every point of the way."""
    assert len(searched(SmallWorld(GROUPS, frozenset(kinds)), 1, announce).worlds) > 1_000


@pytest.mark.parametrize(
    "kinds",
    [
        ("new_may_fail", "am_may_die"),
        ("may_undo", "new_may_fail"),
        pytest.param(("may_undo", "am_may_die"), marks=pytest.mark.long),
        pytest.param(("host_may_be_lost", "new_may_fail"), marks=pytest.mark.long),
        pytest.param(("host_may_be_lost", "am_may_die"), marks=pytest.mark.long),
        pytest.param(tuple(ALL), marks=pytest.mark.long),
    ],
    ids="-".join,
)
def test_two_groups_may_suffer_two_faults(kinds: tuple[str, ...], announce: Announce) -> None:
    """The second one at each point of what the first one sets off."""
    assert len(searched(SmallWorld(GROUPS, frozenset(kinds)), 2, announce).worlds) > 1_000


@pytest.mark.long
def test_a_group_may_suffer_three_faults(announce: Announce) -> None:
    """All kinds."""
    assert len(searched(SmallWorld(GROUP), 3, announce).worlds) > 10_000


def test_without_a_fault_it_is_done(announce: Announce) -> None:
    """The only end is that all run the new package."""
    search = searched(SmallWorld(GROUPS), 0, announce)
    ends = {w.state.phase.value for w in search.worlds if w.state and search.rules.is_well(w)}
    assert ends == {"done"}
