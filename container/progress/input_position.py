"""The position from which a task reads its input.

PURE. Source: Samza 1.8 ``OffsetManager``: the checkpoint's offset is the last processed message;
without a checkpoint, or with ``samza.reset.offset``, ``samza.offset.default`` decides.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import HomeportError, StoreError
from homeport.config.settings.input_section import InputPolicy, LostInput, OffsetDefault
from homeport.config.system_stream import SystemStream
from homeport.container.progress.restore import OffsetRange
from homeport.container.progress.store_meta import MARKER
from homeport.job_coordinator.model.job_model import SystemStreamPartition


class LostInputError(HomeportError):
    """Kafka has deleted records that a task has not read, and the task may not go on."""


@dataclass(frozen=True, slots=True)
class InputPosition:
    """The next offset to read; ``lost`` offsets before it were never read."""

    offset: int
    lost: int = 0


def checkpoint_of(
    ssp: SystemStreamPartition, known: Mapping[SystemStreamPartition, int], policy: InputPolicy
) -> int | None:
    """Return the last processed offset that counts; None: the task begins."""
    return None if policy.is_reset else known.get(ssp)


def first_place(
    ssp: SystemStreamPartition,
    policy: InputPolicy,
    first_counts: Mapping[SystemStream, int],
    *,
    is_known: bool = False,
) -> OffsetDefault | int:
    """Return where a task begins in ``ssp``: the oldest record, behind the last, or a time in ms.

    A partition that was added to its input begins at its oldest record: the job has read none of
    it. ``is_known``: it has a checkpoint, which is ignored. Shapes: ``first_counts`` {input: how
    many partitions it had when the job first read it}.
    """
    has_grown = ssp.partition >= first_counts.get(ssp.system_stream, ssp.partition + 1)
    if has_grown and not is_known:
        return OffsetDefault.OLDEST
    return policy.default if policy.start_ms is None else policy.start_ms


def first_position(
    place: OffsetDefault | int, available: OffsetRange, at_time: int | None = None
) -> InputPosition:
    """Return the position at ``place``. ``at_time``: the first offset at that time, if any."""
    if place is OffsetDefault.OLDEST:
        return InputPosition(available.oldest)
    if place is OffsetDefault.UPCOMING or at_time is None:
        return InputPosition(available.head)
    return InputPosition(at_time)


def next_position(
    ssp: SystemStreamPartition, following: int, available: OffsetRange, lost: LostInput
) -> InputPosition:
    """Return the position of a task that reads ``following`` next, by ``lost`` where that is gone.

    One offset that is gone is no loss: it was the end of a transaction, before retention emptied
    the partition.

    Raises:
        StoreError: ``following`` lies beyond the end: the topic was recreated.
        LostInputError: records are gone, and the policy is to fail.
    """
    place = f"{ssp.system_stream} partition {ssp.partition}"
    if following > available.head:
        raise StoreError(
            f"{place}: the job has processed offset {following - 1}, but the partition ends at "
            f"{available.head}: the topic was recreated; restore it, or start the job under "
            "another job.id"
        )
    gap = available.oldest - following
    if gap <= MARKER:
        return InputPosition(max(following, available.oldest))
    if lost is LostInput.FAIL:
        key = keys.STREAM_LOST_INPUT.named(ssp.system, ssp.stream)
        raise LostInputError(
            f"{place}: the next offset to read is {following}, but Kafka has {available.oldest} to "
            f"{available.head}: it has deleted {gap} offsets that were not read, by retention; set "
            f"{key}=earliest to go on without them, or =latest to skip all there is"
        )
    offset = available.oldest if lost is LostInput.EARLIEST else available.head
    return InputPosition(offset, lost=offset - following)


def lost_story(ssp: SystemStreamPartition, position: InputPosition) -> str:
    """Return one line for the log: which offsets were never read."""
    first = position.offset - position.lost
    return (
        f"input lost: {ssp.system_stream} partition {ssp.partition}: offsets {first} to "
        f"{position.offset - 1} ({position.lost}) were not read: Kafka has deleted records there; "
        f"going on at {position.offset}"
    )
