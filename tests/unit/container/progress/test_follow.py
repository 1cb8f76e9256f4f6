"""Where a store stands in the changelog that it follows."""

from __future__ import annotations

import pytest

from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import CHANGELOG, Followed, HeadPoll, poll_interval_s
from homeport.container.progress.refusal import Refusal, RefusalReason

_RETENTION_MS = 60_000


def _followed() -> Followed:
    """A store that was restored to the head, which is behind offset 9, at 5,000 ms."""
    return Followed("id-1", 10, ClockReading(5_000), CHANGELOG, _RETENTION_MS)


def _poll(asked_ms: int, head: int, oldest: int = 0, topic_id: str = "id-1") -> HeadPoll:
    return HeadPoll(ClockReading(asked_ms), oldest, head, topic_id)


def test_a_store_at_the_end_is_not_behind() -> None:
    """Neither before the first look, nor at one that finds nothing more; and that is noted."""
    followed = _followed()
    assert (followed.lag, followed.lag_s) == (0, 0.0)
    assert followed.take_heads(_poll(7_000, 10), 10) is None
    assert (followed.lag, followed.lag_s, followed.at_head.wall_ms) == (0, 0.0, 7_000)


def test_the_lag_is_reported_in_records_and_seconds() -> None:
    """Records up to the end that was last seen; seconds since it last held all that there was."""
    followed = _followed()
    assert followed.take_heads(_poll(7_000, 110), 10) is None
    assert (followed.lag, followed.lag_s) == (100, 2.0)
    assert followed.read(60, ClockReading(7_500)) is None
    assert followed.take_heads(_poll(8_000, 210), 60) is None
    assert (followed.lag, followed.lag_s) == (150, 3.0)


def test_a_store_that_is_written_to_all_the_time_has_been_at_the_head() -> None:
    """It held, at the time of a look, all that there was then, once it has read up to there."""
    followed = _followed()
    assert followed.take_heads(_poll(7_000, 110), 10) is None
    assert followed.take_heads(_poll(8_000, 210), 10) is None
    assert followed.read(109, ClockReading(8_100)) is None
    assert followed.at_head.wall_ms == 5_000
    assert followed.read(151, ClockReading(8_200)) is None
    assert followed.at_head.wall_ms == 7_000
    assert (followed.lag, followed.lag_s) == (59, 1.0)
    assert followed.take_heads(_poll(9_000, 211), 151) is None
    assert followed.read(211, ClockReading(9_100)) is None
    assert (followed.at_head.wall_ms, followed.lag) == (9_000, 0)


def test_records_read_too_late_are_not_written() -> None:
    """Safety S2: beyond the retention Kafka may have dropped deletions; a lone marker is none."""
    late_ms = 5_000 + _RETENTION_MS
    fault = _followed().read(12, ClockReading(late_ms))
    assert fault is not None
    assert fault.reason is RefusalReason.STALE
    assert _followed().read(11, ClockReading(late_ms)) is None
    assert _followed().read(12, ClockReading(late_ms - 1)) is None


def test_a_follower_that_had_nothing_to_read_is_never_too_late() -> None:
    """Looks that find nothing more go on saying that it holds all there is."""
    followed = _followed()
    for asked_ms in range(10_000, 200_000, 10_000):
        assert followed.take_heads(_poll(asked_ms, 10), 10) is None
    assert followed.read(21, ClockReading(200_000)) is None
    assert followed.next == 21


def test_another_topic_of_the_name_is_not_followed() -> None:
    """Safety S3: its offsets mean nothing to the store."""
    fault = _followed().take_heads(_poll(7_000, 10, topic_id="id-2"), 10)
    assert fault is not None
    assert fault.reason is RefusalReason.RECREATED


def test_a_changelog_that_is_cut_off_is_not_followed() -> None:
    """At either side: shorter than what the store holds, or without what it needs next."""
    assert _followed().take_heads(_poll(7_000, 9), 10) == Refusal(
        RefusalReason.AHEAD, "the store stands at offset 10, and the changelog ends at 9"
    )
    assert _followed().take_heads(_poll(7_000, 50, oldest=11), 10) == Refusal(
        RefusalReason.BEHIND_OLDEST,
        "the store stands at offset 10, and the changelog's oldest is 11",
    )
    assert _followed().take_heads(_poll(7_000, 50, oldest=10), 10) is None


def test_records_since_the_request_to_the_broker_are_no_fault() -> None:
    """The answer is of then: by now the store may hold more."""
    followed = _followed()
    assert followed.read(31, ClockReading(6_000)) is None
    assert followed.take_heads(_poll(5_900, 20), 10) is None
    assert (followed.lag, followed.at_head.wall_ms) == (0, 5_900)


def test_a_store_that_is_refused_stays_where_it_is() -> None:
    """What was not written is not counted, and a look that was refused says nothing of the lag."""
    followed = _followed()
    assert followed.read(12, ClockReading(5_000 + _RETENTION_MS)) is not None
    assert followed.next == 10
    assert followed.take_heads(_poll(7_000, 50, topic_id="id-2"), 10) is not None
    assert (followed.lag, followed.at_head.wall_ms) == (0, 5_000)


def test_a_clock_that_was_set_back_makes_no_lag() -> None:
    """The lag in seconds is unknown and shown as 0; the lag in records is known."""
    followed = _followed()
    assert followed.take_heads(_poll(4_000, 110), 10) is None
    assert (followed.lag, followed.lag_s) == (100, 0.0)


def test_a_lone_marker_after_the_head_was_reached_again_is_not_too_late() -> None:
    """What comes after the head counts from where the store stood at it, not from its start."""
    followed = _followed()
    assert followed.take_heads(_poll(6_000, 31), 10) is None
    assert followed.read(31, ClockReading(6_100)) is None
    late = ClockReading(6_000 + _RETENTION_MS)
    assert followed.read(32, late) is None


@pytest.mark.parametrize(
    ("retentions_ms", "seconds"),
    [((), 30.0), ((86_400_000,), 30.0), ((86_400_000, 60_000), 6.0), ((500,), 0.1), ((0,), 0.1)],
)
def test_heads_are_looked_at_several_times_in_the_shortest_retention(
    retentions_ms: tuple[int, ...], seconds: float
) -> None:
    """Neither more rarely than is wanted anyhow, nor all the time."""
    assert poll_interval_s(retentions_ms, 30.0) == seconds
