"""What the supervisor makes of a child's end, its silence and its restarts. Times are given."""

from __future__ import annotations

import pytest

from homeport.appmaster.attempt.supervision import (
    EXIT_ENDED,
    EXIT_FINAL,
    EXIT_UNFIT_HOST,
    HANG_LIMIT_MS,
    SHORT_LIVES_LIMIT,
    SPARE_DELAY_MS,
    START_LIMIT_MS,
    UNFIT_HOST_LIMIT,
    Vitals,
    exit_without_port,
    is_the_end,
)


@pytest.mark.parametrize(
    ("exit_code", "ends"),
    [(EXIT_ENDED, True), (EXIT_FINAL, True), (1, False), (-9, False), (-15, False), (143, False)],
)
def test_only_a_final_verdict_ends_the_application(exit_code: int, *, ends: bool) -> None:
    """Signals and faults lead to another start."""
    assert is_the_end(exit_code, has_reported_end=True) is ends


def test_exit_code_0_without_a_result_of_the_child_is_a_fault() -> None:
    """Any code that runs in a process can exit so; 70 is a code of ours alone."""
    assert not is_the_end(EXIT_ENDED, has_reported_end=False)
    assert is_the_end(EXIT_FINAL, has_reported_end=False)


def test_a_child_that_beats_does_not_hang() -> None:
    """However long it lives."""
    vitals = Vitals.at(0)
    for now in range(200, 60_000, 200):
        vitals.beaten(now)
        assert not vitals.is_hung(now)


def test_a_child_that_is_silent_for_the_limit_hangs() -> None:
    """At the limit, not before."""
    vitals = Vitals.at(0)
    vitals.beaten(0)
    hung = [now for now in range(200, 2 * HANG_LIMIT_MS, 200) if vitals.is_hung(now)]
    assert hung[0] == HANG_LIMIT_MS


def test_the_first_beat_may_take_long() -> None:
    """Imports on a busy machine are no hang; to be killed for them would make it busier."""
    vitals = Vitals.at(0)
    hung = [now for now in range(0, 2 * START_LIMIT_MS, 200) if vitals.is_hung(now)]
    assert hung[0] == START_LIMIT_MS
    vitals.started(0)
    vitals.beaten(200)
    vitals.started(300)
    assert not vitals.is_hung(300)


def test_after_a_pause_of_the_supervisor_its_child_has_the_whole_limit() -> None:
    """Waking up together, the child has the whole limit again."""
    vitals = Vitals.at(0)
    vitals.beaten(0)
    assert not vitals.is_hung(60_000)
    assert not vitals.is_hung(60_200)


def test_the_first_start_is_at_once_and_the_next_ones_within_a_bound() -> None:
    """Short lives in a row make the pause longer, up to a second; a healthy life resets it."""
    vitals = Vitals.at(0)
    pauses = []
    for start in range(10):
        vitals.started(start)
        pauses.append(vitals.died(start))
    assert pauses[0] == 0
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1000
    vitals.started(100)
    vitals.has_served = True
    assert vitals.died(60_000) == 0


def test_a_child_is_settled_once_it_serves_and_the_start_of_the_am_is_over() -> None:
    """Its spare waits for that; each start counts from zero."""
    vitals = Vitals.at(0)
    assert not vitals.is_settled(SPARE_DELAY_MS)
    vitals.has_served = True
    assert not vitals.is_settled(SPARE_DELAY_MS - 1)
    assert vitals.is_settled(SPARE_DELAY_MS)
    vitals.started(SPARE_DELAY_MS)
    vitals.has_served = True
    assert not vitals.is_settled(SPARE_DELAY_MS + 1)


def test_after_so_many_short_lives_in_a_row_there_is_no_hope() -> None:
    """At the limit, not before; one life that served for a while starts the count again."""
    vitals = Vitals.at(0)
    for _ in range(SHORT_LIVES_LIMIT - 1):
        vitals.started(0)
        vitals.has_served = True
        vitals.died(1000)
    assert not vitals.is_hopeless
    vitals.started(0)
    vitals.has_served = True
    vitals.died(5000)
    assert not vitals.is_hopeless
    for _ in range(SHORT_LIVES_LIMIT - 1):
        vitals.started(0)
        vitals.died(1000)
    assert vitals.is_hopeless


def test_a_host_that_is_not_fit_has_fewer_starts() -> None:
    """A port that is taken there may be free on another host."""
    vitals = Vitals.at(0)
    for _ in range(UNFIT_HOST_LIMIT):
        assert not vitals.is_hopeless
        vitals.started(0)
        vitals.died(1000, EXIT_UNFIT_HOST)
    assert vitals.is_hopeless


def test_a_port_that_the_child_had_before_has_all_starts() -> None:
    """Its own process may still hold it as it ends; a port that was never had is another's."""
    vitals = Vitals.at(0)
    for _ in range(SHORT_LIVES_LIMIT - 1):
        vitals.started(0)
        vitals.died(1000, exit_without_port(4711))
    assert not vitals.is_hopeless
    assert exit_without_port(None) == EXIT_UNFIT_HOST


def test_a_life_that_never_served_is_short_however_long_it_was() -> None:
    """Each of its starts waits ten seconds for a Kafka that never comes."""
    vitals = Vitals.at(0)
    for _ in range(SHORT_LIVES_LIMIT):
        assert not vitals.is_hopeless
        vitals.started(0)
        vitals.died(12_000)
    assert vitals.is_hopeless
