"""Sets a checkpoint by hand: what must hold before, and how it is written.

A container reads its task's checkpoint once, at its start, and writes from then on. A record that
is written beside a running container would be lost with its next transaction, or contradict its
state. So the job must not run, and each incarnation that may still write is fenced by its id: one
that lives on ends, and its successor reads the new record. Afterwards stream and ZooKeeper are read
again: an incarnation permitted meanwhile may have read the former record, which the command
reports.

Permits have the incarnations that may write on YARN, the newest version those under ZooKeeper, and
reports of fences those of run-local, whose folder no tool finds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from homeport.cli.host.job_on_host import RecordedJob
from homeport.cli.job.job_view import running_job
from homeport.config.errors import ConfigError, HomeportError, UnavailableError
from homeport.config.settings.standalone_section import require_no_migration
from homeport.container.kafka.checkpoints import Checkpoint, write_checkpoint
from homeport.container.kafka.log_reader import LogReader
from homeport.container.kafka.transactional_producer import fence
from homeport.container.progress.checkpoint import Change, CheckpointKey
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    ProcessorEpoch,
    Submission,
)
from homeport.job_coordinator.metadata.lifecycle import StopManager
from homeport.job_coordinator.metadata.state_reset import permitted_incarnations
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.incarnation import Incarnation, transactional_id
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel
from homeport.job_coordinator.standalone.handover import (
    last_plan,
    require_known,
    require_none_registered,
    to_fence,
)
from homeport.job_coordinator.zookeeper.handover_nodes import Kept


@dataclass(frozen=True, slots=True)
class Place:
    """Where a task is to go on, as the operator gave it; all none: at the end."""

    offset: int | None
    is_earliest: bool
    at_ms: int | None

    @staticmethod
    def of(*, offset: int | None, earliest: bool, latest: bool, at_ms: int | None) -> Place:
        """Return what the options name; ConfigError where there is not exactly one."""
        if (offset is not None) + earliest + latest + (at_ms is not None) != 1:
            rule = "exactly one of --offset, --earliest, --latest and --timestamp says where"
            raise ConfigError("--offset", None if offset is None else str(offset), rule, "give one")
        return Place(offset, earliest, at_ms)


def require_not_running(job: RecordedJob) -> None:
    """Require that the job neither runs nor is being submitted, by its AM and its stream."""
    require_no_migration(job.view.recorded_config())
    name = job.job.name
    if job.view.running is not None:
        rule = f"the job runs ({job.view.running.application}), and would go on from where it is"
        remedy = "stop it: on YARN by run-job --operation=kill, standalone all its processors"
        raise ConfigError("job.name", name, rule, remedy)
    _tree(job)
    last = EpochManager(job.view.stream).read_submission()
    if last is not None and last.application is None:
        rule = f"submission {last.number} of the job is under way"
        remedy = "wait until run-job has returned, or run it once more, and stop the job"
        raise ConfigError("job.name", name, rule, remedy)


def require_no_state(job: RecordedJob, task: TaskModel, readers: Mapping[str, LogReader]) -> None:
    """Require that no changelog of the task ever had a record: its state would stay as it is."""
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
    """Return the next offset to read; ConfigError where the partition has no such offset."""
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
        rule = f"the partition has offsets {ends.oldest} to {ends.head}, its end"
        remedy = "name one of them, or use --earliest or --latest"
        raise ConfigError("--offset", str(place.offset), rule, remedy)
    return place.offset


def changed(before: Checkpoint, ssp: SystemStreamPartition, next_offset: int) -> Checkpoint:
    """PURE: return ``before``, but ``ssp`` goes on at ``next_offset``, which is recorded.

    A change that no container has seen stays recorded, with the offset before the first of them.
    """
    unseen = {change.ssp: change for change in before.changes}
    processed = before.offsets.get(ssp)
    first = None if processed is None else processed + 1
    if ssp in unseen:
        first = unseen[ssp].first
    changes = {**unseen, ssp: Change(ssp, first, next_offset)}
    return Checkpoint({**before.offsets, ssp: next_offset - 1}, tuple(changes.values()))


@dataclass(frozen=True, slots=True)
class _Runs:
    """The evidence that an incarnation may write: in the stream, and in ZooKeeper's nodes."""

    submission: Submission | None
    epochs: Mapping[ProcessorId, ProcessorEpoch]
    reports: Mapping[ProcessorId, FenceReport]
    tree: Kept | None


def write(job: RecordedJob, task: TaskModel, wanted: Checkpoint) -> None:
    """Let the task's next incarnation go on after ``wanted``, whose changes are recorded.

    UnavailableError: Kafka, or ZooKeeper, did not answer; or the job was started meanwhile.
    """
    before = _runs(job)
    system = job.systems()[job.task.checkpoint_system]
    for incarnation in _unstopped(job, before):
        fence(system, transactional_id(job.job.name, job.job.id, incarnation))
    key = CheckpointKey(job.job.ssp_grouper_factory, task.task_name)
    topic = job.task.checkpoint_topic
    write_checkpoint(system, topic, key, wanted.offsets, wanted.changes)
    try:
        has_begun = _has_begun(job, before)
    except HomeportError as error:
        raise UnavailableError(f"{error}; whether {_STARTED}: {_REMEDY}") from None
    if has_begun:
        raise UnavailableError(f"{_STARTED}: {_REMEDY}")


_STARTED = "the job was started while its checkpoint was set, and may have read the one before"
_REMEDY = "stop it, on YARN by run-job --operation=kill, else its processors, and set it again"


def _has_begun(job: RecordedJob, before: _Runs) -> bool:
    job.view.stream.catch_up()
    return _runs(job) != before or running_job(job.view.given, job.view.stream) is not None


def _runs(job: RecordedJob) -> _Runs:
    epochs = EpochManager(job.view.stream)
    return _Runs(
        epochs.read_submission(), epochs.read_processor_epochs(), epochs.read_fenced(), _tree(job)
    )


def _tree(job: RecordedJob) -> Kept | None:
    """Return ZooKeeper's nodes of a job that does not run; None: it runs elsewhere."""
    with job.tree() as nodes:
        if nodes is None:
            return None
        kept = nodes.read()
    require_none_registered(job.job.name, kept.processors)
    highest = EpochManager(job.view.stream).highest()
    if highest:
        require_known(kept.plan, highest)
    return kept


def _unstopped(job: RecordedJob, runs: _Runs) -> list[Incarnation]:
    stream = job.view.stream
    found = {*permitted_incarnations(stream)} - StopManager(stream).read().keys()
    if runs.tree is not None and runs.tree.plan is not None:
        found |= {*to_fence(last_plan(runs.tree.plan, runs.tree.fenced))}
    elif job.is_local:
        found |= {Incarnation(p, report.epoch) for p, report in runs.reports.items()}
    return sorted(found)
