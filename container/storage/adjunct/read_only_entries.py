"""ReadOnlyEntries: what tasks see of an adjunct store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from homeport.container.api import ReadOnlyStoreError
from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.progress.transaction_plan import RESERVED_PREFIX
from homeport.container.storage.overlay import Pairs

_BEHIND_PREFIX = RESERVED_PREFIX[:-1] + bytes([RESERVED_PREFIX[-1] + 1])


class ReadOnlyEntries:
    """Reads go to the engine, without the keys that are reserved; writes are refused.

    ``engine``: the open store; another one takes its place where a version is switched to.

    Args:
        engine: as above.
        name, stream: the store, and what fills it, for messages.
    """

    def __init__(self, engine: StorageEngine, name: str, stream: str) -> None:
        self.engine = engine
        self._name = name
        self._stream = stream

    @property
    def size_bytes(self) -> int:
        """Nothing is ever written here."""
        return 0

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key``; None where there is none."""
        return None if key.startswith(RESERVED_PREFIX) else self.engine.get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of ``keys``, in their order."""
        found = zip(keys, self.engine.get_all(keys), strict=True)
        return [None if key.startswith(RESERVED_PREFIX) else value for key, value in found]

    def scan(self, start: bytes | None = None, end: bytes | None = None) -> Pairs:
        """Pairs with start <= key < end in byte order, as they stand at the call."""
        before = self.engine.scan(start, _least(end, RESERVED_PREFIX))
        after = self.engine.scan(max(start or b"", _BEHIND_PREFIX), end)
        return _both(before, after)

    def put(self, _key: bytes, _value: bytes | None) -> NoReturn:
        """Raises ReadOnlyStoreError."""
        raise ReadOnlyStoreError(
            f"store {self._name} is filled by {self._stream} alone, and tasks only read it: "
            "write to another store"
        )

    def put_all(self, _entries: Mapping[bytes, bytes | None]) -> NoReturn:
        """Raises ReadOnlyStoreError."""
        self.put(b"", None)


def _least(end: bytes | None, bound: bytes) -> bytes:
    return bound if end is None else min(end, bound)


def _both(before: Pairs, after: Pairs) -> Pairs:
    try:
        yield from before
        yield from after
    finally:
        before.close()
        after.close()
