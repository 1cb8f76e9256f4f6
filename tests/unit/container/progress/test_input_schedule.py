"""Which inputs are read now."""

from __future__ import annotations

import pytest

from homeport.config.settings.input_section import InputPolicy, LostInput, OffsetDefault
from homeport.container.progress.input_schedule import (
    BOOTSTRAP_TIER,
    InputSchedule,
    seconds_left,
    tier_of,
)
from homeport.job_coordinator.model.job_model import SystemStreamPartition

TABLE0, TABLE1 = (SystemStreamPartition("kafka", "table", n) for n in (0, 1))
HIGH, LOW = (SystemStreamPartition("kafka", name, 0) for name in ("high", "low"))
TIERS = {TABLE0: BOOTSTRAP_TIER, TABLE1: BOOTSTRAP_TIER, HIGH: 5, LOW: 0}
STARTS = dict.fromkeys(TIERS, 0)


@pytest.mark.parametrize(
    ("is_bootstrap", "priority", "tier"), [(False, 0, 0), (False, 7, 7), (True, 3, BOOTSTRAP_TIER)]
)
def test_a_bootstrap_stream_is_above_every_priority(
    is_bootstrap: bool,  # noqa: FBT001 - a parameter of the table
    priority: int,
    tier: int,
) -> None:
    """Samza: its priority is the largest number there is."""
    policy = InputPolicy(
        OffsetDefault.OLDEST, LostInput.FAIL, is_bootstrap=is_bootstrap, priority=priority
    )
    assert tier_of(policy) == tier


def test_nothing_else_is_read_before_every_bootstrap_partition_is_at_its_end() -> None:
    """The ends are those of the start; the last of them lets the others begin."""
    schedule = InputSchedule.of(TIERS, STARTS, {TABLE0: 3, TABLE1: 2, HIGH: 9, LOW: 9})
    assert schedule.readable() == (BOOTSTRAP_TIER,)
    schedule = schedule.passed({TABLE0: 3, TABLE1: 1})
    assert schedule.is_bootstrapping
    assert schedule.readable() == (BOOTSTRAP_TIER,)
    schedule = schedule.passed({TABLE0: 3, TABLE1: 2})
    assert not schedule.is_bootstrapping
    assert schedule.readable() == (BOOTSTRAP_TIER, 5, 0)


def test_a_partition_that_was_at_its_end_never_holds_up_the_others_again() -> None:
    """L13: caught-up partitions are dropped at the start and later, for good."""
    schedule = InputSchedule.of(TIERS, STARTS, {TABLE0: 0, TABLE1: 2})
    assert set(schedule.ends) == {TABLE1}
    done = schedule.passed({TABLE0: 5, TABLE1: 2})
    assert done.passed({TABLE0: 0, TABLE1: 0}) is done
    assert not done.is_bootstrapping
    unheard = InputSchedule.of(TIERS, {}, {TABLE0: 1, TABLE1: 1}).passed({TABLE0: 1})
    assert unheard.ends == {TABLE1: 1}, "what is not said to be read is not"


def test_the_time_that_is_left_is_what_it_takes_at_the_rate_so_far() -> None:
    """Of all bootstrap partitions together; nothing is known before anything was read."""
    schedule = InputSchedule.of(TIERS, STARTS, {TABLE0: 30, TABLE1: 70, HIGH: 9})
    assert schedule.left({}) == 100
    following = {TABLE0: 30, TABLE1: 50, HIGH: 0}
    assert schedule.passed(following).left(following) == 20
    assert seconds_left(1000.0, 100, 1008.0, 20) == 2.0
    assert seconds_left(1000.0, 100, 1008.0, 100) is None
    assert seconds_left(1000.0, 100, 1000.0, 20) is None
