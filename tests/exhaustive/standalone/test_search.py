"""Standalone processors, searched exhaustively: every order of events, each fault at every point.

In every world: no task is active twice in sessions that stand, Kafka takes writes of one owner and
never of an old one, no version starts whose barrier is not done. From every world what happens by
itself leads to one where each process that lives is a member of the newest version, with its tasks.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.exhaustive.search import Search
from tests.exhaustive.standalone.small_world import ALL, SmallWorld
from tests.exhaustive.standalone.things import World

Announce = Callable[[str], None]


def world_of(ids: str, *kinds: str) -> SmallWorld:
    """Processors with these ids, and these faults."""
    return SmallWorld(tuple(ids), faults=frozenset(kinds))


def world_with_files() -> SmallWorld:
    """Two processors, three tasks, and at the second one the file of one standby."""
    files = {"Standby-t-0": "b"}
    return SmallWorld(tuple("pq"), tuple("tuv"), frozenset(), 1, tuple("ab"), files)


def report_world() -> SmallWorld:
    """Two processors share six tasks, and a third one is about to register."""
    return SmallWorld(tuple("qpr"), tuple("tuvwxy"), frozenset({"may_expire"}))


def with_a_late_report(rules: SmallWorld) -> World:
    """P reports, and loses its session, when the version that overtakes it is computed already."""
    computed = ("r2 writes Register", "q0 sees processors", "q0 has seen calm", "q0 has computed")
    world = rules.held_up("r2", "p1 checks")
    return rules.after(world, *computed, "p1 checks", "session of p1 ends")


def without_the_first(rules: SmallWorld) -> World:
    """All run; the session of the first one is over, and it writes on."""
    return rules.after(rules.settled(), "session of p0 ends")


def standby_world(ids: str, places: str, *kinds: str, replicas: int = 1) -> SmallWorld:
    """Processors at these places, with standbys."""
    return SmallWorld(tuple(ids), ("t", "u"), frozenset(kinds), replicas, tuple(places))


def searched(rules: SmallWorld, faults: int, announce: Announce, start: World) -> int:
    """How many worlds there are, all of them as they must be."""
    search: Search[World] = Search(rules, faults)
    search.visit(start)
    announce(f"{rules.bound(faults)}: {search.stated()}")
    return len(search.worlds)


@pytest.mark.parametrize("faults", [1, 2, 3])
def test_one_processor_alone_is_safe_and_heals(faults: int, announce: Announce) -> None:
    """It leads itself; each kind of fault comes at every point, also in the middle of others."""
    rules = world_of("p", *ALL)
    assert searched(rules, faults, announce, rules.begun()) > 50


def test_two_processors_may_begin_in_any_order(announce: Announce) -> None:
    """Without faults: registrations, publications and barriers in every order."""
    rules = world_of("pq", *ALL)
    assert searched(rules, 0, announce, rules.begun()) > 1_000


def test_two_processors_are_safe_and_heal_from_each_fault(announce: Announce) -> None:
    """They run; then one dies, stops, is cut off, is slow or loses its session, at any point."""
    rules = world_of("pq", *ALL)
    assert searched(rules, 1, announce, rules.settled()) > 5_000


def test_work_that_ends_by_itself_begins_again_as_another_generation(announce: Announce) -> None:
    """As for want of Kafka: its processor gives its session up, and registers again."""
    rules = world_of("pq", "may_lose_work")
    assert searched(rules, 1, announce, rules.settled()) > 1_000


@pytest.mark.parametrize(
    ("ids", "faults", "kinds"),
    [
        ("p", 3, ("may_cut", "may_lose_work", "may_stop")),
        ("pq", 1, ("may_cut", "may_lose_work")),
        pytest.param("pq", 2, ("may_cut", "may_lose_work"), marks=pytest.mark.long),
    ],
)
def test_a_session_that_is_renewed_may_break_and_come_back_until_it_is_closed(
    ids: str, faults: int, kinds: tuple[str, ...], announce: Announce
) -> None:
    """What the old session has late hangs no processor, and stops none in the new session."""
    rules = world_of(ids, *kinds)
    assert searched(rules, faults, announce, rules.settled()) > 1_000


def test_a_report_may_come_while_the_version_that_overtakes_it_is_computed(
    announce: Announce,
) -> None:
    """Safety I1: that version is void, as what has reported may write."""
    rules = report_world()
    assert searched(rules, 0, announce, with_a_late_report(rules)) > 10_000


def test_a_standby_has_its_place_beside_one_that_goes_to_its_files(announce: Announce) -> None:
    """A processor may have files of an earlier life of its location."""
    rules = world_with_files()
    assert searched(rules, 0, announce, rules.begun()) > 1_000


def test_three_processors_may_lose_two(announce: Announce) -> None:
    """The second, also the leader, dies at each point of what the first death sets off."""
    rules = world_of("pqr", "may_die")
    assert searched(rules, 2, announce, rules.settled()) > 1_000


@pytest.mark.parametrize(
    ("ids", "faults", "kinds"),
    [
        ("pq", 2, ("may_die", "may_stop")),
        ("pq", 2, ("may_die", "is_slow")),
        ("pqr", 1, ("may_die", "may_stop")),
        pytest.param("pqr", 2, ("may_die", "may_stop"), marks=pytest.mark.long),
    ],
)
def test_processors_may_die_and_be_stopped_within_each_other(
    ids: str, faults: int, kinds: tuple[str, ...], announce: Announce
) -> None:
    """A stop in the middle of what a death sets off, a barrier that is slow, and the reverse."""
    rules = world_of(ids, *kinds)
    assert searched(rules, faults, announce, rules.settled()) > 100


@pytest.mark.parametrize(
    ("ids", "places", "faults", "kinds"),
    [
        ("pq", "ab", 1, ("may_die", "may_stop", "may_restart")),
        ("pq", "ab", 1, ("may_expire", "may_cut")),
        ("pqr", "abc", 1, ("may_die",)),
        ("pqr", "aab", 1, ("may_die",)),
        ("pqr", "abc", 2, ("may_die", "is_slow")),
        pytest.param("pqr", "abc", 2, ("may_die", "may_stop"), marks=pytest.mark.long),
        pytest.param("pqr", "aab", 1, ("may_expire",), marks=pytest.mark.long),
    ],
)
def test_processors_with_standbys_are_safe_and_heal(
    ids: str, places: str, faults: int, kinds: tuple[str, ...], announce: Announce
) -> None:
    """Each task has its standby again, at another location, and no process has both."""
    rules = standby_world(ids, places, *kinds)
    assert searched(rules, faults, announce, rules.settled()) > 100


def test_of_three_processors_with_standbys_each_death_leaves_its_tasks_on_their_backups(
    announce: Announce,
) -> None:
    """STANDBY, part 4: ideally 0; in every world after one death and without a second one."""
    rules = SmallWorld(("p", "q", "r"), tuple("tuvwxy"), frozenset({"may_die"}), 1)
    search: Search[World] = Search(rules, 1)
    search.visit(rules.settled())
    announce(f"{rules.bound(1)}: {search.stated()}")
    plans = {w.tree.plan for w in search.worlds if w.tree.plan}
    assert any(plan.lost for plan in plans)
    assert all(plan.unbacked == 0 for plan in plans)


def test_of_twins_one_stays(announce: Announce) -> None:
    """Z8: two processes of one id: the second ends, and the first one is not disturbed."""
    rules = world_of("pp")
    search: Search[World] = Search(rules, 0)
    search.visit(rules.begun())
    announce(f"{rules.bound(0)}: {search.stated()}")
    ends = [w for w in search.worlds if rules.is_well(w)]
    assert ends
    assert all([p.is_dead for p in w.processes].count(False) == 1 for w in ends)


@pytest.mark.long
def test_two_processors_may_meet_a_lost_session_as_they_begin(announce: Announce) -> None:
    """Before the first version stands, in it, and after it."""
    rules = world_of("pq", "may_expire")
    assert searched(rules, 1, announce, rules.begun()) > 10_000


@pytest.mark.long
def test_work_may_end_by_itself_while_a_processor_dies(announce: Announce) -> None:
    """Its own, or the other one's, before or after."""
    rules = world_of("pq", "may_lose_work", "may_die")
    assert searched(rules, 2, announce, rules.settled()) > 100_000


@pytest.mark.long
def test_two_processors_may_die_twice_and_begin_again(announce: Announce) -> None:
    """Each also while it begins again after its first death."""
    rules = world_of("pq", "may_die", "may_restart")
    assert searched(rules, 2, announce, rules.settled()) > 100_000


@pytest.mark.long
@pytest.mark.parametrize("kind", ["may_expire", "may_cut"])
def test_two_processors_may_lose_a_session_while_they_heal_from_another(
    kind: str, announce: Announce
) -> None:
    """Or the connection: the same one twice, or each once, at any point."""
    rules = world_of("pq", kind)
    assert searched(rules, 2, announce, rules.settled()) > 300_000


@pytest.mark.long
def test_of_three_processors_one_may_lose_its_session(announce: Announce) -> None:
    """Also the leader, while it works."""
    rules = world_of("pqr", "may_expire")
    assert searched(rules, 1, announce, rules.settled()) > 40_000


@pytest.mark.long
def test_twins_may_meet_a_fault(announce: Announce) -> None:
    """The first one may die or lose its session: the second takes its place."""
    rules = world_of("pp", "may_die", "may_expire")
    assert searched(rules, 1, announce, rules.begun()) > 1_000
