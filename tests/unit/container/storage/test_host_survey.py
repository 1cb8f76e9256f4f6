"""What is found in a store's directory without its lock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from stores_in_memory_log import CONFIG

from homeport.config.settings.stores_section import StorageConfig
from homeport.container.progress.refusal import RefusalReason
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.host_survey import extent_of, offset_texts, state_found
from homeport.job_coordinator.model.ids import TaskName
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


def test_damage_is_of_its_kind(tmp_path: Path) -> None:
    """As a start would report it: OFFSET before the store."""
    _made(tmp_path).release()
    next(tmp_path.glob("*.sst")).write_bytes(b"")
    local = state_found(tmp_path, STORE, TASK)
    assert local.fault is not None
    assert local.fault.reason is RefusalReason.DAMAGED_STORE
    (tmp_path / "OFFSET").write_bytes(b"7")
    local = state_found(tmp_path, STORE, TASK)
    assert local.fault is not None
    assert local.fault.reason is RefusalReason.DAMAGED_OFFSET
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
