"""Where a task goes on reading its input.

PURE. Source: Samza 1.8 ``OffsetManager``: the checkpoint's offset is the last processed message;
without a checkpoint ``samza.offset.default`` decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
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


def first_place(
    ssp: SystemStreamPartition, default: str, first_counts: Mapping[SystemStream, int]
) -> str:
    """Where a task that has no checkpoint of ``ssp`` begins: "oldest", or ``default``.

    A partition that its input has grown by begins at its oldest record: what came to it before the
    job noticed it belongs to the job's input.

    Shapes: ``first_counts`` {input: its partitions when the job first read it}.
    """
    has_grown = ssp.partition >= first_counts.get(ssp.system_stream, ssp.partition + 1)
    return "oldest" if has_grown else default


def input_position(
    ssp: SystemStreamPartition, processed: int | None, default: str, available: InputRange
) -> InputPosition:
    """The message after the last processed one; else the oldest, or the end, by ``default``.

    Raises:
        StoreError: the checkpoint lies beyond the end: the topic was recreated.
    """
    if processed is None:
        return InputPosition(available.oldest if default == "oldest" else available.end)
    if processed >= available.end:
        raise StoreError(
            f"{ssp}: its checkpoint says {processed}, but the partition ends at {available.end}: "
            f"the topic was recreated; restore it, or start the job under another job.id"
        )
    following = processed + 1
    if following < available.oldest:
        return InputPosition(available.oldest, lost=available.oldest - following)
    return InputPosition(following)
