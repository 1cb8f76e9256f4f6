"""Which part of a changelog a store reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.config.system_stream import SystemStream
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.restore import (
    ChangelogRange,
    ChangelogTopic,
    LocalState,
    RestorePlan,
    expectation_of,
    plan_restore,
    restored,
)
from homeport.container.progress.store_meta import Expectation, StoreMeta
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind

CHANGELOG = ChangelogRange(oldest=5, head=100)
META = StoreMeta(
    "kafka.log partition 0", "id-1", ("in 0",), "GroupByPartition", ClockReading(1_000_000)
)
EXPECTED = Expectation(replace(META, at_head=ClockReading(1_059_999)), delete_retention_ms=60_000)
STALE = "it last stood at the changelog's head 61 s ago, and deletions are kept for 60 s: stale"


def test_a_good_store_reads_what_follows_its_position() -> None:
    """The reserved key is the truth; an OFFSET behind it does not matter (safety S1)."""
    local = LocalState(exists=True, position=49, offset_file=20, meta=META)
    assert plan_restore(local, CHANGELOG, EXPECTED) == RestorePlan(50, 100)


def test_a_store_was_away_for_longer_than_deletions_were_kept_when_it_was_written() -> None:
    """Although they are kept for longer now (safety S2)."""
    local = _local(49, 20, replace(META, delete_retention_ms=30_000))
    plan = plan_restore(local, CHANGELOG, EXPECTED)
    assert (plan.start, plan.refusal) == (5, RefusalReason.STALE)


def test_the_expected_meta_of_a_store_has_the_retention_of_deletions() -> None:
    """So that a later container knows the settings under which the store was written."""
    task = TaskModel(TaskName("Partition 0"), (), 0)
    stream, now = SystemStream("kafka", "log"), ClockReading(7)
    found = expectation_of(stream, ChangelogTopic("id-1", 60_000), task, "G", now)
    meta = StoreMeta("kafka.log partition 0", "id-1", (), "G", now, delete_retention_ms=60_000)
    assert found == Expectation(meta, 60_000)


def test_a_store_at_the_head_reads_nothing() -> None:
    """Its range is empty, and it is reported as none."""
    plan = plan_restore(
        LocalState(exists=True, position=99, offset_file=99, meta=META), CHANGELOG, EXPECTED
    )
    assert plan == RestorePlan(100, 100)
    assert restored(plan, 0) == Restored(RestoreKind.NONE, None, None, 0)


def test_no_store_reads_everything() -> None:
    """Nothing has to be removed for it."""
    plan = plan_restore(LocalState(exists=False), CHANGELOG, EXPECTED)
    assert plan == RestorePlan(5, 100, reason="no state on this host")
    assert restored(plan, 7) == Restored(RestoreKind.FULL, 5, 99, 7)


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
            LocalState(exists=True, offset_file=50, offset_time_ms=999_000),
            "stale",
            STALE,
        ),
        (
            LocalState(exists=True, offset_file=100, offset_time_ms=1_000_000),
            "ahead",
            "position 100 is beyond the changelog's end 100",
        ),
    ],
)
def test_a_store_that_cannot_be_trusted_is_rebuilt(
    local: LocalState, refusal: str, reason: str
) -> None:
    """Everything is read after the directory was emptied; the reason and its kind are kept."""
    plan = plan_restore(local, CHANGELOG, EXPECTED)
    assert plan == RestorePlan(5, 100, rebuild=True, reason=reason, refusal=RefusalReason(refusal))
    assert restored(plan, 7) == Restored(RestoreKind.FULL, 5, 99, 7, reason, refusal)
    assert restored(plan, 0) == Restored(RestoreKind.NONE, None, None, 0, reason, refusal)


def test_a_store_of_samzas_reads_what_follows_its_offset() -> None:
    """R9: it has no position of its own, and no STORE-META; its OFFSET is as old as its file."""
    local = LocalState(exists=True, offset_file=49, offset_time_ms=1_000_000)
    assert plan_restore(local, CHANGELOG, EXPECTED) == RestorePlan(50, 100)


def test_a_store_whose_meta_fits_reads_what_follows_its_position() -> None:
    """It stood at the head a moment less than the retention ago."""
    local = LocalState(exists=True, position=49, offset_file=20, meta=META)
    assert plan_restore(local, CHANGELOG, EXPECTED) == RestorePlan(50, 100)


def test_a_tail_is_reported_with_its_range() -> None:
    """Offsets are inclusive; records are what was read."""
    plan = plan_restore(
        LocalState(exists=True, position=4, offset_file=4, meta=META), CHANGELOG, EXPECTED
    )
    assert restored(plan, 60) == Restored(RestoreKind.TAIL, 5, 99, 60)


def test_the_stores_own_position_counts() -> None:
    """OFFSET alone counts only in a directory of Samza's, which has neither key nor STORE-META."""
    assert LocalState(exists=True, position=7, offset_file=5).holds_up_to == 7
    assert LocalState(exists=True, offset_file=5, meta=META).holds_up_to is None
    assert LocalState(exists=True, offset_file=5).holds_up_to == 5
