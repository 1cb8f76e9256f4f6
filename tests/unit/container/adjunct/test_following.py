"""How far a standby's adjunct store is behind its stream, and when it may not go on."""

from __future__ import annotations

import pytest

from homeport.container.adjunct.following import FollowedPartition
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import Look
from homeport.container.progress.refusal import RefusalReason


def _partition(following: int = 10) -> FollowedPartition:
    return FollowedPartition("id-1", following, ClockReading(1_000))


def _look(head: int, asked_ms: int, oldest: int = 0, topic_id: str = "id-1") -> Look:
    return Look(ClockReading(asked_ms), oldest, head, topic_id)


def test_a_lag_is_that_of_the_last_look() -> None:
    """None is known before the first; its time is that since all was last there."""
    partition = _partition()
    assert (partition.lag, partition.lag_s) == (0, 0.0)
    assert partition.looked(_look(30, 5_000), 10) is None
    assert (partition.lag, partition.lag_s) == (20, 4.0)
    partition.read(20)
    assert partition.lag == 10
    assert partition.looked(_look(40, 6_000), 20) is None
    assert (partition.lag, partition.lag_s) == (20, 5.0)


def test_a_stream_that_always_grows_is_reached_where_a_look_saw_its_end() -> None:
    """The store held all that there was at the time of that look."""
    partition = _partition()
    partition.looked(_look(30, 5_000), 10)
    partition.looked(_look(50, 6_000), 20)
    partition.read(30)
    assert partition.at_head == ClockReading(5_000)
    assert (partition.lag, partition.lag_s) == (20, 1.0)
    partition.looked(_look(50, 7_000), 30)
    partition.read(50)
    assert (partition.at_head, partition.lag, partition.lag_s) == (ClockReading(7_000), 0, 0.0)


def test_what_was_read_before_never_takes_the_position_back() -> None:
    """The end of a poll that brought nothing may be an older one."""
    partition = _partition(10)
    partition.read(7)
    assert partition.next == 10


@pytest.mark.parametrize(
    ("look", "reason", "story"),
    [
        (
            _look(30, 5_000, topic_id="id-2"),
            RefusalReason.RECREATED,
            "it was recreated: its topic id was id-1, it is id-2",
        ),
        (
            _look(9, 5_000),
            RefusalReason.AHEAD,
            "the store stands at offset 10, and it ends at 9",
        ),
        (
            _look(30, 5_000, oldest=12),
            RefusalReason.BEHIND_OLDEST,
            "the store stands at offset 10, and its oldest is 12",
        ),
    ],
)
def test_another_topic_or_a_gap_ends_it(look: Look, reason: RefusalReason, story: str) -> None:
    """The store lacks something then, or holds what its stream never had."""
    fault = _partition().looked(look, 10)
    assert fault is not None
    assert (fault.reason, fault.story) == (reason, story)


def test_one_offset_is_the_end_of_a_transaction() -> None:
    """No record is missing where the oldest one follows a marker."""
    assert _partition().looked(_look(30, 5_000, oldest=11), 10) is None
