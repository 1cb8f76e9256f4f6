"""The JobModel in the coordinator stream: reads it from records, and makes the records of one."""

from collections.abc import Mapping

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, StandbyConfig, TaskConfig
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import (
    CoordinatorStreamMessage,
    MessageType,
)
from homeport.job_coordinator.metadata.state_facts import (
    ChangelogPartitionManager,
    StateFactManager,
)
from homeport.job_coordinator.metadata.task_assignment import (
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.metadata.topics import InputPartitionManager
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStream,
    TaskMode,
    TaskModel,
    mirrored,
)

_Records = dict[str, dict[str, CoordinatorStreamMessage]]
"""{type: {key: record}}"""
_COMPARED = (
    MessageType.SET_TASK_CONTAINER,
    MessageType.SET_TASK_MODE,
    MessageType.SET_TASK_PARTITION,
    MessageType.SET_CHANGELOG,
)
_NOTHING = JobModel(Config({}), {})


def recorded_model(stream: CoordinatorStream, config: Config) -> JobModel:
    """Return the model that was published last, by its records; before the first, no containers.

    A task without a recorded changelog partition has that of the active task with its inputs, else
    0.

    WireError: the record of a changelog partition is damaged.
    """
    modes = TaskModeManager(stream).read()
    changelogs = ChangelogPartitionManager(stream).read()
    inputs = TaskPartitionManager(stream).read_inputs()
    shared = {
        tuple(sorted(inputs[name])): partition
        for name, partition in changelogs.items()
        if name in inputs and modes.get(name) is not TaskMode.STANDBY
    }
    tasks_of: dict[ProcessorId, dict[TaskName, TaskModel]] = {}
    for name, processor_id in sorted(TaskAssignmentManager(stream).read().items()):
        ssps = tuple(sorted(inputs.get(name, ())))
        tasks_of.setdefault(processor_id, {})[name] = TaskModel(
            name, ssps, changelogs.get(name, shared.get(ssps, 0)), modes.get(name, TaskMode.ACTIVE)
        )
    if tasks_of and StandbyConfig.of(config).is_mixed:  # one without a task has no record
        for number in range(JobConfig.of(config).container_count):
            tasks_of.setdefault(ProcessorId(str(number)), {})
    containers = {p: ContainerModel(p, tasks_of[p]) for p in sorted(tasks_of)}
    return JobModel(config, mirrored(config, containers))


def model_messages(
    model: JobModel, stream: CoordinatorStream, *, has_standby_changelogs: bool
) -> list[CoordinatorStreamMessage]:
    """Return the records that bring the stream to the tasks and inputs of ``model``.

    ``has_standby_changelogs``: whether standby tasks have records of their changelog partition.
    """
    return ModelRecords(stream, has_standby_changelogs=has_standby_changelogs).messages(model)


class ModelRecords:
    """Makes the records of the tasks and inputs of one JobModel after the other.

    A model is compared with all that the stream has. A later one is compared with the model before
    alone, as long as the stream has exactly what that one brought: a tool, or a program of Samza's,
    may have written since. A model that was not ``written`` counts for nothing.

    ``has_standby_changelogs``: whether standby tasks have records of their changelog partition.
    """

    def __init__(self, stream: CoordinatorStream, *, has_standby_changelogs: bool = True) -> None:
        self._stream = stream
        self._has_standby_changelogs = has_standby_changelogs
        self._before = _NOTHING
        self._due: _Records = {}
        """What the stream has, unless others have written since."""
        self._read: _Records = {}
        self._made: list[CoordinatorStreamMessage] = []
        self._counts: dict[SystemStream, int] = {}
        self._counts_before: dict[SystemStream, int] = {}

    def messages(self, model: JobModel) -> list[CoordinatorStreamMessage]:
        """Return the records that bring the stream, as read last, to the tasks and inputs."""
        self._read = self._latest()
        is_known = self._read == self._due
        before = self._before if is_known else _NOTHING
        new = model.unlike(before)
        was, now = before.unlike(model).tasks(), new.tasks()
        altered = {n for n in was.keys() | now.keys() if was.get(n) != now.get(n)}
        self._counts = model.partition_counts() if altered else self._counts_before
        ssps = {
            ssp
            for name in altered
            for tasks in (was, now)
            if name in tasks
            for ssp in tasks[name].system_stream_partitions
        }
        # Of broadcast inputs a model knows single partitions only.
        streams = TaskConfig.of(model.config).inputs
        inputs = {s: self._counts[s] for s in streams if s in self._counts}
        owners = {name: p for p, c in new.containers.items() for name in c.tasks}
        gone = was if is_known else None
        self._made = [
            *TaskAssignmentManager(self._stream).messages(owners, gone),
            *TaskModeManager(self._stream).messages(new, gone),
            *TaskPartitionManager(self._stream).messages(model, ssps if is_known else None),
            *self._changelogs({n: task for n, task in now.items() if n in altered}),
            *InputPartitionManager(self._stream).messages(inputs),
        ]
        return self._made

    def _changelogs(
        self, tasks: Mapping[TaskName, TaskModel]
    ) -> tuple[CoordinatorStreamMessage, ...]:
        standbys = {n for n, task in tasks.items() if task.task_mode is TaskMode.STANDBY}
        recorded = tasks.keys() if self._has_standby_changelogs else tasks.keys() - standbys
        if not recorded:
            return ()
        return ChangelogPartitionManager(self._stream).messages(
            {name: tasks[name].changelog_partition for name in recorded}, standbys
        )

    def written(self, model: JobModel) -> None:
        """Note that the stream, which was read since, has what ``messages`` returned last."""
        read = self._latest()
        for made in self._made:
            known = self._read.get(made.type, {})
            known.pop(made.key, None)
            if made.values is not None:
                found = read.get(made.type, {}).get(made.key, made)
                known[made.key] = found if found.values == made.values else made
        self._before, self._due, self._counts_before = model, self._read, self._counts

    def _latest(self) -> _Records:
        found: _Records = {each: dict(self._stream.latest(each)) for each in _COMPARED}
        found[MessageType.SET_STATE_FACT] = StateFactManager(self._stream).partition_records()
        return found
