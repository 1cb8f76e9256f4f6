"""Tests of the search: each rule that is taken out is missed, with the shortest way to the harm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest

from homeport.appmaster.upgrade import machine, seen
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import UpgradeOrder, UpgradePhase, UpgradeState
from tests.exhaustive.mutants import Announce, Mutant, Patch
from tests.exhaustive.search import Search
from tests.exhaustive.upgrade.small_world import ALL, SmallWorld
from tests.exhaustive.upgrade.things import World


@dataclass(frozen=True)
class UpgradeMutant(Mutant):
    """A rule of upgrades, and how many faults show its absence."""

    faults: int

    def search(self) -> None:
        """All worlds are safe, and can all go well."""
        rules = SmallWorld(("0-0", "0"), ALL)
        search: Search[World] = Search(rules, self.faults)
        search.visit(rules.begun())


MUTANTS: list[UpgradeMutant] = []


def mutant(
    verdict: str, faults: int = 0
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """The decorated patch is a mutant."""

    def listed(patch: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS.append(UpgradeMutant(patch, verdict, faults))
        return patch

    return listed


@mutant("before the last one was watched")
def watch_nothing(patch: Patch) -> None:
    """The next processor is begun as soon as the last one runs."""
    gone = machine._without_current
    patch.setattr(machine, "_watched", lambda state, *_: machine.Next(gone(state)))


@mutant("while the last one is behind", faults=1)
def look_at_no_lag(patch: Patch) -> None:
    """A processor that is behind counts as well."""
    watched = machine._watched
    patch.setattr(
        machine, "_watched", lambda state, c, there: watched(state, replace(c, lag=0), there)
    )


@mutant("are down because of the upgrade", faults=1)
def restart_beside_another(patch: Patch) -> None:
    """Whether the others run is not looked at, nor whether a restart is under way."""
    patch.setattr(seen.Seen, "obstacle", property(lambda _: ""))


@mutant("are down because of the upgrade", faults=1)
def forget_what_was_requested(patch: Patch) -> None:
    """A restart that is in the coordinator stream does not keep the shell from another one."""
    patch.setattr(SmallWorld, "waits_for_restarts", False)


@mutant("the order is")
def actives_first(patch: Patch) -> None:
    """The new code writes state before any standby has read it."""
    patch.setattr(machine, "in_order", lambda cs: list(reversed(seen.in_order(cs))))


@mutant("although the new package has failed|failed twice", faults=1)
def hear_no_failure(patch: Patch) -> None:
    """A failure of the new package changes nothing."""
    patch.setattr(machine, "failed", lambda *_: None)


@mutant("although the new package has failed", faults=2)
def hear_no_failure_of_what_is_not_known(patch: Patch) -> None:
    """A failure after the AM's death, before the launcher was heard, changes nothing."""
    failed = machine.failed
    patch.setattr(machine, "failed", lambda s, p, ran, story: ran and failed(s, p, ran, story))


@mutant("failed twice with the new package", faults=2)
def keep_what_has_failed(patch: Patch) -> None:
    """A container that has failed gets the new package with its next permit."""
    failed = machine.failed

    def kept(
        state: UpgradeState, name: ProcessorId, ran: tuple[str | None] | None, story: str
    ) -> UpgradeState | None:
        made = failed(state, name, ran, story)
        return made and replace(made, given=state.given)

    patch.setattr(machine, "failed", kept)


@mutant("it has gone back, and the new package runs", faults=1)
def restart_nothing_on_the_way_back(patch: Patch) -> None:
    """The record alone goes back."""
    patch.setattr(machine, "_strays", lambda *_: iter(()))


@mutant("nothing leads to a good one", faults=1)
def wait_for_a_package_for_ever(patch: Patch) -> None:
    """A launcher that cannot prepare the package is waited for."""
    patch.setattr(machine, "PREPARATION_MS", math.inf)


@mutant("nothing leads to a good one", faults=1)
def take_nothing_back(patch: Patch) -> None:
    """An order back is not looked at."""
    taken = machine._taken
    patch.setattr(
        machine, "_taken", lambda s, o, there: taken(s, o, there) if not _is_of(s, o) else None
    )


def _is_of(state: UpgradeState | None, order: UpgradeOrder) -> bool:
    return state is not None and state.id == order.id


@mutant("it is done, and another package runs", faults=0)
def done_before_all_have_it(patch: Patch) -> None:
    """The first processor alone is upgraded."""
    forward = machine._next

    def soon(state: UpgradeState, there: seen.Seen) -> machine.Next:
        if state.given:
            return machine.Next(replace(state, phase=UpgradePhase.DONE))
        return forward(state, there)

    patch.setattr(machine, "_next", soon)


@pytest.mark.parametrize("case", MUTANTS, ids=str)
def test_the_search_misses_a_rule_that_is_taken_out(
    case: UpgradeMutant,
    monkeypatch: Patch,
    request: pytest.FixtureRequest,
    announce: Announce,
) -> None:
    """It finds what then goes wrong."""
    case.require_found(monkeypatch, request, announce)
