"""The KeyValueStore of user code: what the search over both engines cannot say."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, settings
from key_value_store_conformance import KeyValueStoreConformance

from homeport.config.config import Config
from homeport.config.settings.stores_section import StoreConfig
from homeport.container.api import RecordTooLargeError
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.rocksdb.rocksdb_store import RocksDbMemory, RocksDbStore
from homeport.container.serde.serdes import serde
from homeport.container.storage.overlay import Overlay, Written
from homeport.container.storage.typed_store import TypedStore, ValueGuard
from homeport.job_coordinator.model.ids import TaskName

_MEMORY = RocksDbMemory(1 << 24, 1)


def _rocksdb(path: Path) -> StorageEngine:
    return RocksDbStore(path, _MEMORY)


def _in_memory(_path: Path) -> StorageEngine:
    return InMemoryStore()


class _OnRocksDb(KeyValueStoreConformance):
    open_engine = staticmethod(_rocksdb)


class _InMemory(KeyValueStoreConformance):
    open_engine = staticmethod(_in_memory)


TestOnRocksDb = _OnRocksDb.TestCase
TestOnRocksDb.settings = settings(
    max_examples=25,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
TestInMemory = _InMemory.TestCase
TestInMemory.settings = settings(max_examples=100, stateful_step_count=40, deadline=None)


def _store(key: str, msg: str) -> TypedStore:
    return TypedStore(Overlay(InMemoryStore()), serde(key), serde(msg))


def test_a_key_is_never_none() -> None:
    """In no form of a call; and nothing was written."""
    store = _store("long", "long")
    with pytest.raises(ValueError, match="may not be None"):
        store.get(None)
    with pytest.raises(ValueError, match="may not be None"):
        store.put_all({1: 1, None: 2})
    with pytest.raises(ValueError, match="may not be null"):
        store.put_arrow(pa.array([1, None]), pa.array([1, 2]))
    assert list(store.all()) == []


def test_columns_must_be_of_one_length() -> None:
    """And nothing was written."""
    store = _store("long", "long")
    with pytest.raises(ValueError, match="shorter"):
        store.put_arrow(pa.array([1, 2]), pa.array([1]))
    assert list(store.all()) == []


def test_a_prefix_at_the_end_of_all_keys() -> None:
    """No key lies behind those that begin with ff; the empty prefix is everything."""
    store = _store("bytes", "bytes")
    keys = [b"a", b"a\xff", b"a\xff\x01", b"b", b"\xff", b"\xff\xff\x01"]
    store.put_all(dict.fromkeys(keys, b""))
    assert [key for key, _ in store.prefix(b"a\xff")] == [b"a\xff", b"a\xff\x01"]
    assert [key for key, _ in store.prefix(b"\xff")] == [b"\xff", b"\xff\xff\x01"]
    assert [key for key, _ in store.prefix(b"")] == keys


def test_reserved_keys_are_refused_in_every_form() -> None:
    """One of a batch is enough, and nothing of the batch was written."""
    store = _store("bytes", "bytes")
    reserved = b"\x00homeport.position"
    with pytest.raises(ValueError, match="reserved"):
        store.put_all({b"a": b"1", reserved: b"1"})
    with pytest.raises(ValueError, match="reserved"):
        store.put_arrow(pa.array([b"a", reserved]), pa.array([b"1", b"2"]))
    with pytest.raises(ValueError, match="reserved"):
        store.delete_all([reserved])
    with pytest.raises(ValueError, match="reserved"):
        store.put(reserved, b"1")
    assert list(store.all()) == []


def test_a_column_may_ask_for_a_key_many_times() -> None:
    """Each place has its value; numbers that are equal and have other bytes are other keys."""
    store = _store("double", "long")
    store.put_arrow(pa.array([0.0, -0.0, 1.5]), pa.array([1, 2, 3]))
    keys = pa.chunked_array([[1.5, -0.0, 7.0], [0.0, 1.5, 7.0, -0.0]])
    assert store.get_arrow(keys).to_pylist() == [3, 2, None, 1, 3, None, 2]
    assert store.get_arrow(pa.array([], pa.float64())).to_pylist() == []
    with pytest.raises(ValueError, match="may not be null"):
        store.get_arrow(pa.array([1.5, None]))


def test_a_serde_without_arrow_type_says_so() -> None:
    """The type of a JSON text is unknown."""
    with pytest.raises(TypeError, match="'json' has no Arrow type: use get_all"):
        _store("string", "json").get_arrow(pa.array(["a"]))


def _guarded(**more: str) -> TypedStore:
    given = {f"stores.s.{name.replace('_', '.')}": value for name, value in more.items()}
    required = {"stores.s.factory": "in-memory"} | {
        f"stores.s.{part}.serde": "bytes" for part in ("key", "msg")
    }
    limit = {"stores.s.changelog.max.message.size.bytes": "3"}
    guard = ValueGuard.of(
        StoreConfig.of(Config({**required, **limit, **given}), "s"), TaskName("Partition 0")
    )
    return TypedStore(Overlay(InMemoryStore()), serde("bytes"), serde("bytes"), guard)


def test_a_value_over_the_limit_may_be_refused() -> None:
    """At its put, in one line, and nothing of a batch is written; one at the limit is taken."""
    store = _guarded(disallow_large_messages="true", drop_large_messages="true")
    store.put(b"a", b"123")
    with pytest.raises(RecordTooLargeError) as caught:
        store.put(b"b", b"1234")
    assert str(caught.value) == (
        "store s of task 'Partition 0': the value of key b'b' has 4 bytes, "
        "stores.s.changelog.max.message.size.bytes is 3; put less, or raise the limit"
    )
    with pytest.raises(RecordTooLargeError):
        store.put_all({b"c": b"1", b"d": b"1234"})
    assert list(store.all()) == [(b"a", b"123")]


def test_a_value_over_the_limit_may_be_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """The key keeps what it had; each is reported and counted; deletions and small values pass."""
    store = _guarded(drop_large_messages="true")
    store.put_all({b"a": b"1", b"b": b"1", b"c": b"1"})
    store.put(b"a", b"1234")
    keys, values = pa.array([b"b", b"c", b"d"]), pa.array([b"12345", None, b"123"])
    store.put_arrow(keys, values)
    assert list(store.all()) == [(b"a", b"1"), (b"b", b"1"), (b"d", b"123")]
    assert [record.getMessage()[-9:] for record in caplog.records] == ["1 so far)", "2 so far)"]


def test_values_of_any_size_are_taken_by_default() -> None:
    """What the changelog does not take fails its transaction."""
    store = _guarded()
    store.put(b"a", b"1234")
    assert store.get(b"a") == b"1234"


def test_a_scan_sees_the_keys_of_a_large_transaction() -> None:
    """Many new keys since the last scan are in their places as few are."""
    store = _store("long", "long")
    for first in (0, 7, 100):
        store.put_all({(first + 37 * k) % 256: k for k in range(first + 20)})
        keys = [key for key, _ in store.all()]
        assert keys == sorted(set(keys))
        assert store.get(first) == 0


def test_reserved_keys_are_refused() -> None:
    """User code can neither read nor harm the position."""
    written = Written()
    overlay = Overlay(InMemoryStore(), written)
    with pytest.raises(ValueError, match="reserved"):
        overlay.put(b"\x00homeport.position", b"1")
    with pytest.raises(ValueError, match="reserved"):
        overlay.put_all({b"a": b"1", b"\x00homeport.position": b"1"})
    assert written.size_bytes == 0
    assert list(overlay.scan()) == []


def test_the_size_is_that_of_keys_and_values_of_every_write() -> None:
    """Of all stores that share it; the end of a transaction sets it back elsewhere."""
    written = Written()
    overlay, other = Overlay(InMemoryStore(), written), Overlay(InMemoryStore(), written)
    other.put(b"z", b"22")
    overlay.put(b"a", None)
    overlay.put_all({b"b": b"333", b"cc": None})
    assert written.size_bytes == 3 + 1 + 4 + 2
    assert overlay.seal()
    assert overlay.sealed() == {b"a": None, b"b": b"333", b"cc": None}
    overlay.put(b"d", b"4")
    overlay.clear()
    assert overlay.sealed() == {}
    assert not overlay.seal()
