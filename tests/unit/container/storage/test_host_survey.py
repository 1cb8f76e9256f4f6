"""What is found in a store's directory without its lock: state, and its holder."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

from stores_in_memory_log import CONFIG

from homeport.config.settings.stores_section import StorageConfig
from homeport.container.progress.refusal import RefusalReason
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import LOCK_FILE, NO_WAIT, Holder
from homeport.container.storage.host_survey import extent_of, lock_holder, offset_texts, state_found
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


def test_the_survey_finds_what_a_start_would_find(tmp_path: Path) -> None:
    """OFFSET and the store's own position; the texts as they stand."""
    held = _made(tmp_path)
    local = state_found(tmp_path, STORE, TASK)
    assert (local.fault, local.offset_file, local.position) == (None, 7, 7)
    texts = offset_texts(tmp_path)
    assert (texts.offset, texts.offset_v2, texts.side_input_offsets) == ("7", None, None)
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
    assert offset_texts(tmp_path).offset is None


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
