"""CoordinatorStreamStore: the coordinator stream in Kafka.

Reading (safety K1, K4): the head is the end offset under read_uncommitted. The reader has reached
it when a PARTITION_EOF at or beyond it arrives, or the record before it. It reads records with
read_committed, so that it sees a model change whole or not at all. The consumer stays assigned
between catch-ups, so that a catch-up without news costs one request.

Writing (safety K2): the driver alone writes each ``write`` as one transaction. All others use an
idempotent producer.
"""

import getpass
import socket
import threading
import time
from collections.abc import Iterable, Mapping
from typing import Final, Self

from confluent_kafka import Consumer, IsolationLevel, KafkaError, Message, TopicPartition

from homeport.config.config import Config
from homeport.config.errors import HomeportError, InvariantViolation, UnavailableError
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import KeyRecord, StreamState
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.stream_owner import StreamOwner
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.open_transactions import how_to_end
from homeport.job_coordinator.kafka.record_writer import (
    PlainWriter,
    RecordWriter,
    TransactionalWriter,
)
from homeport.job_coordinator.kafka.topics import TopicAdmin

_CONSUMER: Final[Mapping[str, str | int | bool]] = {
    **clients.COMMITTED,
    # between two looks for the leader of a new assignment; the default costs half a second a start
    "topic.metadata.refresh.fast.interval.ms": 20,
    "fetch.queue.backoff.ms": 10,
    # a fetch that waits this long in vain reports the end of the partition, behind markers
    "fetch.wait.max.ms": 50,
    "fetch.min.bytes": 1,
}
_POLL_S = 0.2
_BATCH = 10_000


def _local_address() -> str:
    """Return this machine's own address, as Samza writes it into ``host``.

    Empty where it cannot be found.
    """
    try:
        return socket.gethostbyname(socket.gethostname())
    except OSError:
        return ""


def _username() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # YARN may run us under a user id without a name
        return ""


class CoordinatorStreamStore:
    """One job's coordinator stream: its present state, new records, and a way to write.

    Safe for many threads.

    ``topic`` must exist. ``source``: the writer's name for messages without one.
    ``transactional_id`` makes each ``write`` one transaction, and this store the only one with that
    id. ``timeout_s``: the limit of each call. ``owner``: the stream's required owner; None: any.
    ``has_packages``: whether its state has the packages of the job's code. ``keeps_keys``: see
    ``StreamState``.
    """

    def __init__(
        self,
        system: SystemConfig,
        topic: str,
        *,
        source: str,
        transactional_id: str | None = None,
        timeout_s: float = 30.0,
        owner: StreamOwner | None = None,
        has_packages: bool = True,
        keeps_keys: bool = False,
    ) -> None:
        self._system = system
        self._topic = topic
        self._owner = owner
        self._source = source
        self._timeout_s = timeout_s
        self._host = _local_address()
        self._username = _username()
        self._lock = threading.RLock()
        self._state = StreamState(has_packages=has_packages, keeps_keys=keeps_keys)
        self._consumer: Consumer | None = None
        self._topics = TopicAdmin(system, timeout_s)
        self._end_offset = -1  # all that is before it was read
        self._is_resting = False
        self._writer: RecordWriter
        if transactional_id is None:
            self._writer = PlainWriter(system, topic, timeout_s)
        else:
            self._writer = TransactionalWriter(system, topic, timeout_s, transactional_id)

    @classmethod
    def of(
        cls,
        config: Config,
        *,
        source: str,
        transactional_id: str | None = None,
        timeout_s: float = 30.0,
        has_packages: bool = True,
        keeps_keys: bool = False,
    ) -> Self:
        """Return the stream of the job in ``config``, and require that this job owns it.

        ConfigError: the configuration names no job, or no system for its stream.
        """
        job = JobConfig.of(config)
        return cls(
            SystemConfig.of(config, job.coordinator_system),
            job.coordinator_topic,
            source=source,
            transactional_id=transactional_id,
            timeout_s=timeout_s,
            owner=StreamOwner.of(job),
            has_packages=has_packages,
            keeps_keys=keeps_keys,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    @property
    def damaged_count(self) -> int:
        """Number of records with damaged bytes, which were skipped."""
        return self._state.damaged_count

    @property
    def record_count(self) -> int:
        """Number of keys that have a record, as of the last catch-up."""
        with self._lock:
            return self._state.record_count

    def fence(self) -> None:
        """Fence older holders of this store's transactional id (init_transactions).

        A store without a transactional id only connects.

        FencedError: a newer holder came first.
        UnavailableError: Kafka did not answer in time.
        """
        with self._lock:
            self._writer.open()

    def connect(self) -> None:
        """Connect a client without a transactional id, so that its first write is faster.

        A record that comes while the library is still connecting waits half a second (measured).
        """
        with self._lock:
            if isinstance(self._writer, PlainWriter):
                self._writer.open()

    def bootstrap(self) -> None:
        """Read the whole stream, up to its head at the time of the call.

        A store that has rested reads on from where it stood.

        ConfigError: the topic is missing, is not one compacted partition, or another job owns it.
        UnavailableError: Kafka did not answer in time.
        """
        with self._lock:
            if self._consumer is None:
                self._topics.validate(self._topic, 1, "compact")
                self._consumer = clients.consumer(self._system, _CONSUMER)
                self._is_resting = True
            if self._is_resting:
                # not OFFSET_BEGINNING: with that the library answers half a second later
                start = max(0, self._end_offset)
                self._consumer.assign([TopicPartition(self._topic, 0, start)])
                self._is_resting = False
            self.catch_up()
            self.require_own()

    def rest(self) -> None:
        """Fetch nothing more until the next ``bootstrap``; the clients stay connected."""
        with self._lock:
            self._open_consumer().unassign()
            self._is_resting = True

    def require_own(self) -> None:
        """Require that this job owns the stream, or no job yet, as of the last catch-up.

        ConfigError: another job owns it.
        """
        if self._owner is not None:
            self._owner.require(self.latest(MessageType.SET_CONFIG), self._topic)

    def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
        """Read to the head at the time of the call (safety K1); return what is new, in its order.

        Damaged records are only counted.

        InvariantViolation: the store was never bootstrapped, or is closed.
        UnavailableError: Kafka did not answer in time; the state has the records that came.
        """
        with self._lock:
            consumer = self._open_consumer()
            head = self._topics.end_offset(self._topic, 0)
            if head < self._end_offset:
                why = f"its end moved back from {self._end_offset} to {head}: it was recreated"
                raise clients.unavailable(self._system, f"reading topic {self._topic!r}", why)
            deadline = time.monotonic() + self._timeout_s
            found: list[CoordinatorStreamMessage] = []
            while self._end_offset < head:
                self._take_some(consumer, found)
                if self._end_offset < head and time.monotonic() > deadline:
                    raise self._late(head)
            return tuple(found)

    def latest(self, message_type: str) -> dict[str, CoordinatorStreamMessage]:
        """Return {key: last record} for one type as of the last catch-up, without deleted keys."""
        with self._lock:
            return self._state.latest(message_type)

    def taken_keys(self) -> tuple[KeyRecord, ...]:
        """Return the records of keys since the last call, if the store keeps them."""
        with self._lock:
            return self._state.taken_keys()

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Write all ``messages``, in their order; they are acknowledged when this returns.

        With a transactional id they are one transaction: if this raises, none is written.

        FencedError: a newer holder of the transactional id exists; this store can write no more.
        WriterOverError: Kafka accepts no transaction of this process any more; it must end.
        UnavailableError: Kafka did not acknowledge in time. Without a transactional id some of the
        messages may be in the stream; with one, the next ``write`` first settles the outcome of
        this one.
        WireError: a message cannot be encoded, or is too large. Nothing was written.
        """
        with self._lock:
            now_ms = time.time_ns() // 1_000_000
            records = [
                wire.encode(
                    message.stamped(
                        source=self._source,
                        host=self._host,
                        username=self._username,
                        timestamp_ms=now_ms,
                    )
                )
                for message in self._state.with_text_versions_deleted(messages)
            ]
            if records:
                self._writer.write(records)

    def close(self) -> None:
        """Close all clients; the broker's time limit aborts an open transaction."""
        with self._lock:
            if self._consumer is not None:
                self._consumer.close()
            self._consumer = None
            self._writer.close()

    def _open_consumer(self) -> Consumer:
        if self._consumer is None or self._is_resting:
            raise InvariantViolation(
                "the coordinator stream is read before bootstrap(), or after close() or rest()"
            )
        return self._consumer

    def _late(self, head: int) -> HomeportError:
        why = f"head {head} not reached within {self._timeout_s:g} s"
        try:
            stable = self._topics.end_offset(self._topic, 0, IsolationLevel.READ_COMMITTED)
        except UnavailableError:
            stable = head
        if stable < head:
            story = how_to_end(self._system, self._topic, 0, stable)
            why = f"{why}, its last stable offset is {stable}: {story}"
        return clients.unavailable(self._system, f"reading topic {self._topic!r}", why)

    def _take_some(self, consumer: Consumer, found: list[CoordinatorStreamMessage]) -> None:
        """Put what the library has fetched into the state, and its records into ``found``."""
        # wait for one record, then take those that are here: a consume() of many waits for all of
        # them, or for its whole time limit
        records = consumer.consume(1, _POLL_S)
        if records:
            records += consumer.consume(_BATCH, 0)
        failure: KafkaError | None = None
        for record in records:
            error = record.error()
            if error is not None:
                failure = self._failure(record, error) or failure
                continue
            offset = record.offset() or 0
            self._end_offset = max(self._end_offset, offset + 1)
            message = self._state.take(offset, record.key(), record.value())
            if message is not None:
                found.append(message)
        if failure is not None:  # not earlier: a record that was fetched with it would be lost
            what = f"reading topic {self._topic!r}"
            raise clients.unavailable(self._system, what, failure)

    def _failure(self, record: Message, error: KafkaError) -> KafkaError | None:
        """Return ``error`` if it ends the reading; note the end of the partition.

        The library retries after other errors, until our own time limit.
        """
        if clients.is_end(error):
            self._end_offset = max(self._end_offset, record.offset() or 0)
        return error if clients.ends_reading(error) else None
