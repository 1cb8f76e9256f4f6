"""Restores by worker processes from a real broker, and what may happen in the middle of one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest
from restored_stores import RestoredStores, workers_of
from small_disk import fill, small_disk
from suites import long
from waiting import until

from homeport.config.errors import HomeportError, StoreError
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.kafka.client_properties import PartitionError
from homeport.container.progress.restore_schedule import SMALL_OFFSETS
from homeport.container.storage.directory_lock import DirectoryHeldError, lock_holder
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import RestoreKind
from homeport.local_cluster.cluster import LocalCluster

LARGE = SMALL_OFFSETS + 20_000
TASK = TaskName("Partition 0")


@pytest.fixture(name="make")
def _make(kafka: str, tmp_path: Path) -> Callable[[int], RestoredStores]:
    def make(partitions: int) -> RestoredStores:
        return RestoredStores(kafka, f"log-{uuid.uuid4().hex[:8]}", tmp_path, partitions)

    return make


def test_large_changelogs_are_restored_by_workers(make: Callable[[int], RestoredStores]) -> None:
    """All tasks are exact, deletions too; tasks that come home read nothing, then only the tail."""
    stores = make(3)
    stores.produce(LARGE, 1)
    seen: set[int] = set()
    restored = stores.restore(lambda _: seen.update(workers_of(os.getpid())))
    assert {r.kind for r in restored.values()} == {RestoreKind.FULL}
    assert [r.records for r in restored.values()] == [LARGE] * 3
    assert len(seen) == 3
    assert {r.kind for r in stores.restore().values()} == {RestoreKind.NONE}
    stores.produce(100, 2)
    assert [r.records for r in stores.restore().values()] == [100] * 3
    stores.produce(LARGE, 3)
    restored = stores.restore()
    assert [(r.kind, r.records) for r in restored.values()] == [(RestoreKind.TAIL, LARGE)] * 3


def test_a_worker_that_is_killed_is_the_cause_and_costs_little(
    make: Callable[[int], RestoredStores],
) -> None:
    """One line; the next start goes on from what was committed, although not all was read."""
    stores = make(1)
    stores.produce(LARGE, 1)

    def kill(_seconds: float) -> None:
        if stores.has_offset():
            for pid in workers_of(os.getpid()):
                os.kill(pid, signal.SIGKILL)

    with stores.open_transaction() as end:
        with pytest.raises(
            StoreError, match=r"^the worker that restored store s/Partition 0 was k"
        ):
            stores.restore(kill)
        end()
    restored = stores.restore()[TASK]
    assert (restored.records < LARGE, restored.reason) == (True, None)
    assert stores.plans[0].start > 0


def test_a_container_that_is_ordered_to_stop_keeps_what_was_read(
    make: Callable[[int], RestoredStores],
) -> None:
    """Workers end in order, none is left, and the next start goes on from there."""
    stores = make(1)
    stores.produce(LARGE, 1)

    def stop(_seconds: float) -> None:
        if stores.progress:
            raise StopRequestedError("ordered to stop")

    with stores.open_transaction():
        with pytest.raises(StopRequestedError):
            stores.restore(stop)
        assert workers_of(os.getpid()) == []
    assert stores.restore()[TASK].records < LARGE


def _restoring(stores: RestoredStores) -> subprocess.Popen[bytes]:
    """A container of its own process that restores ``stores``."""
    code = (
        "import sys; sys.path[:0] = sys.argv[4:]\n"
        "from pathlib import Path\n"
        "from restored_stores import RestoredStores\n"
        "stores = RestoredStores.__new__(RestoredStores)\n"
        "RestoredStores.make_topic = lambda _: None\n"
        "stores.__init__(sys.argv[1], sys.argv[2], Path(sys.argv[3]))\n"
        "stores.restore()\n"
    )
    arguments = [stores.servers, stores.topic, str(stores.folder), *sys.path]
    return subprocess.Popen([sys.executable, "-c", code, *arguments])


def test_a_container_that_is_killed_leaves_no_worker_and_its_progress(
    make: Callable[[int], RestoredStores],
) -> None:
    """Safety C5: the worker dies with it; its successor opens the store and goes on from OFFSET."""
    stores = make(1)
    stores.produce(LARGE, 1)
    with stores.open_transaction():
        container = _restoring(stores)
        try:
            until(stores.has_offset)
            (worker,) = workers_of(container.pid)
        finally:
            container.kill()
            container.wait()
        until(lambda: not Path(f"/proc/{worker}").exists())
    restored = stores.restore()[TASK]
    assert (restored.records < LARGE, restored.reason) == (True, None)
    assert stores.plans[0].start > 0


def test_a_worker_that_outlives_its_container_keeps_the_directory_locked(
    make: Callable[[int], RestoredStores],
) -> None:
    """Until the worker has ended no other process opens the store; the kernel names the holder.

    The worker stands still before it asks the kernel to end it with its container, as a worker may
    that has just started.
    """
    stores = make(1)
    stores.produce(LARGE, 1)
    container = _restoring(stores)
    worker = 0
    try:
        until(lambda: bool(workers_of(container.pid)))
        (worker,) = workers_of(container.pid)
        os.kill(worker, signal.SIGSTOP)
        container.kill()
        container.wait()
        with pytest.raises(DirectoryHeldError, match=f"pid {container.pid} "):
            stores.restore()
        found = lock_holder(stores.directory())
        assert found is not None
        assert found.pid == worker
    finally:
        container.kill()
        if worker:
            os.kill(worker, signal.SIGCONT)
    until(lambda: lock_holder(stores.directory()) is None)
    assert stores.restore()[TASK].records == LARGE


def test_a_store_that_was_away_for_longer_than_deletions_are_kept_is_read_from_the_start(
    make: Callable[[int], RestoredStores],
) -> None:
    """Also where they are kept for longer by the time it is back (safety S2)."""
    stores = make(1)
    stores.keep_deletions(1)
    stores.produce(100, 1)
    stores.restore()
    stores.produce(100, 2)
    stores.keep_deletions(86_400_000)
    restored = stores.restore()[TASK]
    assert (restored.kind, restored.refusal) == (RestoreKind.FULL, "stale")
    assert "deletions were kept, when it was written, for 0.001 s" in (restored.reason or "")
    stores.produce(100, 3)
    assert stores.restore()[TASK].kind is RestoreKind.TAIL


def test_the_files_merged_after_a_restore_are_reported(
    make: Callable[[int], RestoredStores],
) -> None:
    """Where each of many flushes left a file: how many, once all has been read."""
    stores = make(1)
    stores.produce(LARGE, 1)
    stores.restore(flush_s=0)
    assert stores.progress[-1].merging > 0
    assert stores.progress[-1].remaining <= 1
    assert {progress.merging for progress in stores.progress[:-1]} <= {0}


def test_a_damaged_store_is_restored_alone(make: Callable[[int], RestoredStores]) -> None:
    """Its neighbour reads its tail as ever."""
    stores = make(2)
    stores.produce(LARGE, 1)
    stores.restore()
    for table in stores.directory(1).glob("*.sst"):
        table.write_bytes(table.read_bytes()[: table.stat().st_size // 2])
    stores.produce(LARGE, 2)
    restored = stores.restore()
    assert restored[TASK].kind is RestoreKind.TAIL
    damaged = restored[TaskName("Partition 1")]
    assert (damaged.kind, damaged.records) == (RestoreKind.FULL, 2 * LARGE)
    assert damaged.reason is not None


@pytest.mark.parametrize(("partitions", "again"), [long(1, 0), (1, 1), (2, 1)])
def test_a_changelog_that_is_deleted_in_mid_restore_is_named(
    make: Callable[[int], RestoredStores], partitions: int, again: int
) -> None:
    """Whether it is recreated or not, and with as many partitions as before or fewer.

    One line, that says which one.
    """
    stores = make(partitions)
    stores.produce(LARGE, 1)
    admin = TopicAdmin(stores.system)
    is_gone = False

    def delete(_seconds: float) -> None:
        nonlocal is_gone
        if stores.has_offset() and not is_gone:
            is_gone = True
            admin.delete(stores.topic)
            if again:
                until(lambda: not admin.partition_counts([stores.topic]))
                stores.make_topic(again)

    # What is being read is the last partition, which is gone where there are fewer.
    with stores.open_transaction(partitions - 1), pytest.raises(HomeportError) as caught:
        stores.restore(delete)
    assert isinstance(caught.value, PartitionError)
    assert stores.topic in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_broker_that_is_away_in_mid_restore_is_waited_for(
    broker: LocalCluster, tmp_path: Path
) -> None:
    """The same workers go on once it is back; the stores are exact."""
    stores = RestoredStores(broker.bootstrap_servers, "log", tmp_path)
    stores.produce(LARGE, 1)
    was_away = False
    with stores.open_transaction() as end:

        def outage(_seconds: float) -> None:
            nonlocal was_away
            if stores.has_offset() and not was_away:
                was_away = True
                broker.stop_kafka()
                broker.start_kafka()
                end()

        assert stores.restore(outage)[TASK].records == LARGE
    assert was_away


def test_a_disk_that_fills_up_in_mid_restore_is_named(
    make: Callable[[int], RestoredStores], tmp_path: Path
) -> None:
    """The line says which; with room again the restore goes on."""
    stores = make(1)
    stores.produce(LARGE, 1, size=1500)
    disk = tmp_path / "logged"
    disk.mkdir()
    with small_disk(disk):
        with pytest.raises(StoreError, match="no room is left on its disk"):
            stores.restore()
        assert fill(disk).exists()
