"""What the KeyValueStore of a task must do, whatever engine is below, as a search for faults.

A new kind of engine is searched by a subclass of ``KeyValueStoreConformance`` that says how an
engine is opened; hypothesis compares each of its schedules with a plain map.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from homeport.container.engine.in_memory_store import InMemoryStore
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.serde.serdes import serde
from homeport.container.storage.overlay import Overlay
from homeport.container.storage.typed_store import TypedPairs, TypedStore

KEYS = st.text(alphabet="ab\x00é", max_size=3)
VALUES = st.none() | st.integers(-3, 3)

Pairs = list[tuple[str, int]]


def _ordered(entries: dict[str, int]) -> Pairs:
    return sorted(entries.items(), key=lambda pair: pair[0].encode())


class KeyValueStoreConformance(RuleBasedStateMachine):
    """A store of texts to numbers. ``_model``: what is read; ``_committed``: what outlives a drop.

    ``_sent``: what was read when the transaction that is on its way was ended; None: none is.
    ``_scans``: iterators that are open, each with the pairs it must still give.
    """

    open_engine: Callable[[Path], StorageEngine]

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._model: dict[str, int] = {}
        self._committed: dict[str, int] = {}
        self._sent: dict[str, int] | None = None
        self._scans: list[tuple[TypedPairs, Pairs]] = []
        self._offset = 0
        self._open()

    def _open(self) -> None:
        self._engine = type(self).open_engine(Path(self._folder.name))
        self._overlay = Overlay(self._engine)
        self._store = TypedStore(self._overlay, serde("string"), serde("long"))

    def _write(self, entries: dict[str, int | None]) -> None:
        for key, value in entries.items():
            if value is None:
                self._model.pop(key, None)
            else:
                self._model[key] = value

    @rule(key=KEYS, value=VALUES)
    def put(self, key: str, value: int | None) -> None:
        """One key."""
        self._store.put(key, value)
        self._write({key: value})

    @rule(entries=st.dictionaries(KEYS, VALUES, max_size=6))
    def put_all(self, entries: dict[str, int | None]) -> None:
        """Some keys."""
        self._store.put_all(entries)
        self._write(entries)

    @rule(pairs=st.lists(st.tuples(KEYS, VALUES), max_size=6))
    def put_arrow(self, pairs: list[tuple[str, int | None]]) -> None:
        """Two columns, in which a key may be more than once."""
        keys = pa.array([key for key, _ in pairs], pa.string())
        self._store.put_arrow(keys, pa.chunked_array([pa.array([v for _, v in pairs], pa.int64())]))
        self._write(dict(pairs))

    @rule(key=KEYS)
    def delete(self, key: str) -> None:
        """One key."""
        self._store.delete(key)
        self._write({key: None})

    @rule(keys=st.lists(KEYS, max_size=4))
    def delete_all(self, keys: list[str]) -> None:
        """Some keys."""
        self._store.delete_all(keys)
        self._write(dict.fromkeys(keys))

    @rule(keys=st.lists(KEYS, max_size=6))
    def read(self, keys: list[str]) -> None:
        """The three forms say the same."""
        values = [self._model.get(key) for key in keys]
        assert [self._store.get(key) for key in keys] == values
        other = object()
        others = [other if value is None else value for value in values]
        assert [self._store.get(key, other) for key in keys] == others
        assert self._store.get_all(keys) == {k: self._model[k] for k in keys if k in self._model}
        found = self._store.get_arrow(pa.array(keys, pa.string()))
        assert found.type == pa.int64()
        assert found.to_pylist() == values

    @rule(start=KEYS, end=KEYS)
    def open_range(self, start: str, end: str) -> None:
        """It stands as it is now."""
        low, high = start.encode(), end.encode()
        inside = [pair for pair in _ordered(self._model) if low <= pair[0].encode() < high]
        self._scans.append((self._store.range(start, end), inside))

    @rule(prefix=KEYS)
    def open_prefix(self, prefix: str) -> None:
        """It stands as it is now; text and its bytes are the same prefix."""
        inside = [pair for pair in _ordered(self._model) if pair[0].startswith(prefix)]
        self._scans.append((self._store.prefix(prefix), inside))
        assert list(self._store.prefix(prefix.encode())) == inside

    @rule()
    def open_all(self) -> None:
        """It stands as it is now."""
        self._scans.append((self._store.all(), _ordered(self._model)))

    @precondition(lambda self: self._scans)
    @rule(data=st.data())
    def go_on(self, data: st.DataObject) -> None:
        """One of the open iterators gives its next pair, or ends."""
        scan, left = data.draw(st.sampled_from(self._scans))
        assert next(scan, None) == (left.pop(0) if left else None)

    @precondition(lambda self: self._scans)
    @rule(data=st.data(), how=st.sampled_from(["end", "close", "with"]))
    def finish(self, data: st.DataObject, how: str) -> None:
        """One of the open iterators is read to its end, or closed."""
        scan, left = self._scans.pop(data.draw(st.integers(0, len(self._scans) - 1)))
        if how == "end":
            assert list(scan) == left
        elif how == "close":
            scan.close()
        else:
            with scan as same:
                assert next(same, None) == (left[0] if left else None)
        assert next(scan, None) is None

    @precondition(lambda self: self._sent is None)
    @rule()
    def commit(self) -> None:
        """The transaction's writes are in the engine."""
        self.send()
        self.arrive()

    @precondition(lambda self: self._sent is None)
    @rule()
    def send(self) -> None:
        """The transaction is on its way; what is written from now on lies over it."""
        self._overlay.seal()
        self._sent = dict(self._model)

    @precondition(lambda self: self._sent is not None)
    @rule()
    def arrive(self) -> None:
        """What was sent is in the engine."""
        assert self._sent is not None
        self._engine.write(self._overlay.sealed(), self._offset)
        self._overlay.release()
        self._committed, self._sent = self._sent, None
        self._offset += 1

    @rule()
    def drop(self) -> None:
        """The transaction's writes are gone."""
        self._overlay.clear()
        self._sent = None
        self._model = dict(self._committed)

    @rule()
    def flush(self) -> None:
        """Nothing is to be seen of it."""
        self._engine.flush()

    @rule()
    def reopen(self) -> None:
        """What was committed is there, if the engine keeps it; open iterators do not hinder it."""
        self._engine.close()
        self._scans.clear()
        if isinstance(self._engine, InMemoryStore):
            self._committed = {}
        self._sent = None
        self._model = dict(self._committed)
        self._open()

    @invariant()
    def is_a_plain_map(self) -> None:
        """All that is there, in the order of the keys' bytes, by pairs and by columns."""
        expected = _ordered(self._model)
        assert list(self._store.all()) == expected
        rows = [row for batch in self._store.all_arrow(2) for row in batch.to_pylist()]
        assert rows == [{"key": key, "value": value} for key, value in expected]

    def teardown(self) -> None:
        """Nothing is left open."""
        self._engine.close()
        self._folder.cleanup()
