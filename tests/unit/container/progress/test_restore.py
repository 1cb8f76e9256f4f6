"""Which part of a changelog a store reads, how far it has come, and what workers may use."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.settings.memory_rule import MemoryShares, divide
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.restore import (
    ChangelogTopic,
    LocalState,
    OffsetRange,
    RestoreMeter,
    RestorePlan,
    Trim,
    may_be_compacted,
    plan_restore,
    progress_line,
    restored,
    trim_fault,
    trim_of,
)
from homeport.container.progress.restore_schedule import (
    MOST_LEVEL0_FILES,
    SMALLEST_WORKER_MB,
    WORKER_MB,
    WorkerLimits,
    is_debt_too_large,
    worker_limits,
    worker_memory,
)
from homeport.container.progress.store_meta import StoreMeta
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind
from homeport.job_coordinator.status.container_report import RestoreProgress

CHANGELOG = OffsetRange(oldest=5, head=100)
META = StoreMeta(
    "kafka.log partition 0", "id-1", ("in 0",), "GroupByPartition", ClockReading(1_000_000)
)
EXPECTED = replace(META, at_head=ClockReading(1_059_999), delete_retention_ms=60_000)
STALE = "it last stood at the changelog's head 61 s ago, and deletions are kept for 60 s: stale"


def test_a_good_store_reads_what_follows_its_position() -> None:
    """The reserved key is the truth; an OFFSET behind it does not matter (safety S1).

    Where there is none, all is read, and nothing is removed for it.
    """
    local = LocalState(exists=True, position=49, offset_file=20, meta=META)
    assert plan_restore(local, CHANGELOG, EXPECTED) == RestorePlan(50, 100)
    plan = plan_restore(LocalState(exists=False), CHANGELOG, EXPECTED)
    assert plan == RestorePlan(5, 100, reason="no state on this host")
    assert restored(plan, 7) == Restored(RestoreKind.FULL, 5, 99, 7)


def test_a_store_was_away_for_longer_than_deletions_were_kept_when_it_was_written() -> None:
    """Although they are kept for longer now (safety S2)."""
    local = _local(49, 20, replace(META, delete_retention_ms=30_000))
    plan = plan_restore(local, CHANGELOG, EXPECTED)
    assert (plan.start, plan.refusal) == (5, RefusalReason.STALE)


def _damaged(**found: int) -> LocalState:
    return LocalState(
        exists=True, fault=Refusal(RefusalReason.DAMAGED_STORE, "corrupt"), meta=META, **found
    )


def _local(position: int | None, offset_file: int | None, meta: StoreMeta = META) -> LocalState:
    return LocalState(exists=True, position=position, offset_file=offset_file, meta=meta)


@pytest.mark.parametrize(
    ("local", "refusal", "reason"),
    [
        (_damaged(offset_file=3), "damaged-store", "corrupt"),
        (_local(None, 3), "missing-position", "the store names no changelog position"),
        (_local(50, None), "missing-offset", "OFFSET is missing"),
        (LocalState(exists=True), "missing-offset", "OFFSET is missing"),
        (
            _local(50, 51),
            "offset-above-position",
            "OFFSET says 51 but the store holds only 50: damaged",
        ),
        (_local(100, 9), "ahead", "position 100 is beyond the changelog's end 100"),
        (_local(3, 3), "behind-oldest", "position 3 is before the changelog's oldest offset 5"),
        (
            _local(50, 9, replace(META, topic_id="id-0")),
            "recreated",
            "the changelog was recreated: its topic id is id-1, the store's is id-0",
        ),
        (_local(50, 9, replace(META, at_head=ClockReading(999_000))), "stale", STALE),
        (
            LocalState(exists=True, position=50, offset_file=50, offset_time_ms=999_000),
            "stale",
            STALE,
        ),
        (
            LocalState(exists=True, offset_file=49, offset_time_ms=1_000_000),
            "missing-position",
            "the store names no changelog position",
        ),
    ],
)
def test_a_store_that_cannot_be_trusted_is_rebuilt(
    local: LocalState, refusal: str, reason: str
) -> None:
    """Everything is read after the directory was emptied; the reason and its kind are kept.

    The last one is Samza's: it may hold writes that its changelog has not.
    """
    plan = plan_restore(local, CHANGELOG, EXPECTED)
    assert plan == RestorePlan(5, 100, rebuild=True, reason=reason, refusal=RefusalReason(refusal))
    assert restored(plan, 7) == Restored(RestoreKind.FULL, 5, 99, 7, reason, refusal)
    assert restored(plan, 0) == Restored(RestoreKind.NONE, None, None, 0, reason, refusal)


COMPACTED = ChangelogTopic("id", 1000, compaction_lag_ms=1000)
AGED = ChangelogTopic("id", 1000, deletes_by_age=True)


@pytest.mark.parametrize(
    ("offset", "topic", "fault"),
    [
        (-1, COMPACTED, None),
        (4, COMPACTED, "its oldest offset is 5: the values at 4 are gone"),
        (4, AGED, None),
        (5, COMPACTED, None),
        (99, COMPACTED, None),
        (100, COMPACTED, "it ends at 100: it was recreated, or has lost records"),
        (100, AGED, "it ends at 100: it was recreated, or has lost records"),
    ],
)
def test_a_changelog_goes_back_to_an_offset_that_it_has(
    offset: int, topic: ChangelogTopic, fault: str | None
) -> None:
    """What is older than a store's time to live is gone by right."""
    assert trim_fault(offset, CHANGELOG, topic) == fault


BEHIND = {b"new": b"1", b"kept": b"2", b"changed": b"3", b"late": b"1", b"gone": None}
BEFORE = {b"kept": b"2", b"changed": b"1", b"gone": b"7"}


@pytest.mark.parametrize(("is_compacted", "unsure"), [(False, 0), (True, 1)])
def test_a_trim_has_the_older_value_of_each_key_that_changed(
    *, is_compacted: bool, unsure: int
) -> None:
    """Null where there was none. A key behind one that has an older record was new for sure.

    Where no key has an older record, each is new, or compaction has passed them all. A container
    that died after the trim, before the checkpoint, finds it done.
    """
    entries = {b"new": None, b"changed": b"1", b"late": None, b"gone": b"7"}
    assert trim_of(9, BEHIND, BEFORE, is_compacted=is_compacted) == Trim(9, entries, unsure)
    assert trim_of(9, {**BEHIND, **entries}, BEFORE, is_compacted=False) == Trim(9)
    assert trim_of(9, BEHIND, {}, is_compacted=True).unsure == len(BEHIND)


@pytest.mark.parametrize(
    ("topic", "age_ms", "may_be"),
    [(COMPACTED, 899, False), (COMPACTED, 900, True), (AGED, 10**9, False)],
)
def test_compaction_waits_for_its_lag(topic: ChangelogTopic, age_ms: int, *, may_be: bool) -> None:
    """Nine tenths of the lag count, as clocks differ."""
    assert may_be_compacted(topic, age_ms) is may_be


TASK = TaskName("Partition 0")


def test_the_rate_is_that_of_the_last_ten_seconds() -> None:
    """100 records/s first, then 10; what is left is counted at the rate of late."""
    meter = RestoreMeter("s", TASK, RestorePlan(1000, 3000), 0.0)
    found: list[tuple[float, float | None]] = []
    for second in range(1, 31):
        records = 100 if second <= 10 else 10
        meter.read(records, 50 * records, 999 + 100 * min(second, 10) + 10 * max(0, second - 10))
        progress = meter.progress(float(second))
        found.append((progress.records_per_s, progress.seconds_left))
    assert found[0] == (100.0, 19.0)
    assert found[-1] == (10.0, 80.0)
    assert (progress.records, progress.bytes, progress.remaining) == (1200, 60_000, 800)


def test_what_was_seen_ten_seconds_ago_counts_and_nothing_before_it() -> None:
    """The oldest of what counts is left behind by its own time alone."""
    meter = RestoreMeter("s", TASK, RestorePlan(0, 1001), 100.0)
    meter.read(100, 0, 99)
    assert meter.progress(105.0).records_per_s == 20.0
    meter.read(300, 0, 399)
    assert meter.progress(110.0).records_per_s == 40.0
    late = meter.progress(110.5)
    assert (late.records_per_s, late.seconds_left) == (54.5, 11.0)


def test_without_progress_the_remaining_time_is_unknown() -> None:
    """Neither at the first moment nor after a standstill of the whole window."""
    meter = RestoreMeter("s", TASK, RestorePlan(0, 10), 0.0)
    assert meter.progress(0.0) == RestoreProgress("s", TASK, 0, 0, 10, 0.0, None)
    meter.read(5, 50, 4)
    assert meter.progress(0.0) == RestoreProgress("s", TASK, 5, 50, 5, 0.0, None)
    assert meter.progress(1.0).seconds_left == 1.0
    assert meter.progress(20.0).seconds_left is None


def test_at_the_head_nothing_is_left() -> None:
    """Neither records nor seconds; nor beyond it. Offsets without a record count as read."""
    compacted = RestoreMeter("s", TASK, RestorePlan(0, 1000), 0.0)
    compacted.read(1, 10, 499)
    assert compacted.progress(1.0) == RestoreProgress("s", TASK, 1, 10, 500, 1.0, 1.0)
    meter = RestoreMeter("s", TASK, RestorePlan(0, 10), 0.0)
    meter.read(10, 100, 9)
    progress = meter.progress(1.0)
    assert (progress.remaining, progress.seconds_left) == (0, 0.0)
    meter.read(1, 10, 10)
    assert meter.progress(2.0).remaining == 0


def test_the_line_has_a_bar_and_one_unit() -> None:
    """Part of all, records, bytes, rate, seconds left; without a rate no seconds."""
    progress = RestoreProgress("s", TASK, 250_000, 265_000_000, 750_000, 200_000.4, 3.7)
    assert progress_line(progress) == (
        "restoring s/Partition 0 [#####...............] 25%: 250,000 records (265.0 MB), "
        "750,000 to go, 200,000 records/s, 4 s left"
    )
    assert progress_line(RestoreProgress("s", TASK, 0, 0, 0, 0.0, None)) == (
        "restoring s/Partition 0 [####################] 100%: 0 records (0.0 MB), "
        "0 to go, 0 records/s"
    )


@pytest.mark.parametrize(
    ("shares", "cores", "stores", "limits"),
    [
        (divide(4096, has_pipeline=False), 2, 8, WorkerLimits(2, WORKER_MB)),
        (divide(4096, has_pipeline=False), 8, 3, WorkerLimits(3, WORKER_MB)),
        (divide(1024, has_pipeline=False), 8, 8, WorkerLimits(2, WORKER_MB)),
        (divide(1536, has_pipeline=True), 4, 8, WorkerLimits(1, WORKER_MB)),
        (divide(1280, has_pipeline=True), 4, 8, WorkerLimits(1, 320 + 160 - 160)),
        (MemoryShares(32, 64, 512, 256, -100), 4, 8, WorkerLimits(1, SMALLEST_WORKER_MB)),
        (divide(4096, has_pipeline=False), 2, 0, WorkerLimits(1, WORKER_MB)),
    ],
)
def test_workers_live_in_the_containers_memory(
    shares: MemoryShares, cores: int, stores: int, limits: WorkerLimits
) -> None:
    """As many as cores, stores and memory allow, at least one; none gets more than it can use."""
    found = worker_limits(shares, cores, stores)
    assert found == WorkerLimits(limits.workers, min(limits.worker_mb, WORKER_MB))


@pytest.mark.parametrize("worker_mb", [1, SMALLEST_WORKER_MB, 200, WORKER_MB, 10_000])
def test_a_workers_parts_fit_into_its_memory(worker_mb: int) -> None:
    """Tables and queue leave room for the process itself, however much there is."""
    memory = worker_memory(worker_mb)
    taken = memory.tables * memory.table_mb + memory.queue_mb
    assert memory.queue_mb > 0
    assert memory.table_mb > 0
    assert memory.merged < memory.tables
    if worker_mb >= SMALLEST_WORKER_MB:
        assert taken <= worker_mb - 80


def test_debt_is_bounded_below_the_point_where_rocksdb_slows_writers() -> None:
    """At 20 files it would."""
    assert not is_debt_too_large(MOST_LEVEL0_FILES)
    assert is_debt_too_large(MOST_LEVEL0_FILES + 1)
    assert MOST_LEVEL0_FILES < 20
