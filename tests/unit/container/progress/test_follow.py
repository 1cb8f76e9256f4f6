"""Where a store stands in the log that it follows, how far behind, and when it may not go on."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import (
    CHANGELOG,
    STREAM,
    VERSIONS,
    Followed,
    FollowRule,
    HeadPoll,
    poll_interval_s,
)
from homeport.container.progress.refusal import Refusal, RefusalReason

BEGAN_MS, KEPT_MS = 5_000, 60_000


class _Poll(NamedTuple):
    """The answer to a request of this moment, or to that of the beginning."""

    head: int
    asked_ms: int
    is_of_now: bool = True


class _Read(NamedTuple):
    following: int
    now_ms: int


class _State(NamedTuple):
    """What is known after a step; seconds of lag, and when the store was last at the head."""

    lag: int
    lag_s: float
    at_head_ms: int


def _followed(
    rule: FollowRule = CHANGELOG, kept_ms: int | None = KEPT_MS, following: int = 10
) -> Followed:
    """A store that was restored to the head, which is at offset 10."""
    return Followed("id-1", following, ClockReading(BEGAN_MS), rule, kept_ms)


def _poll(head: int, asked_ms: int = 7_000, oldest: int = 0, topic_id: str = "id-1") -> HeadPoll:
    return HeadPoll(ClockReading(asked_ms), oldest, head, topic_id)


def _done(followed: Followed, step: _Poll | _Read) -> Refusal | None:
    if isinstance(step, _Read):
        return followed.read(step.following, ClockReading(step.now_ms))
    if step.is_of_now:
        followed.ask()
    return followed.take_heads(_poll(step.head, step.asked_ms))


def _state(followed: Followed) -> _State:
    return _State(followed.lag, followed.lag_s, followed.at_head.wall_ms)


@pytest.mark.parametrize(
    ("steps", "state"),
    [
        ([], _State(0, 0.0, BEGAN_MS)),
        ([_Poll(10, 7_000)], _State(0, 0.0, 7_000)),
        ([_Poll(10, 7_000), _Poll(11, 8_000)], _State(1, 1.0, 7_000)),
        ([_Poll(110, 7_000)], _State(100, 2.0, BEGAN_MS)),
        ([_Poll(110, 7_000), _Read(60, 7_500)], _State(50, 2.0, BEGAN_MS)),
        ([_Poll(110, 7_000), _Read(60, 7_500), _Poll(210, 8_000)], _State(150, 3.0, BEGAN_MS)),
        ([_Poll(12, BEGAN_MS)], _State(2, 0.0, BEGAN_MS)),
        ([_Poll(110, 4_000)], _State(100, 0.0, BEGAN_MS)),
        ([_Poll(110, 7_000), _Poll(110, 8_000), _Read(110, 8_100)], _State(0, 0.0, 7_000)),
        ([_Read(31, 6_000), _Poll(20, 5_900, is_of_now=False)], _State(0, 0.0, 5_900)),
        ([_Read(7, 6_000)], _State(0, 0.0, BEGAN_MS)),
    ],
    ids=[
        "before the first poll",
        "a poll that finds nothing more is the head",
        "one offset that is not read yet may be a record",
        "records up to the end, seconds since it held all there was",
        "the seconds are those of the last poll",
        "both grow",
        "some records behind, and no time",
        "a clock that was set back makes no lag in seconds",
        "the later poll saw no more than the first, which dates the store at the head",
        "records since the request to the broker are no fault",
        "what was read before never takes the position back",
    ],
)
def test_a_poll_and_what_was_read_say_how_far_a_store_is_behind(
    steps: list[_Poll | _Read], state: _State
) -> None:
    """It begins at offset 10, at 5,000 ms."""
    followed = _followed()
    assert [_done(followed, step) for step in steps] == [None] * len(steps)
    assert _state(followed) == state
    assert followed.next >= 10


def test_a_store_that_is_written_to_all_the_time_has_been_at_the_head() -> None:
    """It held, at the time of a poll, all that there was then, once it has read up to there."""
    followed = _followed()
    for step, state in (
        (_Poll(110, 7_000), _State(100, 2.0, BEGAN_MS)),
        (_Poll(210, 8_000), _State(200, 3.0, BEGAN_MS)),
        (_Read(109, 8_100), _State(101, 3.0, BEGAN_MS)),
        (_Read(151, 8_200), _State(59, 1.0, 7_000)),
        (_Poll(211, 9_000), _State(60, 2.0, 7_000)),
        (_Read(211, 9_100), _State(0, 0.0, 9_000)),
    ):
        assert _done(followed, step) is None
        assert _state(followed) == state


@pytest.mark.parametrize(
    ("rule", "poll", "refusal"),
    [
        (
            CHANGELOG,
            _poll(10, topic_id="id-2"),
            Refusal(RefusalReason.RECREATED, "it was recreated: its topic id was id-1, it is id-2"),
        ),
        (
            CHANGELOG,
            _poll(9),
            Refusal(
                RefusalReason.AHEAD, "the store stands at offset 10, and the changelog ends at 9"
            ),
        ),
        (
            CHANGELOG,
            _poll(50, oldest=11),
            Refusal(
                RefusalReason.BEHIND_OLDEST,
                "the store stands at offset 10, and the changelog's oldest is 11",
            ),
        ),
        (
            STREAM,
            _poll(30, oldest=12),
            Refusal(
                RefusalReason.BEHIND_OLDEST,
                "the store stands at offset 10, and the stream's oldest is 12",
            ),
        ),
    ],
    ids=["recreated", "cut off before the end", "a gap", "a gap of more than a marker"],
)
def test_a_log_that_is_another_or_lacks_something_is_not_followed(
    rule: FollowRule, poll: HeadPoll, refusal: Refusal
) -> None:
    """Safety S3: offsets of another topic mean nothing to the store. It stays where it is."""
    followed = _followed(rule)
    assert followed.take_heads(poll) == refusal
    assert (_state(followed), followed.next) == (_State(0, 0.0, BEGAN_MS), 10)


@pytest.mark.parametrize(
    ("rule", "oldest"),
    [(CHANGELOG, 10), (STREAM, 11), (VERSIONS, 12)],
    ids=["no gap", "the end of a transaction", "versions, which know what they lack"],
)
def test_a_log_that_lacks_nothing_of_the_store_is_followed(rule: FollowRule, oldest: int) -> None:
    """Of streams, one offset may be a marker, which is no record."""
    followed = _followed(rule)
    assert followed.take_heads(_poll(30, oldest=oldest)) is None
    assert followed.lag == 20


LATE_MS = BEGAN_MS + KEPT_MS


def test_records_read_too_late_are_not_written() -> None:
    """Safety S2: beyond the retention Kafka may have dropped deletions; a lone marker is none."""
    followed = _followed()
    fault = followed.read(12, ClockReading(LATE_MS))
    assert fault is not None
    assert (fault.reason, followed.next) == (RefusalReason.STALE, 10)
    assert _followed().read(11, ClockReading(LATE_MS)) is None
    assert _followed().read(12, ClockReading(LATE_MS - 1)) is None


@pytest.mark.parametrize("rule", [CHANGELOG, STREAM])
def test_a_follower_that_had_nothing_to_read_is_never_too_late(rule: FollowRule) -> None:
    """Polls that find nothing more go on saying that it holds all there is.

    What comes after the head counts from where the store stood at it: one offset is a marker.
    """
    followed = _followed(rule)
    for asked_ms in range(10_000, 200_000, 10_000):
        assert followed.take_heads(_poll(10, asked_ms)) is None
    assert followed.read(21, ClockReading(200_000)) is None
    assert _done(followed, _Poll(21, 210_000)) is None
    assert followed.read(22, ClockReading(210_000 + KEPT_MS)) is None
    assert followed.read(23, ClockReading(210_000 + KEPT_MS)) is not None


def test_a_stream_that_is_read_too_late_may_lack_deletions() -> None:
    """From then on the store is never again at its head, as far as is known; one warning comes."""
    followed = _followed(STREAM)
    assert followed.take_heads(_poll(30)) is None
    assert followed.read(20, ClockReading(LATE_MS - 1)) is None
    assert followed.read(20, ClockReading(LATE_MS)) is None
    assert followed.read(21, ClockReading(LATE_MS)) == Refusal(
        RefusalReason.STALE,
        "it last stood at the stream's head 60 s ago, and deletions are kept for 60 s: stale",
    )
    assert followed.read(30, ClockReading(99_000)) is None
    assert _done(followed, _Poll(30, 99_500)) is None
    assert followed.read(30, ClockReading(99_600)) is None
    assert _state(followed) == _State(0, 0.0, BEGAN_MS)


def test_a_stream_that_is_not_compacted_keeps_its_deletions() -> None:
    """However late they are read."""
    followed = _followed(STREAM, None)
    assert followed.take_heads(_poll(30)) is None
    assert followed.read(30, ClockReading(BEGAN_MS + 9 * KEPT_MS)) is None
    assert _state(followed) == _State(0, 0.0, 7_000)


def test_what_was_written_may_lack_the_end_of_a_transaction() -> None:
    """It is no record; a store that lacks more is not at its head."""
    followed = _followed(STREAM)
    assert followed.take_heads(_poll(30)) is None
    for following, is_behind_markers, at_head_ms in (
        (28, False, BEGAN_MS),
        (29, True, BEGAN_MS),
        (29, False, 7_000),
    ):
        followed.read(following, ClockReading(7_500), is_behind_markers=is_behind_markers)
        assert followed.at_head.wall_ms == at_head_ms


@pytest.mark.parametrize(
    ("retentions_ms", "seconds"),
    [((), 30.0), ((86_400_000,), 30.0), ((86_400_000, 60_000), 6.0), ((500,), 0.1), ((0,), 0.1)],
)
def test_heads_are_looked_at_several_times_in_the_shortest_retention(
    retentions_ms: tuple[int, ...], seconds: float
) -> None:
    """Neither more rarely than is wanted anyhow, nor all the time."""
    assert poll_interval_s(retentions_ms, 30.0) == seconds
