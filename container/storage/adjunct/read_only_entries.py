"""ReadOnlyEntries: what tasks see of an adjunct store."""

import weakref
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NoReturn

from homeport.container.api import ReadOnlyStoreError
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.container.storage.overlay import Pairs

_BEHIND_PREFIX = RESERVED_PREFIX[:-1] + bytes([RESERVED_PREFIX[-1] + 1])
_OVERHEAD = 200
"""Bytes that the objects of an entry take beside its key and value."""
_UNKNOWN: Any = object()
"""In the place of a value: it is not kept."""


class ReadOnlyEntries:
    """Reads from the engine, without reserved keys; refuses writes.

    It keeps the entries that were read, up to a number of bytes, until they change: an engine's
    multi-get costs microseconds for each key. The store that writes to the engine calls
    ``changed``. ``kept_bytes`` counts the objects of the entries too.
    """

    def __init__(self, engine: StorageEngine, name: str, stream: str, kept_bytes: int = 0) -> None:
        self._engine = engine
        self._name = name
        self._stream = stream
        self._kept_bytes = kept_bytes
        self._kept: dict[bytes, bytes | None] = {}
        self._room = kept_bytes
        self._scans: weakref.WeakSet[Pairs] = weakref.WeakSet()

    @property
    def engine(self) -> StorageEngine:
        """Return the open store; a switch to another version replaces it.

        That ends the scans of the store before: another thread may close it.
        """
        return self._engine

    @engine.setter
    def engine(self, engine: StorageEngine) -> None:
        self._engine = engine
        self._forget()
        for scan in list(self._scans):
            scan.close()

    def changed(self, keys: Iterable[bytes]) -> None:
        """Forget the values of ``keys``, which have changed in the engine."""
        if self._kept:
            for key in keys:
                self._kept.pop(key, None)

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None where there is none."""
        value: bytes | None = self._kept.get(key, _UNKNOWN)
        if value is _UNKNOWN:
            value = None if key.startswith(RESERVED_PREFIX) else self._engine.get(key)
            self._keep({key: value})
        return value

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of ``keys``, in their order."""
        kept = self._kept
        found = [kept.get(key, _UNKNOWN) for key in keys]
        missing = [key for key, value in zip(keys, found, strict=True) if value is _UNKNOWN]
        if not missing:
            return found
        values = self._read(missing)
        if len(missing) == len(keys):
            return values
        read = iter(values)
        return [next(read) if value is _UNKNOWN else value for value in found]

    def _read(self, keys: Sequence[bytes]) -> list[bytes | None]:
        # In their order RocksDB finds them faster than the sort takes.
        ordered = sorted(keys)
        found = self._engine.get_all(ordered)
        # One look at all of them, as hardly ever one is reserved.
        if RESERVED_PREFIX in b"".join(ordered):
            pairs = zip(ordered, found, strict=True)
            found = [None if key.startswith(RESERVED_PREFIX) else value for key, value in pairs]
        values = dict(zip(ordered, found, strict=True))
        self._keep(values)
        return [values[key] for key in keys]

    def _keep(self, values: Mapping[bytes, bytes | None]) -> None:
        sizes = sum(map(len, values)) + sum(map(len, filter(None, values.values())))
        size = len(values) * _OVERHEAD + sizes
        if size > self._kept_bytes:
            return
        if size > self._room:
            self._forget()
        self._kept.update(values)
        self._room -= size

    def _forget(self) -> None:
        self._kept, self._room = {}, self._kept_bytes

    def scan(self, start: bytes | None = None, end: bytes | None = None) -> Pairs:
        """Yield the pairs with start <= key < end in byte order, as they stand at the call."""
        until = RESERVED_PREFIX if end is None else min(end, RESERVED_PREFIX)
        before = self._engine.scan(start, until)
        after = self._engine.scan(max(start or b"", _BEHIND_PREFIX), end)
        pairs = _both(before, after)
        self._scans.add(pairs)
        return pairs

    def put(self, _key: bytes, _value: bytes | None) -> NoReturn:
        """Raise ReadOnlyStoreError."""
        raise ReadOnlyStoreError(
            f"store {self._name} is filled by {self._stream} alone, and tasks only read it: "
            "write to another store"
        )

    def put_all(self, _entries: Mapping[bytes, bytes | None]) -> NoReturn:
        """Raise ReadOnlyStoreError."""
        self.put(b"", None)


def _both(before: Pairs, after: Pairs) -> Pairs:
    try:
        yield from before
        yield from after
    finally:
        before.close()
        after.close()
