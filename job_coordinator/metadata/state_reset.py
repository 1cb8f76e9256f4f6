"""Resets of the job's state: the phase of the last one, and which records a reset removes.

Source: HA-YARN, host-affinity guarantee 2: "we should flush out all state-related data from the
Coordinator Stream".
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from homeport.config.errors import ConfigError
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager
from homeport.job_coordinator.coordinator_stream.record_values import decoded, record_of
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    ProcessorEpoch,
    fence_report_message,
    processor_epoch_message,
)
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.wire_form import Number

OPTION = "--reset-state"
"""The option of run-job that requests a reset, or finishes one that was cut short."""

DELETE = "delete-job"
"""The command of homeport that ends a job for good, or finishes one that was cut short."""

CONVERT = "state convert"
"""The command of homeport that rewrites a store's values, or finishes what was cut short."""

_KEY = "state-reset"

_REMOVED_TYPES = (
    MessageType.SET_CHANGELOG,
    MessageType.SET_CHANGELOG_TOPIC,
    MessageType.SET_STATE_FACT,
    MessageType.SET_CHECKPOINT_TOPIC,
    MessageType.SET_INPUT_TOPIC,
    MessageType.SET_TASK_HOST,
    MessageType.SET_CONTAINER_HOST,
    MessageType.SET_TASK_CONTAINER,
    MessageType.SET_TASK_MODE,
    MessageType.SET_TASK_PARTITION,
    MessageType.SET_FAILOVER,
    MessageType.SET_RETRY_STATE,
    MessageType.SET_INPUT_PARTITIONS,
)
"""Types of the records of state, input positions and places, which a reset removes.

Records of epochs, ranks and submissions stay, because these numbers may only grow.
"""


class ResetPhase(StrEnum):
    """The phases of a reset.

    DELETING: no reset follows, as the job is being deleted. CONVERTING: none follows either, as a
    store's values are being rewritten; the submission is that of the last reset, or 0.
    """

    BEGUN = "begun"
    FINISHED = "finished"
    DELETING = "deleting"
    CONVERTING = "converting"


@dataclass(frozen=True)
class StateReset:
    """The last reset of the job's state."""

    submission: Number
    phase: ResetPhase


class StateResetManager(RecordManager):
    """The last reset: set-state-reset. A reset writes this record before it changes anything."""

    def read(self) -> StateReset | None:
        """Return the last reset; None before the first; WireError: a damaged record."""
        message = self._stream.latest(MessageType.SET_STATE_RESET).get(_KEY)
        return None if message is None else decoded(StateReset, message)

    def write(self, reset: StateReset) -> None:
        """Write ``reset`` into the stream."""
        self._stream.write([self.message(reset)])

    def restore(self, former: StateReset | None) -> None:
        """Write ``former`` again, in place of one that was begun and has changed nothing."""
        self._stream.write([self.message(former)])

    @staticmethod
    def message(reset: StateReset | None) -> CoordinatorStreamMessage:
        """Return the record of ``reset``; None: there was none."""
        kind = MessageType.SET_STATE_RESET
        return wire.tombstone(kind, _KEY) if reset is None else record_of(kind, _KEY, reset)

    def require_finished(self) -> None:
        """Require that no reset is unfinished.

        ConfigError: the last reset is unfinished; nothing may start on the state that it left.
        """
        last = self.read()
        if last is not None and last.phase is ResetPhase.DELETING:
            raise ConfigError(
                DELETE,
                last.phase.value,
                f"the deletion of the job began with submission {last.submission} and was not "
                "finished, and nothing starts on what is left of the job",
                f"finish it by homeport {DELETE}, or begin from nothing by run-job {OPTION}",
            )
        if last is not None and last.phase is ResetPhase.CONVERTING:
            raise ConfigError(
                CONVERT,
                last.phase.value,
                "a conversion of a store's values was begun and not finished, and nothing starts "
                "while only some values are converted",
                f"finish it by homeport {CONVERT}, or begin from nothing by run-job {OPTION}",
            )
        if last is not None and last.phase is not ResetPhase.FINISHED:
            rule = (
                f"a reset of the job's state began with submission {last.submission} and was not "
                "finished, and nothing starts on what is left of that state"
            )
            raise ConfigError(OPTION, last.phase.value, rule, f"finish it by run-job {OPTION}")


def raised_epochs(stream: CoordinatorStream) -> Iterator[CoordinatorStreamMessage]:
    """Yield a higher epoch, which no incarnation may use, for each processor that had a permit.

    An incarnation that has its permit but has not begun then finds that it was overtaken.
    """
    for processor_id, last in sorted(EpochManager(stream).read_processor_epochs().items()):
        if last.permitted:
            raised = replace(last, epoch=last.epoch + 1, fence=_to_fence(processor_id, last))
            yield processor_epoch_message(processor_id, raised)


def permitted_incarnations(stream: CoordinatorStream) -> tuple[Incarnation, ...]:
    """Return all incarnations that, by the stream's records, may still write."""
    epochs = EpochManager(stream).read_processor_epochs()
    return tuple(sorted({i for p, permit in epochs.items() for i in _to_fence(p, permit)}))


def state_removed(stream: CoordinatorStream) -> Iterator[CoordinatorStreamMessage]:
    """Yield the records that remove all state from the stream; fence all incarnations first.

    They also report those fences, so that no later permit has to list an earlier incarnation.
    """
    for processor_id, last in sorted(EpochManager(stream).read_processor_epochs().items()):
        yield fence_report_message(processor_id, FenceReport(last.epoch, last.fence))
    for message_type in _REMOVED_TYPES:
        for key in sorted(stream.latest(message_type)):
            yield wire.tombstone(message_type, key)


def _to_fence(processor_id: ProcessorId, last: ProcessorEpoch) -> tuple[Incarnation, ...]:
    own = (Incarnation(processor_id, last.permitted),) if last.permitted else ()
    return tuple(sorted({*last.fence, *own}))
