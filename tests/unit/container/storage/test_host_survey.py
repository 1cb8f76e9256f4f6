"""What is found on a host without a lock, its holder, and what is removed under which lock."""

from __future__ import annotations

import json
import os
import shutil
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

import pytest
from left_stores import store_in
from stores_in_memory_log import CONFIG

from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct import recovery
from homeport.container.progress import offset_file
from homeport.container.progress.deleted_directories import StoreSource
from homeport.container.progress.host_directories import DirectoryKind, HostRole, Owner
from homeport.container.progress.refusal import RefusalReason
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.cleaner import Limit, judge, judge_by, remove, remove_emptied
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import (
    LOCK_FILE,
    NO_WAIT,
    Holder,
    LockWait,
    lock_holder,
)
from homeport.container.storage.host_survey import (
    extent_of,
    folders_in,
    found_directories,
    offset_texts,
    samzas_checkpoints,
    source_of,
    state_found,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import TaskModel

STORE = StorageConfig.of(CONFIG).stores["s"]
TASK = TaskModel(TaskName("Partition 0"), (), 0)


def _made(path: Path) -> StoreDirectory:
    """A store that holds its changelog up to offset 7, and its OFFSET; it is in use."""
    directory = StoreDirectory(path)
    store = RocksDbStore(path, RocksDbMemory(8 << 20, 1))
    store.write({b"a": b"1"}, 7)
    store.flush()
    store.close()
    directory.write_offset(7)
    return directory


def test_the_checkpoints_of_samza_are_found_beside_their_stores(tmp_path: Path) -> None:
    """Of the tasks that are named, in each store; nothing else that lies there."""
    made = ("s/Partition_0", "s/Partition_0-17-18", "s/Partition_0-old", "s/Partition_1-17-18")
    for name in (*made, "other/Partition_0", "other/Partition_0-1-2"):
        (tmp_path / name).mkdir(parents=True)
    stores = [tmp_path / "s" / "Partition_0", tmp_path / "other" / "Partition_0"]
    assert samzas_checkpoints(stores) == [
        tmp_path / "s" / "Partition_0-17-18",
        tmp_path / "other" / "Partition_0-1-2",
    ]


def test_a_task_that_is_named_as_a_checkpoint_is_none(tmp_path: Path) -> None:
    """A grouper may name one so: its directory is state, also where another container has it."""
    for name in ("eu", "eu-2026-11", "eu-2026-12", "eu-2026-13"):
        (tmp_path / "s" / name).mkdir(parents=True)
    StoreDirectory(tmp_path / "s" / "eu-2026-12").release()
    stores = [tmp_path / "s" / name for name in ("eu", "eu-2026-11")]
    assert samzas_checkpoints(stores) == [tmp_path / "s" / "eu-2026-13"]


def test_the_survey_finds_what_a_start_would_find(tmp_path: Path) -> None:
    """OFFSET and the store's own position; the texts as they stand."""
    held = _made(tmp_path)
    local = state_found(tmp_path, STORE, TASK)
    assert (local.fault, local.offset_file, local.position) == (None, 7, 7)
    texts = {"OFFSET": "7", "OFFSET-v2": None, "SIDE-INPUT-OFFSETS": None}
    assert offset_texts(tmp_path) == texts
    held.release()


def _fault(path: Path) -> RefusalReason | None:
    found = state_found(path, STORE, TASK).fault
    return None if found is None else found.reason


def test_damage_is_of_its_kind(tmp_path: Path) -> None:
    """As a start would report it: OFFSET before the store."""
    _made(tmp_path).release()
    next(tmp_path.glob("*.sst")).write_bytes(b"")
    assert _fault(tmp_path) is RefusalReason.DAMAGED_STORE
    (tmp_path / "OFFSET").write_bytes(b"7")
    assert _fault(tmp_path) is RefusalReason.DAMAGED_OFFSET
    assert offset_texts(tmp_path)["OFFSET"] is None


def test_a_store_in_memory_finds_nothing_of_an_earlier_engine(tmp_path: Path) -> None:
    """A container empties the directory of a store whose factory is now in-memory."""
    _made(tmp_path).release()
    assert not state_found(tmp_path, replace(STORE, factory="in-memory"), TASK).exists


def test_a_directory_with_nothing_but_its_lock_is_no_state(tmp_path: Path) -> None:
    """A container that has just made it, or an in-memory store's."""
    StoreDirectory(tmp_path).release()
    assert not state_found(tmp_path, STORE, TASK).exists
    extent = extent_of(tmp_path)
    assert extent.files == 1
    assert extent.newest_ms == tmp_path.stat().st_mtime_ns // 1_000_000


def test_a_container_is_named_as_its_lock_file_names_it(tmp_path: Path) -> None:
    """For as long as the kernel says that the process holds the lock, and no longer."""
    own = Holder.of("mine-1", Incarnation(ProcessorId("0"), 3), Host("nm1"))
    held = StoreDirectory(tmp_path, NO_WAIT, own)
    assert lock_holder(tmp_path) == own
    held.release()
    assert lock_holder(tmp_path) is None


def test_the_kernels_answer_stands_above_the_files(tmp_path: Path) -> None:
    """A file that names an earlier holder, or none, does not count."""
    held = StoreDirectory(tmp_path)
    for text in (json.dumps({"pid": 1, "host": "nm9", "since_ms": 5}), "cut sh", ""):
        (tmp_path / LOCK_FILE).write_text(text)
        found = lock_holder(tmp_path)
        assert found is not None
        assert (found.pid, found.processor_id) == (os.getpid(), None)
        assert found.host != "nm9"
    held.release()


def test_a_directory_that_was_never_opened_has_no_holder(tmp_path: Path) -> None:
    """There is no lock file; none is made by asking."""
    assert lock_holder(tmp_path) is None
    assert list(tmp_path.iterdir()) == []


NAME = PurePosixPath("counts/Partition_0")
DAY_MS = 86_400_000


def _owners(role: HostRole) -> Mapping[PurePosixPath, Owner]:
    return {NAME: Owner("counts", TASK, role, Host("nm2"))}


def _limit(age_ms: int = 7 * DAY_MS) -> Limit:
    return Limit(age_ms, time.time_ns() // 1_000_000)


def _old(folder: Path, name: PurePosixPath = NAME) -> Path:
    """A directory of a store that nothing has written to for a month."""
    path = folder / name
    path.mkdir(parents=True)
    (path / "data.sst").write_bytes(b"x" * 10_000)
    month_ago = time.time() - 30 * 86_400
    os.utime(path / "data.sst", (month_ago, month_ago))
    return path


def test_an_old_directory_goes_with_its_lock_and_its_stores_folder(tmp_path: Path) -> None:
    """R38, old OFFSET: nothing is left, where Samza takes OFFSET first and the rest a round later.

    The freed space is reported.
    """
    path = _old(tmp_path)
    (path / "OFFSET").write_bytes(b"")
    os.utime(path / "OFFSET", (1, 1))
    (found,) = found_directories(tmp_path)
    assert judge(found, {}, _limit()).verdict.is_removable
    judgement, freed = remove(found, lambda: judge_by(dict, _limit()))
    assert judgement.verdict.is_removable
    assert judgement.found is found  # without the lock file of the removal
    assert freed >= 10_000
    assert not path.parent.exists()


def test_a_task_that_is_named_as_a_checkpoint_is_not_removed(tmp_path: Path) -> None:
    """As long as the job has a task of that name at home here."""
    _old(tmp_path)
    name = PurePosixPath("counts/Partition_0-2026-11")
    _old(tmp_path, name)
    _, found = found_directories(tmp_path)
    task = TaskModel(TaskName("Partition 0-2026-11"), (), 1)
    at_home = Owner("counts", task, HostRole.ACTIVE, Host("nm1"))
    judgement = judge(found, {**_owners(HostRole.ACTIVE), name: at_home}, _limit())
    assert (judgement.kind, judgement.verdict.is_removable) == (DirectoryKind.STORE, False)
    assert judge(found, _owners(HostRole.ACTIVE), _limit()).kind is DirectoryKind.CHECKPOINT


def test_a_directory_without_offset_has_its_grace(tmp_path: Path) -> None:
    """R38, no offset file: kept while it is young; Samza deletes it at once, while it is made."""
    path = tmp_path / NAME
    path.mkdir(parents=True)
    (path / "data.sst").write_bytes(b"")
    (found,) = found_directories(tmp_path)
    assert not judge(found, _owners(HostRole.ELSEWHERE), _limit()).verdict.is_removable


def test_a_directory_is_judged_again_under_the_lock(tmp_path: Path) -> None:
    """A task that has come home, or has written, since the first look has its state."""
    path = _old(tmp_path)
    (found,) = found_directories(tmp_path)
    judgement, freed = remove(found, lambda: judge_by(lambda: _owners(HostRole.ACTIVE), _limit()))
    assert (judgement.verdict.is_removable, freed) == (False, 0)
    (path / "new.sst").write_bytes(b"")
    judgement, _ = remove(found, lambda: judge_by(lambda: _owners(HostRole.ELSEWHERE), _limit()))
    assert not judgement.verdict.is_removable
    assert (path / "data.sst").exists()


def test_a_directory_in_use_is_seen_and_kept(tmp_path: Path) -> None:
    """By the kernel's word at the look, and by the lock at the removal."""
    path = _old(tmp_path)
    assert lock_holder(path) is None
    held = StoreDirectory(path)
    (found,) = found_directories(tmp_path)
    assert found.holder is not None
    assert found.holder.pid == os.getpid()
    assert judge(found, {}, _limit(0)).verdict.reason == "in use"
    judgement, _ = remove(found, lambda: judge_by(dict, _limit(0)))
    assert judgement.verdict.reason == "in use"
    held.release()
    assert lock_holder(path) is None


def test_a_process_that_waits_for_the_lock_gets_a_directory_that_is_there(tmp_path: Path) -> None:
    """The lock that it waited for went with the directory; it makes both again."""
    path = _old(tmp_path)
    held = StoreDirectory(path)
    waits = threading.Event()
    gone = threading.Event()

    def pause(_seconds: float) -> None:
        waits.set()
        gone.wait()

    opened: list[StoreDirectory] = []
    waiter = threading.Thread(
        target=lambda: opened.append(StoreDirectory(path, LockWait(60.0, pause)))
    )
    waiter.start()
    waits.wait()
    held.remove()
    held.release()
    gone.set()
    waiter.join()
    assert path.is_dir()
    assert not opened[0].has_content
    with pytest.raises(StoreError, match="another process has it open"):
        StoreDirectory(path)
    opened[0].release()


def test_history_and_files_are_no_stores(tmp_path: Path) -> None:
    """Whatever begins with a dot, and what is no folder, is passed over."""
    _old(tmp_path, PurePosixPath(".history/x"))
    (tmp_path / "file").write_text("")
    (tmp_path / "counts").mkdir()
    (tmp_path / "counts" / "file").write_text("")
    assert list(found_directories(tmp_path)) == []
    assert list(found_directories(tmp_path / "nowhere")) == []
    assert [folder.name for folder in folders_in(tmp_path)] == ["counts"]


def test_the_folder_of_a_deleted_job_goes_with_its_history_alone(tmp_path: Path) -> None:
    """Folders of stores that hold nothing go too; anything else keeps it."""
    folder = tmp_path / "gone-1"
    assert not remove_emptied(folder)
    (folder / "counts" / "Partition_0").mkdir(parents=True)
    (folder / ".history").mkdir()
    (folder / ".history" / "x.jsonl").write_text("{}")
    assert not remove_emptied(folder)
    (folder / "counts" / "Partition_0").rmdir()
    (folder / "notes.txt").write_text("mine")
    assert not remove_emptied(folder)
    (folder / "notes.txt").unlink()
    (tmp_path / "link").symlink_to(folder)
    assert not remove_emptied(tmp_path / "link")
    assert remove_emptied(folder)
    assert not folder.exists()


def test_a_store_made_while_the_folder_of_a_deleted_job_goes_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a new job of the same name."""
    folder = tmp_path / "gone-1"
    (folder / ".history").mkdir(parents=True)
    made = folder / "counts" / "Partition_0"

    def rmtree(path: Path) -> None:
        made.mkdir(parents=True)
        real(path)

    real = shutil.rmtree
    monkeypatch.setattr("shutil.rmtree", rmtree)
    with pytest.raises(StoreError, match="it cannot be removed: Directory not empty"):
        remove_emptied(folder)
    assert made.exists()


def test_the_log_of_a_directory_is_the_one_that_its_own_file_names(tmp_path: Path) -> None:
    """STORE-META, else ADJUNCT-META; else the fault is named."""
    path = store_in(tmp_path, "j-1", "id-1")
    assert source_of(path) == StoreSource("kafka.log", "id-1")
    fault = source_of(store_in(tmp_path, "k-1", "", text="half")).fault
    assert fault is not None
    assert fault.startswith("STORE-META is damaged")
    (path / "STORE-META").unlink()
    assert source_of(path).fault == (
        "it has neither STORE-META nor ADJUNCT-META: it may be anything"
    )
    text = recovery.meta_text(recovery.AdjunctMeta("kafka.rates", "id-2", ""))
    (path / recovery.META_FILE).write_bytes(offset_file.encode(text))
    assert source_of(path) == StoreSource("kafka.rates", "id-2")
    newer = recovery.meta_text(recovery.AdjunctMeta("kafka.rates", "id-2", "", version=9))
    (path / recovery.META_FILE).write_bytes(offset_file.encode(newer))
    assert source_of(path).fault == "ADJUNCT-META has format 9, and 1 is what is read here"
