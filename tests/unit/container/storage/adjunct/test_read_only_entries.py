"""What tasks read of an adjunct store, and what is kept of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from homeport.config.settings.stores_section import StorageConfig
from homeport.container.adjunct.version_text import PARTS_KEY as _RESERVED
from homeport.container.api import ReadOnlyStoreError
from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.storage.adjunct.read_only_entries import ReadOnlyEntries
from homeport.container.storage.storage_engines import StorageEngines
from tests.unit.container.storage.adjunct.adjunct_hosts import CONFIG

_ROOM = 10_000


class _Engine(InMemoryStore):
    """``asked``: the keys of each call."""

    def __init__(self, entries: dict[bytes, bytes]) -> None:
        super().__init__()
        self.write(entries, None)
        self.asked: list[list[bytes]] = []

    def get(self, key: bytes) -> bytes | None:
        self.asked.append([key])
        return super().get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        self.asked.append(list(keys))
        return super().get_all(keys)


def _entries(engine: _Engine, kept_bytes: int = _ROOM) -> ReadOnlyEntries:
    return ReadOnlyEntries(engine, "planes", "kafka.planes", kept_bytes)


def _engine() -> _Engine:
    return _Engine({b"a": b"1", b"b": b"2", b"c": b"3", _RESERVED: b"{}"})


def test_what_was_read_is_not_asked_again() -> None:
    """Neither a value nor that there is none; values come in the order of the keys."""
    engine = _engine()
    entries = _entries(engine)
    assert entries.get_all([b"c", b"x", b"a"]) == [b"3", None, b"1"]
    assert entries.get_all([b"b", b"c", b"x"]) == [b"2", b"3", None]
    assert (entries.get(b"b"), entries.get(b"x"), entries.get(b"d")) == (b"2", None, None)
    assert engine.asked == [[b"a", b"c", b"x"], [b"b"], [b"d"]]
    assert entries.get_all([]) == []


def test_what_has_changed_is_read_again() -> None:
    """Of another engine all; where nothing is kept there is nothing to forget."""
    engine = _engine()
    entries = _entries(engine)
    entries.changed([b"a"])
    assert entries.get_all([b"a", b"b"]) == [b"1", b"2"]
    engine.write({b"a": None, b"b": b"5"}, None)
    entries.changed([b"a", b"b", b"z"])
    assert entries.get_all([b"a", b"b"]) == [None, b"5"]
    entries.engine = _Engine({b"a": b"other"})
    assert entries.get_all([b"a", b"b"]) == [b"other", None]


@pytest.mark.parametrize("kept_bytes", [0, 150, 450])
def test_no_more_is_kept_than_there_is_room_for(kept_bytes: int) -> None:
    """What comes last takes the place of all before; what never fits is read each time."""
    engine = _engine()
    entries = _entries(engine, kept_bytes)
    for _ in range(2):
        assert entries.get_all([b"a", b"b"]) == [b"1", b"2"]
        assert entries.get(b"c") == b"3"
    asked = {0: 4, 150: 4, 450: 4}[kept_bytes]
    assert len(engine.asked) == asked
    assert entries.get(b"c") == b"3"
    assert len(engine.asked) == asked + (kept_bytes < 450)


def _rocksdb(path: Path) -> StorageEngine:
    engines = StorageEngines(32 << 20, 1)
    return engines.open(StorageConfig.of(CONFIG).stores["planes"], path)


@pytest.mark.parametrize("make", [lambda _path: InMemoryStore(), _rocksdb])
def test_reserved_keys_are_hidden_and_nothing_is_written(
    make: Callable[[Path], StorageEngine], tmp_path: Path
) -> None:
    """Whatever the bounds of a scan."""
    engine = make(tmp_path)
    engine.write({b"\x00a": b"1", _RESERVED: b"2", b"b": b"3", b"c": b"4"}, None)
    entries = ReadOnlyEntries(engine, "planes", "kafka.planes")
    assert entries.get(_RESERVED) is None
    assert entries.get(b"b") == b"3"
    assert entries.get_all([b"b", _RESERVED, b"x"]) == [b"3", None, None]
    assert entries.get_all([b"b", b"x"]) == [b"3", None]
    for start, end, found in (
        (None, None, b"abc"),
        (b"\x00", b"b", b"a"),
        (_RESERVED, None, b"bc"),
        (None, _RESERVED, b"a"),
        (b"c", None, b"c"),
        (_RESERVED, _RESERVED + b"\x00", b""),
    ):
        assert b"".join(key[-1:] for key, _ in entries.scan(start, end)) == found, (start, end)
    with pytest.raises(ReadOnlyStoreError, match=r"planes is filled by kafka\.planes alone"):
        entries.put(b"b", b"")
    with pytest.raises(ReadOnlyStoreError, match="write to another store"):
        entries.put_all({b"b": None})
    entries.scan().close()
    engine.close()
