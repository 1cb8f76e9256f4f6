"""And then nothing more comes: no command of an operator waits for ever, whatever falls silent.

Each partner of the allocator falls silent at every point of a command: YARN's grants, the starts of
children, their stops, the reports of what they have left to read, the keeper. A container may wait
then for as long as that lasts; a command ends, so that what waits behind it has its turn. And a
cancel ends it at any point, with nothing left over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest
from suites import long

from homeport.appmaster.allocation import invariants
from homeport.appmaster.allocation.commands import unfinished
from homeport.appmaster.allocation.destinations import Find
from homeport.appmaster.allocation.job_state.placements import Placement, PlacementStep
from homeport.job_coordinator.model.placement import FORCE_RESTART_LAST_SEEN
from tests.exhaustive.job import GRANTS, KEEPER, REPORTS, SETTINGS, STARTS, STOPS
from tests.exhaustive.people import WARM, People
from tests.exhaustive.search import FoundError, Search
from tests.exhaustive.small_world import SmallWorld
from tests.exhaustive.things import World

Announce = Callable[[str], None]
Patch = pytest.MonkeyPatch

ONE: dict[str, tuple[str, ...]] = {"0": ()}
PAIR: dict[str, tuple[str, ...]] = {"0": ("0-0",)}
AB = ("a", "b")
PARTNERS = (GRANTS, STARTS, STOPS, REPORTS, KEEPER)
MOVES = (("0", f"{WARM}b"), ("0", "ANY_HOST"), ("0", FORCE_RESTART_LAST_SEEN))


def searched(
    groups: dict[str, tuple[str, ...]], faults: int, partners: tuple[str, ...] = ()
) -> Search[World]:
    """Every world within so many faults is safe, and leads to a good one."""
    settings = replace(SETTINGS, temporary_have_spark=True)
    people = People(commands=MOVES, may_cancel=True)
    rules = SmallWorld(groups, AB, settings, people=people, is_in_time=True)
    rules.partners = partners
    search = Search(rules, faults)
    search.visit(rules.settled())
    return search


@pytest.mark.parametrize(
    ("groups", "faults"), [(ONE, 2), long(PAIR, 2), long(ONE, 3)], ids=["one", "pair", "more"]
)
def test_no_command_waits_for_ever(
    groups: dict[str, tuple[str, ...]], faults: int, announce: Announce
) -> None:
    """For a partner of which nothing more comes; with three faults one of them goes wrong too."""
    search = searched(groups, faults, PARTNERS)
    announce(search.stated())
    assert len(search.worlds) > 1_000


def test_a_cancel_may_come_at_any_time(announce: Announce) -> None:
    """Of a move, a warm one and a restart: each has one final answer, and nothing is left over."""
    search = searched(ONE, 2)
    announce(search.stated())
    assert len(search.worlds) > 500


def _without(patch: Patch, is_left_out: Callable[[Placement], bool]) -> None:
    """The time of these commands does not run."""
    limited = unfinished.limited

    def mutated(find: Find, placements: Iterable[Placement]) -> list[Placement]:
        return [p for p in limited(find, placements) if not is_left_out(p)]

    patch.setattr(unfinished, "limited", mutated)
    patch.setattr(invariants, "limited", mutated)


@pytest.mark.parametrize(
    ("partner", "is_left_out"),
    [
        (REPORTS, lambda p: p.step is PlacementStep.WARMING),
        (STARTS, lambda p: p.step is PlacementStep.WARMING),
        (STOPS, lambda p: p.step is PlacementStep.GIVING_WAY),
        (STOPS, lambda p: p.step is PlacementStep.MOVING),
        (STARTS, lambda p: p.is_launched),
        (STARTS, lambda p: p.step is PlacementStep.RESTARTING),
        (STOPS, lambda p: p.step is PlacementStep.RESTARTING),
    ],
    ids=[
        "a standby that reports nothing",
        "a standby that never starts",
        "a standby that never stops",
        "a container that never stops for its move",
        "a container that never starts where it moved",
        "a container that never starts again",
        "a container that never stops for its restart",
    ],
)
def test_without_its_time_a_command_waits_for_ever(
    partner: str, is_left_out: Callable[[Placement], bool], monkeypatch: Patch
) -> None:
    """Each wait, with the partner that it is for."""
    _without(monkeypatch, is_left_out)
    with pytest.raises(FoundError, match="nothing leads to a good one"):
        searched(ONE, 2, (partner,))


@pytest.mark.long
def test_a_command_whose_container_never_runs_waits_for_ever_without_its_time(
    monkeypatch: Patch,
) -> None:
    """Its place is lost, and YARN grants no other."""
    _without(monkeypatch, lambda p: p.step is PlacementStep.WAITING)
    with pytest.raises(FoundError, match="nothing leads to a good one"):
        searched(ONE, 3, (GRANTS,))
