"""Tests of the search of changes in which processes stay: each rule that is taken out is missed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest
from suites import long

from homeport.appmaster.allocation import container_allocator, cooperative_change
from homeport.appmaster.allocation.job_state.draft import Draft
from homeport.appmaster.allocation.job_state.state import ContainerPhase, ContainerState
from homeport.job_coordinator.model.incarnation import Incarnation
from tests.exhaustive.mutants import Announce, Mutant, Patch
from tests.exhaustive.people import Assignment, People
from tests.exhaustive.search import Search
from tests.exhaustive.small_world import SmallWorld
from tests.exhaustive.things import Child, Launcher

Plan = tuple[Assignment, ...]
TO_A_NEW_ONE: Plan = ({"0": "0", "1": "1", "new": "0"}, {"0": "0", "1": "1", "new": "2"})
TO_A_GAINER: Plan = ({"0": "0", "1": "1", "new": "0"}, {"0": "0", "1": "1", "new": "1"})
SWAPPED: Plan = ({"0": "1", "1": "0"},)
TO_ONE_THAT_READS_AHEAD: Plan = (
    {"0": "0", "1": "1", "new": "0"},
    {"0": "0", "1": "1", "new": "0", "-": "2"},
    {"0": "0", "1": "1", "new": "2"},
)


@dataclass(frozen=True)
class ChangeMutant(Mutant):
    """A rule of such a change; the plan of two containers in which its absence is found."""

    plan: Plan
    faults: int

    def search(self) -> None:
        """All worlds of its job are safe, and can all go well.

        Raises:
            FoundError: one is not as it must be.
        """
        people = People(self.plan)
        rules = SmallWorld({"0": (), "1": ()}, ("a", "b"), people=people, is_in_time=True)
        Search(rules, self.faults).visit(rules.settled())


MUTANTS: list[ChangeMutant] = []


def mutant(
    verdict: str, plan: Plan, faults: int = 0
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """Enter the function as a mutant of this plan."""

    def enter(patch: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS.append(ChangeMutant(patch, verdict, plan, faults))
        return patch

    return enter


@mutant("permitted only after the former owner 0@1", TO_ONE_THAT_READS_AHEAD)
@mutant(
    "permitted only after the former owner 0@1|two live children of one task|Kafka takes writes",
    TO_A_NEW_ONE,
)
def take_before_the_owner_has_let_go(patch: Patch) -> None:
    """Safety P1: a successor is permitted while the owner that it has overtaken works on."""
    former_owners = container_allocator.former_owners

    def who_let_go(draft: Draft, container: ContainerState) -> Iterator[Incarnation]:
        for incarnation in former_owners(draft, container):
            owner = draft.containers[incarnation.processor_id]
            if owner.phase is not ContainerPhase.RUNNING:
                yield incarnation

    patch.setattr(container_allocator, "former_owners", who_let_go)


@mutant("one child per incarnation|does not fence itself|permitted again", SWAPPED)
def begin_the_epoch_again_in_the_process_that_rests(patch: Patch) -> None:
    """Safety C4: the next permit of a process that rests has the epoch that let go."""
    next_epoch = vars(ContainerState)["next_epoch"].fget

    def again(container: ContainerState) -> int:
        epoch: int = next_epoch(container)
        return container.epoch if container.keeps_process else epoch

    patch.setattr(ContainerState, "next_epoch", property(again))


@mutant("nothing leads to a good one", SWAPPED)
def keep_the_producer_of_the_process_that_rests(patch: Patch) -> None:
    """Safety I3: the next incarnation in the process does not initialise an id of its own.

    It has fenced its predecessor's id, so that Kafka takes none of its records.
    """

    def kept(_: SmallWorld, launcher: Launcher, child: Child) -> Child:
        return child._replace(is_next=launcher.has_resting)

    patch.setattr(SmallWorld, "_next_child", kept)


@mutant("nothing leads to a good one", SWAPPED)
def never_let_go(patch: Patch) -> None:
    """An owner waits for its successor, whatever that has ready."""
    awaited_by = cooperative_change.awaited_by

    def successor(draft: Draft, container: ContainerState) -> ContainerState | None:
        after = cooperative_change.successors(draft, container)
        return after[0] if after else awaited_by(draft, container)

    patch.setattr(cooperative_change, "awaited_by", successor)


@mutant("nothing leads to a good one", TO_A_GAINER)
def wait_in_a_circle(patch: Patch) -> None:
    """One that only gains waits for the owner, and is not at hand for it meanwhile."""
    is_at_hand = cooperative_change._is_at_hand

    def is_idle(container: ContainerState) -> bool:
        works_on = container.phase is ContainerPhase.RUNNING and container.is_overtaken
        return is_at_hand(container) and not works_on

    patch.setattr(cooperative_change, "_is_at_hand", is_idle)


@mutant("timers are armed exactly where", TO_A_NEW_ONE, faults=1)
def wait_for_a_process_for_ever(patch: Patch) -> None:
    """The time for a process to get ready ends without an effect."""
    patch.setattr(cooperative_change, "time_is_over", lambda *_: None)


@pytest.mark.parametrize("wrong", MUTANTS, ids=str)
def test_the_search_finds_what_a_missing_rule_does(
    wrong: ChangeMutant, monkeypatch: Patch, request: pytest.FixtureRequest, announce: Announce
) -> None:
    """The shortest way: fewest faults, then fewest moves."""
    wrong.require_found(monkeypatch, request, announce)


@pytest.mark.parametrize("wrong", [long(m) if m.faults else m for m in MUTANTS], ids=str)
def test_with_the_rule_the_same_search_finds_nothing(wrong: ChangeMutant) -> None:
    """What is found without the rule is the work of the mutant."""
    wrong.search()
