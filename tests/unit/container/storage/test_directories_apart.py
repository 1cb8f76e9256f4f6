"""Jobs, containers, tasks and stores on one host keep out of each other's directories."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from stores_in_memory_log import (
    CONFIG,
    NOTHING,
    TASK,
    Log,
    directory_of,
    one_committed,
    restored,
    storage_of,
)

from homeport.config.config import Config
from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.host.disk_space import DiskFullError
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.restore import ChangelogTopic
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.directory_lock import DirectoryHeldError
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from homeport.job_coordinator.model.outcomes import Restored

BOTH = Config({**CONFIG, "stores.t.changelog": "kafka.log"})


class _Listening(Log):
    """A changelog whose restores may be of any store and task."""

    def restore_started(self, *_stated: object) -> None:
        pass


def _task(name: str, partition: int = 0) -> TaskModel:
    ssps = (SystemStreamPartition("kafka", "in", partition),)
    return TaskModel(TaskName(name), ssps, 0)


def _storage(folder: Path, log: Log, config: Config, *tasks: TaskModel) -> ContainerStorage:
    stores = list(StorageConfig.of(config).stores.values())
    now = ClockReading(log.now_ms)
    return ContainerStorage(
        folder, folder / "scratch", stores, tasks, 1 << 24, "G", clocks=lambda: now
    )


@contextmanager
def _running(storage: ContainerStorage, log: Log) -> Iterator[dict[str, dict[str, Restored]]]:
    storage.open()
    try:
        yield storage.restore(log, log, log)
    finally:
        storage.close()


def _committed(folder: Path, config: Config, *tasks: TaskModel) -> Log:
    """The log of stores that were closed with one record."""
    log = _Listening()
    log.records = [(b"a", b"1"), None]
    with _running(_storage(folder, log, config, *tasks), log):
        return log


def test_only_the_damaged_store_of_a_container_is_rebuilt(tmp_path: Path) -> None:
    """Two stores of two tasks, one of the four with a file cut short: the others read nothing."""
    tasks = (_task("Partition 0"), _task("Partition 1"))
    log = _committed(tmp_path, BOTH, *tasks)
    table = next((tmp_path / "t" / "Partition_1").glob("*.sst"))
    os.truncate(table, table.stat().st_size // 2)
    with _running(_storage(tmp_path, log, BOTH, *tasks), log) as found:
        pass
    kinds = {(s, t): (r.kind.value, r.refusal) for s, of in found.items() for t, r in of.items()}
    assert kinds == {
        ("s", "Partition 0"): ("none", None),
        ("s", "Partition 1"): ("none", None),
        ("t", "Partition 0"): ("none", None),
        ("t", "Partition 1"): ("full", "damaged-store"),
    }


def test_two_containers_of_a_job_have_one_host_without_meeting(tmp_path: Path) -> None:
    """Each has its own tasks' directories, at the same time."""
    log = _Listening()
    first = _storage(tmp_path, log, BOTH, _task("Partition 0"))
    second = _storage(tmp_path, log, BOTH, _task("Partition 1"))
    first.open()
    second.open()
    again = _storage(tmp_path, log, BOTH, _task("Partition 1"))
    with pytest.raises(DirectoryHeldError, match="Partition_1: another process has it open"):
        again.open()
    again.close()
    first.close()
    second.close()


def test_another_jobs_store_in_the_same_folder_is_foreign(tmp_path: Path) -> None:
    """job.logged.store.base.dir is used as it is: the other job's rest is reported, not read."""
    _committed(tmp_path, CONFIG, _task("Partition 0"))
    other = Config({**CONFIG, "job.name": "other", "stores.s.changelog": "kafka.other"})
    theirs = _Listening()
    theirs.read = lambda *_: iter(())  # type: ignore[method-assign]  # it has none
    theirs.records = [None, None]
    theirs.topic = ChangelogTopic("id-9", 1_000_000)
    storage = _storage(tmp_path, theirs, other, _task("Partition 0"))
    with _running(storage, theirs) as found:
        assert list(storage.overlay("s", TASK).scan()) == []
    result = found["s"][TASK]
    assert result.refusal == "foreign"
    assert result.reason == "OFFSET-v2: it is of kafka.log.0, not of kafka.other.0"


def test_a_task_with_other_input_does_not_take_over_a_store(tmp_path: Path) -> None:
    """The grouping has changed and a name now stands for something else."""
    log = _committed(tmp_path, CONFIG, _task("Partition 0"))
    with _running(_storage(tmp_path, log, CONFIG, _task(TASK, partition=1)), log) as found:
        result = found["s"][TASK]
    assert result.refusal == "foreign"
    assert "the store is of input SystemStreamPartition [kafka, in, 0]" in (result.reason or "")


def test_two_tasks_whose_names_differ_by_a_space_alone_are_refused(tmp_path: Path) -> None:
    """Samza's names would give them one directory; nothing is opened, and both are named."""
    storage = _storage(tmp_path, Log(), CONFIG, _task("a b"), _task("a_b"))
    stated = (
        "a_b: store 's' of task 'a b' and store 's' of task 'a_b' would have this one directory"
    )
    with pytest.raises(StoreError, match=stated):
        storage.open()
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_at_the_opening_leaves_the_store_as_it_is(tmp_path: Path) -> None:
    """One line that names the directory; with room again, nothing is read.

    One of the files that opening writes takes no byte, as all do where a disk is full.
    """
    log = one_committed(tmp_path)
    config = directory_of(tmp_path) / "rocksdict-config.json"
    config.unlink()
    config.symlink_to("/dev/full")
    storage = storage_of(tmp_path, log)
    with pytest.raises(DiskFullError, match=r"Partition_0: no room is left on its disk"):
        storage.open()
    storage.close()
    config.unlink()
    assert restored(tmp_path, log) == NOTHING
