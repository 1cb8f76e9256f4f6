"""What an upgrade does next: each rule, forward, back, and with a failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from homeport.appmaster.upgrade.machine import (
    HANG_MS,
    PREPARATION_MS,
    QUIET_MS,
    TAKEN_BACK_UNBEGUN,
    UNDER_WAY,
    Next,
    decide,
    failed,
    is_due,
)
from homeport.appmaster.upgrade.messages import end, steps
from homeport.appmaster.upgrade.observed import ContainerSeen, Seen
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import (
    UpgradeDirection,
    UpgradeOrder,
    UpgradeOrders,
    UpgradePhase,
    UpgradeState,
)

P0, S0, P1 = ProcessorId("0"), ProcessorId("0-0"), ProcessorId("1")
FORWARD = UpgradeOrder("u", "app", "new", 1_000, by="ann")
UNDO = replace(FORWARD, direction=UpgradeDirection.BACK)
NOTHING = UpgradeOrders()
ORDER = UpgradeOrders(FORWARD)
BACK = UpgradeOrders(FORWARD, UNDO)
BEGUN = UpgradeState("u", "app", "new", None, 1_000)
GIVEN = replace(BEGUN, given=(S0,), current=S0, lag_before=0)


def job(**changed: ContainerSeen) -> Seen:
    """An active container with a standby, both with the submission's package."""
    containers = {"p0": ContainerSeen(P0), "s0": ContainerSeen(S0, P0), **changed}
    return Seen(tuple(containers.values()))


def standby(**fields: Any) -> Seen:  # noqa: ANN401 - those of ContainerSeen
    """That job, with these facts of the standby."""
    return job(s0=replace(ContainerSeen(S0, P0), **fields))


NEW: dict[str, Any] = {"package": "new", "watched_ms": 1_000}
GOES_BACK = replace(BEGUN, phase=UpgradePhase.BACK, given=(S0, P0), reason="why")
BOTH_NEW = job(
    p0=ContainerSeen(P0, package="new"), s0=ContainerSeen(S0, P0, package="new", prepared=None)
)


def test_an_order_is_refused_while_another_upgrade_is_under_way() -> None:
    """For good, so that the upgrade goes on; and it is not taken when that is over."""
    under_way = replace(GIVEN, id="before")
    for state in (under_way, replace(under_way, phase=UpgradePhase.BACK)):
        assert decide(state, ORDER, standby(**NEW)) == Next(refused=UNDER_WAY)
    refused = replace(ORDER, refused="u")
    on = replace(under_way, current=None, lag_before=None)
    assert decide(under_way, refused, standby(**NEW)) == Next(on)
    over = replace(under_way, phase=UpgradePhase.DONE)
    assert decide(over, refused, standby(**NEW)) == Next()
    assert not is_due(over, refused)


def test_a_step_is_due_while_something_may_follow() -> None:
    """An upgrade is under way, or an order was not taken."""
    done = replace(BEGUN, phase=UpgradePhase.DONE)
    gone = replace(BEGUN, phase=UpgradePhase.GONE_BACK)
    assert is_due(BEGUN, NOTHING)
    assert is_due(None, ORDER)
    assert is_due(replace(done, id="before"), ORDER)
    assert is_due(done, BACK)
    assert not is_due(done, ORDER)
    assert not is_due(gone, BACK)
    assert not is_due(None, NOTHING)
    assert BACK.takes_back(BEGUN)
    assert not BACK.takes_back(GOES_BACK)
    assert not BACK.takes_back(None)


def test_an_order_back_turns_it() -> None:
    """While it goes forward, when it is done, and before it has begun."""
    turned = replace(
        GIVEN, phase=UpgradePhase.BACK, current=None, lag_before=None, reason="taken back by ann"
    )
    assert decide(GIVEN, BACK, job()) == Next(turned)
    done = replace(BEGUN, phase=UpgradePhase.DONE)
    assert decide(done, replace(BACK, back=replace(UNDO, by="")), job()) == Next(
        replace(turned, given=(S0, P0), reason="taken back")
    )
    unbegun = replace(BEGUN, phase=UpgradePhase.GONE_BACK, reason=TAKEN_BACK_UNBEGUN)
    assert decide(None, BACK, job()) == Next(unbegun)
    assert decide(unbegun, BACK, job()) == Next()


@pytest.mark.parametrize(
    ("seen", "why"),
    [
        (standby(is_running=False), "processor 0-0 does not run"),
        (standby(is_known=False), "the launcher of processor 0-0 was not heard"),
        (replace(job(), hindrance="a host is drained"), "a host is drained"),
        (
            replace(standby(failures=1), retry_count=1),
            (
                "processor 0-0 has no retry left (1 failures, "
                "cluster-manager.container.retry.count is 1): its next failure would end it"
            ),
        ),
        (
            replace(standby(), retry_count=0),
            (
                "processor 0-0 has no retry left (0 failures, "
                "cluster-manager.container.retry.count is 0): its next failure would end it"
            ),
        ),
    ],
)
def test_nothing_is_begun_while_something_is_in_the_way(seen: Seen, why: str) -> None:
    """It says what."""
    assert decide(BEGUN, ORDER, seen) == Next(waits=why)


@pytest.mark.parametrize(
    ("facts", "why"),
    [
        ({"is_running": False}, "processor 0-0 does not run; its next start has the package"),
        ({}, "the launcher of processor 0-0 prepares the package"),
        (
            {"unprepared": "no space left"},
            "the launcher of processor 0-0 prepares the package: no space left",
        ),
        (
            {"prepared": "new", "refusal": "the job ends"},
            (
                "the restart of processor 0-0 was refused: the job ends; "
                "homeport restart 0-0 does it by hand"
            ),
        ),
    ],
)
def test_the_current_one_is_not_restarted_before_it_is_of_use(
    facts: dict[str, Any], why: str
) -> None:
    """It says what it waits for."""
    assert decide(GIVEN, ORDER, standby(**facts)) == Next(waits=why)


def test_a_restart_that_stays_refused_turns_it_back() -> None:
    """After the time that a package has; until then people may restart it."""
    refused = standby(prepared="new", refusal="it took too long")
    made = decide(GIVEN, ORDER, replace(refused, step_ms=PREPARATION_MS)).state
    assert made is not None
    why = "the restart of processor 0-0 was refused: it took too long"
    assert (made.phase, made.reason) == (UpgradePhase.BACK, why)


def test_one_that_never_starts_with_the_package_turns_it_back() -> None:
    """Whatever keeps it down; one whose process has the package, and restores, is waited for."""
    down: dict[str, Any] = {"is_running": False, "is_known": False, "is_down": True}
    late = replace(standby(**down), step_ms=PREPARATION_MS)
    made = decide(GIVEN, ORDER, late).state
    assert made is not None
    assert made.phase is UpgradePhase.BACK
    assert made.reason == "processor 0-0 has not started with the package in 600000 ms"
    soon = replace(late, step_ms=PREPARATION_MS - 1)
    assert decide(GIVEN, ORDER, soon).state is None
    ready = replace(standby(is_running=False, prepared="new"), step_ms=PREPARATION_MS)
    assert decide(GIVEN, ORDER, ready).state == made, (
        "its process has the old package, and is stuck"
    )
    restores = replace(standby(package="new", is_running=False), step_ms=PREPARATION_MS)
    assert decide(GIVEN, ORDER, restores).state is None


def test_one_that_has_finished_meanwhile_is_done_with() -> None:
    """The next one is begun."""
    without = Seen((ContainerSeen(P0),))
    assert decide(GIVEN, ORDER, without).state == replace(GIVEN, current=None, lag_before=None)


def test_a_lag_that_was_never_known_is_not_waited_for() -> None:
    """One that was known is."""
    unknown = standby(**NEW, lag=None)
    assert decide(replace(GIVEN, lag_before=None), ORDER, unknown).state is not None
    waits = "processor 0-0 has a lag that is not known; 10000 are waited for"
    assert decide(GIVEN, ORDER, unknown) == Next(waits=waits)


def test_a_lag_that_stays_turns_it_back() -> None:
    """After ten times as long as it is watched."""
    made = decide(GIVEN, ORDER, standby(package="new", watched_ms=10_000, lag=10_001)).state
    assert made is not None
    assert (made.phase, made.given) == (UpgradePhase.BACK, (S0,))
    assert made.reason == "processor 0-0 has a lag of 10001 records after 10000 ms, more than 10000"
    slow = active(watched_ms=10_000, lag=10_001, quiet_ms=QUIET_MS + 1)
    made = decide(ACTIVE, ORDER, slow).state
    assert made is not None
    assert "has a lag of" in made.reason, "whatever else it does"


ACTIVE = replace(BEGUN, given=(S0, P0), current=P0, lag_before=0)


def active(**fields: Any) -> Seen:  # noqa: ANN401 - those of ContainerSeen
    """That job, whose active container runs the new package, with these facts of it."""
    containers = {"s0": ContainerSeen(S0, P0, package="new")}
    return job(
        p0=replace(ContainerSeen(P0, package="new", watched_ms=1_000), **fields), **containers
    )


@pytest.mark.parametrize("current", [P0, None])
def test_one_that_does_nothing_for_long_turns_it_back(current: ProcessorId | None) -> None:
    """The current one, or one that was watched before."""
    state = replace(ACTIVE, current=current)
    assert decide(state, ORDER, active(quiet_ms=HANG_MS - 1)).state is None
    made = decide(state, ORDER, active(quiet_ms=HANG_MS)).state
    assert made is not None
    assert (made.phase, made.given) == (UpgradePhase.BACK, (S0, P0))
    assert made.reason == (
        "processor 0 has committed nothing, and not found its input empty, for 60000 ms: "
        "a call of its code may hang"
    )
    slow = replace(state, watch_ms=60_000)
    on = decide(slow, ORDER, active(quiet_ms=HANG_MS)).state
    assert on is None or on.phase is UpgradePhase.DONE, "a watch that is longer is more patient"


# --- failures


def test_a_failure_of_the_new_package_turns_it_back() -> None:
    """The container that failed gets the package from before with its next permit."""
    made = failed(replace(GIVEN, given=(S0, P0)), S0, ("new",), "exit code 1", "ValueError")
    assert made is not None
    assert made.story == "processor 0-0 failed with the new package: exit code 1: ValueError"
    assert (made.phase, made.given, made.current) == (UpgradePhase.BACK, (P0,), S0)
    assert made.reason == "processor 0-0 failed with the new package: exit code 1"
    again = failed(made, P0, ("new",), "exit code 1")
    assert again == replace(made, given=(), current=P0)


@pytest.mark.parametrize(
    ("state", "ran"),
    [
        (None, ("new",)),
        (replace(BEGUN, phase=UpgradePhase.DONE), ("new",)),
        (replace(GIVEN, phase=UpgradePhase.DONE), ("new",)),
        (GIVEN, (None,)),
        (GIVEN, ("old",)),
        (BEGUN, None),
        (replace(GOES_BACK, given=()), ("new",)),
    ],
)
def test_other_failures_change_nothing(
    state: UpgradeState | None, ran: tuple[str | None] | None
) -> None:
    """Of another package, of one that has none of its own, without an upgrade, or after it."""
    assert failed(state, S0, ran, "exit code 1") is None


# --- what an upgrade that goes back does next: each rule


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


# --- what a person reads that waits for an upgrade


PACKAGE, OLD = "ab" * 32, "cd" * 32
FIRST_LOOK = UpgradeState("u", "app", PACKAGE, None, 1)
FIRST_GIVEN = replace(FIRST_LOOK, given=(S0,), current=S0)
WATCHED = replace(FIRST_GIVEN, current=None)
ON_ITS_WAY_BACK = replace(
    FIRST_LOOK, phase=UpgradePhase.BACK, given=(S0,), current=P0, reason="0 failed"
)


def test_each_step_is_a_line() -> None:
    """What was given, what runs; nothing where nothing has changed."""
    assert list(steps(None, FIRST_LOOK, 2)) == [
        "upgrade to package abababababab from that of the submission"
    ]
    assert list(steps(FIRST_LOOK, FIRST_GIVEN, 2)) == ["0-0: gets the package (1 of 2)"]
    assert list(steps(FIRST_GIVEN, WATCHED, 2)) == ["0-0: runs the package"]
    both = replace(WATCHED, given=(S0, P0), current=P0)
    assert list(steps(FIRST_GIVEN, both, 2)) == [
        "0: gets the package (2 of 2)",
        "0-0: runs the package",
    ]
    assert list(steps(both, both, 2)) == []


def test_the_way_back_is_told_with_its_reason() -> None:
    """Once."""
    both = replace(WATCHED, given=(S0, P0), current=P0)
    assert list(steps(both, ON_ITS_WAY_BACK, 2)) == [
        "goes back to package that of the submission: 0 failed",
        "0: gets the package from before",
    ]
    later = replace(ON_ITS_WAY_BACK, given=(), current=S0)
    assert list(steps(ON_ITS_WAY_BACK, later, 2)) == ["0-0: gets the package from before"]
    gone = replace(later, phase=UpgradePhase.GONE_BACK, current=None)
    assert list(steps(later, gone, 2)) == ["0-0: runs the package from before"]


def test_a_later_look_tells_what_there_is() -> None:
    """Another upgrade was seen before, or none."""
    lines = list(steps(replace(FIRST_GIVEN, id="before"), replace(FIRST_GIVEN, previous=OLD), 2))
    assert lines == [
        "upgrade to package abababababab from cdcdcdcdcdcd",
        "0-0: gets the package (1 of 2)",
    ]


def test_a_first_look_on_the_way_back_has_the_reason() -> None:
    """As by an operator that asks after the failure."""
    assert list(steps(None, ON_ITS_WAY_BACK, 2)) == [
        "upgrade to package abababababab from that of the submission",
        "goes back to package that of the submission: 0 failed",
        "0-0: gets the package (1 of 2)",
    ]


def test_the_end_says_what_runs() -> None:
    """And what is left to do."""
    assert end(replace(WATCHED, phase=UpgradePhase.DONE)) == (
        "done: all run package abababababab; yarn.package.path must name it for the next deployment"
    )
    gone = replace(ON_ITS_WAY_BACK, phase=UpgradePhase.GONE_BACK)
    assert end(gone) == "gone back to package that of the submission: 0 failed"
