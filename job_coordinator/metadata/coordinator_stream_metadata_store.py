"""The coordinator stream as a MetadataStore: a namespace is a message type or one of Samza's own.

What a key shows of its record: see ``field_serdes``.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
)
from homeport.job_coordinator.metadata.field_serdes import message_of, shown_value


class CoordinatorStreamMetadataStore:
    """A MetadataStore in a coordinator stream. Safe for many threads.

    Every reading goes to the stream's head first, as Samza's CoordinatorStreamStore does; what was
    put before it is flushed before it.

    Args:
        stream: a stream that has been bootstrapped; its maker closes it.
    """

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream
        self._lock = threading.RLock()
        self._unwritten: list[CoordinatorStreamMessage] = []

    def get(self, namespace: str, key: str) -> bytes | None:
        """The value, None where there is none.

        Raises:
            UnavailableError: Kafka did not answer in time.
        """
        message = self._read(namespace).get(key)
        return None if message is None else shown_value(message)

    def put(self, namespace: str, key: str, value: bytes) -> None:
        """``key`` has ``value``, durably after the next ``flush`` or reading.

        Raises:
            WireError: ``value`` is not what the namespace's records hold.
        """
        self.put_all(namespace, {key: value})

    def put_all(self, namespace: str, values: Mapping[str, bytes]) -> None:
        """As ``put`` for every key; none of them where one cannot be written."""
        messages = [message_of(namespace, key, value) for key, value in values.items()]
        with self._lock:
            self._unwritten += messages

    def delete(self, namespace: str, key: str) -> None:
        """``key`` has no value, as it may have been before."""
        with self._lock:
            self._unwritten.append(wire.tombstone(namespace, key))

    def all(self, namespace: str) -> dict[str, bytes]:
        """{key: value} of one namespace, by key in sorted order; records without value left out.

        Raises:
            UnavailableError: Kafka did not answer in time.
        """
        shown = ((key, shown_value(m)) for key, m in sorted(self._read(namespace).items()))
        return {key: value for key, value in shown if value is not None}

    def flush(self) -> None:
        """All writes so far are acknowledged by the stream, in their order.

        A stream that writes in transactions has written them in one. Where it raises, what was not
        written is tried again with the next ``flush``: as those records name whole values, to write
        one twice changes nothing.

        Raises:
            UnavailableError: Kafka did not acknowledge in time. FencedError: a newer process
                writes.
            WireError: a record is too large for the topic; what was put since the last flush is
                given up, though a stream without transactions may hold some of it.
        """
        with self._lock:
            if not self._unwritten:
                return
            try:
                self._stream.write(self._unwritten)
            except WireError:
                self._unwritten = []
                raise
            self._unwritten = []

    def _read(self, namespace: str) -> Mapping[str, CoordinatorStreamMessage]:
        with self._lock:
            self.flush()
            self._stream.catch_up()
            return self._stream.latest(namespace)
