"""Where a task goes on reading its input.

PURE. Source: Samza 1.8 ``OffsetManager``: the checkpoint's offset is the last processed message;
without a checkpoint ``samza.offset.default`` decides.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeport.config.errors import StoreError
from homeport.job_coordinator.model.job_model import SystemStreamPartition


@dataclass(frozen=True, slots=True)
class InputRange:
    """Offsets of an input partition: the oldest that is kept, and the end, one past the last."""

    oldest: int
    end: int


@dataclass(frozen=True, slots=True)
class InputPosition:
    """The next offset to read; ``lost`` messages were deleted before they could be read."""

    offset: int
    lost: int = 0


def input_position(
    ssp: SystemStreamPartition, processed: int | None, default: str, available: InputRange
) -> InputPosition:
    """The message after the last processed one; else the oldest, or the end, by ``default``.

    Raises:
        StoreError: the checkpoint lies beyond the end: the topic was made anew.
    """
    if processed is None:
        return InputPosition(available.oldest if default == "oldest" else available.end)
    if processed >= available.end:
        raise StoreError(
            f"{ssp}: its checkpoint says {processed}, but the partition ends at {available.end}: "
            f"the topic was made anew; restore it, or start the job under another job.id"
        )
    following = processed + 1
    if following < available.oldest:
        return InputPosition(available.oldest, lost=available.oldest - following)
    return InputPosition(following)
