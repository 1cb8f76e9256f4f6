"""Records with which a driver continues its predecessor's work: stops, failures, failovers, end."""

from collections.abc import Collection
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated

from msgspec import Meta

from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number
from homeport.job_coordinator.coordinator_stream.reading import (
    RecordManager,
    exactly,
    read_all,
    read_last,
)
from homeport.job_coordinator.coordinator_stream.record_values import decoded, record_of
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import reason_of
from homeport.job_coordinator.model.wire_form import LARGEST, Number, Text


@dataclass(frozen=True)
class _Stop:
    epoch: Number
    cause: str = ""


class StopManager(RecordManager):
    """The stopped incarnations, as launchers and drivers have recorded them: set-stopped.

    Source: safety A4, P1.
    """

    def read(self) -> dict[Incarnation, str]:
        """Return {incarnation: cause}, the last one of each processor.

        A damaged record is left out: the driver then waits for other evidence, which is safe.
        """
        found = read_all(self._stream, MessageType.SET_STOPPED, partial(decoded, _Stop))
        return {Incarnation(ProcessorId(p), stop.epoch): stop.cause for p, stop in found.items()}

    @staticmethod
    def message(incarnation: Incarnation, cause: str) -> CoordinatorStreamMessage:
        """Return the record of the incarnation's stop."""
        stop = _Stop(incarnation.epoch, cause)
        return record_of(MessageType.SET_STOPPED, incarnation.processor_id, stop)

    def write(self, incarnation: Incarnation, cause: str) -> None:
        """Write into the stream that the incarnation has stopped."""
        self._stream.write([self.message(incarnation, cause)])


@dataclass(frozen=True)
class RetryState:
    """The number of failures charged to a processor, and the time of the last, in ms since 1970.

    ``epoch``: the incarnation whose launcher gave the ``reason`` of the last failure, charged or
    not, a line without secrets; 0 and empty where none did. The line may quote data of the job:
    without a right to read the stream no page shows it.
    """

    count: int
    since_ms: int
    epoch: int = 0
    reason: str = ""


class RetryManager(RecordManager):
    """The failures that are charged to processors: set-retry-state."""

    def read(self) -> dict[ProcessorId, RetryState]:
        """Return {processor: its state}, without those that have neither charge nor reason."""
        found = read_all(self._stream, MessageType.SET_RETRY_STATE, _retry_state)
        return {ProcessorId(processor_id): state for processor_id, state in found.items()}

    def reasons(self) -> dict[Incarnation, str]:
        """Return {incarnation: why it failed}, where a processor's last failure has a reason."""
        states = self.read().items()
        return {Incarnation(p, s.epoch): s.reason for p, s in states if s.epoch and s.reason}

    @staticmethod
    def message(processor_id: ProcessorId, state: RetryState) -> CoordinatorStreamMessage:
        """Return the record of the processor's charged failures, and of the last one's reason."""
        if state.count == 0 and not state.reason:
            return wire.tombstone(MessageType.SET_RETRY_STATE, processor_id)
        # An older version would await the end of a window after ``since``, also for no failure.
        since_ms = state.since_ms if state.count else 0
        values = {"count": str(state.count), "since": str(since_ms)}
        if state.reason:
            values |= {"epoch": str(state.epoch), "reason": state.reason}
        return CoordinatorStreamMessage(MessageType.SET_RETRY_STATE, processor_id, values)

    def messages_to_forget(
        self, keep: Collection[ProcessorId] = ()
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Return records after which nothing is charged; those of ``keep`` keep their reasons."""
        kept = ((p, s) for p, s in self.read().items() if p in keep and s.reason)
        forgiven = (self.message(p, replace(s, count=0)) for p, s in kept)
        return exactly(self._stream, MessageType.SET_RETRY_STATE, forgiven)

    def forget(self) -> None:
        """Write that no processor is charged with a failure."""
        self._stream.write(self.messages_to_forget())


def _retry_state(message: CoordinatorStreamMessage) -> RetryState:
    values = message.values or {}
    epoch = whole_number(values.get("epoch"), LARGEST) or 0
    count, since_ms = wire.number(message, "count"), wire.number(message, "since")
    return RetryState(count, since_ms, epoch, reason_of(values.get("reason", "")))


JOB_RESULTS = ("SUCCEEDED", "FAILED", "KILLED")
"""YARN's final states."""


@dataclass(frozen=True)
class JobEnd:
    """The decided end of a submission of the job; ``result``: one of ``JOB_RESULTS``."""

    submission: Number
    result: Annotated[str, Meta(pattern=rf"\A({'|'.join(JOB_RESULTS)})\Z")]
    diagnostics: str = ""


class JobEndManager(RecordManager):
    """The decided end of the job: set-job-end. Every later driver completes it."""

    def read(self, submission: int) -> JobEnd | None:
        """Return the end of that submission; None while none has been decided."""
        kind, key = MessageType.SET_JOB_END, wire.JOB_END_KEY
        found = read_last(self._stream, kind, key, partial(decoded, JobEnd))
        return found if found is not None and found.submission == submission else None

    @staticmethod
    def message(end: JobEnd) -> CoordinatorStreamMessage:
        """Return the record of the job's end."""
        return record_of(MessageType.SET_JOB_END, wire.JOB_END_KEY, end)


@dataclass(frozen=True)
class RecordedFailover:
    """An active container is on its way to ``host``, to take the place of ``standby``.

    ``epoch``: the active's last permitted epoch when the failover was decided. Localities that this
    incarnation, or an earlier one, writes later do not count. ``standby`` and ``host`` are None
    where no standby could take over. ``step``: the name of a step of the allocator's search for a
    place. ``used``: the standbys that were already chosen. ``cause``: text for people.
    """

    epoch: Number
    standby: ProcessorId | None
    host: Host | None
    step: Text
    used: tuple[ProcessorId, ...] = ()
    cause: str = ""


class FailoverManager(RecordManager):
    """The failovers that are under way: set-failover.

    Source: STANDBY, "A. Failure of an active container".
    """

    def read(self) -> dict[ProcessorId, RecordedFailover]:
        """Return {active processor: its failover}.

        A damaged record is left out: its processor is placed by its locality, like any other.
        """
        decode = partial(decoded, RecordedFailover)
        found = read_all(self._stream, MessageType.SET_FAILOVER, decode)
        return {ProcessorId(active): failover for active, failover in found.items()}

    @staticmethod
    def message(active: ProcessorId, failover: RecordedFailover) -> CoordinatorStreamMessage:
        """Return the record of a failover of ``active`` that is under way."""
        return record_of(MessageType.SET_FAILOVER, active, failover)

    @staticmethod
    def end(active: ProcessorId) -> CoordinatorStreamMessage:
        """Return the record after which no failover of ``active`` is under way."""
        return wire.tombstone(MessageType.SET_FAILOVER, active)
