"""The coordinator stream without Kafka, through the same bytes as the real one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import KeyRecord, StreamState
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage


class InMemoryCoordinatorStream:
    """A coordinator stream that lives in this process.

    It goes through the same bytes as the real one. ``log``: of a stream that others write too.
    """

    now_ms = 0
    """When records are written; 0: each has its number as its time."""

    def __init__(
        self, source: str = "homeport", log: list[tuple[bytes, bytes | None]] | None = None
    ) -> None:
        self.log: list[tuple[bytes, bytes | None]] = [] if log is None else log
        self._source = source
        self._state = StreamState(keeps_keys=True)
        self._position = 0

    @property
    def damaged_count(self) -> int:
        """How many records were skipped because their bytes are damaged."""
        return self._state.damaged_count

    def catch_up(self) -> tuple[CoordinatorStreamMessage, ...]:
        """Read to the head; return the records that are new since the last call, in their order.

        Damaged ones are left out and counted.
        """
        found: list[CoordinatorStreamMessage] = []
        for offset in range(self._position, len(self.log)):
            message = self._state.take(offset, *self.log[offset])
            if message is not None:
                found.append(message)
        self._position = len(self.log)
        return tuple(found)

    def latest(self, message_type: str) -> Mapping[str, CoordinatorStreamMessage]:
        """Return {key: last record} of one type as of the last catch-up, deleted keys left out."""
        return self._state.latest(message_type)

    def taken_keys(self) -> tuple[KeyRecord, ...]:
        """Return the records of keys and upgrades since the last call, in their order."""
        return self._state.taken_keys()

    def write(self, messages: Iterable[CoordinatorStreamMessage]) -> None:
        """Write all messages, in their order; they are in the stream when this returns."""
        for message in self._state.with_text_versions_deleted(messages):
            at_ms = self.now_ms or len(self.log)
            stamped = message.stamped(
                source=self._source, host="127.0.0.1", username="user", timestamp_ms=at_ms
            )
            self.log.append(wire.encode(stamped))
