"""Where a store stands in the changelog that it follows, how far that is behind, and what is wrong.

PURE. A follower asks from time to time where each changelog ends (a look), and goes on reading.
Once it has read to the end that a look saw, it held, at the time of that look, all that there was:
that is what ``at_head`` says. A store that is written to all the time is never seen at the very
end, and its ``at_head`` goes on all the same.

Source: STANDBY, part 1; safety K1 (heads), safety S2, S3 (stale, recreated).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from homeport.container.progress.clock_reading import ClockReading, elapsed_ms
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.store_meta import Expectation, meta_fault, stale_fault

_QUICKEST_LOOK_S = 0.1
_LOOKS_IN_A_RETENTION = 10
_MS_PER_S = 1000


def look_interval_s(retentions_ms: Sequence[int], most_s: float) -> float:
    """Return the interval of requests for heads: several in the shortest retention."""
    if not retentions_ms:
        return most_s
    wanted_s = min(retentions_ms) / _MS_PER_S / _LOOKS_IN_A_RETENTION
    return min(most_s, max(_QUICKEST_LOOK_S, wanted_s))


@dataclass(frozen=True, slots=True)
class Look:
    """What the broker said of one changelog partition.

    ``asked``: the time of the request. ``oldest``: the first offset that is
    kept. ``head``: one past the last, open transactions included. ``topic_id``: the broker's id.
    """

    asked: ClockReading
    oldest: int
    head: int
    topic_id: str


class Followed(ABC):
    """A store behind one partition: what it is behind, and when it held all that there was."""

    at_head: ClockReading
    _seen: Look | None
    _goal: Look | None

    @property
    def lag(self) -> int:
        """Offsets between the store and the end that was last seen."""
        return 0 if self._seen is None else max(0, self._seen.head - self._following())

    @property
    def lag_s(self) -> float:
        """Seconds since the store held all that there was, at the last look; 0 at the end."""
        if self._seen is None or self.lag == 0:
            return 0.0
        return max(0, elapsed_ms(self.at_head, self._seen.asked) or 0) / _MS_PER_S

    def looked(self, look: Look, then: int) -> Refusal | None:
        """Take the broker's ``look``, which was requested when the store stood at ``then``.

        Returns:
            Why the store is not to go on; None where all is well.
        """
        fault = self._fault(look, then)
        if fault is None:
            self._seen = look
            self._goal = self._goal or look
            self._settle()
        return fault

    @abstractmethod
    def _following(self) -> int:
        """Return the offset that is read next."""

    @abstractmethod
    def _fault(self, look: Look, then: int) -> Refusal | None:
        """Return why the store is not to go on."""

    @abstractmethod
    def _settle(self) -> None:
        """Note that the store was at the head, once it stands where that was seen."""


@dataclass(slots=True)
class FollowedChangelog(Followed):
    """One store behind one changelog partition.

    ``position``: the last offset up to which the store holds everything, -1 before the first;
    ``at_head``: when the store was last known to hold all that there was. ``expected``: what the
    store is of, and how long its changelog keeps deletions.
    """

    position: int
    at_head: ClockReading
    expected: Expectation
    _position_at_head: int = field(init=False)
    _seen: Look | None = None
    _goal: Look | None = None

    def __post_init__(self) -> None:
        """The store stands at the head: it was restored to there."""
        self._position_at_head = self.position

    def _following(self) -> int:
        return self.position + 1

    def read(self, position: int, now: ClockReading) -> Refusal | None:
        """What was read by ``now`` brings the store to ``position``.

        Returns:
            Why it is not to be written, and the store not to go on; None where all is well.
        """
        # Deletions that Kafka dropped before it was read are missing in it.
        present = replace(self.expected, meta=replace(self.expected.meta, at_head=now))
        fault = stale_fault(self.at_head, present, self._position_at_head, position + 1)
        if fault is None:
            self.position = position
            self._settle()
        return fault

    def _fault(self, look: Look, then: int) -> Refusal | None:
        found = self.expected.meta
        now = replace(self.expected, meta=replace(found, topic_id=look.topic_id))
        fault = meta_fault(found, now)
        if fault is not None:
            return fault
        if then >= look.head:
            story = f"position {then} is beyond the changelog's end {look.head}"
            return Refusal(RefusalReason.AHEAD, story)
        if self.position + 1 < look.oldest:
            return Refusal(
                RefusalReason.BEHIND_OLDEST,
                f"position {self.position} is before the changelog's oldest offset {look.oldest}",
            )
        return None

    def _settle(self) -> None:
        if self._goal is not None and self.position >= self._goal.head - 1:
            self.at_head = self._goal.asked
            self._position_at_head = self.position
            self._goal = None
