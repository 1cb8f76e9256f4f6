"""The coordinator stream as Kafka has it: every committed record, with its offset.

Tools show it to people. Programs that act on the stream use ``CoordinatorStreamStore``.
"""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, KafkaError, Message, TopicPartition

from homeport.config.errors import UnavailableError, WireError
from homeport.config.settings.sections import JobConfig, SystemConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.stream_owner import StreamOwner
from homeport.job_coordinator.kafka import clients

_POLL_S = 0.2


@dataclass(frozen=True)
class LoggedRecord:
    """One record; if its bytes are damaged, ``message`` is None and ``fault`` has the error."""

    offset: int
    message: CoordinatorStreamMessage | None
    fault: str = ""


class CoordinatorStreamLog:
    """Reads one stream from its beginning; for one thread.

    ``job``: the owner of the stream, whose topic exists. ``timeout_s``: the longest wait between
    two records on the way to the head.
    """

    def __init__(self, system: SystemConfig, job: JobConfig, timeout_s: float) -> None:
        topic = job.coordinator_topic
        self._system = system
        self._topic = topic
        self._owner = StreamOwner.of(job)
        self._timeout_s = timeout_s
        self._consumer = clients.consumer(system, clients.COMMITTED)
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self._consumer.close()

    def to_head(self) -> Iterator[LoggedRecord]:
        """Yield the records up to the end of the log.

        ConfigError: (at the end) another job owns the stream.
        UnavailableError: Kafka did not answer in time.
        """
        configs: dict[str, CoordinatorStreamMessage] = {}
        deadline = time.monotonic() + self._timeout_s
        while True:
            message = self._consumer.poll(_POLL_S)
            if message is None:
                if time.monotonic() > deadline:
                    raise self._unavailable(f"no answer within {self._timeout_s:g} s")
                continue
            if self._is_end(message):
                self._owner.require(configs, self._topic)
                return
            if message.error() is None:
                deadline = time.monotonic() + self._timeout_s
                record = _record(message)
                if record.message is not None and record.message.type == MessageType.SET_CONFIG:
                    configs[record.message.key] = record.message
                yield record

    def onward(self) -> Iterator[LoggedRecord]:
        """Yield the records that come from now on, without end.

        UnavailableError: the topic is gone, or may not be read any more.
        """
        while True:
            message = self._consumer.poll(_POLL_S)
            if message is not None and not self._is_end(message) and message.error() is None:
                yield _record(message)

    def _is_end(self, message: Message) -> bool:
        """Return whether ``message`` is the end; raise an error that the library cannot mend."""
        error = message.error()
        if error is not None and clients.ends_reading(error):
            raise self._unavailable(error)
        return error is not None and clients.is_end(error)

    def _unavailable(self, why: str | KafkaError) -> UnavailableError:
        return clients.unavailable(self._system, f"reading topic {self._topic!r}", why)


def _record(message: Message) -> LoggedRecord:
    offset = message.offset() or 0
    try:
        return LoggedRecord(offset, wire.decode(_bytes(message.key()), _bytes(message.value())))
    except WireError as error:
        return LoggedRecord(offset, None, str(error))


def _bytes(data: str | bytes | None) -> bytes | None:
    return data.encode() if isinstance(data, str) else data
