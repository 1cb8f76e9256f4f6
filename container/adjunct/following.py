"""Where a standby's adjunct store stands in its stream, how far that is behind, and what is wrong.

PURE. As ``progress/follow.py`` has it for changelogs: a follower asks from time to time where each
partition ends (a look), and goes on reading. Once it has read to the end that a look saw, it held,
at the time of that look, all that there was.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeport.container.progress.clock_reading import ClockReading, elapsed_ms
from homeport.container.progress.follow import Look
from homeport.container.progress.refusal import Refusal, RefusalReason

_MS_PER_S = 1000


@dataclass(slots=True)
class FollowedPartition:
    """One partition of an adjunct stream.

    ``topic_id``: the broker's id of the topic that the store is of. ``next``: the offset that is
    read next. ``at_head``: when the store was last known to hold all that there was; before the
    first such time, when it began.
    """

    topic_id: str
    next: int
    at_head: ClockReading
    _seen: Look | None = None
    _goal: Look | None = None

    @property
    def lag(self) -> int:
        """Offsets between the store and the end that was last seen."""
        return 0 if self._seen is None else max(0, self._seen.head - self.next)

    @property
    def lag_s(self) -> float:
        """Seconds since the store held all that there was, at the last look; 0 at the end."""
        if self._seen is None or self.lag == 0:
            return 0.0
        return max(0, elapsed_ms(self.at_head, self._seen.asked) or 0) / _MS_PER_S

    def read(self, following: int) -> None:
        """The store has all below ``following``."""
        self.next = max(self.next, following)
        self._settle()

    def looked(self, look: Look, next_then: int) -> Refusal | None:
        """The broker said ``look`` when ``next_then`` was read next.

        Returns:
            Why the store is not to go on; None where all is well.
        """
        fault = self._fault(look, next_then)
        if fault is None:
            self._seen = look
            self._goal = self._goal or look
            self._settle()
        return fault

    def _fault(self, look: Look, next_then: int) -> Refusal | None:
        if look.topic_id != self.topic_id:
            story = f"it was recreated: its topic id was {self.topic_id}, it is {look.topic_id}"
            return Refusal(RefusalReason.RECREATED, story)
        if next_then > look.head:
            story = f"the store stands at offset {next_then}, and it ends at {look.head}"
            return Refusal(RefusalReason.AHEAD, story)
        # The end of a transaction is no record: the oldest offset may lie one behind it.
        if look.oldest - self.next > 1:
            story = f"the store stands at offset {self.next}, and its oldest is {look.oldest}"
            return Refusal(RefusalReason.BEHIND_OLDEST, story)
        return None

    def _settle(self) -> None:
        if self._goal is not None and self.next >= self._goal.head:
            self.at_head = self._goal.asked
            self._goal = None
