"""A store with a time to live."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest
from storage_engine_conformance import StorageEngineConformance

from homeport.config.errors import StoreError
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.rocksdb.expiring_store import ExpiringStore
from homeport.container.rocksdb.rocksdb_store import DEFAULTS, RocksDbMemory, RocksDbStore

MEMORY = RocksDbMemory(1 << 24, 2)
BEGIN_S = 1_800_000_000
DAY_S = 86_400


class _Clock:
    """A machine's clocks, set by the test: the calendar's, and the one since its start."""

    def __init__(self) -> None:
        self.wall_s = BEGIN_S
        self.boot_s = 1000

    def goes_on(self, seconds: int) -> None:
        self.wall_s += seconds
        self.boot_s += seconds

    def __call__(self) -> ClockReading:
        return ClockReading(self.wall_s * 1000, "boot", self.boot_s * 1000)


def _opened(path: Path, clock: _Clock) -> ExpiringStore:
    return ExpiringStore(path, MEMORY, DEFAULTS, 10_000, clocks=clock)


def _running(path: Path, clock: _Clock) -> closing[ExpiringStore]:
    return closing(_opened(path, clock))


class TestExpiringStore(StorageEngineConformance):
    """While nothing is old it is a store like any other."""

    @pytest.fixture
    def engine(self, tmp_path: Path) -> StorageEngine:
        """A new store."""
        return _opened(tmp_path, _Clock())


def test_expired_entries_are_removed_and_the_position_stays(tmp_path: Path) -> None:
    """With the next write after the time to live; what was written again since is young.

    Time between two openings does not count: only the calendar could measure it.
    """
    clock = _Clock()
    with _running(tmp_path, clock) as store:
        store.write({b"a": b"1", b"b": b"1"}, 7)
        clock.goes_on(10)
        store.write({b"b": b"2"}, 8)
        assert store.get(b"a") == b"1"
    with _running(tmp_path, clock) as store:
        clock.goes_on(1)
        assert list(store.scan()) == [(b"a", b"1"), (b"b", b"2")]
        store.write({}, None)
        assert (store.position, list(store.scan())) == (8, [(b"b", b"2")])
        clock.goes_on(10**6)
        store.write({b"b": b"3"}, None)
        assert (store.position, list(store.scan())) == (8, [(b"b", b"3")])
    clock.goes_on(DAY_S)
    with _running(tmp_path, clock) as store:
        store.write({}, 9)
        assert list(store.scan()) == [(b"b", b"3")]


@pytest.mark.parametrize("days", [400, -400])
def test_a_wall_clock_that_is_set_takes_nothing_out_and_keeps_nothing(
    tmp_path: Path, days: int
) -> None:
    """Ahead or back, while the store is open or between two openings, and back again.

    Entries written before, meanwhile and afterwards go by the time that has really passed.
    """
    clock = _Clock()
    with _running(tmp_path, clock) as store:
        store.write({b"a": b"1"}, 1)
        clock.goes_on(5)
        clock.wall_s += days * DAY_S
        store.write({b"b": b"1"}, 2)
        assert list(store.scan()) == [(b"a", b"1"), (b"b", b"1")]
    with _running(tmp_path, clock) as store:
        store.write({b"c": b"1"}, 3)
        assert list(store.scan()) == [(b"a", b"1"), (b"b", b"1"), (b"c", b"1")]
        clock.wall_s -= days * DAY_S
        clock.goes_on(6)
        store.write({}, 4)
        assert list(store.scan()) == [(b"b", b"1"), (b"c", b"1")]
        clock.goes_on(5)
        store.write({}, 5)
        assert list(store.scan()) == []


@pytest.mark.parametrize("wall_s", [0, 1 << 32])
def test_a_clock_that_no_stamp_can_say_does_no_harm(tmp_path: Path, wall_s: int) -> None:
    """As of a machine without a battery, or set beyond 2038: a stamp has four bytes."""
    clock = _Clock()
    clock.wall_s = wall_s
    with _running(tmp_path, clock) as store:
        store.write({b"a": b"1"}, 7)
        clock.goes_on(11)
        store.write({b"b": b"1"}, 8)
        assert store.position == 8
        assert store.get(b"b") == b"1"


def test_every_entry_has_its_turn(tmp_path: Path) -> None:
    """A write looks at no more than a few; after enough of them all that was old is gone."""
    clock = _Clock()
    with _running(tmp_path, clock) as store:
        store.write({b"%04d" % k: b"v" for k in range(300)}, 1)
        clock.goes_on(11)
        left = []
        for offset in range(2, 8):
            store.write({b"new": b"v"}, offset)
            left.append(sum(1 for _ in store.scan()) - 1)
        assert left == [234, 168, 102, 36, 0, 0]


def test_the_bytes_are_those_of_rocksdbs_own(tmp_path: Path) -> None:
    """The second of the write, four bytes little-endian, behind the value."""
    store = _opened(tmp_path, _Clock())
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
    for store in (RocksDbStore(plain, MEMORY), _opened(aged, _Clock())):
        store.write({b"a": b"1"}, position)
        assert store.position == position
        store.close()
    store = _opened(plain, _Clock())
    with pytest.raises(StoreError, match="written without a time to live"):
        _ = store.position
    store.close()
    store = RocksDbStore(aged, MEMORY)
    with pytest.raises(StoreError, match="the reserved position is not a number"):
        _ = store.position
    store.close()
