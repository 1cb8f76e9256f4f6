"""BatchSize: batches of about the time that they should take, whatever a row costs."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from homeport.container.progress.pace import FEWEST_ROWS, BatchSize

TARGET_S = 0.5


def _sizes(cost_s: Callable[[int], float], batches: int, most: int = 100_000) -> list[int]:
    """Rows of each of so many full batches."""
    size, found = BatchSize(most), []
    for _ in range(batches):
        found.append(size.rows)
        size.took(cost_s(size.rows), size.rows, TARGET_S)
    return found


def test_batches_stay_at_what_their_time_has_room_for() -> None:
    """A millisecond per row: 500 rows in half a second."""
    assert _sizes(lambda rows: rows / 1000, 4) == [100, 400, 500, 500]


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
    """A new one counts from the next batch on."""
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
