"""What Kafka's transaction coordinators have written into their topic, ``__transaction_state``.

PURE. Source of the form: Kafka's TransactionLogKey version 0, TransactionLogValue versions 0 and 1
(from version 1 on lengths are variable integers of length + 1, and tagged fields end each struct).

How a transaction ended is written there before its markers are: it holds also where a marker never
reached its partition.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import Enum

STATE_TOPIC = "__transaction_state"

_KEY_VERSION = 0
_PLAIN, _FLEXIBLE = 0, 1
_ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT = 1, 2, 3
_VERSION = struct.Struct(">h")
_HEAD = struct.Struct(">qhib")
_INT = struct.Struct(">i")
_MORE = 0x80

Place = tuple[str, int]
"""(topic, partition)."""


class Outcome(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Ended:
    """The last transaction of an id in some partition, and all partitions that it was in."""

    transactional_id: str
    outcome: Outcome
    places: frozenset[Place]


def transactional_id_of(key: bytes) -> str | None:
    """Of whom a record is; None where that is not of the form that is known here."""
    try:
        (version,) = _VERSION.unpack_from(key)
        (length,) = _VERSION.unpack_from(key, _VERSION.size)
        name = key[2 * _VERSION.size :].decode()
    except (struct.error, UnicodeDecodeError):
        return None
    return name if version == _KEY_VERSION and length == len(name.encode()) else None


@dataclass
class TransactionEnds:
    """The last end of each id in each partition, of the records that were taken."""

    _ends: dict[str, dict[Place, Ended]] = field(default_factory=dict)

    def take(self, key: bytes, value: bytes | None) -> None:
        """One record; the later of an id come after the earlier. What is not known is passed."""
        name = transactional_id_of(key)
        state = None if value is None else _state_of(value)
        if name is None or state is None:
            return
        status, places = state
        own = self._ends.pop(name, {})
        self._ends[name] = own
        if status == _ONGOING:
            # Its end will write a marker, for what was left open there before, too.
            for place in places:
                own.pop(place, None)
        elif status in (_PREPARE_COMMIT, _PREPARE_ABORT):
            outcome = Outcome.COMMITTED if status == _PREPARE_COMMIT else Outcome.ABORTED
            own.update(dict.fromkeys(places, Ended(name, outcome, places)))

    def in_place(self, place: Place) -> list[Ended]:
        """The last transaction of each id in the partition, if it has ended; the latest first.

        One that hangs there is among these: a later one of its id would have ended it.
        """
        return [own[place] for own in reversed(self._ends.values()) if place in own]


def _state_of(value: bytes) -> tuple[int, frozenset[Place]] | None:
    """Status and partitions; None where the record is not of a form that is known here."""
    try:
        (version,) = _VERSION.unpack_from(value)
        if version not in (_PLAIN, _FLEXIBLE):
            return None
        _producer, _epoch, _timeout, status = _HEAD.unpack_from(value, _VERSION.size)
        read = _Reader(value, _VERSION.size + _HEAD.size, is_flexible=version == _FLEXIBLE)
        return status, read.places()
    except (struct.error, IndexError, UnicodeDecodeError):
        return None


class _Reader:
    """Reads the partitions of one value from ``at`` on."""

    def __init__(self, data: bytes, at: int, *, is_flexible: bool) -> None:
        self._data = data
        self._at = at
        self._is_flexible = is_flexible

    def places(self) -> frozenset[Place]:
        found: set[Place] = set()
        for _ in range(self._count()):
            topic = self._text()
            found.update((topic, self._int()) for _ in range(self._count()))
            if self._is_flexible:
                self._skip_tags()
        return frozenset(found)

    def _count(self) -> int:
        return self._variable() - 1 if self._is_flexible else self._int()

    def _text(self) -> str:
        if self._is_flexible:
            length = self._variable() - 1
        else:
            (length,) = _VERSION.unpack_from(self._data, self._at)
            self._at += _VERSION.size
        start, self._at = self._at, self._at + length
        return self._data[start : self._at].decode()

    def _int(self) -> int:
        (found,) = _INT.unpack_from(self._data, self._at)
        self._at += _INT.size
        return int(found)

    def _variable(self) -> int:
        found = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            found |= (byte & ~_MORE) << shift
            shift += 7
            if not byte & _MORE:
                return found

    def _skip_tags(self) -> None:
        for _ in range(self._variable()):
            self._variable()
            length = self._variable()
            self._at += length
