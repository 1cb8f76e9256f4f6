"""Where input goes on."""

from __future__ import annotations

import pytest

from homeport.config.errors import StoreError
from homeport.container.progress.input_position import (
    InputPosition,
    InputRange,
    first_place,
    input_position,
)
from homeport.job_coordinator.model.job_model import SystemStreamPartition

SSP = SystemStreamPartition("kafka", "in", 0)
RANGE = InputRange(oldest=10, end=20)


def test_after_the_last_processed_message() -> None:
    """The checkpoint's offset is the last processed one."""
    assert input_position(SSP, 14, "upcoming", RANGE) == InputPosition(15, lost=0)
    assert input_position(SSP, 19, "oldest", RANGE) == InputPosition(20)


def test_without_a_checkpoint_the_default_decides() -> None:
    """Oldest is the first that is kept, upcoming the end."""
    assert input_position(SSP, None, "oldest", RANGE) == InputPosition(10)
    assert input_position(SSP, None, "upcoming", RANGE) == InputPosition(20)


def test_messages_that_are_gone_are_counted() -> None:
    """A checkpoint behind the oldest offset goes on there and says how many are lost."""
    assert input_position(SSP, 6, "upcoming", RANGE) == InputPosition(10, lost=3)
    assert input_position(SSP, 9, "upcoming", RANGE) == InputPosition(10)


def test_a_checkpoint_beyond_the_end_is_refused() -> None:
    """The topic was recreated: going on anywhere would be wrong."""
    with pytest.raises(StoreError, match=r"its checkpoint says 20, .* ends at 20"):
        input_position(SSP, 20, "oldest", RANGE)


def test_a_partition_that_its_input_has_grown_by_begins_at_its_oldest() -> None:
    """Of the partitions of the first start, and of an input without a count, the default says."""
    counts = {SSP.system_stream: SSP.partition + 1}
    grown = SystemStreamPartition(SSP.system, SSP.stream, SSP.partition + 1)
    for default in ("oldest", "upcoming"):
        assert first_place(SSP, default, counts) == default
        assert first_place(grown, default, counts) == "oldest"
        assert first_place(grown, default, {}) == default
