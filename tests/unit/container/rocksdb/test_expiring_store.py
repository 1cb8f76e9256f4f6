"""A store with a time to live."""

from __future__ import annotations

from pathlib import Path

import pytest
from storage_engine_conformance import StorageEngineConformance

from homeport.config.errors import StoreError
from homeport.container.rocksdb.expiring_store import ExpiringStore
from homeport.container.rocksdb.rocksdb_store import DEFAULTS, RocksDbMemory, RocksDbStore
from homeport.container.storage.engine import StorageEngine

MEMORY = RocksDbMemory(1 << 24, 2)
BEGIN_S = 1_800_000_000


class Clock:
    """Seconds since 1970, set by the test."""

    def __init__(self) -> None:
        self.now_s = BEGIN_S

    def __call__(self) -> float:
        """The time."""
        return self.now_s


def _opened(path: Path, clock: Clock) -> ExpiringStore:
    return ExpiringStore(path, MEMORY, DEFAULTS, 10_000, now_s=clock)


class TestExpiringStore(StorageEngineConformance):
    """While nothing is old it is a store like any other."""

    @pytest.fixture
    def engine(self, tmp_path: Path) -> StorageEngine:
        """A new store."""
        return _opened(tmp_path, Clock())


def test_what_is_too_old_goes_and_the_position_does_not(tmp_path: Path) -> None:
    """With the next write after the time to live; what was written again since is young."""
    clock = Clock()
    store = _opened(tmp_path, clock)
    store.write({b"a": b"1", b"b": b"1"}, 7)
    clock.now_s += 10
    store.write({b"b": b"2"}, None)
    assert store.get(b"a") == b"1"
    store.close()
    clock.now_s += 1
    store = _opened(tmp_path, clock)
    assert list(store.scan()) == [(b"a", b"1"), (b"b", b"2")]
    store.write({}, None)
    assert (store.position, list(store.scan())) == (7, [(b"b", b"2")])
    clock.now_s += 10**6
    store.write({b"b": b"3"}, None)
    assert (store.position, list(store.scan())) == (7, [(b"b", b"3")])
    store.close()


def test_every_entry_has_its_turn(tmp_path: Path) -> None:
    """A write looks at no more than a few; after enough of them all that was old is gone."""
    clock = Clock()
    store = _opened(tmp_path, clock)
    store.write({b"%04d" % k: b"v" for k in range(300)}, 1)
    clock.now_s += 11
    left = []
    for offset in range(2, 8):
        store.write({b"new": b"v"}, offset)
        left.append(sum(1 for _ in store.scan()) - 1)
    assert left == [234, 168, 102, 36, 0, 0]
    store.close()


def test_the_bytes_are_those_of_rocksdbs_own(tmp_path: Path) -> None:
    """The second of the write, four bytes little-endian, behind the value."""
    store = _opened(tmp_path, Clock())
    store.write({b"a": b"1"}, None)
    store.close()
    plain = RocksDbStore(tmp_path, MEMORY)
    assert plain.get(b"a") == b"1" + BEGIN_S.to_bytes(4, "little")
    plain.close()


@pytest.mark.parametrize("position", [1, 123, 12345, 1_368_146_402_999])
def test_a_time_to_live_that_comes_or_goes_is_noticed(tmp_path: Path, position: int) -> None:
    """Values with and without a stamp are other bytes: the store is damaged for the other kind."""
    plain, aged = tmp_path / "plain", tmp_path / "aged"
    store: RocksDbStore
    for store in (RocksDbStore(plain, MEMORY), _opened(aged, Clock())):
        store.write({b"a": b"1"}, position)
        assert store.position == position
        store.close()
    store = _opened(plain, Clock())
    with pytest.raises(StoreError, match="written without a time to live"):
        _ = store.position
    store.close()
    store = RocksDbStore(aged, MEMORY)
    with pytest.raises(StoreError, match="the reserved position is not a number"):
        _ = store.position
    store.close()
