"""How soon a costly step follows on the one before, and which batches fill."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeport.container.progress.pace import ENOUGH_ROWS, Filling, Pace

SECONDS = st.floats(0, 1e6)


def _none_wait() -> int:
    return 0


def _unasked() -> int:
    raise AssertionError("the number does not matter here")


def test_the_first_step_waits_for_nothing() -> None:
    """Whatever the least rest."""
    assert Pace(0.25).left_s(0.0, least_s=5.0) == 0


def test_a_step_takes_no_more_than_its_share_of_the_time() -> None:
    """At a quarter, three times its own time passes before the next."""
    pace = Pace(0.25)
    pace.took(10.0, 12.0)
    assert pace.left_s(12.0) == 6
    assert pace.left_s(17.5) == 0.5
    assert pace.left_s(18.0) == 0
    assert pace.left_s(99.0) == 0


def test_a_slow_step_is_soon_forgotten() -> None:
    """Each new one counts half."""
    pace = Pace(0.5)
    pace.took(0.0, 8.0)
    assert pace.left_s(8.0) == 8
    pace.took(20.0, 20.0)
    assert pace.left_s(20.0) == 4
    pace.took(30.0, 32.0)
    assert pace.left_s(32.0) == 3


def test_the_rest_is_bounded_on_both_sides() -> None:
    """The longest counts more than the shortest."""
    pace = Pace(0.5)
    pace.took(0.0, 4.0)
    assert pace.left_s(4.0, least_s=6.0) == 6
    assert pace.left_s(4.0, most_s=1.0) == 1
    assert pace.left_s(4.0, least_s=6.0, most_s=1.0) == 1


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
    """For as long as that took, at a half; after a pause of the input it waits for nothing."""
    filling = Filling(0.5)
    assert filling.left_s(0.0, 0.1, _unasked) == 0
    filling.took(1.0, 1.04, rows=1)
    assert filling.left_s(1.04, 0.1, _none_wait) == pytest.approx(0.04)
    assert filling.left_s(1.06, 0.1, _none_wait) == pytest.approx(0.02)
    assert filling.left_s(1.09, 0.1, _unasked) == 0


def test_no_batch_fills_for_longer_than_the_key_says() -> None:
    """A slow batch, as a cold JVM's first, holds the next one back no longer; 0: none fills."""
    filling = Filling(0.5)
    filling.took(1.0, 3.0, rows=1)
    assert filling.left_s(3.0, 0.1, _none_wait) == pytest.approx(0.1)
    assert filling.left_s(3.0, 0.0, _unasked) == 0


def test_under_load_no_batch_waits() -> None:
    """Neither after a full one, nor where enough rows wait; one row less fills."""
    filling = Filling(0.5)
    filling.took(1.0, 3.0, rows=ENOUGH_ROWS)
    assert filling.left_s(3.0, 9.0, _unasked) == 0
    filling.took(3.0, 5.0, rows=ENOUGH_ROWS - 1)
    assert filling.left_s(5.0, 9.0, lambda: ENOUGH_ROWS) == 0
    assert filling.left_s(5.0, 9.0, lambda: ENOUGH_ROWS - 1) > 0
