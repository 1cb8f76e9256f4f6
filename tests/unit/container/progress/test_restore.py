"""Which part of a changelog a store reads."""

from __future__ import annotations

import pytest

from homeport.container.progress.restore import (
    ChangelogRange,
    LocalState,
    RestorePlan,
    plan_restore,
    restored,
)
from homeport.job_coordinator.http.messages import Restored, RestoreKind

CHANGELOG = ChangelogRange(oldest=5, head=100)


def test_a_good_store_reads_what_follows_its_position() -> None:
    """The reserved key is the truth; an OFFSET behind it does not matter (safety S1)."""
    local = LocalState(exists=True, position=49, offset_file=20)
    assert plan_restore(local, CHANGELOG) == RestorePlan(50, 100)


def test_a_store_at_the_head_reads_nothing() -> None:
    """Its range is empty, and it is reported as none."""
    plan = plan_restore(LocalState(exists=True, position=99, offset_file=99), CHANGELOG)
    assert plan == RestorePlan(100, 100)
    assert restored(plan, 0) == Restored(RestoreKind.NONE, None, None, 0)


def test_no_store_reads_everything() -> None:
    """Nothing has to be removed for it."""
    plan = plan_restore(LocalState(exists=False), CHANGELOG)
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
    ],
)
def test_a_store_that_cannot_be_trusted_is_rebuilt(local: LocalState, reason: str) -> None:
    """Everything is read after the directory was emptied, and the reason is kept."""
    assert plan_restore(local, CHANGELOG) == RestorePlan(5, 100, rebuild=True, reason=reason)


def test_a_tail_is_reported_with_its_range() -> None:
    """Offsets are inclusive; records are what was read."""
    plan = plan_restore(LocalState(exists=True, position=4, offset_file=4), CHANGELOG)
    assert restored(plan, 60) == Restored(RestoreKind.TAIL, 5, 99, 60)
