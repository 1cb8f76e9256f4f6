"""One RocksDB directory."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.declarations.key_types import IntKey
from homeport.config.settings.rocksdb_section import RocksDbConfig
from homeport.container.rocksdb.rocksdb_store import POSITION_KEY, RocksDbMemory, RocksDbStore

MEMORY = RocksDbMemory(16 * 1024 * 1024, 2)


def test_the_position_is_kept_and_hidden(tmp_path: Path) -> None:
    """It survives a close, and no read shows it."""
    store = RocksDbStore(tmp_path, MEMORY)
    assert store.position is None
    store.write({b"b": b"2", b"a": b"1", b"\x00": b"0"}, 7)
    store.write({b"b": None}, 9)
    store.close()
    store = RocksDbStore(tmp_path, MEMORY)
    assert store.position == 9
    assert list(store.scan()) == [(b"\x00", b"0"), (b"a", b"1")]
    assert list(store.scan(b"a", b"b")) == [(b"a", b"1")]
    assert store.get_all([b"a", POSITION_KEY, b"b"]) == [b"1", None, None]
    assert store.get(POSITION_KEY) is None
    assert store.get_all([]) == []
    store.close()


def _files(path: Path) -> dict[str, int]:
    """The time of each of RocksDB's files; the binding writes one of its own at each opening."""
    own = "rocksdict-config.json"
    return {file.name: file.stat().st_mtime_ns for file in path.iterdir() if file.name != own}


def test_a_store_that_is_only_read_writes_no_file(tmp_path: Path) -> None:
    """A position without entries waits for the next flush, and is read before that."""
    with closing(RocksDbStore(tmp_path, MEMORY)) as store:
        store.write({b"a": b"1"}, 7)
    before = _files(tmp_path)
    with closing(RocksDbStore(tmp_path, MEMORY)) as store:
        store.flush()
        assert (store.position, store.get(b"a"), store.get_all([b"a"])) == (7, b"1", [b"1"])
        store.write({}, 8)
        assert (store.position, store.figures()["store_entries"]) == (8, 2)
        assert _files(tmp_path) == before
    with closing(RocksDbStore(tmp_path, MEMORY)) as store:
        assert store.position == 7
        store.write({}, 9)
        store.flush()
        assert (store.position, store.get(b"a")) == (9, b"1")
    with closing(RocksDbStore(tmp_path, MEMORY)) as store:
        assert store.position == 9


def test_the_first_change_of_a_store_that_was_read_lasts(tmp_path: Path) -> None:
    """A scan that began before it stays at its moment."""
    for position in range(1, 4):
        with closing(RocksDbStore(tmp_path, MEMORY)) as store:
            before = list(store.scan()) if position == 2 else None
            scan = store.scan()
            store.write({}, position)
            store.write({b"%d" % position: b"1"}, position)
            assert store.position == position
            assert before is None or list(scan) == before
            assert store.get_all([b"1", b"%d" % position]) == [b"1", b"1"]
            store.flush()


@pytest.mark.parametrize("count", [10, 5000])
def test_many_keys_come_in_the_order_in_which_they_were_asked_for(
    tmp_path: Path, count: int
) -> None:
    """Some are missing, some are deleted, and one comes twice."""
    keys = [b"%d" % (n * 7919 % count) for n in range(count)]
    entries: dict[bytes, bytes | None] = {key: b"v" + key for key in keys if key[-1:] != b"3"}
    with closing(RocksDbStore(tmp_path, MEMORY)) as store:
        store.write(entries, 1)
        store.write({key: None if key[-1:] == b"5" else entries.get(key) for key in keys}, 2)
        asked = [*keys, keys[0]]
        left = {key: value for key, value in entries.items() if key[-1:] != b"5"}
        assert store.get_all(asked) == [left.get(key) for key in asked]
        assert list(store.scan()) == sorted(left.items())
        assert store.position == 2


def test_files_after_a_kill_agree_with_their_position(tmp_path: Path) -> None:
    """The files of a store that is not closed hold what was flushed, of one moment."""
    store = RocksDbStore(tmp_path / "live", MEMORY)
    store.write({b"a": b"1"}, 1)
    store.flush()
    store.write({b"a": b"2", b"b": b"2"}, 2)
    shutil.copytree(tmp_path / "live", tmp_path / "left")
    store.close()
    with closing(RocksDbStore(tmp_path / "left", MEMORY)) as store:
        assert (store.position, list(store.scan())) == (1, [(b"a", b"1")])


def _configured(**options: str) -> RocksDbConfig:
    given = {f"stores.s.{name.replace('_', '.')}": value for name, value in options.items()}
    return RocksDbConfig.of(Config(given), "s")


_OPTIONS = {
    "rocksdb_compression": ("bzip2", "compression=kBZip2Compression"),
    "rocksdb_compaction_style": ("universal", "compaction_style=kCompactionStyleUniversal"),
    "rocksdb_compaction_universal_size_ratio": ("3", "size_ratio=3"),
    "rocksdb_block_size_bytes": ("8192", "block_size=8192"),
    "rocksdb_num_write_buffers": ("4", "max_write_buffer_number=4"),
    "rocksdb_max_log_file_size_bytes": ("1000000", "max_log_file_size=1000000"),
    "rocksdb_keep_log_file_num": ("3", "keep_log_file_num=3"),
    "rocksdb_max_open_files": ("77", "max_open_files=77"),
    "rocksdb_max_background_jobs": ("3", "max_background_jobs=3"),
    "rocksdb_compaction_num_levels": ("5", "num_levels=5"),
    "rocksdb_compaction_level0_file_num_compaction_trigger": (
        "6",
        "level0_file_num_compaction_trigger=6",
    ),
    "rocksdb_compaction_target_file_size_base": ("1000000", "target_file_size_base=1000000"),
    "rocksdb_compaction_target_file_size_multiplier": ("2", "target_file_size_multiplier=2"),
    "container_write_buffer_size_bytes": ("4000000", "write_buffer_size=500000"),
}


def test_options_reach_rocksdb(tmp_path: Path) -> None:
    """It writes down what it was opened with."""
    config = _configured(**{name: value for name, (value, _) in _OPTIONS.items()})
    RocksDbStore(tmp_path, RocksDbMemory(1 << 26, 2, task_count=2), config).close()
    (options,) = tmp_path.glob("OPTIONS-*")
    log_text = options.read_text(encoding="utf-8").replace(" ", "")
    for _, line in _OPTIONS.values():
        assert f"\n{line}\n" in log_text or f";{line};" in log_text or f"{{{line};" in log_text, (
            line
        )


@pytest.mark.parametrize(("stores", "threads"), [(16, 16), (32, 8), (1000, 1)])
def test_many_stores_open_their_files_by_fewer_threads_each(
    tmp_path: Path, stores: int, threads: int
) -> None:
    """RocksDB begins and ends each of them, however few files there are."""
    RocksDbStore(tmp_path, RocksDbMemory(1 << 26, stores)).close()
    (options,) = tmp_path.glob("OPTIONS-*")
    assert f"max_file_opening_threads={threads}\n" in options.read_text(encoding="utf-8")


def test_all_stores_have_one_block_cache_and_one_write_budget(tmp_path: Path) -> None:
    """What is read from either store fills the same cache, and never more than its part."""
    memory = RocksDbMemory(4 << 20, 2)
    stores = [RocksDbStore(tmp_path / name, memory) for name in "ab"]
    for store in stores:
        store.write({b"%06d" % k: b"v" * 1000 for k in range(4000)}, 1)
        store.flush()
    used = []
    for store in stores:
        assert sum(1 for _ in store.scan()) == 4000
        used.append(memory._cache.get_usage())
    assert 0 < used[0] <= used[1] <= 2 << 20
    for store in stores:
        store.close()


NUMBERS = [
    key
    for key in keys.ALL
    if isinstance(key, IntKey) and (".rocksdb." in key.name or "write.buffer" in key.name)
]


@pytest.mark.parametrize("style", ["level", "universal"])
@pytest.mark.parametrize("key", NUMBERS, ids=lambda key: key.name)
def test_every_number_in_its_range_opens_a_store(tmp_path: Path, key: IntKey, style: str) -> None:
    """The smallest and the largest value of each option: RocksDB takes both, and keeps records."""
    name = key.name.replace("<store>", "s")
    for text in (str(key.minimum), str(key.maximum)):
        config = Config({name: text, "stores.s.rocksdb.compaction.style": style})
        store = RocksDbStore(tmp_path / text, MEMORY, RocksDbConfig.of(config, "s"))
        store.write({b"a": b"1"}, 1)
        store.flush()
        assert store.get(b"a") == b"1"
        store.close()
