"""Restores by workers: what one that was cut short leaves, and what its successor makes of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from stores_in_memory_log import NOTHING, TASK, Log, directory_of, storage_of

from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.progress import restore_schedule
from homeport.container.progress.restore import OffsetRange, RestorePlan
from homeport.container.progress.restore_schedule import worker_memory
from homeport.container.progress.store_meta import META_FILE, parse_meta
from homeport.container.rocksdb.bulk_store import BulkStore
from homeport.container.storage.directory import DirectoryFiles
from homeport.container.storage.store_restore import StoreRestore
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import TaskModel
from homeport.job_coordinator.model.outcomes import Restored, RestoreKind


class _Fillers:
    """Stands for worker processes: fills the stores here; one that ``ends_at`` an offset fails."""

    def __init__(self, log: Log, ends_at: int | None = None) -> None:
        self.log = log
        self.ends_at = ends_at

    def run(self, restores: Sequence[StoreRestore]) -> None:
        for restore in restores:
            plan, end = restore.plan, self.ends_at or restore.plan.head
            found = [(i, r) for i, r in enumerate(self.log.records) if r and plan.start <= i < end]
            bulk = BulkStore(restore.store.directory.path, worker_memory(128), 1)
            bulk.write([r[0] for _, r in found], [r[1] for _, r in found], end - 1)
            bulk.flush()
            bulk.close()
            restore.read(len(found), 1, end - 1)
            restore.store.flushed_elsewhere(end - 1)
            if end < plan.head:
                raise StoreError("the worker was killed")


@pytest.fixture(name="by_workers")
def _by_workers(monkeypatch: pytest.MonkeyPatch) -> Log:
    """A changelog of six records, every restore of which is left to workers."""
    monkeypatch.setattr(restore_schedule, "SMALL_OFFSETS", 0)
    log = Log()
    log.records = [(b"%d" % i, b"x") for i in range(6)]
    return log


def _pass_time(log: Log) -> None:
    log.now_ms += 600_000
    log.boot_ms += 600_000


def _cut_short(folder: Path, log: Log, at: int) -> None:
    storage = storage_of(folder, log)
    storage.open()
    with pytest.raises(StoreError, match="the worker was killed"):
        storage.restore(log, log, _Fillers(log, at))
    storage.close()


def _filled(folder: Path, log: Log) -> Restored:
    storage = storage_of(folder, log)
    storage.open()
    result = storage.restore(log, log, _Fillers(log))["s"][TASK]
    assert len(list(storage.overlay("s", TASK).scan())) == len(set(filter(None, log.records)))
    storage.close()
    return result


def test_a_restore_that_was_cut_short_goes_on(tmp_path: Path, by_workers: Log) -> None:
    """From what its worker had committed, time and again; and once it is whole, nothing is read."""
    _cut_short(tmp_path, by_workers, 2)
    _cut_short(tmp_path, by_workers, 3)
    assert _filled(tmp_path, by_workers) == Restored(RestoreKind.TAIL, 3, 5, 3)
    assert [plan.start for plan in by_workers.plans] == [0, 2, 3]
    assert _filled(tmp_path, by_workers) == NOTHING


def test_a_restore_cut_short_for_too_long_begins_again(tmp_path: Path, by_workers: Log) -> None:
    """Safety S2: it counts from the first beginning: deletions of what was read may be gone."""
    _cut_short(tmp_path, by_workers, 2)
    _pass_time(by_workers)
    _cut_short(tmp_path, by_workers, 3)
    _pass_time(by_workers)
    result = _filled(tmp_path, by_workers)
    assert (result.kind, result.records) == (RestoreKind.FULL, 6)
    assert result.reason is not None
    assert "stale" in result.reason


def test_a_long_tail_leaves_the_age_of_the_store_as_it_was(tmp_path: Path, by_workers: Log) -> None:
    """Safety S2: in the middle of it the store does not stand at the head; at its end it does."""
    _filled(tmp_path, by_workers)
    by_workers.records += [(b"%d" % i, b"x") for i in range(6, 12)]
    _pass_time(by_workers)
    _cut_short(tmp_path, by_workers, 9)
    found = DirectoryFiles(directory_of(tmp_path)).read(META_FILE, parse_meta)
    assert found is not None
    assert found.at_head.wall_ms == by_workers.now_ms - 600_000
    assert _filled(tmp_path, by_workers) == Restored(RestoreKind.TAIL, 9, 11, 3)


class _Uneven(Log):
    """Changelogs of which that of partition n has 5 + n % 3 records."""

    def ranges(self, changelogs: Sequence[tuple[SystemStream, int]]) -> list[OffsetRange]:
        return [OffsetRange(0, 5 + partition % 3) for _, partition in changelogs]

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        pass

    def run(self, restores: Sequence[StoreRestore]) -> None:
        raise StoreError(str([r.store.task.changelog_partition for r in restores]))


def test_the_longest_restore_begins_first(tmp_path: Path, by_workers: Log) -> None:
    """Of equal ones the first given."""
    storage, log = storage_of(tmp_path, by_workers), _Uneven()
    storage.tasks = [TaskModel(TaskName(str(n)), (), n) for n in range(4)]
    storage.open()
    with pytest.raises(StoreError, match=r"^\[2, 1, 0, 3\]$"):
        storage.restore(log, log, log)
    storage.close()


def test_a_changelog_recreated_meanwhile_is_named(tmp_path: Path, by_workers: Log) -> None:
    """Its offsets mean other records: what was read is not used."""
    storage = storage_of(tmp_path, by_workers)
    storage.open()
    fillers = _Fillers(by_workers)

    class Recreating:
        def run(self, restores: Sequence[StoreRestore]) -> None:
            by_workers.topic = replace(by_workers.topic, topic_id="id-2")
            fillers.run(restores)

    with pytest.raises(StoreError, match=r"^changelog kafka\.log was recreated while its stores"):
        storage.restore(by_workers, by_workers, Recreating())
    storage.close()
    result = _filled(tmp_path, by_workers)
    assert (result.kind, result.records) == (RestoreKind.FULL, 6)
