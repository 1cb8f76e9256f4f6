"""How soon a costly step follows on the one before, which batches fill, how large they are."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.container.progress.pace import ENOUGH_ROWS, FEWEST_ROWS, BatchSize, Filling, Pace

SECONDS = st.floats(0, 1e6)


def _none_wait() -> int:
    return 0


def _unasked() -> int:
    raise AssertionError("the number does not matter here")


def test_a_slow_step_is_soon_forgotten() -> None:
    """Each new one counts half."""
    pace = Pace(0.5)
    pace.took(0.0, 8.0)
    assert pace.left_s(8.0) == 8
    pace.took(20.0, 20.0)
    assert pace.left_s(20.0) == 4
    pace.took(30.0, 32.0)
    assert pace.left_s(32.0) == 3


@given(st.floats(0.01, 1.0), st.lists(st.tuples(SECONDS, SECONDS), min_size=1, max_size=20))
def test_equal_steps_as_often_as_they_may_take_their_share(
    share: float, pairs: list[tuple[float, float]]
) -> None:
    """And the rest is never negative, whatever came before."""
    pace, now_s = Pace(share), 0.0
    for rest_s, cost_s in pairs:
        now_s += rest_s
        pace.took(now_s, now_s + cost_s)
        now_s += cost_s
        assert 0 <= pace.left_s(now_s) < math.inf
    steady = Pace(share)
    steady.took(0.0, 1.0)
    assert 1.0 / (1.0 + steady.left_s(1.0)) == pytest.approx(share)


def test_a_small_batch_fills_after_the_one_before() -> None:
    """For as long as that took, at a half; after a pause of the input it waits for nothing.

    No longer than the key says, after a slow one as a cold JVM's first; 0: none fills.
    """
    filling = Filling(0.5)
    assert filling.left_s(0.0, 0.1, _unasked) == 0
    filling.took(1.0, 1.04, rows=1)
    assert filling.left_s(1.04, 0.1, _none_wait) == pytest.approx(0.04)
    assert filling.left_s(1.06, 0.1, _none_wait) == pytest.approx(0.02)
    assert filling.left_s(1.09, 0.1, _unasked) == 0
    filling.took(2.0, 4.0, rows=1)
    assert filling.left_s(4.0, 0.1, _none_wait) == pytest.approx(0.1)
    assert filling.left_s(4.0, 0.0, _unasked) == 0


def test_under_load_no_batch_waits() -> None:
    """Neither after a full one, nor where enough rows wait; one row less fills."""
    filling = Filling(0.5)
    filling.took(1.0, 3.0, rows=ENOUGH_ROWS)
    assert filling.left_s(3.0, 9.0, _unasked) == 0
    filling.took(3.0, 5.0, rows=ENOUGH_ROWS - 1)
    assert filling.left_s(5.0, 9.0, lambda: ENOUGH_ROWS) == 0
    assert filling.left_s(5.0, 9.0, lambda: ENOUGH_ROWS - 1) > 0


TARGET_S = 0.5


def _sizes(cost_s: Callable[[int], float], batches: int, most: int = 100_000) -> list[int]:
    """Rows of each of so many full batches."""
    size, found = BatchSize(most), []
    for _ in range(batches):
        found.append(size.rows)
        size.took(cost_s(size.rows), size.rows, TARGET_S)
    return found


def test_a_batch_that_took_too_long_is_followed_by_a_smaller_one() -> None:
    """In one step, however full it was; then they grow again."""
    size = BatchSize(100_000)
    for rows in (100, 400, 1600):
        size.took(0.01, rows, TARGET_S)
    assert size.rows == 6400
    size.took(2.0, 3200, TARGET_S)
    assert size.rows == 800
    size.took(0.01, 800, TARGET_S)
    assert size.rows == 3200


def test_small_batches_of_a_slow_input_change_nothing() -> None:
    """They say nothing about what a full one would take."""
    size = BatchSize(100_000)
    size.took(0.01, 100, TARGET_S)
    for _ in range(10):
        size.took(0.04, 3, TARGET_S)
    assert size.rows == 400


def test_the_target_of_the_moment_holds() -> None:
    """A new one counts from the next batch on; a millisecond per row, and 500 rows in 0.5 s."""
    assert _sizes(lambda rows: rows / 1000, 4) == [100, 400, 500, 500]
    size = BatchSize(100_000)
    for target_s in (0.5, 0.5, 0.5, 2.0, 0.5):
        size.took(size.rows / 1000, size.rows, target_s)
    assert size.rows == 500


@given(
    most=st.integers(1, 100_000),
    batches=st.lists(st.tuples(st.floats(0, 100), st.integers(1, 200_000)), max_size=30),
)
def test_whatever_batches_take_the_size_stays_within_its_bounds(
    most: int, batches: list[tuple[float, int]]
) -> None:
    """At least few rows, or all that are ever wanted, and at most those; growth has a bound too."""
    size = BatchSize(most)
    sizes = [size.rows]
    for seconds, rows in batches:
        taken = min(rows, size.rows)
        size.took(seconds, taken, TARGET_S)
        sizes.append(size.rows)
    assert all(min(FEWEST_ROWS, most) <= rows <= most for rows in sizes)
    assert all(after <= 4 * before for before, after in itertools.pairwise(sizes))
