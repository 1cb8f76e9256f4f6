"""The part of a version's JobModel that one processor's child needs.

PURE. Samza's JSON does not name the active task of a standby: a reader finds the task that the
standby mirrors. So the part also has these active tasks, in their own containers.
"""

from collections.abc import Collection
from dataclasses import replace

from homeport.config.config import Config
from homeport.job_coordinator.model.ids import ProcessorId
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskMode
from homeport.job_coordinator.standalone.plan import Standby


def model_of_child(
    config: Config, model: JobModel, processor_id: ProcessorId, standbys: Collection[Standby]
) -> JobModel:
    """Return the processor's active tasks and these standbys, with ``config``."""
    names = {standby.name for standby in standbys}
    wanted = {standby.task for standby in standbys}
    containers = {}
    for id_, container in model.containers.items():
        tasks = {
            name: task
            for name, task in container.tasks.items()
            if (id_ == processor_id and (task.task_mode is TaskMode.ACTIVE or name in names))
            or name in wanted
        }
        if tasks:
            containers[id_] = replace(container, tasks=tasks)
    containers.setdefault(processor_id, ContainerModel(processor_id, {}))
    return JobModel(config, containers)


def part_of(model: JobModel, processor_id: ProcessorId, mode: TaskMode) -> JobModel | None:
    """Return the processor with its tasks of this mode alone; None where it has none."""
    own = model.containers.get(processor_id, ContainerModel(processor_id, {}))
    found = {n: t for n, t in own.tasks.items() if t.task_mode is mode}
    if not found:
        return None
    # Each standby names its own active task; this field only marks the container as standby.
    active = processor_id if mode is TaskMode.STANDBY else None
    part = replace(own, tasks=found, active_processor=active)
    return JobModel(model.config, {processor_id: part})
