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
from homeport.appmaster.upgrade.observed import ContainerSeen, Seen
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.upgrade import UpgradePhase, UpgradeState
from tests.unit.appmaster.upgrade.upgraded_jobs import (
    BACK,
    BEGUN,
    GIVEN,
    GOES_BACK,
    NEW,
    NOTHING,
    ORDER,
    P0,
    S0,
    UNDO,
    job,
    standby,
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


def test_the_first_standby_gets_the_package_first() -> None:
    """The record says so before anything follows; its lag is remembered."""
    assert decide(BEGUN, ORDER, standby(lag=7)) == Next(replace(GIVEN, lag_before=7))


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


def test_the_current_one_is_restarted_once_its_launcher_is_ready() -> None:
    """And only while all others run."""
    ready = standby(prepared="new")
    assert decide(GIVEN, ORDER, ready) == Next(restart=S0, waits="processor 0-0 restarts")
    busy = replace(ready, hindrance="a failover is under way")
    assert decide(GIVEN, ORDER, busy) == Next(waits="a failover is under way")


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


def test_the_current_one_is_watched() -> None:
    """For as long as was ordered, and until its lag is small again."""
    over = Next(replace(GIVEN, current=None, lag_before=None))
    assert decide(GIVEN, ORDER, standby(**NEW)) == over
    early = standby(package="new", watched_ms=999)
    assert decide(GIVEN, ORDER, early) == Next(waits="processor 0-0 is watched for 1000 ms")
    behind = standby(**NEW, lag=10_001)
    waits = "processor 0-0 has a lag of 10001 records; 10000 are waited for"
    assert decide(GIVEN, ORDER, behind) == Next(waits=waits)
    assert decide(replace(GIVEN, lag_before=10_001), ORDER, behind) == over


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


def test_one_that_does_nothing_is_not_well() -> None:
    """Until it has worked after its watch: its code may hang since."""
    over = Next(replace(ACTIVE, current=None, lag_before=None))
    assert decide(ACTIVE, ORDER, active(watched_ms=1_500, quiet_ms=500)) == over
    waits = "processor 0 has committed nothing, and not found its input empty, for 501 ms"
    assert decide(ACTIVE, ORDER, active(watched_ms=1_500, quiet_ms=501)) == Next(waits=waits)


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
