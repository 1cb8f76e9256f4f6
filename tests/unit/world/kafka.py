"""A broker as far as safety rests on it: ids, epochs, transactions, markers, what readers see.

As measured of Kafka 4.3.1. Every commit and abort takes an offset for its marker. A commit is
acknowledged when it is decided; its markers come ``marker_delay_ms`` later, and until then the last
stable offset stands before its records. An init raises the epoch of its id, ends what was open and
returns when all markers are written; one that comes late is accepted like any other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.unit.world.clock import Clock

SWEEP_MS = 10_000
"""How often the broker looks for transactions that are over their time."""

Place = tuple[str, int]
"""(topic, partition)."""


class FencedByBrokerError(Exception):
    """The epoch is not the newest of its id, or the broker has ended the transaction itself."""


class UnknownTopicError(Exception):
    """There is no such topic or partition."""


@dataclass(frozen=True)
class Writer:
    """A writer: an id with its epoch; a plain idempotent producer has no id."""

    transactional_id: str | None
    epoch: int = 0


@dataclass(frozen=True)
class Record:
    """One record or, where ``marker`` is set, the end of a transaction in this partition."""

    offset: int
    writer: Writer
    key: bytes | None
    value: bytes | None
    at_ms: int
    marker: bool | None = None
    """Whether it is the marker of a commit (True) or of an abort."""


@dataclass
class Partition:
    """One partition's log and what is open in it: {writer: offset of its first open record}."""

    records: list[Record] = field(default_factory=list)
    open: dict[Writer, int] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    """Offsets of records whose transaction was aborted."""
    compacted: set[int] = field(default_factory=set)
    """Offsets of records that compaction has taken out."""
    oldest: int = 0

    @property
    def end(self) -> int:
        """The end as a reader of uncommitted records sees it."""
        return len(self.records)

    @property
    def stable_end(self) -> int:
        """Before the first record of an open transaction; else the end."""
        return min(self.open.values()) if self.open else len(self.records)

    def committed(self, start: int, end: int) -> Iterator[Record]:
        """The records of [start, end) that a reader of committed records is given."""
        left_out = self.aborted | self.compacted
        for record in self.records[start:end]:
            if record.marker is None and record.offset not in left_out:
                yield record


@dataclass
class _Transaction:
    writer: Writer
    began_ms: int
    timeout_ms: int
    places: dict[Place, None] = field(default_factory=dict)


@dataclass
class _Id:
    epoch: int = -1
    open: _Transaction | None = None
    ending: int = 0
    """Transactions that are decided and whose markers are not written."""


class Broker:
    """All brokers of the world. Each method happens at one instant."""

    def __init__(self, clock: Clock) -> None:
        self.marker_delay_ms = 1
        self.is_up = True
        self.delete_retention_ms = 86_400_000
        self.topic_ids: dict[str, str] = {}
        self.partitions: dict[Place, Partition] = {}
        self._clock = clock
        self._ids: dict[str, _Id] = {}
        self._created = 0
        self._clock.at(SWEEP_MS, self._sweep)

    def create(self, topic: str, partitions: int = 1) -> None:
        """The topic is there, empty; one that is recreated has another id."""
        self._created += 1
        self.topic_ids[topic] = f"{topic}-{self._created}-{self._clock.now_ms}"
        for number in range(partitions):
            self.partitions[topic, number] = Partition()

    def grow(self, topic: str, partitions: int) -> None:
        """The topic has so many partitions; those that it had stay."""
        for number in range(self.counts()[topic], partitions):
            self.partitions[topic, number] = Partition()

    def delete(self, topic: str) -> None:
        """There is no such topic."""
        self.topic_ids.pop(topic, None)
        for place in [p for p in self.partitions if p[0] == topic]:
            del self.partitions[place]

    def partition(self, place: Place) -> Partition:
        """One partition.

        Raises:
            UnknownTopicError: there is none.
        """
        try:
            return self.partitions[place]
        except KeyError:
            raise UnknownTopicError(f"{place[0]} {place[1]}") from None

    def logs(self, *topics: str) -> Iterator[Partition]:
        """The partitions of these topics, in order."""
        for (topic, _), log in self.partitions.items():
            if topic in topics:
                yield log

    def counts(self) -> dict[str, int]:
        """{topic: number of partitions}."""
        found: dict[str, int] = {}
        for topic, _ in self.partitions:
            found[topic] = found.get(topic, 0) + 1
        return found

    # -- producers

    def init(self, transactional_id: str) -> Writer:
        """A new epoch of the id: every older holder is fenced and what it had open is aborted.

        ``is_ending`` says when the markers are written, as the client waits for.
        """
        state = self._ids.setdefault(transactional_id, _Id())
        if state.open is not None:
            self._end(state, commit=False)
        state.epoch += 1
        return Writer(transactional_id, state.epoch)

    def is_ending(self, transactional_id: str) -> bool:
        """Whether markers of a decided transaction of this id are not written yet."""
        return self._ids.setdefault(transactional_id, _Id()).ending > 0

    def append(
        self, place: Place, writer: Writer, key: bytes | None, value: bytes | None, timeout_ms: int
    ) -> int:
        """The record is in the log, in the open transaction of a writer with an id; its offset.

        Raises:
            FencedByBrokerError: the writer's epoch is not the newest one of its id.
            UnknownTopicError: there is no such partition.
        """
        log = self.partition(place)
        if writer.transactional_id is not None:
            state = self._current(writer)
            if state.open is None:
                state.open = _Transaction(writer, self._clock.now_ms, timeout_ms)
            state.open.places[place] = None
            log.open.setdefault(writer, log.end)
        record = Record(log.end, writer, key, value, self._clock.now_ms)
        log.records.append(record)
        return record.offset

    def end(self, writer: Writer, *, commit: bool) -> None:
        """The writer's open transaction, if any, is decided.

        Raises:
            FencedByBrokerError: the writer's epoch is not the newest one of its id.
        """
        state = self._current(writer)
        if state.open is not None:
            self._end(state, commit=commit)

    def _current(self, writer: Writer) -> _Id:
        state = self._ids[writer.transactional_id or ""]
        if writer.epoch != state.epoch:
            raise FencedByBrokerError(f"{writer.transactional_id}: epoch {writer.epoch} is fenced")
        return state

    def _end(self, state: _Id, *, commit: bool) -> None:
        transaction = state.open
        if transaction is None:
            return
        state.open = None
        state.ending += 1

        def write_markers() -> None:
            state.ending -= 1
            for place in transaction.places:
                self._mark(self.partitions[place], transaction.writer, commit=commit)

        if self.marker_delay_ms:
            self._clock.at(self.marker_delay_ms, write_markers)
        else:
            write_markers()

    def _mark(self, log: Partition, writer: Writer, *, commit: bool) -> None:
        first = log.open.pop(writer)
        if not commit:
            log.aborted.update(r.offset for r in log.records[first:] if r.writer == writer)
        marker = Record(log.end, writer, None, None, self._clock.now_ms, marker=commit)
        log.records.append(marker)

    def _sweep(self) -> None:
        for state in self._ids.values():
            open_ = state.open
            if open_ is not None and self._clock.now_ms - open_.began_ms >= open_.timeout_ms:
                self._end(state, commit=False)
                state.epoch += 1  # a writer that took too long is fenced
        self._clock.at(SWEEP_MS, self._sweep)
