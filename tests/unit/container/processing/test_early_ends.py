"""RunLoop on a clock of its own: when transactions end, early or not, and batches that fill."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from run_loop_case import A, LoopCase

from homeport.container.host.stop_flag import StopFlag


@pytest.fixture
def case(monkeypatch: pytest.MonkeyPatch) -> LoopCase:
    """A container before its first poll."""
    return LoopCase(monkeypatch)


Arrivals = dict[float, int]


@pytest.mark.parametrize(
    ("settings", "batch_s", "arrivals", "end_s", "ends"),
    [
        # Readers have waited for a whole recovery; the next transaction ends by its age.
        ({"max_ms": 10_000}, 0, {1: 1, 2: 1, 3: 1}, 20, [1000, 12_000]),
        # A poll waits no longer than the open transaction may live.
        ({"max_ms": 250}, 0, {1: 1, 2: 1}, 5, [1000, 2250]),
        ({"idle_ms": None}, 0, {1: 1, 2: 1}, 60, [1000]),
        # Each record of a slow input is committed when it comes; a commit takes 10 ms here.
        ({"idle_ms": 10, "commit_s": 0.01}, 0, {1: 1, 2: 1, 3: 1}, 5, [1010, 2010, 3010]),
        # Offsets may end in markers of transactions, which are no records.
        (
            {"idle_ms": 10, "commit_s": 0.01, "knows_end": False},
            *(0, {1: 1, 2: 1, 3: 1}, 5, [1010, 2020, 3020]),
        ),
        # A backlog is no idle input: it ends when the backlog is read.
        ({"idle_ms": 10}, 0.1, {1: 1, **{2 + n / 1000: 1 for n in range(9)}}, 5, [1100, 2900]),
        # Neither for a commit that was slow nor for the distance.
        (
            {"idle_ms": 60_000, "max_ms": 500, "commit_s": 0.25},
            *(0, {1: 1, 2: 1, 2.1: 1, 4: 1}, 6, [1250, 2750, 4750]),
        ),
        # There is nothing else to do then, even with records that wait for the next batch.
        ({"idle_ms": 10, "linger_ms": 100}, 0.1, {1: 1, 2: 1, 2.01: 1}, 3, [1100, 2100, 2300]),
    ],
    ids=[
        *("the first batch is not held back", "on time though nothing more arrives"),
        *("none early without the key", "with its batch where the input has no more"),
        *("after a short silence where no end is known", "input that waits is taken before"),
        *("never later than its time", "while a batch fills"),
    ],
)
def test_a_transaction_ends_in_its_time(
    case: LoopCase,
    settings: dict[str, Any],
    batch_s: float,
    arrivals: Arrivals,
    end_s: float,
    ends: list[int],
) -> None:
    """The history has each end after the commit."""
    for name, value in settings.items():
        setattr(case, name, value)
    case.on_batch = case.takes(batch_s)
    case.run(arrivals, end_s)
    assert case.times("transaction-committed") == ends


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
