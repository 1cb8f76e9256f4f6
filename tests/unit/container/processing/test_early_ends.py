"""RunLoop on a clock of its own: transactions that end early, and batches that fill."""

from __future__ import annotations

import itertools

import pytest
from run_loop_case import A, LoopCase

from homeport.container.host.stop_flag import StopFlag


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> LoopCase:
    """A container before its first poll."""
    return LoopCase(monkeypatch)


def test_a_transaction_ends_with_its_batch_where_the_input_has_no_more(case: LoopCase) -> None:
    """Each record of a slow input is committed when it comes, long before the transaction's time.

    In the history an end is stated after the commit, which takes 10 ms here.
    """
    case.idle_ms, case.commit_s = 10, 0.01
    case.run({1: 1, 2: 1, 3: 1}, 5)
    assert case.times("transaction-committed") == [1010, 2010, 3010]


def test_where_no_end_is_known_a_short_silence_shows_it(case: LoopCase) -> None:
    """Offsets may end in markers of transactions, which are no records."""
    case.idle_ms, case.commit_s, case.knows_end = 10, 0.01, False
    case.run({1: 1, 2: 1, 3: 1}, 5)
    assert case.times("transaction-committed") == [1010, 2020, 3020]


def test_a_trickle_does_not_become_a_transaction_per_record(case: LoopCase) -> None:
    """Commits take at most half of the time: each fourth of records 10 ms apart ends one."""
    case.idle_ms, case.commit_s = 10, 0.02
    case.run({1 + n / 100: 1 for n in range(100)}, 3)
    ends = case.times("transaction-committed")
    assert 20 <= len(ends) <= 28
    assert min(b - a for a, b in itertools.pairwise(ends)) >= 40


def test_transactions_that_end_early_keep_the_distance_that_the_key_says(case: LoopCase) -> None:
    """However little a commit costs; a record comes each 10 ms, and the next one may end it."""
    case.idle_ms = 300
    case.run({1 + n / 100: 1 for n in range(100)}, 3)
    ends = case.times("transaction-committed")
    assert len(ends) == 5
    assert all(300 <= b - a <= 310 for a, b in itertools.pairwise(ends))


def test_a_transaction_is_never_later_than_its_time(case: LoopCase) -> None:
    """Neither for a commit that was slow nor for the distance."""
    case.idle_ms, case.max_ms, case.commit_s = 60_000, 500, 0.25
    case.run({1: 1, 2: 1, 2.1: 1, 4: 1}, 6)
    assert case.times("transaction-committed") == [1250, 2750, 4750]


def test_without_the_key_no_transaction_ends_early(case: LoopCase) -> None:
    """Only the first of a start does."""
    case.idle_ms = None
    case.run({1: 1, 2: 1}, 60)
    assert case.times("transaction-committed") == [1000]


def test_input_that_waits_is_taken_before_the_transaction_ends(case: LoopCase) -> None:
    """A backlog is no idle input: it ends when the backlog is read."""
    case.idle_ms, case.on_batch = 10, case.takes(0.1)
    case.run({1: 1, **{2 + n / 1000: 1 for n in range(9)}}, 5)
    assert case.times("transaction-committed") == [1100, 2900]


def test_small_batches_fill_for_twice_as_long_as_the_one_before_took(case: LoopCase) -> None:
    """They take a third of the time; what came meanwhile is in the next one."""
    began = []

    def takes() -> None:
        began.append(case.clock.ms())
        case.clock.now += 0.04

    case.linger_ms, case.on_batch = 100, takes
    case.run({1: 1, 1.01: 1, 2: 1}, 3)
    assert began == [1000, 1120, 2000]


def test_a_stop_and_a_window_do_not_wait_for_a_batch_to_fill(case: LoopCase) -> None:
    """The loop looks at both while a batch fills."""
    case.linger_ms, case.on_batch, case.window_ms = 60_000, case.takes(5), 6500
    case.run({1: 1, 6.1: 1}, 20)
    assert next(at for at, what in case.notes if what == f"window {A}") == 6500
    case.stop = StopFlag()
    stop = case.stop
    case.notes.clear()
    case.clock.now = 0.0
    case.on_window = stop.set
    assert not case.run({1: 1, 6.1: 1}, 20)
    assert case.clock.ms() == 6500


def test_a_transaction_ends_while_a_batch_fills(case: LoopCase) -> None:
    """There is nothing else to do then, even with records that wait for the next batch."""
    case.idle_ms, case.linger_ms, case.on_batch = 10, 100, case.takes(0.1)
    case.run({1: 1, 2: 1, 2.01: 1}, 3)
    assert case.times("transaction-committed") == [1100, 2100, 2300]
