"""Managers of what becomes of incarnations and of the job: stops, charged failures, the end.

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
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, exactly, read_all
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation


class StopManager(RecordManager):
    """Which incarnations have stopped, as the launcher or the driver has recorded: set-stopped.

    Source: safety A4, P1.
    """

    def read(self) -> dict[Incarnation, str]:
        """{incarnation: cause}, the last one of each processor.

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
        """The record that says that the incarnation has stopped."""
        values = {"epoch": str(incarnation.epoch), "cause": cause}
        return CoordinatorStreamMessage(MessageType.SET_STOPPED, incarnation.processor_id, values)

    def write(self, incarnation: Incarnation, cause: str) -> None:
        """The stream says that the incarnation has stopped."""
        self._stream.write([self.message(incarnation, cause)])


@dataclass(frozen=True)
class RetryState:
    """Failures charged to a processor; when the last one was, in ms since 1970."""

    count: int
    since_ms: int


class RetryManager(RecordManager):
    """What is charged to processors: set-retry-state."""

    def read(self) -> dict[ProcessorId, RetryState]:
        """{processor: what is charged to it}, those without a failure left out."""
        found = read_all(self._stream, MessageType.SET_RETRY_STATE, _retry_state)
        return {ProcessorId(processor_id): state for processor_id, state in found.items()}

    @staticmethod
    def message(processor_id: ProcessorId, state: RetryState) -> CoordinatorStreamMessage:
        """The record that says what is charged to the processor."""
        if state.count == 0:
            return wire.tombstone(MessageType.SET_RETRY_STATE, processor_id)
        values = {"count": str(state.count), "since": str(state.since_ms)}
        return CoordinatorStreamMessage(MessageType.SET_RETRY_STATE, processor_id, values)

    def messages_to_forget(self) -> tuple[CoordinatorStreamMessage, ...]:
        """Records that turn what the stream says into: nothing is charged to anybody."""
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
        """The end of that submission; None while none has been decided."""
        found = read_all(self._stream, MessageType.SET_JOB_END, _job_end).get(wire.JOB_END_KEY)
        return found if found is not None and found.submission == submission else None

    @staticmethod
    def message(end: JobEnd) -> CoordinatorStreamMessage:
        """The record that says that the job ends."""
        submission = str(end.submission)
        values = {"submission": submission, "result": end.result, "diagnostics": end.diagnostics}
        return CoordinatorStreamMessage(MessageType.SET_JOB_END, wire.JOB_END_KEY, values)


def _job_end(message: CoordinatorStreamMessage) -> JobEnd:
    result = message.value("result")
    if result not in JOB_RESULTS:
        raise WireError(f"{message.type} {message.key!r}: no such result: {result!r:.200}")
    return JobEnd(wire.number(message, "submission"), result, message.value("diagnostics") or "")


def _stop(message: CoordinatorStreamMessage) -> tuple[int, str]:
    return wire.number(message, "epoch"), message.value("cause") or ""
