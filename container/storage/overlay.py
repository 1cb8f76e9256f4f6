"""Overlay: the open transaction's writes to one store, laid over RocksDB.

No write reaches RocksDB before Kafka has committed it: RocksDB never holds what a restart could
not find in the changelog.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

POSITION_PREFIX = b"\x00homeport."
"""Beginning of the keys that belong to this project; user keys may not begin so."""


class CommittedStore(Protocol):
    """What the overlay lies on."""

    def get(self, key: bytes) -> bytes | None:
        """The committed value of ``key``."""

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The committed values of ``keys``, in their order."""

    def scan(
        self, start: bytes | None = None, end: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """The committed pairs with start <= key < end, in byte order, as they stand at the call."""


class Overlay:
    """Reads see the overlay first; ``take`` hands the writes over and leaves it empty."""

    def __init__(self, committed: CommittedStore) -> None:
        self._committed = committed
        self._entries: dict[bytes, bytes | None] = {}
        self.size_bytes = 0

    def get(self, key: bytes) -> bytes | None:
        """The value of ``key`` in this transaction."""
        if key in self._entries:
            return self._entries[key]
        return self._committed.get(key)

    def get_all(self, keys: Iterable[bytes]) -> dict[bytes, bytes]:
        """The values of those of ``keys`` that have one, in the order of ``keys``."""
        wanted = list(dict.fromkeys(keys))
        entries = self._entries
        missing = [key for key in wanted if key not in entries]
        found = dict(zip(missing, self._committed.get_all(missing), strict=True))
        values = ((key, entries[key] if key in entries else found[key]) for key in wanted)
        return {key: value for key, value in values if value is not None}

    def put(self, key: bytes, value: bytes | None) -> None:
        """``key`` has ``value``; None deletes it.

        Raises:
            ValueError: the key is one of the reserved ones.
        """
        if key.startswith(POSITION_PREFIX):
            raise ValueError(f"keys that begin with {POSITION_PREFIX!r} are reserved")
        self._entries[key] = value
        self.size_bytes += len(key) + len(value or b"")

    def scan(
        self, start: bytes | None = None, end: bytes | None = None
    ) -> Iterator[tuple[bytes, bytes]]:
        """Pairs with start <= key < end in byte order, as they stand at the call."""
        own = sorted(
            (key, value)
            for key, value in self._entries.items()
            if (start is None or key >= start) and (end is None or key < end)
        )
        return _merged(self._committed.scan(start, end), own)

    def entries(self) -> Mapping[bytes, bytes | None]:
        """The writes of the open transaction, {key: value, None = deleted}."""
        return self._entries

    def clear(self) -> None:
        """There is no open transaction."""
        self._entries = {}
        self.size_bytes = 0


def _merged(
    committed: Iterator[tuple[bytes, bytes]], own: Sequence[tuple[bytes, bytes | None]]
) -> Iterator[tuple[bytes, bytes]]:
    position = 0
    for key, value in committed:
        while position < len(own) and own[position][0] < key:
            own_key, own_value = own[position]
            position += 1
            if own_value is not None:
                yield own_key, own_value
        if position < len(own) and own[position][0] == key:
            own_value = own[position][1]
            position += 1
            if own_value is not None:
                yield key, own_value
        else:
            yield key, value
    for own_key, own_value in own[position:]:
        if own_value is not None:
            yield own_key, own_value
