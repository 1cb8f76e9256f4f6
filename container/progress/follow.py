"""The place of a store in the log that it follows: how far behind it is, and its faults.

PURE. A follower polls the end of each partition from time to time, and goes on reading. Once it has
read to the head of a poll, it has all records of the time of that poll: ``at_head`` is this time. A
store that is written to all the time is never seen at the very end, but its ``at_head`` goes on.

Source: STANDBY, part 1; safety K1 (heads), safety S2, S3 (stale, recreated).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from homeport.container.progress.clock_reading import ClockReading, elapsed_ms
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.store_meta import MARKER, least_ms, missed_deletions

_QUICKEST_POLL_S = 0.1
_POLLS_IN_A_RETENTION = 10
_MS_PER_S = 1000


def poll_interval_s(retentions_ms: Iterable[int | None], most_s: float) -> float:
    """Return the interval of requests for heads: several in the shortest retention."""
    shortest_ms = least_ms(*retentions_ms)
    if shortest_ms is None:
        return most_s
    wanted_s = shortest_ms / _MS_PER_S / _POLLS_IN_A_RETENTION
    return min(most_s, max(_QUICKEST_POLL_S, wanted_s))


@dataclass(frozen=True, slots=True)
class HeadPoll:
    """The broker's answer about one partition.

    ``asked``: the time of the request. ``oldest``: the first offset that is kept. ``head``: one
    past the last, open transactions included. ``topic_id``: the broker's id.
    """

    asked: ClockReading
    oldest: int
    head: int
    topic_id: str


@dataclass(frozen=True, slots=True)
class FollowRule:
    """How much of its log a store may lack.

    ``log``: the log, for messages. ``most_gap``: how many unread offsets may be gone; None: any
    number, since the store knows what it lacks. ``ends_when_stale``: whether a store that may lack
    deletions stops; else it goes on, and ``at_head`` stays.
    """

    log: str
    most_gap: int | None
    ends_when_stale: bool = False


CHANGELOG = FollowRule("changelog", 0, ends_when_stale=True)
STREAM = FollowRule("stream", MARKER)
"""The end of a transaction is no record: the oldest offset may lie one behind it."""
VERSIONS = FollowRule("stream", None)


@dataclass(slots=True)
class Followed:
    """One store behind one partition.

    ``topic_id``: the broker's id of the store's topic. ``next``: the offset that is read next; the
    store has all records below. ``at_head``: when the store was last known to have all records;
    before the first such time, when it began. ``kept_ms``: how long the log keeps deletions; None:
    it is not compacted.
    """

    topic_id: str
    next: int
    at_head: ClockReading
    rule: FollowRule
    kept_ms: int | None = None
    _next_at_head: int = field(init=False)
    _next_asked: int = field(init=False)
    _polled: HeadPoll | None = None
    _goal: HeadPoll | None = None
    _is_stale: bool = False

    def __post_init__(self) -> None:
        self._next_at_head = self._next_asked = self.next

    @property
    def lag(self) -> int:
        """Return how many offsets the store is behind the end of the last poll."""
        return 0 if self._polled is None else max(0, self._polled.head - self.next)

    @property
    def lag_s(self) -> float:
        """Return the seconds from ``at_head`` to the last poll; 0 where the store is at the end."""
        if self._polled is None or self.lag == 0:
            return 0.0
        return max(0, elapsed_ms(self.at_head, self._polled.asked) or 0) / _MS_PER_S

    def ask(self) -> None:
        """Note that the heads are requested now."""
        self._next_asked = self.next

    def take_heads(self, poll: HeadPoll) -> Refusal | None:
        """Take the answer to the last request; return why the store must not go on, or None."""
        fault = self._fault(poll)
        if fault is None:
            self._polled = poll
            self._goal = self._goal or poll
            self._note_head()
        return fault

    def read(
        self, following: int, now: ClockReading, *, is_behind_markers: bool = True
    ) -> Refusal | None:
        """Note that the store has all records below ``following``, which were read by ``now``.

        ``is_behind_markers``: whether ``following`` is behind the markers of transactions. Else a
        store that lacks one offset counts as being at the head: compaction leaves a partition's
        last record.

        Return why it may lack deletions from now on (safety S2); None: no new reason. A store that
        goes on gets the reason once. One that ends gets it each time: the records that were read
        must not be written, and do not count.
        """
        fault = None
        if following > self.next:
            if not self._is_stale and following - self._next_at_head > MARKER:
                fault = missed_deletions(self.rule.log, self.at_head, now, self.kept_ms)
            if fault is not None and self.rule.ends_when_stale:
                return fault
            self.next = following
            self._is_stale = self._is_stale or fault is not None
        self._note_head(0 if is_behind_markers else MARKER)
        return fault

    def _fault(self, poll: HeadPoll) -> Refusal | None:
        log, gap = self.rule.log, self.rule.most_gap
        if poll.topic_id != self.topic_id:
            story = f"it was recreated: its topic id was {self.topic_id}, it is {poll.topic_id}"
            return Refusal(RefusalReason.RECREATED, story)
        if self._next_asked > poll.head:
            ends = f"the {log} ends at {poll.head}"
            story = f"the store stands at offset {self._next_asked}, and {ends}"
            return Refusal(RefusalReason.AHEAD, story)
        if gap is not None and poll.oldest - self.next > gap:
            oldest = f"the {log}'s oldest is {poll.oldest}"
            story = f"the store stands at offset {self.next}, and {oldest}"
            return Refusal(RefusalReason.BEHIND_OLDEST, story)
        return None

    def _note_head(self, markers: int = 0) -> None:
        if self._goal is not None and self.next + markers >= self._goal.head:
            if not self._is_stale:
                self.at_head, self._next_at_head = self._goal.asked, self.next
            self._goal = None
