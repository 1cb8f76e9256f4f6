"""Records that a driver reads to go on where another was: stops, failures, failovers, the end.

How they read: see ``reading``.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import (
    RecordManager,
    exactly,
    processors,
    read_all,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation


class StopManager(RecordManager):
    """Which incarnations have stopped, as the launcher or the driver has recorded: set-stopped.

    Source: safety A4, P1.
    """

    def read(self) -> dict[Incarnation, str]:
        """Return {incarnation: cause}, the last one of each processor.

        A damaged record is left out: the driver waits for what has no record, which is always
        right.
        """
        found = read_all(self._stream, MessageType.SET_STOPPED, _stop)
        return {
            Incarnation(ProcessorId(processor_id), epoch): cause
            for processor_id, (epoch, cause) in found.items()
        }

    @staticmethod
    def message(incarnation: Incarnation, cause: str) -> CoordinatorStreamMessage:
        """Return the record of the incarnation's stop."""
        values = {"epoch": str(incarnation.epoch), "cause": cause}
        return CoordinatorStreamMessage(MessageType.SET_STOPPED, incarnation.processor_id, values)

    def write(self, incarnation: Incarnation, cause: str) -> None:
        """Write into the stream that the incarnation has stopped."""
        self._stream.write([self.message(incarnation, cause)])


def _stop(message: CoordinatorStreamMessage) -> tuple[int, str]:
    return wire.number(message, "epoch"), message.value("cause") or ""


@dataclass(frozen=True)
class RetryState:
    """Failures charged to a processor; when the last one was, in ms since 1970."""

    count: int
    since_ms: int


class RetryManager(RecordManager):
    """What is charged to processors: set-retry-state."""

    def read(self) -> dict[ProcessorId, RetryState]:
        """Return {processor: what is charged to it}, those without a failure left out."""
        found = read_all(self._stream, MessageType.SET_RETRY_STATE, _retry_state)
        return {ProcessorId(processor_id): state for processor_id, state in found.items()}

    @staticmethod
    def message(processor_id: ProcessorId, state: RetryState) -> CoordinatorStreamMessage:
        """Return the record of what is charged to the processor."""
        if state.count == 0:
            return wire.tombstone(MessageType.SET_RETRY_STATE, processor_id)
        values = {"count": str(state.count), "since": str(state.since_ms)}
        return CoordinatorStreamMessage(MessageType.SET_RETRY_STATE, processor_id, values)

    def messages_to_forget(self) -> tuple[CoordinatorStreamMessage, ...]:
        """Return records after which the stream charges nothing to any processor."""
        return exactly(self._stream, MessageType.SET_RETRY_STATE, ())

    def forget(self) -> None:
        """Write that no processor is charged with a failure."""
        self._stream.write(self.messages_to_forget())


def _retry_state(message: CoordinatorStreamMessage) -> RetryState:
    return RetryState(wire.number(message, "count"), wire.number(message, "since"))


JOB_RESULTS = ("SUCCEEDED", "FAILED", "KILLED")
"""YARN's final states."""


@dataclass(frozen=True)
class JobEnd:
    """How a submission of the job ends, once that has been decided: one of ``JOB_RESULTS``."""

    submission: int
    result: str
    diagnostics: str


class JobEndManager(RecordManager):
    """The end that is under way, so that any driver goes on with it: set-job-end."""

    def read(self, submission: int) -> JobEnd | None:
        """Return the end of that submission; None while none has been decided."""
        found = read_all(self._stream, MessageType.SET_JOB_END, _job_end).get(wire.JOB_END_KEY)
        return found if found is not None and found.submission == submission else None

    @staticmethod
    def message(end: JobEnd) -> CoordinatorStreamMessage:
        """Return the record of the job's end."""
        submission = str(end.submission)
        values = {"submission": submission, "result": end.result, "diagnostics": end.diagnostics}
        return CoordinatorStreamMessage(MessageType.SET_JOB_END, wire.JOB_END_KEY, values)


def _job_end(message: CoordinatorStreamMessage) -> JobEnd:
    result = message.value("result")
    if result not in JOB_RESULTS:
        raise WireError(f"{message.type} {message.key!r}: no such result: {result!r:.200}")
    return JobEnd(wire.number(message, "submission"), result, message.value("diagnostics") or "")


@dataclass(frozen=True)
class RecordedFailover:
    """An active container is on its way to ``host``, to take the place of ``standby``.

    ``epoch``: of the active's last permit when that was decided; whatever this incarnation and
    those before it say later of where they ran counts no more. ``standby`` and ``host`` are None
    where it could not be failed to a standby. ``step``: how far the search for a place has come, in
    the allocator's word. ``used``: the standbys that have been chosen so far. ``cause``: for
    people.
    """

    epoch: int
    standby: ProcessorId | None
    host: Host | None
    step: str
    used: tuple[ProcessorId, ...] = ()
    cause: str = ""


class FailoverManager(RecordManager):
    """Which active containers are on their way to another place than home.

    Source: STANDBY, "A. Failure of an active container".
    """

    def read(self) -> dict[ProcessorId, RecordedFailover]:
        """Return {active processor: what is under way}.

        A damaged record is left out: its processor is placed like any other, where its locality
        says.
        """
        found = read_all(self._stream, MessageType.SET_FAILOVER, _failover)
        return {ProcessorId(active): failover for active, failover in found.items()}

    @staticmethod
    def message(active: ProcessorId, failover: RecordedFailover) -> CoordinatorStreamMessage:
        """Return the record of a failover of ``active`` that is under way."""
        known = {"standby": failover.standby, "host": failover.host}
        values = {
            "epoch": str(failover.epoch),
            **{name: text for name, text in known.items() if text is not None},
            "step": failover.step,
            "used": wire.list_text(list(failover.used)),
            "cause": failover.cause,
        }
        return CoordinatorStreamMessage(MessageType.SET_FAILOVER, active, values)

    @staticmethod
    def end(active: ProcessorId) -> CoordinatorStreamMessage:
        """Return the record after which no failover of ``active`` is under way."""
        return wire.tombstone(MessageType.SET_FAILOVER, active)


def _failover(message: CoordinatorStreamMessage) -> RecordedFailover:
    standby, host, step = (message.value(name) for name in ("standby", "host", "step"))
    if not step:
        raise WireError(f"{message.type} {message.key!r}: no step")
    return RecordedFailover(
        wire.number(message, "epoch"),
        ProcessorId(standby) if standby else None,
        Host(host) if host else None,
        step,
        processors(message, "used"),
        message.value("cause") or "",
    )
