"""Overlay: the open transaction's writes to one store, laid over what is committed.

No write reaches the store before Kafka has committed it: the store never holds what a restart could
not find in the changelog. While one transaction is on its way to Kafka, the next one's writes lie
over that one's.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from homeport.container.engine.storage_engine import StorageEngine
from homeport.container.host.run_over import OVER
from homeport.container.progress.transaction_plan import RESERVED_PREFIX

Pairs = Generator[tuple[bytes, bytes], None, None]

_FEW = 16
_BEHIND_RESERVED = b"\x01"
"""Most keys are not below it, which costs less to find than that they lack the prefix."""
_ABSENT: Any = object()
"""In the place of a value: the transaction has not written the key."""


@dataclass
class Written:
    """The writes of an open transaction, of all stores that share it."""

    size_bytes: int = 0


class Overlay:
    """Reads see the overlay first. ``written``: counts its writes with those of other stores."""

    def __init__(self, committed: StorageEngine, written: Written | None = None) -> None:
        self._committed = committed
        self._written = written or Written()
        self._below: StorageEngine | Overlay = committed
        """What reads see below the open transaction: the store, or what is sealed over it."""
        self._entries: dict[bytes, bytes | None] = {}
        self._ordered: list[bytes] = []

    def get(self, key: bytes) -> bytes | None:
        """Return the value of ``key`` in this transaction."""
        value = self._entries.get(key, _ABSENT)
        return self._below.get(key) if value is _ABSENT else value

    def get_all(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of ``keys`` in this transaction, in their order."""
        entries = self._entries
        missing = [key for key in keys if key not in entries]
        if len(missing) == len(keys):
            return self._below.get_all(keys)
        found = iter(self._below.get_all(missing))
        return [entries[key] if key in entries else next(found) for key in keys]

    def put(self, key: bytes, value: bytes | None) -> None:
        """Give ``key`` the value; None deletes it.

        Raises:
            ValueError: the key is one of the reserved ones.
        """
        if key < _BEHIND_RESERVED and key.startswith(RESERVED_PREFIX):
            raise ValueError(f"keys that begin with {RESERVED_PREFIX!r} are reserved")
        self._entries[key] = value
        self._written.size_bytes += len(key) if value is None else len(key) + len(value)

    def of_objects(
        self,
        key_to: Callable[[Any], bytes],
        msg_to: Callable[[Any], bytes],
        msg_from: Callable[[bytes], Any],
        own: type | None,
    ) -> dict[str, Callable[..., Any]]:
        """Return ``get`` and ``put`` as functions of objects, for each of very many records.

        They call neither ``get`` nor ``put`` of this class, which would cost a third more. Keys of
        the type ``own`` are their own bytes.
        """
        written = self._written

        def get(key: Any, default: Any = None) -> Any:  # noqa: ANN401 - a user's object
            if type(key) is not own:
                if key is None:
                    raise no_key()
                key = key_to(key)
            data = self._entries.get(key, _ABSENT)
            if data is _ABSENT:
                data = self._below.get(key)
            return default if data is None else msg_from(data)

        def put(key: Any, value: Any) -> None:  # noqa: ANN401 - as above
            data = None if value is None else msg_to(value)
            if type(key) is not own:
                if key is None:
                    raise no_key()
                key = key_to(key)
            if key < _BEHIND_RESERVED:
                self.put(key, data)
                return
            self._entries[key] = data
            written.size_bytes += len(key) if data is None else len(key) + len(data)

        return {"get": get, "put": put}

    def put_all(self, entries: Mapping[bytes, bytes | None]) -> None:
        """Put each of ``entries``, as ``put``, or none of them."""
        least = min(entries, default=_BEHIND_RESERVED)
        if least < _BEHIND_RESERVED and any(key.startswith(RESERVED_PREFIX) for key in entries):
            raise ValueError(f"keys that begin with {RESERVED_PREFIX!r} are reserved")
        self._entries.update(entries)
        values = filter(None, entries.values())
        self._written.size_bytes += sum(map(len, entries)) + sum(map(len, values))

    def scan(self, start: bytes | None = None, end: bytes | None = None) -> Pairs:
        """Yield the pairs with start <= key < end in byte order, as they stand at the call."""
        below = self._below.scan(start, end)
        own = self._own(start, end)
        return _merged(below, own) if own else below

    def _own(self, start: bytes | None, end: bytes | None) -> list[tuple[bytes, bytes | None]]:
        entries, ordered = self._entries, self._ordered
        # Keys are never taken out while the transaction is open, so the new ones are the last.
        new = list(islice(reversed(entries), len(entries) - len(ordered)))
        if len(new) > _FEW:
            ordered.extend(new)
            ordered.sort()
        else:
            for key in new:
                insort(ordered, key)
        first = 0 if start is None else bisect_left(ordered, start)
        last = len(ordered) if end is None else bisect_left(ordered, end)
        return [(key, entries[key]) for key in ordered[first:last]]

    def seal(self) -> bool:
        """Set the open transaction's writes aside, as they go to Kafka, and open the next one.

        Return whether there are any.
        """
        if not self._entries:
            return False
        sealed = Overlay(self._committed, self._written)
        sealed._entries, sealed._ordered = self._entries, self._ordered
        self._below = sealed
        self._empty()
        return True

    def sealed(self) -> Mapping[bytes, bytes | None]:
        """Return the writes of the sealed transaction, which stay: {key: value, None = deleted}."""
        below = self._below
        return below._entries if isinstance(below, Overlay) else {}  # noqa: SLF001 - its own class

    def release(self) -> None:
        """Forget what was sealed: the store holds it."""
        self._below = self._committed

    def clear(self) -> None:
        """Drop the open and the sealed transaction."""
        self.release()
        self._empty()

    def end(self) -> None:
        """Refuse every further call: the run that this is of has ended."""
        self._committed = self._below = self._entries = self._ordered = OVER

    def _empty(self) -> None:
        self._entries = {}
        self._ordered = []


def no_key() -> ValueError:
    """Return the error of a key that is None."""
    return ValueError("a store's key may not be None")


def _merged(committed: Pairs, own: Sequence[tuple[bytes, bytes | None]]) -> Pairs:
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
