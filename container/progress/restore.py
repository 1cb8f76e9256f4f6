"""Which part of its changelog a store reads before it is used, how fast, and what is trimmed.

PURE. Source: safety S1, S2, S3, S8; Samza 1.8 ``TransactionalStateTaskRestoreManager``.
"""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from homeport.config.system_stream import SystemStream
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.store_meta import StoreMeta, meta_fault, stale_fault
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind
from homeport.job_coordinator.status.container_report import RestoreProgress

_WINDOW_S = 10.0
_BAR = 20
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class LocalState:
    """What was found in a store's directory.

    ``position``: the changelog offset under the reserved key; the store has all records up to it.
    ``offset_file``: the offset in OFFSET; ``meta``: STORE-META; ``fault``: why one of them, or the
    store, cannot be read. ``offset_time_ms``: when OFFSET was written; without STORE-META nothing
    else shows the age of the directory.

    A directory of Samza's has neither the reserved key nor STORE-META. It is not used: behind the
    offset in its OFFSET it may have writes that never reached the changelog.
    """

    exists: bool
    position: int | None = None
    offset_file: int | None = None
    fault: Refusal | None = None
    meta: StoreMeta | None = None
    offset_time_ms: int = 0


@dataclass(frozen=True, slots=True)
class OffsetRange:
    """Offsets of a partition: the oldest that is kept, and the head, one past the last."""

    oldest: int
    head: int


@dataclass(frozen=True, slots=True)
class ChangelogTopic:
    """The broker's answer about a changelog: its id, and how long it keeps deletions.

    ``deletes_by_age``: whether old records go, of whatever key. ``compaction_lag_ms``: for how long
    no record makes an older one of its key go.
    """

    topic_id: str
    delete_retention_ms: int
    deletes_by_age: bool = False
    compaction_lag_ms: int = 0


def expected_meta(
    changelog: SystemStream,
    topic: ChangelogTopic,
    task: TaskModel,
    grouper: str,
    now: ClockReading,
    forms: tuple[str, str] | None = None,
) -> StoreMeta:
    """Return the STORE-META that a good directory of ``task``'s store has at its head ``now``.

    A standby's is that of its active task. ``topic``: the broker's answer. ``forms``: the forms of
    the changelog's keys and values, as STORE-META has them.
    """
    return StoreMeta(
        changelog=f"{changelog} partition {task.changelog_partition}",
        topic_id=topic.topic_id,
        ssps=tuple(sorted(str(ssp) for ssp in task.system_stream_partitions)),
        grouper=grouper,
        at_head=now,
        delete_retention_ms=topic.delete_retention_ms,
        forms=forms,
    )


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """Read [start, head); ``rebuild``: after the directory was emptied.

    ``reason``: why all is read, in words; ``refusal``: its kind. Both are None where the local
    state is good. Without any local state there is a reason and no refusal.
    """

    start: int
    head: int
    rebuild: bool = False
    reason: str | None = None
    refusal: RefusalReason | None = None


def plan_restore(local: LocalState, changelog: OffsetRange, expected: StoreMeta) -> RestorePlan:
    """Return the plan: what follows the store's own position where that is trusted, else all."""
    if not local.exists:
        return RestorePlan(changelog.oldest, changelog.head, reason="no state on this host")
    # Before any offset is looked at: those of another topic mean nothing.
    foreign = None if local.meta is None else meta_fault(local.meta, expected)
    judged = local.fault or foreign or _position(local, changelog, expected)
    if isinstance(judged, Refusal):
        return RestorePlan(
            changelog.oldest,
            changelog.head,
            rebuild=True,
            reason=judged.story,
            refusal=judged.reason,
        )
    return RestorePlan(judged + 1, changelog.head)


def restored(plan: RestorePlan, records: int) -> Restored:
    """Return what is reported of a restore that read ``records`` records."""
    reason = plan.reason if plan.rebuild else None
    refusal = None if plan.refusal is None else plan.refusal.value
    if records == 0:
        return Restored(RestoreKind.NONE, None, None, 0, reason, refusal)
    kind = RestoreKind.TAIL if plan.reason is None else RestoreKind.FULL
    return Restored(kind, plan.start, plan.head - 1, records, reason, refusal)


_LAG_PART = 0.9
"""Clocks differ: Samza, too, relies on this part of the lag."""


@dataclass(frozen=True, slots=True)
class Trim:
    """The entries that take a changelog back to ``offset``; it has records behind that.

    Shapes: ``entries`` {key: its value at ``offset``, None where it had none}, of the keys whose
    value is another now. ``unsure``: how many keys without a value may have had one, which
    compaction took.
    """

    offset: int
    entries: Mapping[bytes, bytes | None] = field(default_factory=dict)
    unsure: int = 0


def trim_fault(offset: int, changelog: OffsetRange, topic: ChangelogTopic) -> str | None:
    """Return why a changelog cannot go back to ``offset``, -1 before the first; None: it can.

    Where a changelog deletes by age, older values that are gone have had their time.
    """
    if offset >= changelog.head:
        return f"it ends at {changelog.head}: it was recreated, or has lost records"
    if 0 <= offset < changelog.oldest and not topic.deletes_by_age:
        return f"its oldest offset is {changelog.oldest}: the values at {offset} are gone"
    return None


def trim_of(
    offset: int,
    behind: Mapping[bytes, bytes | None],
    before: Mapping[bytes, bytes | None],
    *,
    is_compacted: bool,
) -> Trim:
    """Return what takes a changelog back to ``offset``, the last one that counts.

    Compaction goes through the records behind ``offset`` in order. Where it left the older record
    of a key, it has not come further. So the keys before the first such key are in doubt.

    ``behind``: {key: last value} behind it, in the order of each key's first record. ``before``:
    {key: last value} up to it. ``is_compacted``: whether compaction may have come behind it.
    """
    entries = {key: before.get(key) for key, last in behind.items() if before.get(key) != last}
    fresh = next((n for n, key in enumerate(behind) if key in before), len(behind))
    return Trim(offset, entries, fresh if is_compacted else 0)


def may_be_compacted(topic: ChangelogTopic, age_ms: int) -> bool:
    """Return whether a record of that age may have made an older one of its key go."""
    return not topic.deletes_by_age and age_ms >= topic.compaction_lag_ms * _LAG_PART


def _position(local: LocalState, changelog: OffsetRange, expected: StoreMeta) -> int | Refusal:
    if local.offset_file is None:
        return Refusal(RefusalReason.MISSING_OFFSET, "OFFSET is missing")
    position = local.position
    if position is None:
        story = "the store names no changelog position"
        return Refusal(RefusalReason.MISSING_POSITION, story)
    if local.offset_file > position:
        return Refusal(
            RefusalReason.OFFSET_ABOVE_POSITION,
            f"OFFSET says {local.offset_file} but the store holds only {position}: damaged",
        )
    if position >= changelog.head:
        return Refusal(
            RefusalReason.AHEAD,
            f"position {position} is beyond the changelog's end {changelog.head}",
        )
    if position + 1 < changelog.oldest:
        return Refusal(
            RefusalReason.BEHIND_OLDEST,
            f"position {position} is before the changelog's oldest offset {changelog.oldest}",
        )
    at_head, kept_ms = ClockReading(local.offset_time_ms), None
    if local.meta is not None:
        at_head, kept_ms = local.meta.at_head, local.meta.delete_retention_ms
    return stale_fault(at_head, expected, position, changelog.head, kept_ms) or position


class RestoreMeter:
    """Counts the records that one restore has read; its rate is of the last ten seconds."""

    def __init__(self, store: str, task: TaskName, plan: RestorePlan, now_s: float) -> None:
        self._store = store
        self._task = task
        self._head = plan.head
        self._next = plan.start
        self.records = 0
        self._bytes = 0
        self._past = deque([(now_s, 0, plan.start)])
        """(when, records by then, next offset by then) within the window, oldest first."""

    def read(self, records: int, size: int, last_offset: int) -> None:
        """Count ``records`` more, of ``size`` bytes together, up to ``last_offset``."""
        self.records += records
        self._bytes += size
        self._next = last_offset + 1

    def progress(self, now_s: float) -> RestoreProgress:
        """Return the progress by ``now_s``."""
        while len(self._past) > 1 and now_s - self._past[0][0] > _WINDOW_S:
            self._past.popleft()
        since_s, records, offset = self._past[0]
        self._past.append((now_s, self.records, self._next))
        passed_s = now_s - since_s
        remaining = max(0, self._head - self._next)
        is_moving = passed_s > 0 and self._next > offset
        seconds_left = remaining * passed_s / (self._next - offset) if is_moving else None
        return RestoreProgress(
            store=self._store,
            task=self._task,
            records=self.records,
            bytes=self._bytes,
            remaining=remaining,
            records_per_s=round((self.records - records) / passed_s, 1) if passed_s > 0 else 0.0,
            seconds_left=None if seconds_left is None else round(seconds_left, 1),
        )


def progress_line(progress: RestoreProgress) -> str:
    """Return ``progress`` for people, with a bar."""
    whole = progress.records + progress.remaining
    part = progress.records / whole if whole else 1.0
    full = int(part * _BAR)
    left = "" if progress.seconds_left is None else f", {progress.seconds_left:,.0f} s left"
    return (
        f"restoring {progress.store}/{progress.task} "
        f"[{'#' * full}{'.' * (_BAR - full)}] {part:.0%}: "
        f"{progress.records:,} records ({progress.bytes / _MB:,.1f} MB), "
        f"{progress.remaining:,} to go, {progress.records_per_s:,.0f} records/s{left}"
    )
