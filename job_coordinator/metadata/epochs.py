"""What outlives AM attempts in the coordinator stream: submissions, ranks, epochs, fences."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Annotated

from msgspec import Meta

from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, read_all
from homeport.job_coordinator.coordinator_stream.record_values import decoded, record_of
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.wire_form import Number

_FLOOR_KEY = "epoch-floor"

UNSEEN_MAX_MS = 24 * 3_600_000
"""Longer than any configuration lets an incarnation run on unseen: a record that says more is
damaged, and would hold a job back for as long."""


@dataclass(frozen=True)
class Submission:
    """The number of the last submission, and its application once YARN has given one.

    ``claim``: the mark of the run-job that is about to submit the job.
    """

    number: Number
    application: str | None = None
    claim: str | None = None


@dataclass(frozen=True)
class Rank:
    """One AM attempt: which submission, which application, which attempt.

    A higher rank fences a lower one.

    Source: safety A1.
    """

    submission: Number
    application: str
    attempt: Number

    def is_above(self, other: Rank) -> bool:
        """Return whether this attempt is newer: by submission, then application, then attempt."""
        return self._order() > other._order()

    def _order(self) -> tuple[int, int, str, int]:
        # YARN pads an application's number to four digits only: a longer id is a later one
        return (self.submission, len(self.application), self.application, self.attempt)


@dataclass(frozen=True)
class AmEpoch:
    """The rank of the last AM attempt that began, and the lower ranks that it has to fence."""

    rank: Rank
    unfenced: tuple[Rank, ...] = ()


@dataclass(frozen=True)
class ProcessorEpoch:
    """The last epoch of a processor, the version of its JobModel, and the incarnations to fence.

    ``permitted``: the last epoch that an incarnation was permitted to use, by default ``epoch``; 0:
    none was. It stays behind where a new model has raised the epoch, which no incarnation uses.
    ``unseen_ms``: how long the permitted incarnation can run on after a higher rank has taken over,
    by the configuration of the attempt that gave the permit; None: an older version gave it.
    """

    epoch: Number
    model_version: Number
    fence: tuple[Incarnation, ...] = ()
    permitted: Number = -1
    unseen_ms: Annotated[int, Meta(ge=0, le=UNSEEN_MAX_MS)] | None = None

    def __post_init__(self) -> None:
        if self.permitted < 0:
            object.__setattr__(self, "permitted", self.epoch)

    @property
    def is_raised(self) -> bool:
        """Whether a model has overtaken the incarnation with the last permit (safety I2)."""
        return self.permitted < self.epoch

    def goes_on_ms(self, unknown_ms: int) -> int:
        """Return ``unseen_ms``; ``unknown_ms`` where the record has none."""
        return unknown_ms if self.unseen_ms is None else self.unseen_ms


@dataclass(frozen=True)
class FenceReport:
    """The last incarnation of a processor that has reported its fences, and those (safety I3)."""

    epoch: Number
    fenced: tuple[Incarnation, ...] = ()


@dataclass(frozen=True)
class JobModelVersion:
    """The job model in force; a newly computed model with the same ``digest`` is the same one."""

    version: Number
    digest: str = ""


class EpochManager(RecordManager):
    """What outlives AM attempts: submissions, AM ranks, processor epochs, model version."""

    def read_submission(self) -> Submission | None:
        """Return the last submission; None before the first; WireError: a damaged record."""
        message = self._stream.latest(MessageType.SET_SUBMISSION).get(wire.SUBMISSION_KEY)
        return None if message is None else decoded(Submission, message)

    def write_submission(self, submission: Submission) -> None:
        """Write ``submission`` into the stream."""
        self._stream.write([submission_message(submission)])

    def read_am_epoch(self) -> AmEpoch | None:
        """Return the last AM attempt that began; None before the first one.

        WireError where the record is damaged.
        """
        message = self._stream.latest(MessageType.SET_AM_EPOCH).get(wire.AM_EPOCH_KEY)
        return None if message is None else decoded(AmEpoch, message, {"application": ""})

    def write_am_epoch(self, am_epoch: AmEpoch) -> None:
        """Write into the stream that the attempt ``am_epoch.rank`` has begun."""
        self._stream.write([am_epoch_message(am_epoch)])

    def read_processor_epochs(self) -> dict[ProcessorId, ProcessorEpoch]:
        """Return {processor: its last epoch}.

        WireError: a record is damaged; going on could permit an epoch twice.
        """
        records = self._stream.latest(MessageType.SET_PROCESSOR_EPOCH)
        return {ProcessorId(p): decoded(ProcessorEpoch, m) for p, m in records.items()}

    def read_floor(self) -> int:
        """Return the epoch that every permit is above; 0 where the job has run on YARN alone.

        WireError: the record is damaged; going on could permit the number of a generation.
        """
        found = self._stream.latest(MessageType.SET_EPOCH_FLOOR).get(_FLOOR_KEY)
        return 0 if found is None else wire.number(found, "epoch")

    def read_tree(self) -> str:
        """Return the tree whose incarnations alone may go on; empty: those of any tree may."""
        found = self._stream.latest(MessageType.SET_EPOCH_FLOOR).get(_FLOOR_KEY)
        return "" if found is None else found.value("tree") or ""

    def read_unfenced(self) -> tuple[Incarnation, ...]:
        """Return the incarnations that have reported and that no report has as fenced, sorted."""
        reports = self.read_fenced()
        fenced = {incarnation for report in reports.values() for incarnation in report.fenced}
        begun = {Incarnation(p, report.epoch) for p, report in reports.items()}
        return tuple(sorted(begun - fenced))

    def highest(self) -> int:
        """Return the highest number that an incarnation of the job has had, by the stream.

        Epochs of YARN and generations of standalone processors are one number space. WireError
        where a record is damaged.
        """
        permitted = [record.epoch for record in self.read_processor_epochs().values()]
        begun = [report.epoch for report in self.read_fenced().values()]
        return max(self.read_floor(), *permitted, *begun, 0)

    def read_fenced(self) -> dict[ProcessorId, FenceReport]:
        """Return {processor: its last report}; a report that cannot be read counts as none."""
        found = read_all(self._stream, MessageType.SET_FENCED, partial(decoded, FenceReport))
        return {ProcessorId(processor_id): report for processor_id, report in found.items()}

    def write_fenced(self, processor_id: ProcessorId, report: FenceReport) -> None:
        """Write the processor's ``report`` into the stream."""
        self._stream.write([fence_report_message(processor_id, report)])

    def read_job_model_version(self) -> JobModelVersion | None:
        """Return the job model in force; None before the first one.

        WireError where the record is damaged.
        """
        records = self._stream.latest(MessageType.SET_JOB_MODEL_VERSION)
        message = records.get(wire.JOB_MODEL_VERSION_KEY)
        return None if message is None else decoded(JobModelVersion, message)


def epoch_floor_message(epoch: int, tree: str = "") -> CoordinatorStreamMessage:
    """Return the record that puts every permit of any processor above ``epoch``.

    ``tree``: whose incarnations alone may go on after they have read the record; empty: any.
    """
    values = {"epoch": str(epoch), **({"tree": tree} if tree else {})}
    return CoordinatorStreamMessage(MessageType.SET_EPOCH_FLOOR, _FLOOR_KEY, values)


def submission_message(submission: Submission) -> CoordinatorStreamMessage:
    """Return the record of a submission."""
    return record_of(MessageType.SET_SUBMISSION, wire.SUBMISSION_KEY, submission)


def job_model_version_message(version: JobModelVersion) -> CoordinatorStreamMessage:
    """Return the record of the JobModel in force."""
    return record_of(MessageType.SET_JOB_MODEL_VERSION, wire.JOB_MODEL_VERSION_KEY, version)


def am_epoch_message(am_epoch: AmEpoch) -> CoordinatorStreamMessage:
    """Return the record of the start of an AM attempt."""
    return record_of(MessageType.SET_AM_EPOCH, wire.AM_EPOCH_KEY, am_epoch)


def processor_epoch_message(
    processor_id: ProcessorId, permit: ProcessorEpoch
) -> CoordinatorStreamMessage:
    """Return the record of a permit, or of an epoch that a model has raised.

    It names what was ``permitted`` where that is another epoch: no incarnation uses a raised one,
    and the successor must fence those before it (safety I1, I2).
    """
    record = record_of(MessageType.SET_PROCESSOR_EPOCH, processor_id, permit)
    if permit.is_raised:
        return record
    values = {k: v for k, v in (record.values or {}).items() if k != "permitted"}
    return record._replace(values=values)


def fence_report_message(
    processor_id: ProcessorId, report: FenceReport
) -> CoordinatorStreamMessage:
    """Return the record of the incarnations that an incarnation has fenced."""
    return record_of(MessageType.SET_FENCED, processor_id, report)
