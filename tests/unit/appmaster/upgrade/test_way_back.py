"""What an upgrade that goes back does next: each rule."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.upgrade.machine import PREPARATION_MS, Next, decide
from homeport.appmaster.upgrade.observed import ContainerSeen
from tests.unit.appmaster.upgrade.upgraded_jobs import BOTH_NEW, GOES_BACK, ORDER, P0, P1, S0, job


def test_what_is_down_for_another_reason_is_not_in_the_way_back() -> None:
    """Its own group is, as that keeps the state at hand; but not for ever."""
    third = (*BOTH_NEW.containers, ContainerSeen(P1, is_running=False, is_down=True))
    seen = replace(BOTH_NEW, containers=third)
    last = replace(GOES_BACK, given=(), current=S0)
    assert decide(last, ORDER, seen).restart == P0
    assert decide(last, ORDER, replace(seen, hindrance="a move")) == Next(waits="a move")
    comes = (*BOTH_NEW.containers, ContainerSeen(P1, is_running=False))
    waits = "processor 1 does not run"
    assert decide(last, ORDER, replace(BOTH_NEW, containers=comes)) == Next(waits=waits)
    alone = (
        replace(BOTH_NEW.containers[0], is_running=False, is_down=True),
        *BOTH_NEW.containers[1:],
        ContainerSeen(P1, package="new"),
    )
    other = replace(BOTH_NEW, containers=alone)
    kept = decide(replace(last, given=(S0, P1)), ORDER, other).state
    assert kept == replace(last, given=(S0,), current=P1), "the other group goes first"
    assert kept is not None
    assert decide(kept, ORDER, other).restart == P1
    group = replace(BOTH_NEW, containers=alone[:2])
    assert decide(last, ORDER, group).restart is None
    late = replace(group, step_ms=PREPARATION_MS)
    assert decide(last, ORDER, late).restart == S0
    assert decide(last, ORDER, replace(late, hindrance="a move")) == Next(waits="a move")


def test_what_cannot_be_restarted_keeps_no_other_from_it() -> None:
    """The record goes on to the next one, in reverse order."""
    kept = job(
        p0=ContainerSeen(P0, package="new", refusal="not now"),
        s0=ContainerSeen(S0, P0, package="new"),
    )
    last = replace(GOES_BACK, given=(S0,), current=P0)
    on = replace(last, given=(), current=S0)
    assert decide(last, ORDER, kept) == Next(on)
    assert decide(on, ORDER, kept).restart == S0


def test_what_runs_the_package_stays_behind_one_that_does_not() -> None:
    """Only the latter is taken out."""
    active_new = job(p0=ContainerSeen(P0, package="new"))
    assert decide(GOES_BACK, ORDER, active_new) == Next(replace(GOES_BACK, given=(P0,), current=S0))
