"""Brokers in memory: topics, partitions, and transactions that are open, committed or aborted.

As in Kafka, the end of a transaction takes an offset in each of its partitions. A reader of
committed records gets none behind the first undecided one. A client that initialises an id fences
its former holder. Nothing is compacted or expires.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from homeport.config.errors import FencedError, HomeportError
from homeport.container.api import HeaderPairs, Headers
from homeport.container.kafka.client_properties import TransactionError
from homeport.container.kafka.sending import absent
from homeport.container.processing.record_rules import (
    checked_headers,
    partition_number,
    require_bytes,
    whole_ms,
)
from homeport.container.progress.transaction_plan import Send
from homeport.testing.partitioner import partition_of

_DEFAULTS = {
    "max.message.bytes": "1048588",
    "message.timestamp.type": "CreateTime",
    "message.timestamp.before.max.ms": str(2**63 - 1),
    "message.timestamp.after.max.ms": "3600000",
    "cleanup.policy": "delete",
}
"""Kafka's defaults of the topic properties that decide which records a topic accepts."""
_MS_PER_S = 1000
_LOG_APPEND_TIME = "LogAppendTime"


def settings_of(stream: str, given: Mapping[str, str]) -> dict[str, str]:
    """Return the properties of a topic, Kafka's defaults included.

    HomeportError: one of them does not decide which records a topic accepts.
    """
    for name in given:
        if name not in _DEFAULTS:
            known = ", ".join(_DEFAULTS)
            raise HomeportError(f"topics: {stream} has {name!r}, which has no effect here: {known}")
    return {**_DEFAULTS, **given}


class TestRunnerError(HomeportError):
    """A test requests something that the job under test does not have, or cannot do now."""

    __test__ = False


@dataclass(frozen=True, slots=True)
class Record:
    """One record of a stream; two are equal if key and value are.

    Units: ``timestamp`` in ms since 1970.
    """

    key: Any
    value: Any
    partition: int = field(default=0, compare=False)
    offset: int = field(default=-1, compare=False)
    timestamp: int = field(default=-1, compare=False)
    headers: Mapping[str, bytes | None] = field(default_factory=Headers, compare=False)


class Outcome(Enum):
    """The outcome of a transaction."""

    OPEN = "open"
    COMMITTED = "committed"
    ABORTED = "aborted"


@dataclass(eq=False)
class Transaction:
    """One transaction; ``began``: {partition: offset of its first record there}."""

    outcome: Outcome = Outcome.OPEN
    began: dict[Partition, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stored:
    """One record in a partition. ``number`` grows with each record of the broker.

    ``transaction``: None: it is in none.
    """

    key: bytes | None
    value: bytes | None
    timestamp_ms: int
    headers: HeaderPairs | None
    number: int
    transaction: Transaction | None

    @property
    def is_committed(self) -> bool:
        """Return whether readers of committed records get the record."""
        return self.transaction is None or self.transaction.outcome is Outcome.COMMITTED


class Partition:
    """One partition: a record at each offset, or None for the end of a transaction."""

    def __init__(self) -> None:
        self._records: list[Stored | None] = []
        self._open: dict[Transaction, int] = {}

    @property
    def head(self) -> int:
        """Return one past the last offset."""
        return len(self._records)

    @property
    def stable_end(self) -> int:
        """Return the offset of the first record whose transaction is open; else the head."""
        return min(self._open.values(), default=self.head)

    def append(self, record: Stored) -> int:
        """Append the record; return its offset."""
        offset = self.head
        self._records.append(record)
        if record.transaction is not None:
            self._open.setdefault(record.transaction, offset)
            record.transaction.began.setdefault(self, offset)
        return offset

    def end(self, transaction: Transaction) -> None:
        """Write the end of the transaction."""
        del self._open[transaction]
        self._records.append(None)

    def read(
        self, start: int, end: int | None = None, *, committed: bool = True
    ) -> Iterator[tuple[int, Stored]]:
        """Yield (offset, record) of [start, end); if ``committed``, up to the first undecided."""
        last = self.stable_end if committed else self.head
        for offset in range(start, last if end is None else min(end, last)):
            record = self._records[offset]
            if record is not None and (record.is_committed or not committed):
                yield offset, record


@dataclass
class _Writer:
    """A transactional id. ``epoch`` grows with each holder that takes it over."""

    epoch: int = 0
    transaction: Transaction | None = None


class Broker:
    """All topics of one cluster of brokers.

    Args:
        count_of: from a topic that is used for the first time to its number of partitions.
        now_ms: the time of new records.
    """

    def __init__(self, count_of: Callable[[str], int], now_ms: Callable[[], int]) -> None:
        self._count_of = count_of
        self._now_ms = now_ms
        self.makes_topics = True
        self._topics: dict[str, list[Partition]] = {}
        self._settings: dict[str, Mapping[str, str]] = {}
        self._writers: dict[str, _Writer] = {}
        self._numbers = itertools.count()

    def partitions(self, topic: str) -> list[Partition]:
        """Return the topic's partitions; create the topic if it does not exist."""
        if topic not in self._topics:
            self.create(topic, self._count_of(topic))
        return self._topics[topic]

    @property
    def topics(self) -> list[str]:
        """Return the names of all topics, sorted."""
        return sorted(self._topics)

    def create(self, topic: str, count: int) -> None:
        """Create the topic; one that exists keeps its partitions."""
        self._topics.setdefault(topic, [Partition() for _ in range(count)])

    def set(self, topic: str, settings: Mapping[str, str]) -> None:
        """Give the topic these properties."""
        self._settings[topic] = settings

    def settings(self, topic: str) -> Mapping[str, str]:
        """Return the topic's properties that decide which records it accepts."""
        return self._settings.get(topic, _DEFAULTS)

    def has(self, topic: str) -> bool:
        """Return whether the topic exists, or is created by its first use."""
        return self.makes_topics or topic in self._topics

    def is_used(self, topic: str) -> bool:
        """Return whether the topic exists: the job has it, a test names it, or it has a record."""
        return topic in self._topics

    def partition_count(self, topic: str) -> int:
        """Return the topic's number of partitions; TransactionError if it does not exist."""
        if not self.has(topic):
            raise TransactionError(absent(topic))
        return len(self.partitions(topic))

    def latest_ms(self) -> int:
        """Return the present: the test's time, or the machine's if it is later."""
        return max(self._now_ms(), int(time.time() * _MS_PER_S))

    def append(
        self,
        topic: str,
        key: bytes | None,
        value: bytes | None,
        partition: int | None = None,
        headers: HeaderPairs | None = None,
        timestamp_ms: int | None = None,
        transaction: Transaction | None = None,
    ) -> tuple[int, int]:
        """Append the record; return its partition and offset.

        IndexError: there is no such partition.
        """
        found = self.partitions(topic)
        number = partition_of(key, len(found)) if partition is None else partition
        is_stamped = self.settings(topic)["message.timestamp.type"] == _LOG_APPEND_TIME
        time_ms = self._now_ms() if timestamp_ms is None or is_stamped else timestamp_ms
        stored = Stored(key, value, time_ms, headers, next(self._numbers), transaction)
        return number, found[number].append(stored)

    def send(self, send: Send, transaction: Transaction | None = None) -> tuple[int, int]:
        """Append the record of ``send``; as ``append``."""
        return self.append(
            send.topic,
            send.key,
            send.value,
            send.partition,
            send.headers,
            send.timestamp_ms,
            transaction,
        )

    def take_over(self, transactional_id: str) -> int:
        """Return the id's new epoch: fence its former holder, and abort its open transaction."""
        writer = self._writers.setdefault(transactional_id, _Writer())
        self._end(writer, Outcome.ABORTED)
        writer.epoch += 1
        return writer.epoch

    def begin(self, transactional_id: str, epoch: int) -> Transaction:
        """Open a transaction of that holder; FencedError where another one has the id."""
        writer = self._writer(transactional_id, epoch)
        writer.transaction = Transaction()
        return writer.transaction

    def end(self, transactional_id: str, epoch: int, outcome: Outcome) -> None:
        """End the holder's transaction; FencedError where another one has the id."""
        self._end(self._writer(transactional_id, epoch), outcome)

    def _writer(self, transactional_id: str, epoch: int) -> _Writer:
        writer = self._writers[transactional_id]
        if writer.epoch != epoch:
            raise FencedError(f"{transactional_id}: fenced by a newer incarnation")
        return writer

    @staticmethod
    def _end(writer: _Writer, outcome: Outcome) -> None:
        if writer.transaction is not None:
            writer.transaction.outcome = outcome
            for partition in writer.transaction.began:
                partition.end(writer.transaction)
            writer.transaction = None


def as_sent(
    key: object, value: object, partition: object, headers: object, timestamp: object
) -> tuple[Any, ...]:
    """Return (key, value, partition, headers, timestamp) of an input's record, checked.

    TypeError, ValueError: no producer could send it.
    """
    require_bytes("key", key)
    require_bytes("value", value)
    return (
        key,
        value,
        None if partition is None else partition_number(partition),
        None if headers is None else checked_headers(headers),
        None if timestamp is None else whole_ms(timestamp),
    )
