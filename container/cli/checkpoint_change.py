"""What has to hold before a checkpoint is set by hand, and how it is set.

A container reads its task's checkpoint once, when it starts, and writes from then on. A record that
is written beside one that runs would be lost with its next transaction, or be half of what the
state says. So the job must not run; an incarnation with a permit in the stream, and with no record
of its stop, is fenced by its id (a container that lives on after all ends, and its successor reads
what is written here); and afterwards the stream is looked at again: an incarnation permitted
meanwhile may have read the old one, which the command reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homeport.config.errors import ConfigError, UnavailableError
from homeport.container.cli.job_on_host import RecordedJob
from homeport.container.kafka.checkpoints import Checkpoint, write_checkpoint
from homeport.container.kafka.log_reader import LogReader
from homeport.container.kafka.transactional_producer import fence
from homeport.container.progress.checkpoint import Change, CheckpointKey
from homeport.job_coordinator.cli.job_view import running_job
from homeport.job_coordinator.metadata.epochs import EpochManager, ProcessorEpoch, Submission
from homeport.job_coordinator.metadata.lifecycle import StopManager
from homeport.job_coordinator.metadata.state_reset import permitted_incarnations
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task is to go on, as the operator gave it; exactly one of the four."""

    offset: int | None
    is_earliest: bool
    is_latest: bool
    at_ms: int | None

    @staticmethod
    def of(*, offset: int | None, earliest: bool, latest: bool, at_ms: int | None) -> Place:
        """What the options say.

        Raises:
            ConfigError: not exactly one of them was given.
        """
        if (offset is not None) + earliest + latest + (at_ms is not None) != 1:
            raise ConfigError(
                "--offset",
                None if offset is None else str(offset),
                "exactly one of --offset, --earliest, --latest and --timestamp says where",
                "give one",
            )
        return Place(offset, earliest, latest, at_ms)


def require_not_running(job: RecordedJob) -> None:
    """The job does not run, as far as its AM and its stream show.

    Raises:
        ConfigError: it does, or is being submitted.
    """
    name = job.job.name
    if job.view.running is not None:
        raise ConfigError(
            "job.name",
            name,
            f"the job runs ({job.view.running.application}), and would go on from where it is",
            "stop it by run-job --operation=kill",
        )
    last = EpochManager(job.view.stream).read_submission()
    if last is not None and last.application is None:
        raise ConfigError(
            "job.name",
            name,
            f"submission {last.number} of the job is under way",
            "wait until run-job has returned, or run it once more, and stop the job",
        )


def require_no_state(job: RecordedJob, task: TaskModel, readers: Mapping[str, LogReader]) -> None:
    """None of the task's changelogs has ever had a record.

    Raises:
        ConfigError: one has: there is a state, which would stay as it is.
    """
    partition = task.changelog_partition
    for store in job.stores.values():
        changelog = store.changelog
        if changelog is None:
            continue
        place = (changelog.stream, partition)
        if readers[changelog.system].ends([place])[place].head == 0:
            continue
        raise ConfigError(
            f"stores.{store.name}.changelog",
            str(changelog),
            f"task {task.task_name!r} has state, which stays where it is: a compacted changelog "
            "cannot be taken back to an earlier input position",
            "run-job --reset-state throws state and positions away and begins where "
            "samza.offset.default says",
        )


def resolve(place: Place, ssp: SystemStreamPartition, reader: LogReader) -> int:
    """The next offset to read.

    Raises:
        ConfigError: there is no such offset in the partition.
    """
    where = (ssp.stream, ssp.partition)
    ends = reader.ends([where])[where]
    if place.is_earliest:
        return ends.oldest
    if place.at_ms is not None:
        found = reader.offset_at(*where, place.at_ms)
        return ends.head if found is None else found
    if place.offset is None:
        return ends.head
    if not ends.oldest <= place.offset <= ends.head:
        raise ConfigError(
            "--offset",
            str(place.offset),
            f"the partition has offsets {ends.oldest} to {ends.head}, its end",
            "name one of them, or use --earliest or --latest",
        )
    return place.offset


def changed(before: Checkpoint, ssp: SystemStreamPartition, next_offset: int) -> Checkpoint:
    """PURE: ``before``, but that ``ssp`` goes on at ``next_offset``, which its changes say.

    A change that no container has seen stays in them, and says where the partition went on before
    the first of them.
    """
    unseen = {change.ssp: change for change in before.changes}
    processed = before.offsets.get(ssp)
    first = None if processed is None else processed + 1
    if ssp in unseen:
        first = unseen[ssp].first
    changes = {**unseen, ssp: Change(ssp, first, next_offset)}
    return Checkpoint({**before.offsets, ssp: next_offset - 1}, tuple(changes.values()))


def write(job: RecordedJob, task: TaskModel, wanted: Checkpoint) -> None:
    """The task's next incarnation goes on after the offsets of ``wanted``, and says its changes.

    Raises:
        UnavailableError: Kafka did not answer; or the job was started meanwhile.
    """
    stream = job.view.stream
    before = _who_may_run(job)
    system = job.systems()[job.task.checkpoint_system]
    for incarnation in _unstopped(job):
        fence(system, transactional_id(job.job.name, job.job.id, incarnation))
    key = CheckpointKey(job.job.ssp_grouper_factory, task.task_name)
    topic = job.task.checkpoint_topic
    write_checkpoint(system, topic, key, wanted.offsets, wanted.changes)
    stream.catch_up()
    if _who_may_run(job) != before or running_job(job.view.given, stream) is not None:
        raise UnavailableError(
            "the job was started while its checkpoint was set, and may have read the one before: "
            "stop it by run-job --operation=kill, and set it again"
        )


def _who_may_run(job: RecordedJob) -> tuple[Submission | None, dict[ProcessorId, ProcessorEpoch]]:
    epochs = EpochManager(job.view.stream)
    return epochs.read_submission(), epochs.read_processor_epochs()


def _unstopped(job: RecordedJob) -> list[Incarnation]:
    """The incarnations with a permit to write, and no record of their stop."""
    stopped = StopManager(job.view.stream).read()
    return [i for i in permitted_incarnations(job.view.stream) if i not in stopped]
