"""Reads the topic of Kafka's transaction coordinators, ``__transaction_state``.

PURE. Source of the form: Kafka's TransactionLogKey version 0, TransactionLogValue versions 0 and 1
(from version 1 on lengths are variable integers of length + 1, and tagged fields end each struct).

The outcome of a transaction is written there before its markers. It holds even where a marker never
reached its partition.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

_KEY_VERSION = 0
_PLAIN, _FLEXIBLE = 0, 1
_ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT = 1, 2, 3
_VERSION = struct.Struct(">h")
_HEAD = struct.Struct(">qhib")
_INT = struct.Struct(">i")
_LONG = struct.Struct(">q")
_MORE = 0x80

Place = tuple[str, int]
"""(topic, partition)."""


class Outcome(Enum):
    """How a transaction ended."""

    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(frozen=True, slots=True)
class Batch:
    """The first record batch of a transaction in a partition.

    ``written_ms``: when it was written, by its writer's clock.
    """

    producer_id: int
    producer_epoch: int
    written_ms: int


@dataclass(frozen=True, slots=True)
class Ended:
    """The last transaction of an id in some partition, and all partitions that it was in.

    ``producer_id``, ``producer_epoch``, ``coordinator_epoch``: those of its markers. ``unlike_ms``
    {partition: when the producer last ended a transaction there with the other outcome, in ms by
    the coordinator's clock}.
    """

    transactional_id: str
    outcome: Outcome
    places: frozenset[Place]
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    unlike_ms: Mapping[Place, int]

    def began_with(self, batch: Batch, place: Place) -> bool:
        """Return whether this certainly is the transaction of the batch in the place.

        An abort by timeout, or by a newer holder of the id, raises the epoch by one. From Kafka's
        transaction version 2 on each end does. Before that version all transactions of a producer
        may have the same epoch. Then a batch from before an end with the other outcome may belong
        to that transaction.
        """
        return (
            batch.producer_id == self.producer_id
            and batch.producer_epoch in {self.producer_epoch, self.producer_epoch - 1}
            and batch.written_ms > self.unlike_ms.get(place, -1)
        )


def transactional_id_of(key: bytes) -> str | None:
    """Return the transactional id of a record; None where its form is not known here."""
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
    _ended_ms: dict[tuple[int, Place, Outcome], int] = field(default_factory=dict)

    def take(self, key: bytes, value: bytes | None, coordinator_epoch: int | None) -> None:
        """Take one record; those of an id come in their order.

        A record of an unknown form may mean anything: all about its id is forgotten, or about all
        ids where its key is unknown, too. A deletion takes nothing back.
        """
        name = transactional_id_of(key)
        if name is None:
            self._ends.clear()
            return
        if value is None:
            return
        state = _state_of(value)
        own = self._ends.pop(name, {})
        if state is None or coordinator_epoch is None:
            return
        self._ends[name] = own
        if state.status == _ONGOING:
            # Its end will write a marker, also for a transaction that was left open there before.
            for place in state.places:
                own.pop(place, None)
        elif state.status in (_PREPARE_COMMIT, _PREPARE_ABORT):
            outcome, other = Outcome.COMMITTED, Outcome.ABORTED
            if state.status == _PREPARE_ABORT:
                outcome, other = other, outcome
            known, producer = self._ended_ms, state.producer_id
            unlike = {
                p: known[producer, p, other] for p in state.places if (producer, p, other) in known
            }
            known.update({(producer, place, outcome): state.updated_ms for place in state.places})
            epochs = state.producer_epoch, coordinator_epoch
            ended = Ended(name, outcome, state.places, producer, *epochs, unlike)
            own.update(dict.fromkeys(state.places, ended))

    def in_place(self, place: Place) -> list[Ended]:
        """Return the last transaction of each id in the partition that has ended, the latest first.

        A hanging one is among these: a later one of its id would have ended it.
        """
        return [own[place] for own in reversed(self._ends.values()) if place in own]

    def places(self) -> set[Place]:
        """Return all partitions in which the last transaction of some id has ended."""
        return {place for own in self._ends.values() for place in own}


@dataclass(frozen=True, slots=True)
class _State:
    producer_id: int
    producer_epoch: int
    status: int
    places: frozenset[Place]
    updated_ms: int


def _state_of(value: bytes) -> _State | None:
    """Return the content of the record; None where its form is unknown here."""
    try:
        (version,) = _VERSION.unpack_from(value)
        if version not in (_PLAIN, _FLEXIBLE):
            return None
        producer, epoch, _timeout, status = _HEAD.unpack_from(value, _VERSION.size)
        read = _Reader(value, _VERSION.size + _HEAD.size, is_flexible=version == _FLEXIBLE)
        return _State(producer, epoch, status, read.places(), read.long())
    except (struct.error, IndexError, UnicodeDecodeError):
        return None


class _Reader:
    def __init__(self, data: bytes, at: int, *, is_flexible: bool) -> None:
        self._data = data
        self._at = at
        self._is_flexible = is_flexible

    def places(self) -> frozenset[Place]:
        found: set[Place] = set()
        for _ in range(self._count()):
            topic = self._text()
            found.update((topic, self._number(_INT)) for _ in range(self._count()))
            if self._is_flexible:
                self._skip_tags()
        return frozenset(found)

    def long(self) -> int:
        return self._number(_LONG)

    def _count(self) -> int:
        return self._variable() - 1 if self._is_flexible else self._number(_INT)

    def _text(self) -> str:
        length = self._variable() - 1 if self._is_flexible else self._number(_VERSION)
        start, self._at = self._at, self._at + length
        return self._data[start : self._at].decode()

    def _number(self, form: struct.Struct) -> int:
        (found,) = form.unpack_from(self._data, self._at)
        self._at += form.size
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
