"""Outputs that leave at once: plain producers, one per system that is written to.

Source: safety I8. The next incarnation may send the same records again. The transactional producer
sends changelogs and checkpoints, after ``deliver``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import NoReturn

from confluent_kafka import KafkaError, KafkaException, Message

from homeport.config.errors import UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.client_properties import TransactionError, plain_producer_properties
from homeport.container.kafka.sending import SEND_S, absent, enqueue, has_topic, refused_record
from homeport.container.kafka.transactional_producer import (
    REFUSALS,
    RecordRefusedError,
    UndeliveredError,
)
from homeport.container.progress.topic_rules import size_of
from homeport.container.progress.transaction_plan import Send, TransactionContent
from homeport.job_coordinator.kafka.clients import error_of, producer, unavailable
from homeport.job_coordinator.kafka.connection import Connection
from homeport.job_coordinator.kafka.in_sync import shortage
from homeport.job_coordinator.kafka.transient_errors import is_transient

_LOG = logging.getLogger(__name__)

_FLUSH_S = 0.5
"""How often to look whether Kafka has gone away, while waiting for its reports."""
UNDONE = "the transaction of its input is not committed"


class PlainOutputs:
    """Sends records to any of ``systems``; those that name none to ``own``. Not thread-safe."""

    def __init__(self, systems: Mapping[str, SystemConfig], own: str) -> None:
        self._systems = systems
        self._own = own
        self._producers: dict[str, _PlainProducer] = {}

    def send(self, sends: Iterable[Send]) -> None:
        """Send ``sends``, in their order within each partition.

        Raises:
            RecordRefusedError: Kafka refused a record, of these or of those before.
            UnavailableError: Kafka was away for too long.
            TransactionError: there is no such topic, or something else is in the way.
        """
        for send in sends:
            self._producer(send.system or self._own).send(send)
        for plain in self._producers.values():
            plain.raise_if_failed()

    def deliver(self, pause: Callable[[float], None]) -> None:
        """Wait until Kafka has all that was sent: all reports are in, without an error (safety I8).

        Brokers and replicas that are away, or go away meanwhile, are waited for without a limit:
        ``pause`` waits the seconds given, and raises to give up.

        Raises:
            RecordRefusedError: Kafka refused a record.
            UndeliveredError: Kafka did not take the records in time, though brokers answer.
            TransactionError: something else is in the way.
        """
        for plain in self._producers.values():
            plain.deliver(pause)

    def close(self) -> None:
        """Close the clients; drop the records that are not delivered yet."""
        for plain in self._producers.values():
            plain.close()

    def _producer(self, system: str) -> _PlainProducer:
        if system not in self._producers:
            self._producers[system] = _PlainProducer(self._systems[system])
        return self._producers[system]


class _PlainProducer:
    def __init__(self, system: SystemConfig) -> None:
        self._system = system
        self._known_topics: set[str] = set()
        self._refused: tuple[Send, KafkaError] | None = None
        self._connection = Connection()
        properties = plain_producer_properties(system) | {"error_cb": self._connection.heard}
        self._producer = producer(system, properties)

    def send(self, send: Send) -> None:
        self._require_topic(send.topic)
        try:
            # A report of a refused record lacks its timestamp: the send itself is kept for it.
            enqueue(self._producer, send, partial(self._delivered, send))
        except KafkaException as error:
            self._refused = send, error_of(error)
            self._fail(error_of(error))

    def raise_if_failed(self) -> None:
        self._serve(lambda: self._producer.poll(0))

    def deliver(self, pause: Callable[[float], None]) -> None:
        spent_s = 0.0
        while True:
            if self._connection.lost(self._producer) is not None:
                self._connection.wait(self._producer, pause)
                spent_s = 0.0  # records sent before have their whole time again
            if not self._serve(lambda: self._producer.flush(_FLUSH_S)):
                return
            spent_s += _FLUSH_S
            if spent_s >= SEND_S:
                self._note_shortage()
                spent_s = 0.0

    def close(self) -> None:
        self._producer.purge()
        self._producer.close()

    def _note_shortage(self) -> None:
        """Log that records wait for missing replicas.

        Raises:
            UndeliveredError: no replica is missing; Kafka gives no reason.
        """
        places = {(topic, None) for topic in self._known_topics}
        lacks = shortage(self._system, self._producer, places)
        if lacks is None:
            raise self._undelivered("outputs", f"not delivered within {SEND_S:g} s")
        _LOG.warning("writing outputs waits for Kafka: %s", lacks)

    def _undelivered(self, where: str, why: str) -> UndeliveredError:
        return UndeliveredError(str(unavailable(self._system, where, f"{why}; {UNDONE}")))

    def _serve(self, serve: Callable[[], int]) -> int:
        try:
            remaining = serve()
        except KafkaException as error:
            self._fail(error_of(error))
        except SystemError:
            # A fatal error that the library raises inside of a delivery report.
            self._fail(None)
        if self._refused is not None:
            self._fail(self._refused[1])
        return remaining

    def _delivered(self, send: Send, error: KafkaError | None, _message: Message) -> None:
        if error is None:
            return
        # One record that is too large fails its whole batch: the error names the largest.
        if self._refused is None or _weight(send, error) > _weight(*self._refused):
            self._refused = send, error

    def _fail(self, cause: KafkaError | None) -> NoReturn:
        if self._refused is not None and self._refused[1].code() in REFUSALS:
            raise RecordRefusedError(f"{self._story(*self._refused)}; {UNDONE}")
        lost = self._connection.lost(self._producer)
        if lost is not None:
            raise unavailable(
                self._system, "writing outputs", f"the connection was lost ({lost}); {UNDONE}"
            )
        where = "outputs" if self._refused is None else f"output stream {self._refused[0].topic}"
        if cause is not None and is_transient(cause):
            raise self._undelivered(where, cause.str())
        reason = cause.str() if cause is not None else "a fatal error"
        kind = TransactionError if self._refused is None else RecordRefusedError
        raise kind(f"{where}: {reason}; {UNDONE}")

    def _story(self, send: Send, cause: KafkaError) -> str:
        plain = f"output stream {send.topic}: {cause.str()}"
        try:
            return refused_record(self._system, TransactionContent([send], (), {})) or plain
        except UnavailableError:
            return plain

    def _require_topic(self, name: str) -> None:
        if name in self._known_topics:
            return
        if has_topic(self._producer, name) is False:
            raise TransactionError(f"{absent(name)}; {UNDONE}")
        self._known_topics.add(name)


def _weight(send: Send, error: KafkaError) -> tuple[bool, int]:
    return error.code() in REFUSALS, size_of(send)
