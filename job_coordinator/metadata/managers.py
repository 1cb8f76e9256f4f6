"""Managers: each reads and writes one kind of record in the job's own words.

Reading is from the state of the stream's last catch-up; a manager catches up itself only where it
says so. The methods named ``messages`` give the records without writing them, for a writer that
puts several kinds into one transaction. A record that its manager cannot read is left out with a
warning: one bad record must not stop a job.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeVar

from homeport.config.config import Config
from homeport.config.errors import WireError
from homeport.job_coordinator.metadata import coordinator_stream_message as wire
from homeport.job_coordinator.metadata.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.coordinator_stream_message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName, host_of
from homeport.job_coordinator.model.incarnation import Incarnation

_LOG = logging.getLogger(__name__)
_T = TypeVar("_T")


def read_all(
    stream: CoordinatorStream,
    message_type: MessageType,
    read: Callable[[CoordinatorStreamMessage], _T | None],
) -> dict[str, _T]:
    """{key: value} of the records that ``read`` understands.

    None from it leaves a record out without a word.
    """
    found: dict[str, _T] = {}
    for key, message in stream.latest(message_type).items():
        try:
            value = read(message)
        except WireError as error:
            _LOG.warning("coordinator stream: record left out: %s", error)
            continue
        if value is not None:
            found[key] = value
    return found


WRITER_SOURCE = "coordinator-stream-writer"
"""Source of the records of the tool of that name, which a deployment leaves alone."""


class ConfigManager:
    """The job's configuration: set-config records.

    Source: COORD, "Job Coordinator"; the order of writing is Samza's.
    """

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream

    def read(self) -> Config:
        """The configuration as of the last catch-up; a record without a value is left out."""
        texts = read_all(self._stream, MessageType.SET_CONFIG, lambda m: m.value("value"))
        return Config(texts)

    def written(self) -> Config:
        """What the writer tool has set and not taken back: it stands above a deployment's file."""
        messages = self._stream.latest(MessageType.SET_CONFIG).items()
        texts = {name: m.value("value") for name, m in messages if m.source == WRITER_SOURCE}
        return Config({name: text for name, text in texts.items() if text is not None})

    def replace(self, config: Mapping[str, str], source: str) -> None:
        """The stream's configuration is ``config`` with ``written()`` laid over it.

        Records of other types are not touched.

        Order: all new keys, flushed; the stream read back to its head; then a tombstone for every
            key that is in neither. A reader that starts in between sees a key too many, never one
            too few.
        """
        kept = self.written()
        self._stream.write(
            replace(wire.set_config(name, value), source=source)
            for name, value in sorted(config.items())
            if name not in kept
        )
        self._stream.catch_up()
        stored = self._stream.latest(MessageType.SET_CONFIG)
        stale = [name for name in stored if name not in config and name not in kept]
        self._stream.write(
            replace(wire.tombstone(MessageType.SET_CONFIG, name), source=source)
            for name in sorted(stale)
        )
        self._stream.catch_up()


class LocalityManager:
    """Where processors and tasks last ran: set-{task,container}-host-assignment.

    A host is in the one spelling that is compared; whether it is a host of the cluster, the caller
    knows.
    """

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream

    def read_tasks(self) -> dict[TaskName, Host]:
        """{task: host it last ran on}, tasks without a record left out."""
        found = read_all(self._stream, MessageType.SET_TASK_HOST, _host)
        return {TaskName(task): host for task, host in found.items()}

    def read_processors(self) -> dict[ProcessorId, Host]:
        """{processor: the host it is best placed on}, processors without any record left out.

        The tasks that a processor has now decide: the host where most of them last ran, the first
        by name where several have as many. The processor's own record counts where none of its
        tasks has one.
        """
        own = read_all(self._stream, MessageType.SET_CONTAINER_HOST, _host)
        hosts = {ProcessorId(processor_id): host for processor_id, host in own.items()}
        votes: dict[ProcessorId, Counter[Host]] = {}
        tasks = self.read_tasks()
        for task, processor_id in TaskAssignmentManager(self._stream).read().items():
            if task in tasks:
                votes.setdefault(processor_id, Counter())[tasks[task]] += 1
        for processor_id, counted in votes.items():
            hosts[processor_id] = min(counted, key=lambda host: (-counted[host], host))
        return hosts

    @staticmethod
    def messages(
        processor_id: ProcessorId, task_names: Iterable[TaskName], host: Host, epoch: int | None
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Records that say: incarnation ``epoch`` of the processor runs its tasks on ``host``."""
        return (
            *(wire.set_task_host_assignment(task, host, epoch) for task in sorted(task_names)),
            wire.set_container_host_assignment(processor_id, host, epoch),
        )

    def write(
        self,
        processor_id: ProcessorId,
        task_names: Iterable[TaskName],
        host: Host,
        epoch: int | None,
    ) -> None:
        """The stream says that the processor and its tasks run on ``host``.

        Source: HA-YARN, "every time they start-up successfully".
        """
        self._stream.write(self.messages(processor_id, task_names, host, epoch))


def _host(message: CoordinatorStreamMessage) -> Host | None:
    name = wire.host(message)
    return host_of(name) if name else None


class ChangelogPartitionManager:
    """Which partition of the changelogs belongs to which task: set-changelog."""

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream

    def read(self) -> dict[TaskName, int]:
        """{task: changelog partition}.

        A record that cannot be read is not left out but stops the caller.

        Raises:
            WireError: a record is damaged; going on would give its task another task's state.
        """
        records = self._stream.latest(MessageType.SET_CHANGELOG)
        return {TaskName(task): wire.changelog_partition(m) for task, m in records.items()}

    def messages(self, partitions: Mapping[TaskName, int]) -> tuple[CoordinatorStreamMessage, ...]:
        """Records of those tasks of ``partitions`` whose partition the stream does not yet say."""
        known = self.read()
        return tuple(
            wire.set_changelog(task, partition)
            for task, partition in sorted(partitions.items())
            if known.get(task) != partition
        )

    def write(self, partitions: Mapping[TaskName, int]) -> None:
        """The stream says the partition of every task of ``partitions``.

        What it says of others stays for ever.
        """
        self._stream.write(self.messages(partitions))


class TaskAssignmentManager:
    """Which processor has which task: set-task-container-assignment."""

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream

    def read(self) -> dict[TaskName, ProcessorId]:
        """{task: processor}."""
        found = read_all(
            self._stream, MessageType.SET_TASK_CONTAINER, lambda m: m.value("containerId")
        )
        return {TaskName(task): ProcessorId(processor) for task, processor in found.items()}

    def messages(
        self, assignment: Mapping[TaskName, ProcessorId]
    ) -> tuple[CoordinatorStreamMessage, ...]:
        """Records that turn what the stream says into exactly ``assignment``.

        Deletions first, as Samza has it.
        """
        known = self.read()
        gone = sorted(set(self._stream.latest(MessageType.SET_TASK_CONTAINER)) - set(assignment))
        return (
            *(wire.tombstone(MessageType.SET_TASK_CONTAINER, task) for task in gone),
            *(
                wire.set_task_container_assignment(task, processor_id)
                for task, processor_id in sorted(assignment.items())
                if known.get(task) != processor_id
            ),
        )

    def write(self, assignment: Mapping[TaskName, ProcessorId]) -> None:
        """The stream says exactly ``assignment``."""
        self._stream.write(self.messages(assignment))


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
        """Whether this attempt is newer: by submission, then application, then attempt."""
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
    """The last permit of a processor: epoch, model version, incarnations to fence."""

    epoch: int
    model_version: int
    fence: tuple[Incarnation, ...] = ()


@dataclass(frozen=True)
class FenceReport:
    """The last incarnation of a processor that reported whom it has fenced (safety I3)."""

    epoch: int
    fenced: tuple[Incarnation, ...] = ()


@dataclass(frozen=True)
class JobModelVersion:
    """The job model in force; ``digest`` tells whether a newly computed model is the same one."""

    version: int
    digest: str


class EpochManager:
    """What outlives AM attempts: submissions, AM ranks, processor epochs, model version."""

    def __init__(self, stream: CoordinatorStream) -> None:
        self._stream = stream

    def read_submission(self) -> Submission | None:
        """The last submission; None before the first one. WireError where the record is damaged."""
        message = self._stream.latest(MessageType.SET_SUBMISSION).get(wire.SUBMISSION_KEY)
        if message is None:
            return None
        return Submission(
            wire.number(message, "number"), message.value("application"), message.value("claim")
        )

    def write_submission(self, submission: Submission) -> None:
        """The stream says ``submission``."""
        s = submission
        self._stream.write([wire.set_submission(s.number, s.application, s.claim)])

    def read_am_epoch(self) -> AmEpoch | None:
        """The last AM attempt that began; None before the first one.

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
        """The stream says that the attempt ``am_epoch.rank`` has begun."""
        self._stream.write([am_epoch_message(am_epoch)])

    def read_processor_epochs(self) -> dict[ProcessorId, ProcessorEpoch]:
        """{processor: its last permit}.

        Raises:
            WireError: a record is damaged; going on could permit an epoch twice.
        """
        records = self._stream.latest(MessageType.SET_PROCESSOR_EPOCH)
        return {
            ProcessorId(processor_id): ProcessorEpoch(
                wire.number(message, "epoch"),
                wire.number(message, "model-version"),
                tuple(_incarnation(item, message) for item in _items(message, "fence")),
            )
            for processor_id, message in records.items()
        }

    def write_processor_epoch(self, processor_id: ProcessorId, permit: ProcessorEpoch) -> None:
        """The stream says that the processor has ``permit``."""
        self._stream.write([processor_epoch_message(processor_id, permit)])

    def read_fenced(self) -> dict[ProcessorId, FenceReport]:
        """{processor: its last report}; one that cannot be read counts as none was made."""
        found = read_all(
            self._stream,
            MessageType.SET_FENCED,
            lambda m: FenceReport(
                wire.number(m, "epoch"), tuple(_incarnation(i, m) for i in _items(m, "fenced"))
            ),
        )
        return {ProcessorId(processor_id): report for processor_id, report in found.items()}

    def write_fenced(self, processor_id: ProcessorId, report: FenceReport) -> None:
        """The stream says that the processor has made ``report``."""
        fenced = _incarnations(report.fenced)
        self._stream.write([wire.set_fenced(processor_id, report.epoch, fenced)])

    def read_job_model_version(self) -> JobModelVersion | None:
        """The job model in force; None before the first one.

        WireError where the record is damaged.
        """
        message = self._stream.latest(MessageType.SET_JOB_MODEL_VERSION).get(
            wire.JOB_MODEL_VERSION_KEY
        )
        if message is None:
            return None
        return JobModelVersion(wire.number(message, "version"), message.value("digest") or "")

    def write_job_model_version(self, version: JobModelVersion) -> None:
        """The stream says that ``version`` is in force."""
        self._stream.write([wire.set_job_model_version(version.version, version.digest)])


def am_epoch_message(am_epoch: AmEpoch) -> CoordinatorStreamMessage:
    """The record that says that an AM attempt has begun."""
    rank = am_epoch.rank
    unfenced: list[dict[str, object]] = [
        {"submission": r.submission, "application": r.application, "attempt": r.attempt}
        for r in am_epoch.unfenced
    ]
    return wire.set_am_epoch(rank.submission, rank.application, rank.attempt, unfenced)


def processor_epoch_message(
    processor_id: ProcessorId, permit: ProcessorEpoch
) -> CoordinatorStreamMessage:
    """The record that says that a processor has a permit."""
    fence = _incarnations(permit.fence)
    return wire.set_processor_epoch(processor_id, permit.epoch, permit.model_version, fence)


def _incarnations(incarnations: Iterable[Incarnation]) -> list[dict[str, object]]:
    return [{"processor_id": i.processor_id, "epoch": i.epoch} for i in incarnations]


def _items(message: CoordinatorStreamMessage, name: str) -> list[dict[str, object]]:
    text = message.value(name) or "[]"
    try:
        items = json.loads(text)
    except (ValueError, RecursionError):
        items = None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise WireError(f"{message.type} {message.key!r}: {name!r} is not a list: {text[:200]!r}")
    return items


def _member(item: dict[str, object], name: str, kind: type[_T], of: CoordinatorStreamMessage) -> _T:
    value = item.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise WireError(f"{of.type} {of.key!r}: {name!r} is missing or wrong in {item!r}")
    return value


def _incarnation(item: dict[str, object], of: CoordinatorStreamMessage) -> Incarnation:
    return Incarnation(
        ProcessorId(_member(item, "processor_id", str, of)), _member(item, "epoch", int, of)
    )


def _rank(item: dict[str, object], of: CoordinatorStreamMessage) -> Rank:
    return Rank(
        _member(item, "submission", int, of),
        _member(item, "application", str, of),
        _member(item, "attempt", int, of),
    )
