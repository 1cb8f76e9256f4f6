"""What an upgrade that goes back does next: each rule."""

from __future__ import annotations

from dataclasses import replace

from homeport.appmaster.upgrade.machine import PREPARATION_MS, Next, decide
from homeport.appmaster.upgrade.observed import ContainerSeen, Seen
from homeport.job_coordinator.model.upgrade import UpgradePhase
from tests.unit.appmaster.upgrade.upgraded_jobs import (
    BOTH_NEW,
    GOES_BACK,
    ORDER,
    P0,
    P1,
    S0,
    job,
    standby,
)


def test_back_is_in_reverse_order() -> None:
    """The record first, then the restart; the submission's package needs no preparation."""
    taken_out = replace(GOES_BACK, given=(S0,), current=P0)
    assert decide(GOES_BACK, ORDER, BOTH_NEW) == Next(taken_out)
    busy = replace(BOTH_NEW, hindrance="a move")
    assert decide(GOES_BACK, ORDER, busy) == Next(waits="a move")
    assert decide(taken_out, ORDER, BOTH_NEW).restart == P0
    one_old = replace(BOTH_NEW, containers=(ContainerSeen(P0), BOTH_NEW.containers[1]))
    assert decide(taken_out, ORDER, one_old) == Next(replace(GOES_BACK, given=(), current=S0))


def test_back_to_another_package_waits_until_that_is_ready() -> None:
    """It was perhaps removed from the disk meanwhile."""
    to_old = replace(GOES_BACK, previous="old", given=(S0,), current=P0)
    waits = "the launcher of processor 0 prepares the package"
    assert decide(to_old, ORDER, BOTH_NEW) == Next(waits=waits)


def test_a_package_from_before_that_is_never_prepared_is_not_waited_for() -> None:
    """The launcher reports what it cannot have, and the container goes to another host."""
    last = replace(GOES_BACK, previous="old", given=(), current=S0)
    late = replace(BOTH_NEW, step_ms=PREPARATION_MS)
    assert decide(last, ORDER, late).restart == P0


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


def test_the_way_back_ends_although_one_never_comes_up() -> None:
    """Its next permit has the package from before. One that may run the new one is heard first."""
    last = replace(GOES_BACK, given=(), current=S0)
    down = standby(is_running=False, is_known=False, is_down=True)
    assert decide(last, ORDER, down) == Next(waits="processor 0-0 does not run")
    late = replace(down, step_ms=PREPARATION_MS)
    gone = Next(replace(last, current=None, phase=UpgradePhase.GONE_BACK))
    assert decide(last, ORDER, late) == gone
    unheard = replace(standby(is_running=False, is_known=False), step_ms=PREPARATION_MS)
    waits = "the launcher of processor 0-0 was not heard"
    assert decide(last, ORDER, unheard) == Next(waits=waits)


def test_what_does_not_run_the_package_is_taken_out_at_once() -> None:
    """It gets the one from before with its next permit."""
    down = job(p0=ContainerSeen(P0, is_running=False, is_known=False))
    assert decide(GOES_BACK, ORDER, down) == Next(replace(GOES_BACK, given=(), current=P0))
    gone = Seen((ContainerSeen(S0, package="new"),))
    assert decide(GOES_BACK, ORDER, gone) == Next(replace(GOES_BACK, given=(S0,), current=P0))


def test_what_runs_the_package_stays_behind_one_that_does_not() -> None:
    """Only the latter is taken out."""
    active_new = job(p0=ContainerSeen(P0, package="new"))
    assert decide(GOES_BACK, ORDER, active_new) == Next(replace(GOES_BACK, given=(P0,), current=S0))


def test_one_that_is_not_ready_keeps_no_other_from_its_restart() -> None:
    """In reverse order the first one that is ready; else it says what the first one waits for."""
    last = replace(GOES_BACK, previous="old", given=(), current=S0)
    assert decide(last, ORDER, BOTH_NEW).waits == "the launcher of processor 0 prepares the package"
    ready = job(
        p0=ContainerSeen(P0, package="new"), s0=ContainerSeen(S0, P0, package="new", prepared="old")
    )
    assert decide(last, ORDER, ready).restart == S0


def test_the_way_back_says_what_its_first_container_waits_for() -> None:
    """One that is down, and then one that cannot be stopped: in reverse order."""
    last = replace(GOES_BACK, given=(), current=S0)
    down = job(
        p0=ContainerSeen(P0, package="new", is_running=False),
        s0=ContainerSeen(S0, P0, package="new"),
    )
    waits = "processor 0 does not run; its next start has the package"
    assert decide(last, ORDER, down) == Next(waits=waits)
    late = replace(down, step_ms=PREPARATION_MS)
    assert decide(last, ORDER, late).restart == S0, "what is down is not restarted"


def test_it_has_gone_back_when_all_run_with_the_package_from_before() -> None:
    """And not before they run."""
    last = replace(GOES_BACK, given=(), current=S0)
    assert decide(last, ORDER, job()) == Next(
        replace(last, current=None, phase=UpgradePhase.GONE_BACK)
    )
    assert decide(last, ORDER, standby(is_running=False)).state is None
