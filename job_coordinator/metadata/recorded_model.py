"""The JobModel that the coordinator stream's records add up to."""

from __future__ import annotations

from homeport.config.config import Config
from homeport.job_coordinator.coordinator_stream.coordinator_stream import CoordinatorStream
from homeport.job_coordinator.metadata.changelog_partitions import ChangelogPartitionManager
from homeport.job_coordinator.metadata.task_assignment import (
    TaskAssignmentManager,
    TaskModeManager,
    TaskPartitionManager,
)
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    TaskMode,
    TaskModel,
    mirrored,
)


def recorded_model(stream: CoordinatorStream, config: Config) -> JobModel:
    """The model last published, as far as records have it; without containers before the first one.

    A task of which no changelog partition is recorded has that of the active task with its inputs,
    else 0.

    Raises:
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
    containers = {p: ContainerModel(p, tasks_of[p]) for p in sorted(tasks_of)}
    return JobModel(config, mirrored(containers))
