"""How far a standby's adjunct store is behind its stream, and when it may not go on."""

from __future__ import annotations

import pytest

from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import STREAM, VERSIONS, Followed, HeadPoll
from homeport.container.progress.refusal import RefusalReason


def _partition(following: int = 10) -> Followed:
    return Followed("id-1", following, ClockReading(1_000), STREAM)


def _poll(head: int, asked_ms: int, oldest: int = 0, topic_id: str = "id-1") -> HeadPoll:
    return HeadPoll(ClockReading(asked_ms), oldest, head, topic_id)


def test_a_lag_is_that_of_the_last_poll() -> None:
    """None is known before the first; its time is that since all was last there."""
    partition = _partition()
    assert (partition.lag, partition.lag_s) == (0, 0.0)
    assert partition.take_heads(_poll(30, 5_000), 10) is None
    assert (partition.lag, partition.lag_s) == (20, 4.0)
    partition.read(20, ClockReading(5_000))
    assert partition.lag == 10
    assert partition.take_heads(_poll(40, 6_000), 20) is None
    assert (partition.lag, partition.lag_s) == (20, 5.0)


def test_a_stream_that_always_grows_is_reached_where_a_look_saw_its_end() -> None:
    """The store held all that there was at the time of that look."""
    partition = _partition()
    partition.take_heads(_poll(30, 5_000), 10)
    partition.take_heads(_poll(50, 6_000), 20)
    partition.read(30, ClockReading(5_000))
    assert partition.at_head == ClockReading(5_000)
    assert (partition.lag, partition.lag_s) == (20, 1.0)
    partition.take_heads(_poll(50, 7_000), 30)
    partition.read(50, ClockReading(5_000))
    assert (partition.at_head, partition.lag, partition.lag_s) == (ClockReading(7_000), 0, 0.0)


def test_what_was_read_before_never_takes_the_position_back() -> None:
    """The end of a poll that brought nothing may be an older one."""
    partition = _partition(10)
    partition.read(7, ClockReading(5_000))
    assert partition.next == 10


@pytest.mark.parametrize(
    ("poll", "reason", "story"),
    [
        (
            _poll(30, 5_000, topic_id="id-2"),
            RefusalReason.RECREATED,
            "it was recreated: its topic id was id-1, it is id-2",
        ),
        (
            _poll(9, 5_000),
            RefusalReason.AHEAD,
            "the store stands at offset 10, and the stream ends at 9",
        ),
        (
            _poll(30, 5_000, oldest=12),
            RefusalReason.BEHIND_OLDEST,
            "the store stands at offset 10, and the stream's oldest is 12",
        ),
    ],
)
def test_another_topic_or_a_gap_ends_it(poll: HeadPoll, reason: RefusalReason, story: str) -> None:
    """The store lacks something then, or holds what its stream never had."""
    partition = _partition()
    fault = partition.take_heads(poll, 10)
    assert fault is not None
    assert (partition.lag, partition.at_head) == (0, ClockReading(1_000))
    assert (fault.reason, fault.story) == (reason, story)


def test_one_offset_is_the_end_of_a_transaction() -> None:
    """No record is missing where the oldest one follows a marker."""
    assert _partition().take_heads(_poll(30, 5_000, oldest=11), 10) is None


def test_a_store_with_versions_goes_on_behind_a_gap() -> None:
    """It knows which of them lack something."""
    partition = Followed("id-1", 10, ClockReading(1_000), VERSIONS)
    assert partition.take_heads(_poll(30, 5_000, oldest=12), 10) is None
    assert partition.lag == 20


_KEPT_MS = 60_000


def _compacted(kept_ms: int | None = _KEPT_MS) -> Followed:
    """At 10 of 30, and so at the head a second after the start of time."""
    partition = Followed("id-1", 10, ClockReading(1_000), STREAM, kept_ms)
    assert partition.take_heads(_poll(30, 2_000), 10) is None
    return partition


def test_what_is_read_too_late_may_lack_deletions() -> None:
    """From then on the store is never again at its head, as far as is known; one warning comes."""
    partition = _compacted()
    assert partition.read(20, ClockReading(1_000 + _KEPT_MS - 1)) is None
    assert partition.read(20, ClockReading(1_000 + _KEPT_MS)) is None
    stale = partition.read(21, ClockReading(1_000 + _KEPT_MS))
    assert stale is not None
    assert (stale.reason, stale.story) == (
        RefusalReason.STALE,
        "it last stood at the stream's head 60 s ago, and deletions are kept for 60 s: stale",
    )
    assert partition.read(30, ClockReading(99_000)) is None
    assert partition.take_heads(_poll(30, 99_500), 30) is None
    assert partition.read(30, ClockReading(99_600)) is None
    assert (partition.at_head, partition.lag) == (ClockReading(1_000), 0)


def test_a_stream_that_is_not_compacted_keeps_its_deletions() -> None:
    """However late they are read."""
    partition = _compacted(None)
    assert partition.read(30, ClockReading(1_000 + 9 * _KEPT_MS)) is None
    assert partition.at_head == ClockReading(2_000)


def test_where_nothing_came_nothing_was_missed() -> None:
    """A quiet stream is at its head at each look; one offset alone is never compacted away."""
    partition = _compacted()
    assert partition.read(30, ClockReading(2_000)) is None
    assert partition.take_heads(_poll(31, 3 * _KEPT_MS), 30) is None
    assert partition.read(31, ClockReading(3 * _KEPT_MS)) is None
    assert partition.at_head == ClockReading(3 * _KEPT_MS)
    partition.take_heads(_poll(33, 3 * _KEPT_MS + 1), 31)
    assert partition.read(33, ClockReading(5 * _KEPT_MS)) is not None


def test_what_was_written_may_lack_the_end_of_a_transaction() -> None:
    """It is no record; a store that lacks more is not at its head."""
    partition = _compacted()
    partition.read(28, ClockReading(2_500), is_behind_markers=False)
    assert partition.at_head == ClockReading(1_000)
    partition.read(29, ClockReading(2_500))
    assert partition.at_head == ClockReading(1_000)
    partition.read(29, ClockReading(2_500), is_behind_markers=False)
    assert partition.at_head == ClockReading(2_000)


def test_a_look_that_finds_nothing_more_is_the_head() -> None:
    """At once; one offset that is not read yet may be a record."""
    partition = _partition(30)
    partition.take_heads(_poll(30, 5_000), 30)
    assert partition.at_head == ClockReading(5_000)
    partition.take_heads(_poll(31, 6_000), 30)
    assert (partition.at_head, partition.lag, partition.lag_s) == (ClockReading(5_000), 1, 1.0)


def test_a_store_that_lacks_nothing_is_not_late() -> None:
    """Though an earlier look is the one that it has reached; nor where the clock was set back."""
    partition = _partition()
    partition.take_heads(_poll(30, 5_000), 10)
    partition.take_heads(_poll(30, 7_000), 10)
    partition.read(30, ClockReading(8_000))
    assert (partition.at_head, partition.lag_s) == (ClockReading(5_000), 0.0)
    partition = Followed("id-1", 10, ClockReading(9_000), STREAM)
    partition.take_heads(_poll(30, 5_000), 10)
    assert (partition.lag, partition.lag_s) == (20, 0.0)
