"""The JobModel in the coordinator stream: reads it from records, and makes the records of one."""

from homeport.config.config import Config
from homeport.config.settings.sections import JobConfig, StandbyConfig, TaskConfig
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.coordinator_stream.message import CoordinatorStreamMessage
from homeport.job_coordinator.metadata.state_facts import ChangelogPartitionManager
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
    TaskMode,
    TaskModel,
    mirrored,
)


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
    counts = model.partition_counts()
    # Of broadcast inputs a model knows single partitions only.
    inputs = {s: counts[s] for s in TaskConfig.of(model.config).inputs if s in counts}
    owners = {name: p for p, c in model.containers.items() for name in c.tasks}
    every = {name: task for c in model.containers.values() for name, task in c.tasks.items()}
    standbys = every.keys() - model.active_tasks().keys()
    recorded = every if has_standby_changelogs else model.active_tasks()
    return [
        *TaskAssignmentManager(stream).messages(owners),
        *TaskModeManager(stream).messages(model),
        *TaskPartitionManager(stream).messages(model),
        *ChangelogPartitionManager(stream).messages(
            {name: task.changelog_partition for name, task in recorded.items()}, standbys
        ),
        *InputPartitionManager(stream).messages(inputs),
    ]
