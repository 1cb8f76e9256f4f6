"""Publishes a JobModel: writes it into the coordinator stream, in one transaction.

A new version overtakes each container that runs with other tasks, inputs or changelog partitions.
The same transaction raises their epochs (safety I2), and lists for each successor every incarnation
that may have owned one of its tasks (safety I1). Other containers run on under the version that
their permits name. The owners are read from the stream, so that a new attempt, which has no earlier
model, publishes by the same rules.

Each listed incarnation is overtaken in the record of its own processor, too. So no list fences an
incarnation that may go on, and one that any report calls fenced is fenced for good.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from homeport.appmaster.allocation.protocol.events import (
    FailoverRecord,
    FailoverStep,
    JobModelPublished,
)
from homeport.config.settings.sections import StandbyConfig
from homeport.job_coordinator.coordinator_stream import message as wire
from homeport.job_coordinator.coordinator_stream.coordinator_stream import (
    CoordinatorStream,
    EmptyCoordinatorStream,
)
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.epochs import (
    EpochManager,
    FenceReport,
    JobModelVersion,
    ProcessorEpoch,
    job_model_version_message,
    processor_epoch_message,
)
from homeport.job_coordinator.metadata.lifecycle import FailoverManager, RetryManager, StopManager
from homeport.job_coordinator.metadata.recorded_model import ModelRecords
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
from homeport.job_coordinator.metadata.task_assignment import (
    LocalityManager,
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel, TaskMode, TaskModel

NEVER = ProcessorEpoch(0, 0)
"""For a processor without a record."""

_OF_OWNERS = frozenset(
    {MessageType.SET_PROCESSOR_EPOCH, MessageType.SET_FENCED, MessageType.SET_EPOCH_FLOOR}
)
_NO_PARTITION = -1
_STEPS = {step.value: step for step in FailoverStep}

log = logging.getLogger("driver")


def version_of(model: JobModel, stream: CoordinatorStream) -> JobModelVersion:
    """Return the version that ``model`` has, or gets when it is published next."""
    before = EpochManager(stream).read_job_model_version()
    digest = hashlib.sha256(encode_job_model(model, mask_secrets=False)).hexdigest()
    if before is not None and before.digest == digest:
        return before
    return JobModelVersion(before.version + 1 if before else 1, digest)


def is_in_force(model: JobModel, stream: CoordinatorStream) -> bool:
    """Return whether ``model`` is the one that was published last."""
    return version_of(model, stream) == EpochManager(stream).read_job_model_version()


def publish(
    model: JobModel,
    stream: CoordinatorStream,
    host_named: Callable[[Host], Host],
    *,
    restart_all: bool = False,
    in_force: JobModel | None = None,
    records: ModelRecords | None = None,
    also: Sequence[CoordinatorStreamMessage] = (),
    is_by_itself: bool = False,
) -> JobModelPublished:
    """Write the JobModel into the stream in one transaction; return the allocator's event.

    One that the stream has changes nothing, and gives the same event: it may be published again.

    Args:
        model: a sound JobModel.
        stream: read to its head.
        host_named: returns the host that a locality value means.
        restart_all: whether a new version affects every processor with an active task, because of a
            key that only a start reads. Standbys read it when they start next.
        in_force: the model that this one follows, if at hand. Its owners are those that run, even
            if a tool has changed the stream's records of tasks.
        records: what makes those of tasks and inputs, of each model that is published here.
        also: more records of the same transaction.
        is_by_itself: as the event has it.
    """
    version = version_of(model, stream)
    is_new = version != EpochManager(stream).read_job_model_version()
    change = _change_to(model, stream, in_force, is_new=is_new, restart_all=restart_all)
    made = records or ModelRecords(stream)
    standbys = {p: c.active_processor for p, c in model.containers.items() if c.active_processor}
    failovers = _failovers(stream, standbys, model.containers.keys() - standbys.keys())
    stream.write(
        [
            *(processor_epoch_message(p, record) for p, record in change.raised(version.version)),
            *change.localities_gone(),
            *_other_failovers_end(stream, failovers),
            *made.messages(model),
            *_messages_of_version(model, version, stream, is_new=is_new, is_by_itself=is_by_itself),
            *also,
        ]
    )
    owners = change.owners.after(stream.catch_up())
    made.written(model)
    homes = LocalityManager(stream).read_processors()
    event = announcement(
        version.version,
        {p: host_named(homes[p]) if p in homes else None for p in model.containers},
        owners,
        change.gainers() if is_new else owners.perhaps_gainers(),
        StopManager(stream).read(),
    )
    return replace(
        event,
        standbys=standbys,
        failovers=failovers,
        is_cooperative=not restart_all,
        is_by_itself=is_by_itself,
    )


def _messages_of_version(
    model: JobModel,
    version: JobModelVersion,
    stream: CoordinatorStream,
    *,
    is_new: bool,
    is_by_itself: bool,
) -> Iterator[CoordinatorStreamMessage]:
    if is_new and not is_by_itself:
        # A new version forgives failures, as the allocator does.
        yield from RetryManager(stream).messages_to_forget(model.containers)
    if is_new:
        yield job_model_version_message(version)


def _other_failovers_end(
    stream: CoordinatorStream, kept: Collection[ProcessorId]
) -> Iterator[CoordinatorStreamMessage]:
    for active in sorted(stream.latest(MessageType.SET_FAILOVER)):
        if active not in kept:
            yield FailoverManager.end(ProcessorId(active))


def _failovers(
    stream: CoordinatorStream,
    standbys: Mapping[ProcessorId, ProcessorId],
    actives: Collection[ProcessorId],
) -> dict[ProcessorId, FailoverRecord]:
    """Return {active: its recorded failover}, where this model has its standby.

    Other records end: hot standby is off, or has fewer replicas.
    """
    found = {}
    for active, recorded in FailoverManager(stream).read().items():
        step, standby = _STEPS.get(recorded.step), recorded.standby
        is_own = standby is None or standbys.get(standby) == active
        if step is None:
            log.warning("failover of %s: unknown step %r", active, recorded.step)
        elif active in actives and is_own:
            used = tuple(s for s in recorded.used if standbys.get(s) == active)
            found[active] = FailoverRecord(recorded.epoch, standby, recorded.host, step, used)
    return found


def announcement(
    version: int,
    processors: Mapping[ProcessorId, Host | None],
    owners: Owners,
    gainers: frozenset[ProcessorId] = frozenset(),
    stopped: Collection[Incarnation] = (),
) -> JobModelPublished:
    """Return the allocator's event for a version that is in the stream.

    Shapes: ``processors`` {processor of the model: its home}; ``stopped``: the recorded stops.
    """
    permitted = {p: record.permitted for p, record in owners.records.items() if record.permitted}
    return JobModelPublished(
        version=version,
        processors=processors,
        epochs={p: epoch for p, epoch in permitted.items() if p in processors},
        floors={p: floor for p in processors if (floor := owners.floor_of(p))},
        unfenced={p: owners.unfenced(p) for p in processors},
        retired={
            p: epoch
            for p, epoch in permitted.items()
            if p not in processors and Incarnation(p, epoch) not in stopped
        },
        gainers=gainers,
        former={p: epoch for p, epoch in permitted.items() if p not in processors},
    )


@dataclass(frozen=True)
class Owners:
    """Which incarnations were permitted to own tasks, and which of them are known to be fenced.

    No epoch is used twice, so a report holds for good. ``floor``: the job has run standalone up to
    this number, which is below every permit.

    Shapes: ``records`` {processor: its last epoch}; ``reports`` {processor: its last report}.
    """

    records: Mapping[ProcessorId, ProcessorEpoch]
    reports: Mapping[ProcessorId, FenceReport]
    floor: int = 0

    @classmethod
    def read(cls, stream: CoordinatorStream) -> Owners:
        """Return the owners as of the stream's last catch-up."""
        epochs = EpochManager(stream)
        return cls(epochs.read_processor_epochs(), epochs.read_fenced(), epochs.read_floor())

    def after(self, news: Iterable[CoordinatorStreamMessage]) -> Owners:
        """Return the owners after these records of the stream too.

        What is deleted stays: an incarnation that was permitted, or fenced, has been so for good.
        """
        read = EmptyCoordinatorStream()
        for message in news:
            if message.type in _OF_OWNERS:
                read.apply(message)
        newer = self.read(read)
        return Owners(
            {**self.records, **newer.records},
            {**self.reports, **newer.reports},
            max(self.floor, newer.floor),
        )

    def floor_of(self, processor_id: ProcessorId) -> int:
        """Return the epoch above which the processor's next permit is; 0: it begins with 1.

        It covers each epoch that a report names (safety A6).
        """
        record = self.records.get(processor_id, NEVER)
        return max(self.floor, record.epoch, self._named.get(processor_id, 0))

    @cached_property
    def _named(self) -> dict[ProcessorId, int]:
        """The highest epoch of each processor that a report names."""
        found: dict[ProcessorId, int] = {}
        for fenced in self._fenced:
            found[fenced.processor_id] = max(fenced.epoch, found.get(fenced.processor_id, 0))
        return found

    @cached_property
    def _fenced(self) -> frozenset[Incarnation]:
        return frozenset(i for report in self.reports.values() for i in report.fenced)

    def unfenced(self, processor_id: ProcessorId) -> tuple[Incarnation, ...]:
        """Return every incarnation that the processor's next one must fence, in order (safety I1).

        An incarnation that reports has fenced the list of its permit (safety I3).
        """
        record = self.records.get(processor_id, NEVER)
        return tuple(sorted(self._listed(processor_id, record) | self._last(processor_id, record)))

    @cached_property
    def overtaken(self) -> frozenset[Incarnation]:
        """All incarnations that may still write although they have a successor.

        Among them are the former owners of each task without an owner.
        """
        return frozenset().union(*(self._listed(p, record) for p, record in self.records.items()))

    def perhaps_gainers(self) -> frozenset[ProcessorId]:
        """Return the processors that the version in force changed: they may have gained a task."""
        return frozenset(p for p, record in self.records.items() if record.is_raised)

    def _listed(self, processor_id: ProcessorId, record: ProcessorEpoch) -> frozenset[Incarnation]:
        report = self.reports.get(processor_id)
        is_permit = 0 < record.permitted == record.epoch
        if is_permit and report is not None and report.epoch == record.epoch:
            return frozenset()
        return frozenset(record.fence) - self._fenced

    @staticmethod
    def _last(processor_id: ProcessorId, record: ProcessorEpoch) -> frozenset[Incarnation]:
        """Return the last permitted one; if its epoch is raised, the list has it."""
        if record.is_raised or not record.permitted:
            return frozenset()
        return frozenset({Incarnation(processor_id, record.permitted)})


_Tasks = Mapping[ProcessorId, frozenset[TaskModel]]


@dataclass(frozen=True)
class TaskChange:
    """What changes: the tasks of each processor before and after, and the owners before.

    ``is_new``: the version is another one. ``restart_all``: see ``publish``. ``is_mixed``: whether
    containers have standby tasks beside active ones. There only active tasks count: a standby comes
    and goes within an incarnation.
    """

    before: _Tasks
    after: _Tasks
    owners: Owners
    is_new: bool
    restart_all: bool
    is_mixed: bool = False

    @cached_property
    def _owner_before(self) -> dict[TaskName, ProcessorId]:
        return {task.task_name: p for p, tasks in self.before.items() for task in tasks}

    @cached_property
    def affected(self) -> frozenset[ProcessorId]:
        """The processors whose incarnation is overtaken, retired ones, too."""
        if not self.is_new:
            return frozenset()
        every = frozenset({*self.before, *self.after})
        restarted = self._actives if self.restart_all else frozenset()
        return frozenset(p for p in every if p in restarted or self._differs(p))

    @cached_property
    def _actives(self) -> frozenset[ProcessorId]:
        """The processors with an active task.

        For a changed key a standby never stops with its active: only the standby could take over.
        """
        return frozenset(p for p, tasks in self.after.items() if any(map(_is_active, tasks)))

    def _differs(self, processor_id: ProcessorId) -> bool:
        after = self.after.get(processor_id)
        return after is None or self._counted(self.before, processor_id) != self._counted(
            self.after, processor_id
        )

    def _counted(self, tasks: _Tasks, processor_id: ProcessorId) -> frozenset[TaskModel]:
        """Return the processor's tasks whose change ends an incarnation."""
        own = tasks.get(processor_id, frozenset())
        return frozenset(t for t in own if _is_active(t)) if self.is_mixed else own

    def gainers(self) -> frozenset[ProcessorId]:
        """Return the processors with a task or input that they did not have."""
        return frozenset(p for p in self.affected & self.after.keys() if self._has_gained(p))

    def _has_gained(self, processor_id: ProcessorId) -> bool:
        had = {t.task_name: t for t in self._counted(self.before, processor_id)}
        return any(
            task.task_name not in had
            or set(task.system_stream_partitions)
            - set(had[task.task_name].system_stream_partitions)
            for task in self._counted(self.after, processor_id)
        )

    def raised(self, version: int) -> Iterator[tuple[ProcessorId, ProcessorEpoch]]:
        """Yield higher epochs, which no container uses, with lists for the next permits.

        By these an incarnation that has its permit and has not begun yet finds that it is
        overtaken, also if its processor is retired (safety I2). A processor that never had a permit
        only gets the list.
        """
        for processor_id in sorted(self.affected):
            record = self.owners.records.get(processor_id, NEVER)
            fence = self._fence(processor_id)
            if record.permitted:
                raised = replace(record, epoch=record.epoch + 1, model_version=version, fence=fence)
                yield processor_id, raised
            elif fence != record.fence:
                yield processor_id, ProcessorEpoch(0, version, fence)

    def _fence(self, processor_id: ProcessorId) -> tuple[Incarnation, ...]:
        """Return the unfenced incarnations of it and of its tasks' former owners (safety I1).

        If the model before did not have a task, its former owner is unknown: any incarnation that
        may still write.
        """
        found = set(self.owners.unfenced(processor_id))
        names = (task.task_name for task in self._counted(self.after, processor_id))
        for owner in {self._owner_before.get(name) for name in names} - {processor_id}:
            found |= self.owners.overtaken if owner is None else set(self.owners.unfenced(owner))
        return tuple(sorted(found))

    def localities_gone(self) -> Iterator[CoordinatorStreamMessage]:
        """Yield tombstones for the localities of processors and tasks that the model lacks.

        Where containers are mixed, also for those of tasks that another container of before gets:
        else they could outvote its own tasks, and give it a lost host as its home.
        """
        for processor_id in sorted(self.before.keys() - self.after.keys()):
            yield wire.tombstone(MessageType.SET_CONTAINER_HOST, processor_id)
        kept = {t.task_name for p, tasks in self.after.items() for t in tasks if self._stays(t, p)}
        for name in sorted(self._owner_before.keys() - kept):
            yield wire.tombstone(MessageType.SET_TASK_HOST, name)

    def _stays(self, task: TaskModel, processor_id: ProcessorId) -> bool:
        # A container without a task has no record of tasks.
        has_run = self.owners.records.get(processor_id, NEVER).permitted
        was_there = processor_id in self.before or has_run
        is_own = self._owner_before.get(task.task_name) == processor_id
        return is_own or not (self.is_mixed and was_there)


def _is_active(task: TaskModel) -> bool:
    return task.task_mode is TaskMode.ACTIVE


def _change_to(
    model: JobModel,
    stream: CoordinatorStream,
    in_force: JobModel | None,
    *,
    is_new: bool,
    restart_all: bool,
) -> TaskChange:
    """Return what the version changes; of tasks that stay where they are it has none or some."""
    before: _Tasks = {}
    after: _Tasks = {}
    is_mixed = StandbyConfig.of(model.config).is_mixed
    if is_new:
        was = in_force
        if in_force is not None and not restart_all:
            was, model = in_force.unlike(model), model.unlike(in_force)
        before = _tasks_before(stream) if was is None else _tasks_of(was)
        after = _tasks_of(model)
    return TaskChange(before, after, Owners.read(stream), is_new, restart_all, is_mixed)


def _tasks_of(model: JobModel) -> _Tasks:
    """Return tasks without the names of active ones, which no record has."""
    return {
        p: frozenset(
            TaskModel(t.task_name, t.system_stream_partitions, t.changelog_partition, t.task_mode)
            if t.active_task
            else t
            for t in c.tasks.values()
        )
        for p, c in model.containers.items()
    }


def _tasks_before(stream: CoordinatorStream) -> _Tasks:
    changelogs = ChangelogPartitionManager(stream).read()
    modes = TaskModeManager(stream).read()
    inputs = TaskPartitionManager(stream).read_inputs()
    found: dict[ProcessorId, set[TaskModel]] = {}
    for name, processor_id in TaskAssignmentManager(stream).read().items():
        task = TaskModel(
            name,
            tuple(sorted(inputs.get(name, ()))),
            changelogs.get(name, _NO_PARTITION),
            modes.get(name, TaskMode.ACTIVE),
        )
        found.setdefault(processor_id, set()).add(task)
    return {p: frozenset(tasks) for p, tasks in found.items()}
