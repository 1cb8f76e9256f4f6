"""One RocksDB directory."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from homeport.config.errors import StoreError
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


def test_a_scan_stays_at_its_moment(tmp_path: Path) -> None:
    """A write after the call does not show in it."""
    store = RocksDbStore(tmp_path, MEMORY)
    store.write({b"a": b"1"}, 1)
    scan = store.scan()
    store.write({b"a": None, b"b": b"2"}, 2)
    assert list(scan) == [(b"a", b"1")]
    store.close()


def test_what_a_kill_leaves_agrees_with_its_position(tmp_path: Path) -> None:
    """The files of a store that is not closed hold what was flushed, of one moment."""
    store = RocksDbStore(tmp_path / "live", MEMORY)
    store.write({b"a": b"1"}, 1)
    store.flush()
    store.write({b"a": b"2", b"b": b"2"}, 2)
    shutil.copytree(tmp_path / "live", tmp_path / "left")
    store.close()
    store = RocksDbStore(tmp_path / "left", MEMORY)
    assert store.position == 1
    assert list(store.scan()) == [(b"a", b"1")]
    store.close()


def test_a_damaged_directory_is_said_to_be_so(tmp_path: Path) -> None:
    """The error names the path."""
    store = RocksDbStore(tmp_path, MEMORY)
    store.write({b"a": b"1"}, 1)
    store.close()
    (tmp_path / "CURRENT").write_bytes(b"x")
    with pytest.raises(StoreError, match="RocksDB cannot open it"):
        RocksDbStore(tmp_path, MEMORY)
