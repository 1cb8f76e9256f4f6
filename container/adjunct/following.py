"""Where an adjunct store stands in its stream, how far that is behind, and what is wrong.

PURE. As ``progress/follow.py`` has it for changelogs: a follower asks from time to time where each
partition ends (a look), and goes on reading. Once it has read to the end that a look saw, it held,
at the time of that look, all that there was.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import Followed, Look
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.store_meta import missed_deletions

_MARKER = 1
"""The end of a transaction is no record, and takes an offset."""


@dataclass(slots=True)
class FollowedPartition(Followed):
    """One partition of an adjunct stream.

    ``topic_id``: the broker's id of the topic that the store is of. ``next``: the offset that is
    read next. ``at_head``: when the store was last known to hold all that there was; before the
    first such time, when it began. ``kept_ms``: how long the stream keeps deletions; None: it is
    not compacted. ``may_skip``: whether the store knows what it lacks behind a gap.
    """

    topic_id: str
    next: int
    at_head: ClockReading
    kept_ms: int | None = None
    may_skip: bool = False
    _seen: Look | None = None
    _goal: Look | None = None
    _is_stale: bool = False
    _next_at_head: int = field(init=False)

    def __post_init__(self) -> None:
        """What it lacks by then is the same as at its head."""
        self._next_at_head = self.next

    def _following(self) -> int:
        return self.next

    def read(
        self, following: int, now: ClockReading, *, is_behind_markers: bool = True
    ) -> Refusal | None:
        """Note that the store has all below ``following``, which was read by ``now``.

        ``is_behind_markers``: whether what is no record was passed too. Else a store that lacks one
        offset counts as being at the head: of a partition's last record nothing is compacted.

        Returns:
            Why it may lack deletions from now on, and is never again known to be at its head
            (safety S2), once; None: there is nothing new.
        """
        fault = None
        if following > self.next:
            self.next = following
            if not self._is_stale and following - self._next_at_head > _MARKER:
                fault = self._missed(now)
                self._is_stale = fault is not None
        self._settle(0 if is_behind_markers else _MARKER)
        return fault

    def _missed(self, now: ClockReading) -> Refusal | None:
        if self.kept_ms is None:
            return None
        return missed_deletions("stream", self.at_head, now, self.kept_ms)

    def _fault(self, look: Look, then: int) -> Refusal | None:
        if look.topic_id != self.topic_id:
            story = f"it was recreated: its topic id was {self.topic_id}, it is {look.topic_id}"
            return Refusal(RefusalReason.RECREATED, story)
        if then > look.head:
            story = f"the store stands at offset {then}, and it ends at {look.head}"
            return Refusal(RefusalReason.AHEAD, story)
        # The end of a transaction is no record: the oldest offset may lie one behind it.
        if look.oldest - self.next > _MARKER and not self.may_skip:
            story = f"the store stands at offset {self.next}, and its oldest is {look.oldest}"
            return Refusal(RefusalReason.BEHIND_OLDEST, story)
        return None

    def _settle(self, markers: int = 0) -> None:
        if self._goal is not None and self.next + markers >= self._goal.head:
            if not self._is_stale:
                self.at_head, self._next_at_head = self._goal.asked, self.next
            self._goal = None
