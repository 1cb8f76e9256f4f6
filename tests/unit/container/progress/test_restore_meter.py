"""How far a restore has come and how fast it goes, by a clock that the test moves."""

from __future__ import annotations

from homeport.container.progress.restore import RestorePlan
from homeport.container.progress.restore_meter import RestoreMeter, progress_line
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.status.container_report import RestoreProgress

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


def test_offsets_without_a_record_count_as_read() -> None:
    """Of a compacted changelog few records may be left: the head comes near all the same."""
    meter = RestoreMeter("s", TASK, RestorePlan(0, 1000), 0.0)
    meter.read(1, 10, 499)
    progress = meter.progress(1.0)
    assert (progress.records, progress.remaining) == (1, 500)
    assert (progress.records_per_s, progress.seconds_left) == (1.0, 1.0)


def test_without_progress_the_remaining_time_is_unknown() -> None:
    """Neither at the first moment nor after a standstill of the whole window."""
    meter = RestoreMeter("s", TASK, RestorePlan(0, 10), 0.0)
    assert meter.progress(0.0) == RestoreProgress("s", TASK, 0, 0, 10, 0.0, None)
    meter.read(5, 50, 4)
    assert meter.progress(0.0) == RestoreProgress("s", TASK, 5, 50, 5, 0.0, None)
    assert meter.progress(1.0).seconds_left == 1.0
    assert meter.progress(20.0).seconds_left is None


def test_at_the_head_nothing_is_left() -> None:
    """Neither records nor seconds; nor beyond it."""
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
