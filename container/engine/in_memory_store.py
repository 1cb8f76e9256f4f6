"""InMemoryStore: bytes to bytes in the container's own memory, gone with it."""

import bisect
import inspect
import weakref
from collections.abc import Generator, Mapping, Sequence

from homeport.container.engine.storage_engine import Opener


class InMemoryStore:
    """One owner, one thread. A scan sorts the keys that are new since the last scan.

    The first write during a scan copies the whole store.
    """

    def __init__(self) -> None:
        self._entries: dict[bytes, bytes] = {}
        self._keys: list[bytes] = []
        self._new: set[bytes] = set()
        self._gone: set[bytes] = set()
        self._position: int | None = None
        self._scans: weakref.WeakSet[Generator[tuple[bytes, bytes], None, None]] = weakref.WeakSet()

    @property
    def position(self) -> int | None:
        """The changelog offset up to which the store holds everything; None: not known."""
        return self._position

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key``; None where there is none."""
        return self._entries.get(key)

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of ``keys``, in their order."""
        return list(map(self._entries.get, keys))

    def scan(
        self, start: bytes | None = None, end: bytes | None = None
    ) -> Generator[tuple[bytes, bytes], None, None]:
        """Return pairs with start <= key < end in byte order, as they stand at the call."""
        self._sort()
        first = 0 if start is None else bisect.bisect_left(self._keys, start)
        last = len(self._keys) if end is None else bisect.bisect_left(self._keys, end)
        pairs = _pairs(self._entries, self._keys, range(first, last))
        self._scans.add(pairs)
        return pairs

    def write(self, entries: Mapping[bytes, bytes | None], position: int | None) -> None:
        """Apply all of ``entries`` (None deletes) and the position."""
        if any(inspect.getgeneratorstate(scan) != inspect.GEN_CLOSED for scan in self._scans):
            self._entries = dict(self._entries)
            self._scans.clear()
        mine = self._entries
        for key, value in entries.items():
            if value is None:
                if mine.pop(key, None) is not None:
                    self._gone.add(key)
            else:
                if key not in mine:
                    self._new.add(key)
                mine[key] = value
        if position is not None:
            self._position = position

    def _sort(self) -> None:
        if not (self._new or self._gone):
            return
        kept = self._keys
        if self._gone:
            kept = [key for key in kept if key not in self._gone]
        # A new list, as open scans hold the old one. Sorting merges two sorted runs.
        self._keys = sorted(kept + sorted(key for key in self._new if key in self._entries))
        self._new, self._gone = set(), set()

    def flush(self) -> None:
        """Do nothing: the changelog is all that outlives the container."""

    def close(self) -> None:
        """Drop all entries; open scans end."""
        for scan in list(self._scans):
            scan.close()
        self._entries, self._keys = {}, []


class InMemoryFactory:
    """Implements ``StorageEngineFactory``."""

    def opener(self, *_memory: int) -> Opener:
        """Return the opener of empty stores, whose memory has no limit."""
        return lambda _config, _path, _on_failure: InMemoryStore()


def _pairs(
    entries: Mapping[bytes, bytes], keys: Sequence[bytes], places: range
) -> Generator[tuple[bytes, bytes], None, None]:
    for place in places:
        key = keys[place]
        yield key, entries[key]
