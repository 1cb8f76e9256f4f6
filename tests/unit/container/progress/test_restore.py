"""Which part of a changelog a store reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.container.progress.restore import (
    ChangelogRange,
    LocalState,
    RestorePlan,
    plan_restore,
    restored,
)
from homeport.container.progress.store_meta import Expectation, StoreMeta
from homeport.job_coordinator.http.messages import Restored, RestoreKind

CHANGELOG = ChangelogRange(oldest=5, head=100)
META = StoreMeta("kafka.log partition 0", "id-1", ("in 0",), "GroupByPartition", 1_000_000)
EXPECTED = Expectation(replace(META, at_head_ms=1_059_999), delete_retention_ms=60_000)
STALE = "it last stood at the changelog's head 61 s ago, and deletions are kept for 60 s: stale"


def test_a_good_store_reads_what_follows_its_position() -> None:
    """The reserved key is the truth; an OFFSET behind it does not matter (safety S1)."""
    local = LocalState(exists=True, position=49, offset_file=20)
    assert plan_restore(local, CHANGELOG, EXPECTED) == RestorePlan(50, 100)


def test_a_store_at_the_head_reads_nothing() -> None:
    """Its range is empty, and it is reported as none."""
    plan = plan_restore(LocalState(exists=True, position=99, offset_file=99), CHANGELOG, EXPECTED)
    assert plan == RestorePlan(100, 100)
    assert restored(plan, 0) == Restored(RestoreKind.NONE, None, None, 0)


def test_no_store_reads_everything() -> None:
    """Nothing has to be removed for it."""
    plan = plan_restore(LocalState(exists=False), CHANGELOG, EXPECTED)
    assert plan == RestorePlan(5, 100, reason="no state on this host")
    assert restored(plan, 7) == Restored(RestoreKind.FULL, 5, 99, 7)


@pytest.mark.parametrize(
    ("local", "reason"),
    [
        (LocalState(exists=True, fault="corrupt"), "corrupt"),
        (LocalState(exists=True, offset_file=3), "the store names no changelog position"),
        (LocalState(exists=True, position=50), "OFFSET is missing"),
        (
            LocalState(exists=True, position=50, offset_file=51),
            "OFFSET says 51 but the store holds only 50: damaged",
        ),
        (
            LocalState(exists=True, position=100, offset_file=9),
            "position 100 is beyond the changelog's end 100",
        ),
        (
            LocalState(exists=True, position=3, offset_file=3),
            "position 3 is before the changelog's oldest offset 5",
        ),
        (
            LocalState(
                exists=True, position=50, offset_file=9, meta=replace(META, topic_id="id-0")
            ),
            "the changelog was made anew: its topic id is id-1, the store's is id-0",
        ),
        (
            LocalState(
                exists=True, position=50, offset_file=9, meta=replace(META, at_head_ms=999_000)
            ),
            STALE,
        ),
    ],
)
def test_a_store_that_cannot_be_trusted_is_rebuilt(local: LocalState, reason: str) -> None:
    """Everything is read after the directory was emptied, and the reason is kept."""
    plan = plan_restore(local, CHANGELOG, EXPECTED)
    assert plan == RestorePlan(5, 100, rebuild=True, reason=reason)
    assert restored(plan, 7) == Restored(RestoreKind.FULL, 5, 99, 7, reason)
    assert restored(plan, 0) == Restored(RestoreKind.NONE, None, None, 0, reason)


def test_a_store_whose_meta_fits_reads_what_follows_its_position() -> None:
    """It stood at the head a moment less than the retention ago."""
    local = LocalState(exists=True, position=49, offset_file=20, meta=META)
    assert plan_restore(local, CHANGELOG, EXPECTED) == RestorePlan(50, 100)


def test_a_tail_is_reported_with_its_range() -> None:
    """Offsets are inclusive; records are what was read."""
    plan = plan_restore(LocalState(exists=True, position=4, offset_file=4), CHANGELOG, EXPECTED)
    assert restored(plan, 60) == Restored(RestoreKind.TAIL, 5, 99, 60)
