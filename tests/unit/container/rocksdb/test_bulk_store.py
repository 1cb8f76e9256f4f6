"""A store that is filled in bulk, and what later openers find."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from homeport.config.errors import StoreError
from homeport.container.progress import restore_schedule
from homeport.container.progress.restore_schedule import WorkerMemory
from homeport.container.rocksdb.bulk_store import BulkStore
from homeport.container.rocksdb.expiring_store import ExpiringStore
from homeport.container.rocksdb.rocksdb_store import DEFAULTS, RocksDbMemory, RocksDbStore

MEMORY = WorkerMemory(tables=4, table_mb=1, queue_mb=1, merged=2)


def _opened(path: Path) -> RocksDbStore:
    return RocksDbStore(path, RocksDbMemory(1 << 24, 1))


def test_the_last_value_counts_and_none_deletes(tmp_path: Path) -> None:
    """Within a batch and over batches; what has no key is passed over; the position is theirs."""
    bulk = BulkStore(tmp_path, MEMORY, 2)
    bulk.write([b"b", b"a", b"a", None], [b"1", b"1", b"2", b"x"], 3)
    bulk.write([b"c", b"b"], [b"3", None], 5)
    bulk.flush()
    bulk.compact(lambda _: pytest.fail("there is nothing to merge"))
    bulk.close()
    store = _opened(tmp_path)
    assert (list(store.scan()), store.position) == ([(b"a", b"2"), (b"c", b"3")], 5)
    store.close()


def test_a_store_that_was_in_use_is_filled_too(tmp_path: Path) -> None:
    """A long tail; and in turns: no opener uses the other's options."""
    expected: dict[bytes, bytes] = {}
    for turn in range(3):
        store = _opened(tmp_path)
        assert dict(store.scan()) == expected
        entries = {b"%d-%d" % (turn, i): b"x" * 1000 for i in range(100)}
        store.write(entries, turn)
        store.flush()
        store.close()
        bulk = BulkStore(tmp_path, MEMORY, 2)
        bulk.write(list(entries)[50:], [None] * 50, turn)
        bulk.flush()
        bulk.close()
        expected |= dict(list(entries.items())[:50])


def test_a_store_whose_entries_expire_is_filled_as_such(tmp_path: Path) -> None:
    """An opener with its time to live finds values and position, and nothing of stamps."""
    bulk = BulkStore(tmp_path, MEMORY, 2, expires=True)
    bulk.write([b"a", b"b"], [b"1", None], 3)
    bulk.flush()
    bulk.close()
    store = ExpiringStore(tmp_path, RocksDbMemory(1 << 24, 1), DEFAULTS, 1000)
    assert (list(store.scan()), store.position) == ([(b"a", b"1")], 3)
    store.close()


def test_a_store_that_expires_keeps_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The calendar is set ahead before the tail is read: nothing that the store had is older."""
    memory = RocksDbMemory(1 << 24, 1)
    store = ExpiringStore(tmp_path, memory, DEFAULTS, 10_000)
    store.write({b"a": b"1"}, 3)
    store.close()
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    monkeypatch.setattr(time, "time_ns", lambda: 2_000_000_000 * 10**9)
    bulk = BulkStore(tmp_path, MEMORY, 2, expires=True)
    bulk.write([b"b"], [b"1"], 4)
    bulk.flush()
    bulk.close()
    store = ExpiringStore(tmp_path, memory, DEFAULTS, 10_000)
    store.write({}, 5)
    assert (list(store.scan()), store.position) == ([(b"a", b"1"), (b"b", b"1")], 5)
    store.close()


def test_files_that_wait_for_compaction_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More files than may wait are merged before the store is used, into one layer."""
    monkeypatch.setattr(restore_schedule, "MOST_LEVEL0_FILES", 2)
    bulk = BulkStore(tmp_path, MEMORY, 2)
    for i in range(4):
        bulk.write([b"%d" % i, b"same"], [b"x", b"%d" % i], i)
        bulk.flush()
    stated: list[int] = []
    bulk.compact(stated.append)
    bulk.compact(stated.append)
    bulk.close()
    assert stated == [4]
    store = _opened(tmp_path)
    assert dict(store.scan()) == {b"0": b"x", b"1": b"x", b"2": b"x", b"3": b"x", b"same": b"3"}
    store.close()


def test_a_layered_store_is_compacted_as_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a merge its files are layered: RocksDB's own threads keep the new ones few."""
    monkeypatch.setattr(restore_schedule, "MOST_LEVEL0_FILES", 2)
    for first in (0, 10):
        bulk = BulkStore(tmp_path, MEMORY, 2)
        for i in range(first, first + 6):
            bulk.write([b"%02d" % i], [b"x"], i)
            bulk.flush()
        bulk.compact(lambda _: None)
        bulk.close()
    store = _opened(tmp_path)
    assert (len(list(store.scan())), store.position) == (12, 15)
    store.close()


def test_a_directory_that_rocksdb_refuses_is_named(tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / "CURRENT").write_text("nonsense\n")
    with pytest.raises(StoreError, match=f"^{tmp_path}: RocksDB cannot open it: .+$"):
        BulkStore(tmp_path, MEMORY, 2)
