"""The steps that flush a store, and when there are none."""

from __future__ import annotations

import pytest

from homeport.container.progress.flush_plan import FlushAction, FlushStep, StoreProgress, flush_plan
from homeport.container.progress.transaction_plan import StoreId
from homeport.job_coordinator.model.ids import TaskName

STORE = StoreId("s", TaskName("Partition 0"))


def _names(plan: tuple[FlushStep, ...]) -> list[str]:
    return [str(step) for step in plan]


def test_a_store_that_moved_is_flushed_and_then_its_files_say_so() -> None:
    """R14: OFFSET is the position before the flush (safety S1); STORE-META is last (safety S2)."""
    progress = StoreProgress(position=7, flushed=5, keeps_meta=True, is_meta_due=False)
    assert flush_plan(STORE, progress) == (
        FlushStep(FlushAction.FLUSH, STORE),
        FlushStep(FlushAction.WRITE_OFFSET, STORE, 7),
        FlushStep(FlushAction.WRITE_OFFSET_V2, STORE, 7),
        FlushStep(FlushAction.WRITE_META, STORE),
    )
    without = StoreProgress(position=7, flushed=None, keeps_meta=False, is_meta_due=False)
    assert flush_plan(STORE, without) == flush_plan(STORE, progress)[:3]


@pytest.mark.parametrize(
    ("progress", "steps"),
    [
        (StoreProgress(None, None, keeps_meta=True, is_meta_due=True), []),
        (StoreProgress(7, 7, keeps_meta=True, is_meta_due=False), []),
        (
            StoreProgress(7, 7, keeps_meta=True, is_meta_due=True),
            ["write-STORE-META s/Partition 0"],
        ),
    ],
    ids=["without a position", "nothing new", "still at the head"],
)
def test_a_store_that_has_not_moved_is_left_alone(
    progress: StoreProgress, steps: list[str]
) -> None:
    """But STORE-META says from time to time that it still stands at the head."""
    assert not progress.has_moved
    assert _names(flush_plan(STORE, progress)) == steps


@pytest.mark.parametrize(
    ("position", "flushed", "has_moved"),
    [(None, 5, False), (None, None, False), (5, None, True), (6, 5, True), (5, 5, False)],
)
def test_offset_is_written_where_it_lies_behind(
    position: int | None, flushed: int | None, *, has_moved: bool
) -> None:
    """A store without a position has nothing to write."""
    progress = StoreProgress(position, flushed, keeps_meta=True, is_meta_due=False)
    assert progress.has_moved is has_moved
