"""Homeport's own records of the coordinator stream, written by their managers from plain values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from stream_in_memory import InMemoryCoordinatorStream

from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata import epochs
from homeport.job_coordinator.metadata.lifecycle import (
    FailoverManager,
    JobEnd,
    JobEndManager,
    RecordedFailover,
    RetryManager,
    RetryState,
    StopManager,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.wire_form import value_of

_Bodies = Iterable[Mapping[str, Any]]


def _incarnations(bodies: _Bodies) -> tuple[Incarnation, ...]:
    return tuple(value_of(Incarnation, body, "an incarnation") for body in bodies)


def write_permit(
    manager: epochs.EpochManager, processor_id: ProcessorId, permit: epochs.ProcessorEpoch
) -> None:
    """Write the processor's ``permit`` into the stream of ``manager``."""
    manager._stream.write([epochs.processor_epoch_message(processor_id, permit)])


def set_submission(number: int, application: str | None = None) -> CoordinatorStreamMessage:
    """Return the record of a submission."""
    return epochs.submission_message(epochs.Submission(number, application))


def set_processor_epoch(
    processor: str,
    epoch: int,
    version: int,
    fence: _Bodies,
    permitted: int = -1,
    unseen_ms: int | None = None,
) -> CoordinatorStreamMessage:
    """Return the record of a permit."""
    permit = epochs.ProcessorEpoch(epoch, version, _incarnations(fence), permitted, unseen_ms)
    return epochs.processor_epoch_message(ProcessorId(processor), permit)


def set_fenced(processor: str, epoch: int, fenced: _Bodies) -> CoordinatorStreamMessage:
    """Return the record of a report of fencing."""
    report = epochs.FenceReport(epoch, _incarnations(fenced))
    return epochs.fence_report_message(ProcessorId(processor), report)


def set_job_model_version(version: int, digest: str) -> CoordinatorStreamMessage:
    """Return the record of the JobModel in force."""
    return epochs.job_model_version_message(epochs.JobModelVersion(version, digest))


def set_stopped(processor: str, epoch: int, cause: str) -> CoordinatorStreamMessage:
    """Return the record of a stop."""
    return StopManager.message(Incarnation(ProcessorId(processor), epoch), cause)


def set_retry_state(processor: str, count: int, since_ms: int) -> CoordinatorStreamMessage:
    """Return the record of charged failures."""
    return RetryManager.message(ProcessorId(processor), RetryState(count, since_ms))


def set_failover(
    active: str,
    epoch: int,
    standby: str | None,
    host: str | None,
    *,
    step: str,
    used: Iterable[str] = (),
    cause: str = "",
) -> CoordinatorStreamMessage:
    """Return the record of a failover that is under way."""
    found = RecordedFailover(
        epoch,
        None if standby is None else ProcessorId(standby),
        None if host is None else Host(host),
        step,
        tuple(map(ProcessorId, used)),
        cause,
    )
    return FailoverManager.message(ProcessorId(active), found)


def set_job_end(submission: int, result: str, diagnostics: str) -> CoordinatorStreamMessage:
    """Return the record of the job's end."""
    return JobEndManager.message(JobEnd(submission, result, diagnostics))


def put(stream: InMemoryCoordinatorStream, *messages: CoordinatorStreamMessage) -> None:
    """Write ``messages`` to ``stream``, and read them back."""
    stream.write(list(messages))
    stream.catch_up()


def written_keys(stream: InMemoryCoordinatorStream) -> list[tuple[str, bool]]:
    """Return the key of each record, and whether it deletes what is there."""
    decoded = [wire.decode(*record) for record in stream.log]
    return [(message.key, message.is_tombstone) for message in decoded]
