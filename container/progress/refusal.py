"""Why a store on a host may not be used, and all of its changelog is read.

PURE. A store that is stale, foreign, recreated, ahead or damaged is rebuilt; the reason is logged
and counted. Source: safety S1, S2, S3.
"""

from dataclasses import dataclass
from enum import Enum


class RefusalReason(Enum):
    """The kinds of refusal; the value is their name in status, metrics and history."""

    MISSING_OFFSET = "missing-offset"
    """The container died before the store's first flush."""
    DAMAGED_OFFSET = "damaged-offset"
    DAMAGED_META = "damaged-meta"
    DAMAGED_STORE = "damaged-store"
    """The engine cannot read it, at its opening or later."""
    MISSING_POSITION = "missing-position"
    """The store has no position in its changelog."""
    OFFSET_ABOVE_POSITION = "offset-above-position"
    OTHER_FORMAT = "other-format"
    """Another version of this project wrote it."""
    FOREIGN = "foreign"
    """It is of another changelog, of other input, or of another grouping."""
    RECREATED = "recreated"
    """Its changelog was deleted and recreated."""
    AHEAD = "ahead"
    """It has more records than its changelog."""
    BEHIND_OLDEST = "behind-oldest"
    """Records that it lacks are no longer in its changelog."""
    STALE = "stale"
    """Deletions that it lacks may no longer be in its changelog."""
    CLOCK_SET_BACK = "clock-set-back"
    """The clock was set back, so the age of the store is unknown."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """One refusal: its kind, and its story in one line."""

    reason: RefusalReason
    story: str
