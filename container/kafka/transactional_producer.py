"""TransactionalProducer: the one writer of an incarnation, which fences earlier ones.

Source: safety I3, I5, I7. An incarnation's id is never used again, so a fenced producer stays
fenced.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import NoReturn

from confluent_kafka import KafkaError, KafkaException, Message

from homeport.config.errors import FencedError, HomeportError, UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.client_properties import TransactionError, producer_properties
from homeport.container.kafka.sending import Delivered, absent, enqueue, has_topic
from homeport.container.native.bulk_producer import bulk_producer
from homeport.container.progress.transaction_plan import (
    Changes,
    Part,
    Send,
    SendColumns,
    SendPairs,
    Sends,
    number_of,
)
from homeport.job_coordinator.kafka.clients import (
    FENCED,
    error_of,
    forgotten,
    producer,
    unavailable,
)
from homeport.job_coordinator.kafka.connection import Connection
from homeport.job_coordinator.kafka.in_sync import (
    OutputPlace,
    await_writable,
    known_shortage,
    shortage,
)
from homeport.job_coordinator.kafka.open_transactions import not_initialised
from homeport.job_coordinator.kafka.transient_errors import is_transient

_LOG = logging.getLogger(__name__)

_INIT_S = 60.0
_COMMIT_S = 30.0
_LOOK_S = 0.1  # how often a delivery that takes its time is looked at
REFUSALS = frozenset(
    {KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.INVALID_RECORD, KafkaError.INVALID_TIMESTAMP}
)
"""A broker's errors for a record that its topic refuses; they name neither."""
_OF_ANOTHER = frozenset(
    {KafkaError._PURGE_QUEUE, KafkaError._INVALID_DIFFERENT_RECORD}  # noqa: SLF001 - the client's public constants
)
"""The errors of a record that fails only because another one does."""
_REFUSED = REFUSALS | _OF_ANOTHER


class RecordRefusedError(TransactionError):
    """Nothing was committed: a record was refused for its size, its time or its lack of a key.

    The producer reports a record that exceeds its own limit. If a record exceeds only the topic's
    limit, the first report is often of others behind it, which were purged or have timed out
    (measured). Where they have timed out, the error is ``UndeliveredError``.
    """


class UndeliveredError(UnavailableError):
    """Nothing was committed: Kafka did not take the records in time, though a broker answered.

    This happens while a partition has no leader, or too few replicas in sync.
    """


def fence(system: SystemConfig, transactional_id: str) -> None:
    """Fence the holder of ``transactional_id``, and abort its open transaction."""
    holder = TransactionalProducer(system, transactional_id)
    holder.initialise()
    holder.close()


class TransactionalProducer:
    """One transaction at a time: ``begin``, ``send``, ``deliver``, ``commit``. Not thread-safe.

    After a failed transaction it must send nothing more: purged records leave a gap in the
    library's sequence numbers, which may fail the next transaction.
    """

    def __init__(self, system: SystemConfig, transactional_id: str, *, native: bool = True) -> None:
        """Connect; nothing can be sent before ``initialise``.

        ``native``: whether the library in C++ puts records into the client's queue.
        """
        self._system = system
        self._transactional_id = transactional_id
        self._reports: dict[tuple[str, int], int] = {}
        self._failure: KafkaError | None = None
        self._beyond: dict[tuple[str, int], int] = {}
        self._known_topics: set[str] = set()
        self._places: Callable[[], Collection[OutputPlace]] = tuple
        self._is_looked_at = False
        self._seen: frozenset[OutputPlace] = frozenset()
        self._connection = Connection()
        properties = producer_properties(system, transactional_id)
        self._timeout_s = int(properties["transaction.timeout.ms"]) / 1000
        self._began_s = 0.0
        self._silence = Silence(time.monotonic)
        properties["error_cb"] = self._connection.heard
        self._producer = producer(system, properties)
        self._bulk = bulk_producer(self._producer, native=native)

    def initialise(self) -> None:
        """Fence an earlier holder of the id, so that transactions can begin.

        Raises:
            UnavailableError: Kafka does not answer.
            TransactionError: Kafka refuses the id.
        """
        # While it is still connecting, the library tries again half a second later (measured: 0.07
        # or 0.53 s; 0.01 s after an answer).
        self._connection.answers(self._producer)
        try:
            self._producer.init_transactions(_INIT_S)
        except KafkaException as error:
            cause = error_of(error)
            if is_transient(cause):
                raise not_initialised(
                    self._system, self._producer, self._transactional_id, cause
                ) from None
            raise TransactionError(
                f"init of {self._transactional_id} failed: {cause.str()}"
            ) from None

    @property
    def topics(self) -> frozenset[str]:
        """Return the topics that it has found in Kafka; it has written to most of them."""
        return frozenset(self._known_topics)

    def look_ahead(self, places: Collection[OutputPlace]) -> None:
        """Look, before the first transaction, at where it will probably write.

        That transaction needs not look there; what is missing or not known here, it looks for.
        """
        with contextlib.suppress(UnavailableError):
            if shortage(self._system, self._producer, places) is None:
                self._seen = frozenset(places)
        names = sorted({topic for topic, _ in places})
        self._known_topics |= {name for name in names if has_topic(self._producer, name)}

    def await_brokers(
        self,
        places: Callable[[], Collection[OutputPlace]],
        pause: Callable[[float], None],
        *,
        are_all: bool = True,
    ) -> None:
        """Wait for a broker that answers, and for enough replicas of ``places`` in sync.

        It looks before the first transaction, and after a lost connection; at other times it costs
        nothing. A transaction that has not begun can wait for Kafka without a limit: ``pause``
        waits the seconds given, and raises to give up. ``places`` returns the partitions that the
        next transaction writes to; with ``are_all`` later ones write to no others.
        """
        self._places = places
        is_lost = self._connection.lost(self._producer) is not None
        if is_lost or not self._is_looked_at:
            wanted = places()
            if is_lost or not all({place, (place[0], None)} & self._seen for place in wanted):
                await_writable(self._system, self._connection, self._producer, wanted, pause)
            self._is_looked_at = are_all

    def expect_beyond(self, positions: Mapping[tuple[str, int], int]) -> None:
        """Require that records in these partitions get higher offsets, before a commit.

        Higher than these, and then than those of the transaction before. If they go back, the topic
        was recreated.
        """
        self._beyond.update(positions)

    def begin(self) -> None:
        """Open a transaction; errors as of ``commit``."""
        self._reports = {}
        self._failure = None
        self._began_s = time.monotonic()
        self._silence = Silence(time.monotonic)
        with self._sending():
            self._producer.begin_transaction()

    def send(self, sends: Iterable[Send]) -> None:
        """Send ``sends``, in their order within each partition; errors as of ``commit``."""
        with self._sending():
            self._produce_all(sends.parts if isinstance(sends, Sends) else list(sends))

    def send_changes(self, changes: Changes) -> None:
        """Send ``changes`` to their changelog; errors as of ``commit``."""
        topic, partition, entries = changes.changelog.stream, changes.partition, changes.entries
        if not entries:
            return
        with self._sending():
            pairs = SendPairs(topic, None, partition)
            pairs.flat += chain.from_iterable(entries.items())
            value, key = pairs.flat.pop(), pairs.flat.pop()
            self._produce_many(pairs)
            self._enqueue(Send(topic, key, value, partition), self._delivered)

    def deliver(self) -> None:
        """Wait until all that was sent is in Kafka, undecided; errors as of ``commit``."""
        with self._sending():
            remaining = self._await_reports()
            if remaining or self._is_lost():
                late = KafkaError(KafkaError._MSG_TIMED_OUT)  # noqa: SLF001 - the client's public constant
                # Records that have timed out are not on their way any more.
                self._give_up(f"{remaining or 'some'} records not delivered", self._failure or late)
            self._require_progress()

    def _await_reports(self) -> int:
        """Return how many records are still on their way: 0, or the transaction has failed.

        It returns at the first refusal: the records behind a refused one stay until the transaction
        times out, and the time-out would be the error.
        """
        deadline = time.monotonic() + _COMMIT_S
        before = 0
        self._silence.waits()
        while remaining := self._producer.flush(_LOOK_S):
            if self._is_lost() or time.monotonic() >= deadline:
                return remaining
            if remaining != before:
                before = remaining
                self._silence.waits()
        self._silence.ends()
        return 0

    def _require_sound(self) -> None:
        if self._is_lost():
            raise KafkaException(self._failure)

    def _is_lost(self) -> bool:
        self._failure = self._failure or self._verdict()
        return self._failure is not None

    def commit(self) -> dict[tuple[str, int], int]:
        """Commit all that was sent since ``begin``.

        Returns:
            {(topic, partition): last offset} of the sends that name a partition.

        Raises:
            FencedError: a newer incarnation has taken over; nothing was committed.
            RecordRefusedError: a record was refused; nothing was committed.
            UnavailableError: Kafka went away meanwhile; the outcome is not known.
            TransactionError: nothing was committed; or the message reports that it is not known.
        """
        try:
            self._silence.waits()
            self._producer.commit_transaction(_COMMIT_S)
        except KafkaException as error:
            cause = error_of(error)
            why = f"{cause.str()}; its outcome is unknown, so nothing of it is kept here"
            is_decided = cause.txn_requires_abort() or _is_fenced(cause)
            if is_decided and not is_transient(cause):
                self._give_up("commit", cause)
            if is_transient(cause) or self._was_away():
                raise unavailable(self._system, "committing a transaction", why) from None
            raise TransactionError(f"commit: {why}") from None
        self._beyond |= {p: o for p, o in self._reports.items() if p in self._beyond}
        return self._reports

    def close(self) -> None:
        """Close the client; a transaction that is still open is left to its time-out."""
        self._producer.close()

    @contextlib.contextmanager
    def _sending(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as error:
            cause = error_of(error)
            # After Kafka has refused a record, the next call gets only "Erroneous state".
            self._give_up("sending", (self._verdict() or cause) if _is_state(cause) else cause)
        except SystemError:
            # The library raises a fatal error inside of a delivery report, which Python turns into
            # this; the abort shows the error.
            self._give_up("sending: a fatal error", None)

    def _verdict(self) -> KafkaError | None:
        """Return why the open transaction has failed; None where it has not.

        The error of a new transaction shows whether one is open, or has failed.
        """
        try:
            self._producer.begin_transaction()
        except KafkaException as error:
            return None if _is_state(error_of(error)) else error_of(error)
        return None

    def _require_progress(self) -> None:
        for (topic, partition), offset in self._reports.items():
            before = self._beyond.get((topic, partition))
            if before is not None and offset <= before:
                step = f"sending to {topic} partition {partition}"
                self._give_up(step, None, f"a record got offset {offset}, after {before}")

    def _produce_all(self, sends: Sequence[Part]) -> None:
        # Offsets within a partition grow in the order of the sends: the last one of each partition
        # alone needs a report. A report costs more than the send itself, and waits for the thread
        # of the tasks.
        last: dict[tuple[str, int], tuple[int, Send]] = {}
        for place, send in enumerate(sends):
            if isinstance(send, Send) and send.partition is not None:
                last[send.topic, send.partition] = place, send
        begun = 0
        for place, send in sorted(last.values()):
            self._produce_unreported(sends[begun:place])
            self._require_topic(send.topic)
            self._enqueue(send, self._delivered)
            begun = place + 1
        self._produce_unreported(sends[begun:])

    def _produce_many(self, records: SendPairs | SendColumns) -> None:
        """Send records without reports, as ``enqueue`` would."""
        self._require_topic(records.topic)
        done = 0
        while (done := self._bulk.produce(records, done)) < records.count:
            # The queue is full: this waits for room.
            self._enqueue(next(islice(records, done, None)), None)
            done += 1

    def _produce_unreported(self, sends: Sequence[Part]) -> None:
        # As ``enqueue``, without its cost for each of many records. A record that Kafka refuses
        # fails the transaction, also without a report.
        produce: Callable[..., None] = self._producer.produce
        known = self._known_topics
        for send in sends:
            if not isinstance(send, Send):
                self._produce_many(send)
                continue
            topic, key, value, partition, headers, _, timestamp_ms = send
            if topic not in known:
                self._require_topic(topic)
            place = number_of(partition)
            try:
                if headers or timestamp_ms is not None:
                    time_ms = timestamp_ms or 0
                    produce(topic, value, key, place, None, None, time_ms, headers or None)
                else:
                    produce(topic, value, key, place)
            except BufferError:
                self._enqueue(send, None)

    def _enqueue(self, send: Send, delivered: Delivered | None) -> None:
        self._silence.waits()
        enqueue(self._producer, send, delivered, self._require_sound)
        self._silence.ends()

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self._failure = self._failure or error
            return
        topic, partition, offset = message.topic(), message.partition(), message.offset()
        if topic is not None and partition is not None and offset is not None:
            known = self._reports.get((topic, partition), -1)
            self._reports[topic, partition] = max(known, offset)

    def _give_up(self, step: str, cause: KafkaError | None, why: str = "timed out") -> NoReturn:
        lost = self._connection.lost(self._producer)
        if lost is not None:
            # Without an abort, which would have to wait: the next holder of this id, or its fence,
            # aborts the transaction.
            raise self._unavailable(f"the connection was lost ({lost})")
        if cause is not None and cause.code() in _OF_ANOTHER:
            cause = self._verdict() or cause
        if cause is not None and cause.code() not in _REFUSED and self._was_silent():
            raise self._silent(cause)  # whatever the code of a coordinator that is back
        if cause is not None and _is_fenced(cause):
            raise self._fenced(cause)
        story = forgotten(cause, self._transactional_id) if cause is not None else None
        if story is not None:
            raise UnavailableError(f"{story}; the container's next start takes another id")
        if cause is not None and is_transient(cause):
            # Without an abort, as above.
            raise UndeliveredError(str(self._unavailable(f"{step}: {cause.str()}")))
        reason = cause.str() if cause is not None else why
        try:
            self._abort()
        except KafkaException as error:
            if _is_fenced(error_of(error)):
                raise self._fenced(error_of(error)) from None
            _LOG.warning("the transaction was left to its time-out: %s", error_of(error).str())
        is_refused = cause is not None and cause.code() in _REFUSED
        kind = RecordRefusedError if is_refused else TransactionError
        raise kind(f"{step}: {reason}; the transaction was aborted")

    def _unavailable(self, why: str) -> UnavailableError:
        lacks = known_shortage(self._system, self._producer, self._places())
        story = why if lacks is None else f"{why}: {lacks}"
        return unavailable(self._system, "writing a transaction", story)

    def _abort(self) -> None:
        # Records behind a refused one stay. An abort would wait for them until the transaction
        # times out (measured), unless their reports are taken before.
        self._producer.purge(in_flight=False)
        self._producer.flush(_LOOK_S)
        self._producer.abort_transaction(_COMMIT_S)

    def _was_away(self) -> bool:
        """Return whether the connection was lost, or Kafka was silent for too long.

        That counts for the transaction's whole time: by now Kafka may be back, and lack nothing.
        """
        return self._connection.lost(self._producer) is not None or self._was_silent()

    def _was_silent(self) -> bool:
        took_s = time.monotonic() - self._began_s
        return took_s - self._silence.total_s < self._timeout_s <= took_s

    def _silent(self, cause: KafkaError) -> UndeliveredError:
        took_s, silent_s = time.monotonic() - self._began_s, self._silence.total_s
        why = f"the transaction took {took_s:.1f} s, in {silent_s:.1f} s of which Kafka did nothing"
        return UndeliveredError(str(self._unavailable(f"{why} of it ({cause.str()})")))

    def _fenced(self, cause: KafkaError) -> HomeportError:
        """Return the error where Kafka fences this producer.

        Returns:
            FencedError: the transaction was within its time: a newer incarnation exists.
            UndeliveredError: it was overdue because Kafka was silent, or partitions lack something.
            TransactionError: it was overdue otherwise: the broker fences such a producer.
        """
        took_s = time.monotonic() - self._began_s
        if took_s < self._timeout_s:
            return FencedError(f"fenced by a newer incarnation ({cause.name()}): {cause.str()}")
        if self._was_silent():
            return self._silent(cause)
        why = f"the transaction took {took_s:.1f} s"
        if known_shortage(self._system, self._producer, self._places()) is not None:
            return UndeliveredError(str(self._unavailable(why)))
        return TransactionError(
            f"{why}, longer than transaction.timeout.ms = {self._timeout_s * 1000:.0f}: Kafka has "
            f"aborted it, or a newer incarnation has ({cause.str()})"
        )

    def _require_topic(self, name: str) -> None:
        """Require, by one request, that Kafka has the topic.

        Raises:
            TransactionError: it has not; the transaction is aborted.
        """
        if name in self._known_topics:
            return
        self._silence.waits()
        found = has_topic(self._producer, name)
        self._silence.ends()
        if found:
            self._known_topics.add(name)
        if found is not False:
            return  # without an answer, the sends will show the fault
        self._producer.abort_transaction(_COMMIT_S)
        raise TransactionError(f"{absent(name)}; the transaction was aborted")


def _is_fenced(error: KafkaError) -> bool:
    return error.code() in FENCED


def _is_state(error: KafkaError) -> bool:
    return bool(error.code() == KafkaError._STATE)  # noqa: SLF001 - the client's public constant


_LEAST_S = 1.0
"""A shorter wait is the normal time of a request."""


class Silence:
    """Adds up the waits in which no part of one transaction arrives."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._since_s: float | None = None
        self._past_s = 0.0

    def waits(self) -> None:
        """Begin a wait for Kafka, and end the earlier wait: something has arrived."""
        self.ends()
        self._since_s = self._clock()

    def ends(self) -> None:
        """End the wait: the answer has arrived."""
        self._past_s, self._since_s = self.total_s, None

    @property
    def total_s(self) -> float:
        """Return the seconds of silence so far, including the present wait."""
        own_s = 0.0 if self._since_s is None else self._clock() - self._since_s
        return self._past_s + (own_s if own_s >= _LEAST_S else 0.0)
