"""Tests of the search: each rule that is taken out is missed, with the shortest way to the harm."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from suites import every_third

from homeport.appmaster.upgrade import machine, observed
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import UpgradeOrders, UpgradePhase, UpgradeState
from tests.exhaustive.mutants import Announce, Mutant, Patch
from tests.exhaustive.search import Search
from tests.exhaustive.upgrade.small_world import LAG, RESTART, SmallWorld, World


@dataclass(frozen=True)
class UpgradeMutant(Mutant):
    """A rule of upgrades, and how many faults of these kinds show its absence."""

    faults: int
    kinds: frozenset[str]

    def search(self) -> None:
        """All worlds are safe, and can all go well."""
        rules = SmallWorld(("0-0", "0"), self.kinds)
        search: Search[World] = Search(rules, self.faults)
        search.visit(rules.begun())


MUTANTS: list[UpgradeMutant] = []


def mutant(
    verdict: str, *kinds: str, faults: int = 1
) -> Callable[[Callable[[Patch], None]], Callable[[Patch], None]]:
    """The decorated patch is a mutant."""

    def listed(patch: Callable[[Patch], None]) -> Callable[[Patch], None]:
        MUTANTS.append(UpgradeMutant(patch, verdict, faults, frozenset(kinds)))
        return patch

    return listed


@mutant("before the last one was watched", faults=0)
def watch_nothing(patch: Patch) -> None:
    """The next processor is begun as soon as the last one runs."""
    gone = machine._without_current
    patch.setattr(machine, "_watch", lambda state, *_: machine.Next(gone(state)))


@mutant("while the last one is behind", "may_lag")
def look_at_no_lag(patch: Patch) -> None:
    """A processor that is behind counts as well."""
    watched = machine._watch
    patch.setattr(
        machine, "_watch", lambda state, c, there: watched(state, replace(c, lag=0), there)
    )


@mutant("are down because of the upgrade", "old_may_fail", "am_may_die", "may_undo")
def restart_beside_another(patch: Patch) -> None:
    """Whether the others run is not looked at, nor whether a restart is under way."""
    patch.setattr(observed.Seen, "obstacle", property(lambda _: ""))
    patch.setattr(observed.Seen, "group_obstacle", lambda *_: "")


@mutant("are down because of the upgrade", "am_may_die", "may_undo", "new_may_fail")
def forget_what_was_requested(patch: Patch) -> None:
    """A restart that is in the coordinator stream does not keep the shell from another one."""
    patch.setattr(SmallWorld, "waits_for_restarts", False)


@mutant("the order is", faults=0)
def actives_first(patch: Patch) -> None:
    """The new code writes state before any standby has read it."""
    patch.setattr(machine, "in_order", lambda cs: list(reversed(observed.in_order(cs))))


@mutant("although the new package has failed|failed twice", "new_may_fail")
def hear_no_failure(patch: Patch) -> None:
    """A failure of the new package changes nothing."""
    patch.setattr(machine, "failed", lambda *_: None)


@mutant("although the new package has failed", "new_may_fail", "am_may_die", faults=2)
def hear_no_failure_of_what_is_not_known(patch: Patch) -> None:
    """A failure after the AM's death, before the launcher was heard, changes nothing."""
    failed = machine.failed
    patch.setattr(machine, "failed", lambda s, p, ran, story: ran and failed(s, p, ran, story))


@mutant("failed twice with the new package", "new_may_fail", faults=2)
def keep_what_has_failed(patch: Patch) -> None:
    """A container that has failed gets the new package with its next permit."""
    failed = machine.failed

    def kept(
        state: UpgradeState, name: ProcessorId, ran: tuple[str | None] | None, story: str
    ) -> UpgradeState | None:
        made = failed(state, name, ran, story)
        return made and replace(made, given=state.given)

    patch.setattr(machine, "failed", kept)


@mutant("it has gone back, and the new package runs", "new_may_fail", "may_undo")
def restart_nothing_on_the_way_back(patch: Patch) -> None:
    """The record alone goes back."""
    patch.setattr(machine, "_strays", lambda *_: iter(()))


@mutant("nothing leads to a good one", "may_not_prepare")
def wait_for_a_package_for_ever(patch: Patch) -> None:
    """A launcher that cannot prepare the package is waited for."""
    patch.setattr(machine, "PREPARATION_MS", math.inf)


@mutant("nothing leads to a good one", "may_undo")
def take_nothing_back(patch: Patch) -> None:
    """An order back is not looked at."""
    patch.setattr(machine, "_take_back", lambda state, *_: state)


@mutant("another upgrade has begun while this one was under way", "may_be_ordered_twice")
def begin_another_one(patch: Patch) -> None:
    """An order is taken although an upgrade is under way."""
    decide = machine.decide

    def begun(
        state: UpgradeState | None, orders: UpgradeOrders, there: observed.Seen
    ) -> machine.Next:
        made = decide(state, orders, there)
        return decide(None, orders, there) if made.refused else made

    patch.setattr(machine, "decide", begun)


@mutant("hangs", "may_hang")
def look_at_no_work(patch: Patch) -> None:
    """Whether a container commits is not looked at, as if its last word held for ever."""
    patch.setattr(machine, "QUIET_MS", math.inf)


@mutant("hangs", "may_hang")
def look_at_the_current_one_alone(patch: Patch) -> None:
    """One that was watched is not looked at any more."""
    next_ = machine._give_next

    def unquiet(state: UpgradeState, there: observed.Seen) -> machine.Next:
        working = tuple(replace(c, quiet_ms=0) for c in there.containers)
        return next_(state, replace(there, containers=working))

    patch.setattr(machine, "_give_next", unquiet)


@mutant("nothing leads to a good one", "host_may_be_lost", "may_have_no_place")
def wait_for_a_place_on_the_way_forward(patch: Patch) -> None:
    """Only a container that runs is said not to have got the package."""
    forward = machine._forward

    def patient(state: UpgradeState, there: observed.Seen) -> machine.Next:
        current = there.find(state.current)
        is_down = current is not None and not current.is_running
        return forward(state, replace(there, step_ms=0) if is_down else there)

    patch.setattr(machine, "_forward", patient)


@mutant("nothing leads to a good one", RESTART)
def wait_for_a_refused_restart_for_ever(patch: Patch) -> None:
    """A restart that was not carried out has all the time that there is."""
    forward = machine._forward

    def patient(state: UpgradeState, there: observed.Seen) -> machine.Next:
        current = there.find(state.current)
        is_refused = current is not None and bool(current.refusal)
        return forward(state, replace(there, step_ms=0) if is_refused else there)

    patch.setattr(machine, "_forward", patient)


@mutant("nothing leads to a good one", RESTART, "may_undo", faults=2)
def say_no_way_out_of_a_refused_restart(patch: Patch) -> None:
    """On the way back its wait has a reason alone."""
    decide = machine.decide

    def silent(*rest: Any) -> machine.Next:  # noqa: ANN401 - passed on
        made = decide(*rest)
        return replace(made, waits=made.waits.partition(";")[0])

    patch.setattr(machine, "decide", silent)


@mutant("nothing leads to a good one", LAG)
def wait_for_a_lag_for_ever(patch: Patch) -> None:
    """A lag that is not reported is waited for."""
    watched = machine._watch

    def patient(state: UpgradeState, *rest: Any) -> machine.Next:  # noqa: ANN401 - passed on
        made = watched(state, *rest)
        is_back = made.state is not None and made.state.phase is UpgradePhase.BACK
        return machine.Next(waits="a lag") if is_back else made

    patch.setattr(machine, "_watch", patient)


@mutant("nothing leads to a good one", "may_not_prepare", "may_undo", faults=2)
def prepare_for_ever_on_the_way_back(patch: Patch) -> None:
    """A launcher that cannot prepare the package from before is waited for."""
    back = machine._back
    patch.setattr(machine, "_back", lambda state, there: back(state, replace(there, step_ms=0)))


@mutant("it is done, and another package runs", faults=0)
def done_before_all_have_it(patch: Patch) -> None:
    """The first processor alone is upgraded."""
    forward = machine._give_next

    def soon(state: UpgradeState, there: observed.Seen) -> machine.Next:
        if state.given:
            return machine.Next(replace(state, phase=UpgradePhase.DONE))
        return forward(state, there)

    patch.setattr(machine, "_give_next", soon)


@pytest.mark.parametrize("case", every_third(MUTANTS), ids=str)
def test_the_search_misses_a_rule_that_is_taken_out(
    case: UpgradeMutant, monkeypatch: Patch, request: pytest.FixtureRequest, announce: Announce
) -> None:
    """It finds what then goes wrong."""
    case.require_found(monkeypatch, request, announce)
