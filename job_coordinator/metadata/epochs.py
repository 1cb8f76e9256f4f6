"""What outlives AM attempts in the coordinator stream: submissions, ranks, epochs, fences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from homeport.config.errors import WireError
from homeport.job_coordinator.coordinator_stream import coordinator_stream_message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.coordinator_stream.message_bytes import LARGEST, parse_json
from homeport.job_coordinator.coordinator_stream.reading import RecordManager, read_all
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation, incarnations_to_json

_T = TypeVar("_T")
_FLOOR_KEY = "epoch-floor"

UNSEEN_MAX_MS = 24 * 3_600_000
"""Longer than any configuration lets an incarnation run on unseen: a record that says more is
damaged, and would hold a job back for as long."""


@dataclass(frozen=True)
class Submission:
    """How often the job has been submitted; the last application, once there is one.

    ``claim``: of the run-job that is about to submit it.
    """

    number: int
    application: str | None = None
    claim: str | None = None


@dataclass(frozen=True)
class Rank:
    """One AM attempt: which submission, which application, which attempt.

    A higher rank fences a lower one.

    Source: safety A1.
    """

    submission: int
    application: str
    attempt: int

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
    """The last epoch of a processor: model version, incarnations to fence, what was permitted.

    ``permitted`` is the last epoch that anybody was permitted to use. It is ``epoch`` itself where
    a permit was given (and when nothing is said); it stays behind where a new model has raised the
    epoch, which no incarnation uses; 0: the processor never had a permit.
    ``unseen_ms``: how long the permitted incarnation can run on when a higher rank has taken over,
    by the configuration of the attempt that gave the permit; None: an older version gave it.
    """

    epoch: int
    model_version: int
    fence: tuple[Incarnation, ...] = ()
    permitted: int = -1
    unseen_ms: int | None = None

    def __post_init__(self) -> None:
        if self.permitted < 0:
            object.__setattr__(self, "permitted", self.epoch)

    @property
    def is_raised(self) -> bool:
        """Whether a model has overtaken the incarnation with the last permit (safety I2)."""
        return self.permitted < self.epoch

    def goes_on_ms(self, unknown_ms: int) -> int:
        """Return ``unseen_ms``; ``unknown_ms`` where the record does not say it."""
        return unknown_ms if self.unseen_ms is None else self.unseen_ms


@dataclass(frozen=True)
class FenceReport:
    """The last incarnation of a processor that reported which others it has fenced (safety I3)."""

    epoch: int
    fenced: tuple[Incarnation, ...] = ()


@dataclass(frozen=True)
class JobModelVersion:
    """The job model in force; a newly computed model with the same ``digest`` is the same one."""

    version: int
    digest: str


class EpochManager(RecordManager):
    """What outlives AM attempts: submissions, AM ranks, processor epochs, model version."""

    def read_submission(self) -> Submission | None:
        """Return the last submission; None before the first; WireError: a damaged record."""
        message = self._stream.latest(MessageType.SET_SUBMISSION).get(wire.SUBMISSION_KEY)
        if message is None:
            return None
        return Submission(
            wire.number(message, "number"), message.value("application"), message.value("claim")
        )

    def write_submission(self, submission: Submission) -> None:
        """Write ``submission`` into the stream."""
        self._stream.write([submission_message(submission)])

    def read_am_epoch(self) -> AmEpoch | None:
        """Return the last AM attempt that began; None before the first one.

        WireError where the record is damaged.
        """
        message = self._stream.latest(MessageType.SET_AM_EPOCH).get(wire.AM_EPOCH_KEY)
        if message is None:
            return None
        rank = Rank(
            wire.number(message, "submission"),
            message.value("application") or "",
            wire.number(message, "attempt"),
        )
        return AmEpoch(rank, tuple(_rank(item, message) for item in _items(message, "unfenced")))

    def write_am_epoch(self, am_epoch: AmEpoch) -> None:
        """Write into the stream that the attempt ``am_epoch.rank`` has begun."""
        self._stream.write([am_epoch_message(am_epoch)])

    def read_processor_epochs(self) -> dict[ProcessorId, ProcessorEpoch]:
        """Return {processor: its last epoch}.

        Raises:
            WireError: a record is damaged; going on could permit an epoch twice.
        """
        records = self._stream.latest(MessageType.SET_PROCESSOR_EPOCH)
        return {ProcessorId(key): _processor_epoch(message) for key, message in records.items()}

    def write_processor_epoch(self, processor_id: ProcessorId, permit: ProcessorEpoch) -> None:
        """Write the processor's ``permit`` into the stream."""
        self._stream.write([processor_epoch_message(processor_id, permit)])

    def read_floor(self) -> int:
        """Return the epoch that every permit is above; 0 where the job has run on YARN alone.

        Raises:
            WireError: the record is damaged; going on could permit the number of a generation.
        """
        found = self._stream.latest(MessageType.SET_EPOCH_FLOOR).get(_FLOOR_KEY)
        return 0 if found is None else wire.number(found, "epoch")

    def read_tree(self) -> str:
        """Return the tree whose incarnations alone may go on; empty where any may."""
        found = self._stream.latest(MessageType.SET_EPOCH_FLOOR).get(_FLOOR_KEY)
        return "" if found is None else found.value("tree") or ""

    def read_unfenced(self) -> tuple[Incarnation, ...]:
        """Return those that have reported, and that no report names as fenced, sorted."""
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
        """Return {processor: its last report}; one that cannot be read counts as none was made."""
        found = read_all(
            self._stream,
            MessageType.SET_FENCED,
            lambda m: FenceReport(wire.number(m, "epoch"), _incarnations(m, "fenced")),
        )
        return {ProcessorId(processor_id): report for processor_id, report in found.items()}

    def write_fenced(self, processor_id: ProcessorId, report: FenceReport) -> None:
        """Write the processor's ``report`` into the stream."""
        self._stream.write([fence_report_message(processor_id, report)])

    def read_job_model_version(self) -> JobModelVersion | None:
        """Return the job model in force; None before the first one.

        WireError where the record is damaged.
        """
        message = self._stream.latest(MessageType.SET_JOB_MODEL_VERSION).get(
            wire.JOB_MODEL_VERSION_KEY
        )
        if message is None:
            return None
        return JobModelVersion(wire.number(message, "version"), message.value("digest") or "")


def epoch_floor_message(epoch: int, tree: str = "") -> CoordinatorStreamMessage:
    """Return the record that puts every permit of any processor above ``epoch``.

    ``tree``: the one whose incarnations alone may go on after they have read it; empty: any.
    """
    values = {"epoch": str(epoch), **({"tree": tree} if tree else {})}
    return CoordinatorStreamMessage(MessageType.SET_EPOCH_FLOOR, _FLOOR_KEY, values)


def submission_message(submission: Submission) -> CoordinatorStreamMessage:
    """Return the record of a submission."""
    known = {"application": submission.application, "claim": submission.claim}
    values = {"number": str(submission.number)} | {k: v for k, v in known.items() if v is not None}
    return CoordinatorStreamMessage(MessageType.SET_SUBMISSION, wire.SUBMISSION_KEY, values)


def job_model_version_message(version: JobModelVersion) -> CoordinatorStreamMessage:
    """Return the record of the JobModel in force."""
    values = {"version": str(version.version), "digest": version.digest}
    key = wire.JOB_MODEL_VERSION_KEY
    return CoordinatorStreamMessage(MessageType.SET_JOB_MODEL_VERSION, key, values)


def am_epoch_message(am_epoch: AmEpoch) -> CoordinatorStreamMessage:
    """Return the record of the start of an AM attempt."""
    rank = am_epoch.rank
    unfenced: list[dict[str, object]] = [
        {"submission": r.submission, "application": r.application, "attempt": r.attempt}
        for r in am_epoch.unfenced
    ]
    values = {
        "submission": str(rank.submission),
        "application": rank.application,
        "attempt": str(rank.attempt),
        "unfenced": wire.list_text(unfenced),
    }
    return CoordinatorStreamMessage(MessageType.SET_AM_EPOCH, wire.AM_EPOCH_KEY, values)


def processor_epoch_message(
    processor_id: ProcessorId, permit: ProcessorEpoch
) -> CoordinatorStreamMessage:
    """Return the record of a permit, or of an epoch that a model has raised.

    It names what was ``permitted`` where that is another epoch: no incarnation uses a raised one,
    and the successor must fence those before it (safety I1, I2).
    """
    known = {
        "epoch": permit.epoch,
        "model-version": permit.model_version,
        "fence": wire.list_text(incarnations_to_json(permit.fence)),
        "permitted": permit.permitted if permit.is_raised else None,
        "unseen-ms": permit.unseen_ms,
    }
    values = {name: str(value) for name, value in known.items() if value is not None}
    return CoordinatorStreamMessage(MessageType.SET_PROCESSOR_EPOCH, processor_id, values)


def _processor_epoch(message: CoordinatorStreamMessage) -> ProcessorEpoch:
    epoch = wire.number(message, "epoch")
    is_raised = message.value("permitted") is not None
    says_unseen = message.value("unseen-ms") is not None
    return ProcessorEpoch(
        epoch,
        wire.number(message, "model-version"),
        _incarnations(message, "fence"),
        wire.number(message, "permitted") if is_raised else epoch,
        wire.number(message, "unseen-ms", maximum=UNSEEN_MAX_MS) if says_unseen else None,
    )


def fence_report_message(
    processor_id: ProcessorId, report: FenceReport
) -> CoordinatorStreamMessage:
    """Return the record of the incarnations that an incarnation has fenced."""
    fenced = wire.list_text(incarnations_to_json(report.fenced))
    values = {"epoch": str(report.epoch), "fenced": fenced}
    return CoordinatorStreamMessage(MessageType.SET_FENCED, processor_id, values)


def _items(message: CoordinatorStreamMessage, name: str) -> list[dict[str, object]]:
    text = message.value(name) or "[]"
    try:
        items = parse_json(text, f"list {name}")
    except WireError:
        items = None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise WireError(f"{message.type} {message.key!r}: {name!r} is not a list: {text[:200]!r}")
    return items


def _member(item: dict[str, object], name: str, kind: type[_T], of: CoordinatorStreamMessage) -> _T:
    value = item.get(name)
    is_wrong = isinstance(value, bool) or (isinstance(value, int) and not 0 <= value <= LARGEST)
    if is_wrong or not isinstance(value, kind):
        raise WireError(f"{of.type} {of.key!r}: {name!r} is missing or wrong in {item!r:.200}")
    return value


def _incarnations(of: CoordinatorStreamMessage, name: str) -> tuple[Incarnation, ...]:
    try:
        return tuple(Incarnation.from_json(item) for item in _items(of, name))
    except WireError as error:
        raise WireError(f"{of.type} {of.key!r}: {name!r}: {error}") from None


def _rank(item: dict[str, object], of: CoordinatorStreamMessage) -> Rank:
    return Rank(
        _member(item, "submission", int, of),
        _member(item, "application", str, of),
        _member(item, "attempt", int, of),
    )
