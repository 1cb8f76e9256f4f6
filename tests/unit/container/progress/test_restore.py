"""Which part of a changelog a store reads."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.restore import (
    ChangelogRange,
    ChangelogTopic,
    LocalState,
    RestorePlan,
    Trim,
    may_be_compacted,
    plan_restore,
    restored,
    trim_fault,
    trim_of,
)
from homeport.container.progress.store_meta import Expectation, StoreMeta
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
    """Null where there was none. A key behind one that has an older record was new for sure."""
    entries = {b"new": None, b"changed": b"1", b"late": None, b"gone": b"7"}
    assert trim_of(9, BEHIND, BEFORE, is_compacted=is_compacted) == Trim(9, entries, unsure)


def test_a_trim_that_was_written_is_found_done() -> None:
    """A container that died after it, before the checkpoint, leaves nothing to be written again."""
    first = trim_of(9, BEHIND, BEFORE, is_compacted=False)
    assert trim_of(9, {**BEHIND, **first.entries}, BEFORE, is_compacted=False) == Trim(9)


def test_where_no_key_has_an_older_record_each_may_have_had_one() -> None:
    """Every key of the changelog is new, or compaction has passed them all."""
    assert trim_of(9, BEHIND, {}, is_compacted=True).unsure == len(BEHIND)


@pytest.mark.parametrize(
    ("topic", "age_ms", "may_be"),
    [(COMPACTED, 899, False), (COMPACTED, 900, True), (AGED, 10**9, False)],
)
def test_compaction_waits_for_its_lag(topic: ChangelogTopic, age_ms: int, *, may_be: bool) -> None:
    """Nine tenths of the lag count, as clocks differ."""
    assert may_be_compacted(topic, age_ms) is may_be
