"""The product's Kafka clients on a broker in memory: input, logs, transactions, plain outputs.

Each has the methods of its base class that a container calls, and no connections.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

from confluent_kafka import TIMESTAMP_CREATE_TIME, KafkaError, Message, TopicPartition

from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.client_properties import TransactionError
from homeport.container.kafka.log_reader import LogReader
from homeport.container.kafka.plain_producer import UNDONE, PlainOutputs
from homeport.container.kafka.sending import absent
from homeport.container.kafka.topic_watch import TopicWatch
from homeport.container.kafka.transactional_producer import (
    RecordRefusedError,
    TransactionalProducer,
)
from homeport.container.progress.restore import ChangelogTopic, OffsetRange
from homeport.container.progress.topic_rules import TopicRules, story, topics
from homeport.container.progress.transaction_plan import Changes, Send, TransactionContent
from homeport.job_coordinator.kafka.in_sync import OutputPlace
from homeport.job_coordinator.kafka.record_limit import producer_limit
from homeport.testing.broker import Broker, Outcome, Stored, Transaction

_DELETE_RETENTION_MS = 86_400_000


def message(topic: str, partition: int, offset: int, stored: Stored) -> Message:
    """Return the record as the message of a consumer."""
    return Message(
        topic=topic,
        partition=partition,
        offset=offset,
        key=stored.key,
        value=stored.value,
        headers=list(stored.headers) if stored.headers else None,
        timestamp=(TIMESTAMP_CREATE_TIME, stored.timestamp_ms),
    )


def event(topic: str, partition: int, offset: int, code: int) -> Message:
    """Return a report of librdkafka about a partition, such as its end."""
    return Message(topic=topic, partition=partition, offset=offset, error=KafkaError(code))


class MemoryConsumer:
    """The methods of ``confluent_kafka.Consumer`` that ``InputConsumer`` calls; none waits.

    ``says_ends``: whether it reports each end of a partition, once.
    """

    def __init__(self, broker: Broker, *, says_ends: bool = False) -> None:
        self._broker = broker
        self.says_ends = says_ends
        self._next: dict[tuple[str, int], int] = {}
        self._said: dict[tuple[str, int], int] = {}
        self.consumed = 0

    def list_topics(self, topic: str, _timeout: float) -> None:
        """Create the topic if it does not exist."""
        self._broker.partitions(topic)

    def assign(self, places: Sequence[TopicPartition]) -> None:
        """Read these partitions from their offsets on."""
        self._next = {(place.topic, place.partition): place.offset for place in places}

    def incremental_assign(self, places: Sequence[TopicPartition]) -> None:
        """Read these partitions, too."""
        self._next |= {(place.topic, place.partition): place.offset for place in places}

    def consume(self, count: int, _timeout: float) -> list[Message]:
        """Return committed records, ``count`` at most, partition after partition."""
        found: list[Message] = []
        for (topic, partition), start in self._next.items():
            for offset, stored in self._broker.partitions(topic)[partition].read(start):
                if len(found) == count:
                    break
                found.append(message(topic, partition, offset, stored))
                self._next[topic, partition] = offset + 1
        self.consumed += len(found)
        for topic, partition in self._unsaid():
            if len(found) < count:
                end = self._broker.partitions(topic)[partition].stable_end
                self._said[topic, partition] = end
                found.append(event(topic, partition, end, KafkaError._PARTITION_EOF))  # noqa: SLF001 - librdkafka's name
        return found

    def has_more(self) -> bool:
        """Return whether ``consume`` would return something."""
        places = ((self._broker.partitions(t)[p], start) for (t, p), start in self._next.items())
        more = any(next(partition.read(start), None) for partition, start in places)
        return more or bool(self._unsaid())

    def _unsaid(self) -> list[tuple[str, int]]:
        if not self.says_ends:
            return []
        found = []
        for (topic, number), start in self._next.items():
            partition = self._broker.partitions(topic)[number]
            is_read = next(partition.read(start), None) is None
            if is_read and self._said.get((topic, number)) != partition.stable_end:
                found.append((topic, number))
        return found

    def get_watermark_offsets(
        self, place: TopicPartition, timeout: float = 0, *, cached: bool = False
    ) -> tuple[int, int]:
        """Return the oldest offset and the head; the last stable offset if not ``cached``."""
        del timeout
        partition = self._broker.partitions(place.topic)[place.partition]
        return 0, partition.head if cached else partition.stable_end

    def close(self) -> None:
        """Read nothing any more."""


class MemoryLog(LogReader):
    """Reads changelogs and checkpoints."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    def ends(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], OffsetRange]:
        """Return the oldest offset and the head of each (topic, partition)."""
        return {(t, p): OffsetRange(0, self._broker.partitions(t)[p].head) for t, p in partitions}

    def stable_ends(self, partitions: Sequence[tuple[str, int]]) -> dict[tuple[str, int], int]:
        """Return the last stable offset of each."""
        return {(t, p): self._broker.partitions(t)[p].stable_end for t, p in partitions}

    def offset_at(self, topic: str, partition: int, time_ms: int) -> int | None:
        """Return the first offset whose record is of that time or later; None: there is none."""
        records = self._broker.partitions(topic)[partition].read(0, committed=False)
        return next((offset for offset, s in records if s.timestamp_ms >= time_ms), None)

    def changelog_topics(self, names: Sequence[str]) -> dict[str, ChangelogTopic]:
        """Return the id of each topic, and how long it keeps deletions."""
        ids = self.topic_ids(names)
        return {name: ChangelogTopic(ids[name], _DELETE_RETENTION_MS) for name in names}

    def topic_ids(self, names: Sequence[str]) -> dict[str, str]:
        """Return the id of each topic."""
        return {name: f"id of {name}" for name in names}

    def deletions_kept(self, names: Sequence[str]) -> dict[str, int]:
        """Return the default for each topic: nothing in memory is ever compacted."""
        return dict.fromkeys(names, _DELETE_RETENTION_MS)

    def read_all(
        self, spans: Mapping[tuple[str, int], tuple[int, int]]
    ) -> Iterator[tuple[tuple[str, int], list[Message]]]:
        """Yield the committed records of each [start, head), in one list where there are any."""
        for (topic, partition), span in spans.items():
            records = self._broker.partitions(topic)[partition].read(*span)
            found = [message(topic, partition, o, s) for o, s in records]
            if found:
                yield (topic, partition), found

    def close(self) -> None:
        """Read nothing any more."""


class Refusals:
    """The refusals of topics of a broker in memory, for the client of one system, as Kafka's."""

    def __init__(self, broker: Broker, system: SystemConfig) -> None:
        self._broker = broker
        self._system = system

    def story(self, content: TransactionContent) -> str | None:
        """Return the refused record and the reason; None: all are accepted."""
        rules = {name: self._rules(name) for name in topics(content)}
        return story(content, rules, self._broker.latest_ms())

    def of(self, send: Send) -> str | None:
        """Return why the topic refuses the record; None: it accepts it."""
        return self._rules(send.topic).refusal(send, self._broker.latest_ms())

    def _rules(self, topic: str) -> TopicRules:
        # Each record is a batch of its own here.
        return TopicRules.of(self._broker.settings(topic), producer_limit(self._system), 0)


class MemoryProducer(TransactionalProducer):
    """The one writer of an incarnation; it fences the former holder of its id.

    A record that its topic refuses fails the transaction, as in Kafka.
    """

    def __init__(self, broker: Broker, system: SystemConfig, transactional_id: str) -> None:
        self._broker = broker
        self._id = transactional_id
        self._epoch = broker.take_over(transactional_id)
        self._transaction: Transaction | None = None
        self._sent: dict[tuple[str, int], int] = {}
        self._refusals = Refusals(broker, system)
        self._is_refused = False

    def await_brokers(
        self,
        places: Callable[[], Collection[OutputPlace]],
        pause: Callable[[float], None],
        *,
        are_all: bool = True,
    ) -> None:
        """Return at once: the brokers are always there."""

    def expect_beyond(self, positions: Mapping[tuple[str, int], int]) -> None:
        """Do nothing: no topic is ever recreated."""

    def begin(self) -> None:
        """Open a transaction."""
        self._sent, self._is_refused = {}, False
        self._transaction = self._broker.begin(self._id, self._epoch)

    def send(self, sends: Iterable[Send]) -> None:
        """Append all of ``sends``, undecided."""
        for send in sends:
            self._append(send)

    def send_changes(self, changes: Changes) -> None:
        """Append all of ``changes`` to their changelog, undecided."""
        topic, partition = changes.changelog.stream, changes.partition
        for key, value in changes.entries.items():
            self._append(Send(topic, key, value, partition))

    def deliver(self) -> None:
        """Require that nothing was refused; RecordRefusedError: a topic refuses its record."""
        if self._is_refused:
            self._broker.end(self._id, self._epoch, Outcome.ABORTED)
            raise RecordRefusedError("sending: a record was refused; nothing was committed")

    def commit(self) -> dict[tuple[str, int], int]:
        """Commit all that was sent; return the last offsets of sends that name a partition."""
        self._broker.end(self._id, self._epoch, Outcome.COMMITTED)
        return self._sent

    def close(self) -> None:
        """Send nothing more."""

    def _append(self, send: Send) -> None:
        if not self._broker.has(send.topic):
            self._broker.end(self._id, self._epoch, Outcome.ABORTED)
            raise TransactionError(f"{absent(send.topic)}; the transaction was aborted")
        if self._refusals.of(send) is not None:
            self._is_refused = True
            return
        partition, offset = self._broker.send(send, self._transaction)
        if send.partition is not None:
            self._sent[send.topic, partition] = offset


class MemoryOutputs(PlainOutputs):
    """Outputs that are no part of the transaction.

    ``brokers``: {system: its broker}. ``systems``: {system: its configuration}.
    """

    def __init__(
        self, brokers: Mapping[str, Broker], systems: Mapping[str, SystemConfig], own: str
    ) -> None:
        self._brokers = brokers
        self._systems = systems
        self._own = own

    def send(self, sends: Iterable[Send]) -> None:
        """Append all of ``sends``; all readers get them.

        TransactionError: there is no such topic. RecordRefusedError: a topic refuses its record.
        """
        for send in sends:
            name = send.system or self._own
            broker = self._brokers[name]
            if not broker.has(send.topic):
                raise TransactionError(f"{absent(send.topic)}; {UNDONE}")
            content = TransactionContent([send], (), {})
            refused = Refusals(broker, self._systems[name]).story(content)
            if refused is not None:
                raise RecordRefusedError(f"{refused}; {UNDONE}")
            broker.send(send)

    def deliver(self, pause: Callable[[float], None]) -> None:
        """Return at once: all that was sent is there."""

    def close(self) -> None:
        """Send nothing more."""


class MemoryTopics(TopicWatch):
    """A watch that finds nothing: no topic in memory is ever another one."""

    def __init__(self) -> None:
        """Watch nothing."""

    def check(self) -> None:
        """Return at once."""
