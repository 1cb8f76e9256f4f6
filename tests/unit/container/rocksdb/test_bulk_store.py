"""A store that is filled in bulk, and what later openers find."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from homeport.config.errors import StoreError
from homeport.container.progress import restore_schedule
from homeport.container.progress.restore_schedule import WorkerMemory
from homeport.container.rocksdb.bulk_store import BulkStore
from homeport.container.rocksdb.expiring_store import ExpiringStore
from homeport.container.rocksdb.rocksdb_store import DEFAULTS, RocksDbMemory, RocksDbStore

MEMORY = WorkerMemory(tables=4, table_mb=1, queue_mb=1, merged=2)
_SHARED = RocksDbMemory(1 << 24, 1)
_Found = tuple[dict[bytes, bytes], int | None]


@contextmanager
def _filling(path: Path, *, expires: bool = False) -> Iterator[BulkStore]:
    """What was written is flushed in the end."""
    with closing(BulkStore(path, MEMORY, 2, expires=expires)) as bulk:
        yield bulk
        bulk.flush()


def _found(store: RocksDbStore) -> _Found:
    with closing(store):
        return dict(store.scan()), store.position


def _in(path: Path) -> _Found:
    return _found(RocksDbStore(path, _SHARED))


def test_the_last_value_counts_and_none_deletes(tmp_path: Path) -> None:
    """Within a batch and over batches; what has no key is passed over; the position is theirs."""
    with _filling(tmp_path) as bulk:
        bulk.write([b"b", b"a", b"a", None], [b"1", b"1", b"2", b"x"], 3)
        bulk.write([b"c", b"b"], [b"3", None], 5)
        bulk.flush()
        bulk.compact(lambda _: pytest.fail("there is nothing to merge"))
    assert _in(tmp_path) == ({b"a": b"2", b"c": b"3"}, 5)


def test_a_store_that_was_in_use_is_filled_too(tmp_path: Path) -> None:
    """A long tail; and in turns: no opener uses the other's options."""
    expected: dict[bytes, bytes] = {}
    for turn in range(3):
        entries = {b"%d-%d" % (turn, i): b"x" * 1000 for i in range(100)}
        with closing(RocksDbStore(tmp_path, _SHARED)) as store:
            assert dict(store.scan()) == expected
            store.write(entries, turn)
            store.flush()
        with _filling(tmp_path) as bulk:
            bulk.write(list(entries)[50:], [None] * 50, turn)
        expected |= dict(list(entries.items())[:50])


def test_a_store_that_expires_is_filled_as_such_and_keeps_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No opener with its time to live finds stamps, nor older entries where the calendar is set."""
    with _filling(tmp_path, expires=True) as bulk:
        bulk.write([b"a", b"b"], [b"1", None], 3)
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    monkeypatch.setattr(time, "time_ns", lambda: 2_000_000_000 * 10**9)
    with _filling(tmp_path, expires=True) as bulk:
        bulk.write([b"c"], [b"1"], 4)
    store = ExpiringStore(tmp_path, _SHARED, DEFAULTS, 10_000)
    assert (dict(store.scan()), store.position) == ({b"a": b"1", b"c": b"1"}, 4)
    store.write({}, 5)
    assert _found(store) == ({b"a": b"1", b"c": b"1"}, 5)


def test_files_that_wait_for_compaction_are_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More files than may wait are merged before the store is used, into one layer."""
    monkeypatch.setattr(restore_schedule, "MOST_LEVEL0_FILES", 2)
    stated: list[int] = []
    with _filling(tmp_path) as bulk:
        for i in range(4):
            bulk.write([b"%d" % i, b"same"], [b"x", b"%d" % i], i)
            bulk.flush()
        bulk.compact(stated.append)
        bulk.compact(stated.append)
    assert stated == [4]
    assert _in(tmp_path) == ({b"0": b"x", b"1": b"x", b"2": b"x", b"3": b"x", b"same": b"3"}, 3)


def test_a_layered_store_is_compacted_as_usual(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a merge its files are layered: RocksDB's own threads keep the new ones few."""
    monkeypatch.setattr(restore_schedule, "MOST_LEVEL0_FILES", 2)
    for first in (0, 10):
        with _filling(tmp_path) as bulk:
            for i in range(first, first + 6):
                bulk.write([b"%02d" % i], [b"x"], i)
                bulk.flush()
            bulk.compact(lambda _: None)
    pairs, position = _in(tmp_path)
    assert (len(pairs), position) == (12, 15)


def test_a_directory_that_rocksdb_refuses_is_named(tmp_path: Path) -> None:
    """In one line."""
    (tmp_path / "CURRENT").write_text("nonsense\n")
    with pytest.raises(StoreError, match=f"^{tmp_path}: RocksDB cannot open it: .+$"):
        BulkStore(tmp_path, MEMORY, 2)
