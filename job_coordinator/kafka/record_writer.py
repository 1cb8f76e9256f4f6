"""Writers of records to partition 0 of one topic: plainly, or one transaction per call.

Not safe for many threads.
"""

import contextlib
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from homeport.config.errors import (
    FencedError,
    HomeportError,
    InvariantViolation,
    UnavailableError,
    WireError,
)
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.connection import Connection
from homeport.job_coordinator.kafka.in_sync import known_shortage
from homeport.job_coordinator.kafka.open_transactions import not_initialised
from homeport.job_coordinator.kafka.record_limit import producer_limit

Record = tuple[bytes, bytes | None]

_TRANSACTION_TIMEOUT_MS = 10_000
"""How long a frozen writer's transaction can hide later records; ours take milliseconds."""

_POLL_EACH = 1000
"""Records between two polls for delivery reports."""

_OVERHEAD_BYTES = 36
"""Bytes that the library adds to key and value before it compares."""


class WriterOverError(HomeportError):
    """Kafka accepts no transaction of this writer any more.

    Its process must end: the next one inits the id, and reads which rank leads before it writes.
    """


class RecordWriter(ABC):
    """Writes records in their order by one producer, and counts its delivery reports."""

    def __init__(
        self, system: SystemConfig, topic: str, timeout_s: float, properties: Mapping[str, Any]
    ) -> None:
        self._system = system
        self._topic = topic
        self._timeout_s = timeout_s
        self._connection = Connection()
        self._properties: dict[str, Any] = {
            "error_cb": self._connection.heard,
            "enable.idempotence": True,
            "acks": "all",
            "linger.ms": 0,
            **properties,
        }
        self._made: Producer | None = None
        self._outstanding = 0
        self._error: KafkaError | None = None

    @abstractmethod
    def open(self) -> None:
        """Do all that the writer can do before the first record."""

    @abstractmethod
    def write(self, records: Sequence[Record]) -> None:
        """Write all ``records``; they are acknowledged when this returns.

        UnavailableError: not all were acknowledged in time.
        WireError: one is too large; nothing was written.
        """

    def close(self) -> None:
        """Drop what is still queued; the next use makes a new producer."""
        if self._made is not None:
            with contextlib.suppress(KafkaException):  # a failed producer may refuse it
                self._made.purge()
                self._made.flush(0)
        self._made = None
        self._outstanding = 0

    def _producer(self) -> Producer:
        if self._made is None:
            self._made = clients.producer(self._system, self._properties)
        return self._made

    def _refuse_too_large(self, records: Sequence[Record]) -> None:
        """Refuse a record that the library would not take, before the first one is sent.

        Samza's readers would see that first one: they do not know by themselves that a transaction
        was aborted.

        WireError: a record is too large; the line names it.
        """
        self._producer()  # refuses a limit that is no number
        limit = producer_limit(self._system)
        for key, value in records:
            if len(key) + len(value or b"") + _OVERHEAD_BYTES > limit:
                raise self._too_large(key, value)

    def _send(self, records: Sequence[Record]) -> None:
        self._error = None
        self._outstanding = 0
        deadline = time.monotonic() + self._timeout_s
        for number, (key, value) in enumerate(records, 1):
            while not self._queued(key, value):
                self._producer().poll(0.1)
                if time.monotonic() > deadline:
                    raise self._unavailable("the producer's queue stayed full")
            if not number % _POLL_EACH:
                self._producer().poll(0)

    def _queued(self, key: bytes, value: bytes | None) -> bool:
        try:
            self._producer().produce(
                self._topic, value, key, partition=0, on_delivery=self._delivered
            )
        except BufferError:
            return False
        except KafkaException as exception:
            error = clients.error_of(exception)
            if error.code() == KafkaError.MSG_SIZE_TOO_LARGE:
                raise self._too_large(key, value) from None
            raise self._failure(error, f"key {key[:200]!r}: {error.str()}") from None
        self._outstanding += 1
        return True

    def _delivered(self, error: KafkaError | None, _: Message) -> None:
        self._outstanding -= 1
        if error is not None and self._error is None:
            self._error = error

    def _too_large(self, key: bytes, value: bytes | None) -> WireError:
        size = len(key) + len(value or b"")
        return WireError(f"topic {self._topic!r}: record {key[:200]!r} is too large ({size} bytes)")

    def _failure(self, error: KafkaError, why: str) -> HomeportError:
        if error.code() in clients.FENCED:
            return FencedError(
                f"topic {self._topic!r}: a newer holder of transactional id "
                f"{self._properties.get('transactional.id')!r} exists"
            )
        return self._late(why, error)

    def _late(self, why: str, error: KafkaError | None = None) -> HomeportError:
        """Return as ``_unavailable``, with what the topic lacks, if a broker names it."""
        lacks = known_shortage(self._system, self._producer(), {(self._topic, 0)})
        return self._unavailable(why if lacks is None else f"{why}: {lacks}", error)

    def _unavailable(self, why: str, error: KafkaError | None = None) -> HomeportError:
        return clients.unavailable(self._system, f"writing to topic {self._topic!r}", why, error)


class PlainWriter(RecordWriter):
    """Writes with an idempotent producer: no duplicates, order kept, no transaction (safety K2)."""

    def __init__(self, system: SystemConfig, topic: str, timeout_s: float) -> None:
        super().__init__(system, topic, timeout_s, {"message.timeout.ms": int(timeout_s * 1000)})

    def open(self) -> None:
        """Connect the client; there is no older writer to fence."""
        self._producer()

    def write(self, records: Sequence[Record]) -> None:
        """Write all ``records``; where this raises UnavailableError, some may be in the topic."""
        self._refuse_too_large(records)
        try:
            self._send(records)
            self._producer().flush(self._timeout_s)
            if self._error is not None:
                raise self._failure(self._error, self._error.str())
            if self._outstanding:
                raise self._late(f"no acknowledgement within {self._timeout_s:g} s")
        except HomeportError:
            # queued records must not appear later: the caller has seen the failure
            self.close()
            raise


class _Pending(Enum):
    """The call that must still end the last transaction before another may begin."""

    COMMIT = "commit_transaction"
    ABORT = "abort_transaction"


class TransactionalWriter(RecordWriter):
    """Writes each sequence of records as one transaction, under an id that it holds alone.

    The writer settles a transaction with an unknown outcome before it writes anything else. A
    fenced writer never takes its id again: that would fence its successor.
    """

    def __init__(
        self, system: SystemConfig, topic: str, timeout_s: float, transactional_id: str
    ) -> None:
        super().__init__(
            system,
            topic,
            timeout_s,
            {
                "transactional.id": transactional_id,
                "transaction.timeout.ms": _TRANSACTION_TIMEOUT_MS,
                # the library requires these two within the transaction's limit
                "message.timeout.ms": _TRANSACTION_TIMEOUT_MS,
                "socket.timeout.ms": _TRANSACTION_TIMEOUT_MS,
            },
        )
        self._transactional_id = transactional_id
        self._is_open = False
        self._pending: _Pending | None = None
        self._final: HomeportError | None = None

    def open(self) -> None:
        """Fence older holders of the id.

        FencedError: a newer holder came first.
        UnavailableError: Kafka did not answer in time; the next call tries again.
        """
        if self._final is not None:
            raise self._final
        if not self._is_open:
            # While it is still connecting, the library tries again half a second later.
            self._connection.answers(self._producer())
            try:
                self._call("init_transactions")
            except KafkaException as exception:
                raise self._ended(clients.error_of(exception)) from None
            self._is_open = True

    def write(self, records: Sequence[Record]) -> None:
        """Write all ``records``; they are committed when this returns.

        Begin nothing while the broker is away: the transaction could not be ended after its return.

        FencedError: a newer holder of the id exists; nothing was written, nothing will be.
        WriterOverError: this writer can write no more.
        UnavailableError: nothing was written, or, as its text states, the outcome is not known.
        WireError: a record is too large; nothing was written.
        """
        self.open()
        self._refuse_too_large(records)
        if not self._connection.answers(self._producer()):
            raise self._unavailable("no broker answers; nothing was written")
        self._end_last_transaction()
        try:
            self._producer().begin_transaction()
            self._pending = _Pending.ABORT
            self._send(records)
        except KafkaException as exception:
            raise self._ended(clients.error_of(exception)) from None
        except FencedError as failure:
            self._final = failure
            raise
        except HomeportError:
            self._end_last_transaction()
            raise
        self._pending = _Pending.COMMIT
        self._end_last_transaction()

    def close(self) -> None:
        """Close the producer; the broker's time limit aborts an open transaction."""
        super().close()
        self._final = InvariantViolation("the coordinator stream is written after close()")

    def _end_last_transaction(self) -> None:
        if self._pending is _Pending.COMMIT:
            try:
                self._call("commit_transaction")
            except KafkaException as exception:
                self._pending = _Pending.ABORT
                error = self._error or clients.error_of(exception)
                self._end_last_transaction()
                raise self._failure(error, f"{error.str()}; nothing was written") from None
        elif self._pending is _Pending.ABORT:
            try:
                self._require_known()
                self._call("abort_transaction")
            except KafkaException as exception:
                raise self._ended(clients.error_of(exception)) from None
        self._pending = None

    def _require_known(self) -> None:
        """Require that Kafka still knows the id: an abort would take a forgotten id again.

        An attempt to begin a transaction raises the reason why the open one has failed.

        WriterOverError: Kafka has forgotten the id.
        """
        try:
            self._producer().begin_transaction()
        except KafkaException as exception:
            error = clients.error_of(exception)
            if self._forgotten(error) is not None:
                raise self._ended(error) from None

    def _forgotten(self, error: KafkaError) -> str | None:
        return clients.forgotten(error, self._transactional_id)

    def _ended(self, error: KafkaError) -> HomeportError:
        story = self._forgotten(error)
        if story is not None:
            self._final = WriterOverError(f"{story}; this writer can write no more")
            return self._final
        self._final = self._failure(error, error.str())
        if isinstance(self._final, UnavailableError):
            self._final = WriterOverError(f"{self._final}; this writer can write no more")
        return self._final

    def _call(self, operation: str) -> None:
        """Call an operation of the producer; repeat it while the error is retriable.

        KafkaException: the transaction must be aborted.
        FencedError: a newer holder of the id exists.
        UnavailableError: no outcome in time; the operation may be called again.
        """
        deadline = time.monotonic() + self._timeout_s
        while True:
            remaining = deadline - time.monotonic()
            try:
                getattr(self._producer(), operation)(max(remaining, 0.001))
            except KafkaException as exception:
                error = clients.error_of(exception)
                if error.code() in clients.FENCED or self._forgotten(error) is not None:
                    raise self._ended(error) from None
                if error.txn_requires_abort():
                    raise
                if not error.retriable():
                    raise self._ended(error) from None
                if remaining <= 0 and not self._is_open:
                    raise not_initialised(
                        self._system, self._producer(), self._transactional_id, error
                    ) from None
                if remaining <= 0:
                    why = f"{operation}: {error.str()}; the outcome is not known"
                    raise self._late(why) from None
            else:
                return
