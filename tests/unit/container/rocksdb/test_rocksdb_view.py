"""A store's directory, read without writing there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from homeport.config.errors import StoreError
from homeport.container.rocksdb.expiring_store import ExpiringStore
from homeport.container.rocksdb.rocksdb_store import (
    DEFAULTS,
    POSITION_KEY,
    RocksDbMemory,
    RocksDbStore,
)
from homeport.container.rocksdb.rocksdb_view import RocksDbView

MIB = 1024 * 1024


@pytest.fixture
def store(tmp_path: Path) -> Iterator[RocksDbStore]:
    """A store that its owner has open, in the folder ``db``."""
    path = tmp_path / "db"
    path.mkdir()
    opened = RocksDbStore(path, RocksDbMemory(8 * MIB, 1))
    yield opened
    opened.close()


def _files(path: Path) -> dict[str, tuple[int, int]]:
    # The owner's threads write its LOG when they come to it, after a flush too.
    stats = {entry.name: entry.stat() for entry in path.iterdir() if entry.name != "LOG"}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


def test_the_view_sees_flushed_entries_and_writes_nothing(store: RocksDbStore) -> None:
    """The owner has it open; no file of its directory changes by the look."""
    store.write({b"a": b"1", b"b": b"\x00\xff", b"c": b"3"}, 7)
    store.flush()
    store.write({b"d": b"4"}, 8)
    before = _files(store.path)
    with closing(RocksDbView(store.path)) as view:
        assert view.position == 7
        assert list(view.scan()) == [(b"a", b"1"), (b"b", b"\x00\xff"), (b"c", b"3")]
        assert list(view.scan(b"b")) == [(b"b", b"\x00\xff"), (b"c", b"3")]
        assert (view.get(b"a"), view.get(b"d"), view.get(POSITION_KEY)) == (b"1", None, None)
    assert _files(store.path) == before


def test_the_owner_may_merge_its_tables_away_meanwhile(store: RocksDbStore) -> None:
    """A reader that has begun reads to the end what was there when it began."""
    first = {b"%04d" % i: b"x" * 100 for i in range(1000)}
    store.write(first, 1)
    store.flush()
    with closing(RocksDbView(store.path)) as view:
        pairs = view.scan()
        assert next(pairs)[0] == b"0000"
        tables = {entry.name for entry in store.path.glob("*.sst")}
        for position in range(2, 8):
            store.write(dict.fromkeys(first, b"y" * 100), position)
            store.flush()
        store._db.compact_range(None, None)
        assert not tables & {entry.name for entry in store.path.glob("*.sst")}
        assert all(value == b"x" * 100 for _, value in pairs)
        assert view.position == 1


def test_an_expiring_stores_values_are_the_users(tmp_path: Path) -> None:
    """What it adds to each of them is not shown; it is known by the position's."""
    store = ExpiringStore(tmp_path, RocksDbMemory(8 * MIB, 1), DEFAULTS, ttl_ms=60_000)
    store.write({b"a": b"1", b"b": b""}, 1234)
    store.flush()
    with closing(RocksDbView(tmp_path)) as view:
        assert (view.position, view.get(b"a")) == (1234, b"1")
        assert list(view.scan()) == [(b"a", b"1"), (b"b", b"")]
    store.close()


def test_a_directory_without_a_store_is_reported_in_one_line(tmp_path: Path) -> None:
    """There is no CURRENT; nothing is made there."""
    with pytest.raises(StoreError, match=r"^/.*: there is no RocksDB store here: no CURRENT$"):
        RocksDbView(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("damage", ["cut", "gone", "no manifest"])
def test_damage_is_reported_in_one_line(store: RocksDbStore, damage: str) -> None:
    """A table cut short or gone, a MANIFEST that is missing: the path and why, and no more."""
    store.write({b"%04d" % i: bytes(100) for i in range(1000)}, 1)
    store.flush()
    (table,) = store.path.glob("*.sst")
    if damage == "cut":
        table.write_bytes(table.read_bytes()[:100])
    elif damage == "gone":
        table.unlink()
    else:
        next(store.path.glob("MANIFEST-*")).unlink()
    with pytest.raises(StoreError) as caught:
        RocksDbView(store.path)
    assert str(caught.value).startswith(f"{store.path}: ")
    assert "\n" not in str(caught.value)


def test_a_position_may_be_missing_or_damaged(store: RocksDbStore) -> None:
    """As that of a store of Samza's; what is no offset is reported."""
    store.write({b"a": b"1"}, None)
    store.flush()
    with closing(RocksDbView(store.path)) as view:
        assert view.position is None
    store.write({POSITION_KEY: b"seven"}, None)
    store.flush()
    with closing(RocksDbView(store.path)) as view, pytest.raises(StoreError, match="not a number"):
        _ = view.position


def test_a_damaged_block_is_reported_while_it_is_read(store: RocksDbStore) -> None:
    """The table's end is whole, and what it points to is not."""
    store.write({b"%06d" % i: i.to_bytes(8) * 100 for i in range(20_000)}, 1)
    store.flush()
    for table in store.path.glob("*.sst"):
        data = bytearray(table.read_bytes())
        data[len(data) // 4 : len(data) // 2] = bytes(len(data) // 2 - len(data) // 4)
        table.write_bytes(data)
    with (
        closing(RocksDbView(store.path)) as view,
        pytest.raises(StoreError, match="RocksDB cannot read it"),
    ):
        for _ in view.scan():
            pass
