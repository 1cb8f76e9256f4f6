"""Which restores go to workers, how many of those at once, and what each may use."""

from __future__ import annotations

import pytest

from homeport.config.settings.memory_rule import MemoryShares, divide
from homeport.container.progress.restore import RestorePlan
from homeport.container.progress.restore_schedule import (
    MOST_LEVEL0_FILES,
    SMALLEST_WORKER_MB,
    WORKER_MB,
    WorkerLimits,
    is_debt_too_large,
    largest_first,
    worker_limits,
    worker_memory,
)


def test_the_longest_restore_begins_first() -> None:
    """Of equal ones the first given."""
    plans = [("a", RestorePlan(0, 10)), ("b", RestorePlan(5, 30)), ("c", RestorePlan(90, 100))]
    assert largest_first(plans) == ["b", "a", "c"]


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
