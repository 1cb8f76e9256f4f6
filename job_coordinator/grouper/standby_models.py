"""Standby containers: replicas of active ones that only follow the changelogs.

PURE. The ids are Samza's, for people and for its tools. The model's fields have the active one.

Source: STANDBY; Samza 1.8, TaskNameGrouperProxy and StandbyTaskUtil.
"""

from collections.abc import Collection, Mapping

from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, TaskMode, TaskModel


def with_standbys(
    active: Mapping[ProcessorId, ContainerModel], replicas: int
) -> dict[ProcessorId, ContainerModel]:
    """Return the active containers, and ``replicas`` standby containers of each.

    Container ``<id>-<n>`` holds the tasks ``Standby-<task>-<n>``, n from 0, with the inputs and the
    changelog partition of the active ones.

    ConfigError: an active container or task has an id that a standby would get.
    """
    containers = dict(active)
    tasks = {name for container in active.values() for name in container.tasks}
    for container in active.values():
        for replica in range(replicas):
            standby = _standby(container, replica)
            if standby.processor_id in active:
                raise clash("container", standby.processor_id)
            for name in standby.tasks:
                if name in tasks:
                    raise clash("task", name)
            containers[standby.processor_id] = standby
    return containers


def _standby(
    active: ContainerModel, replica: int | str, without: Collection[TaskName] = ()
) -> ContainerModel:
    own = (task for name, task in active.tasks.items() if name not in without)
    tasks = (standby_task(task, replica) for task in own if task.task_mode is TaskMode.ACTIVE)
    return ContainerModel(
        ProcessorId(f"{active.processor_id}-{replica}"),
        {task.task_name: task for task in sorted(tasks, key=lambda task: task.task_name)},
        active.processor_id,
    )


_TEMPORARY = "warm"


def temporary_id(active: ProcessorId) -> ProcessorId:
    """Return the id of the standby that the container ``active`` has during one warm move."""
    return ProcessorId(f"{active}-{_TEMPORARY}")


def temporary_standby(active: ContainerModel, without: Collection[TaskName] = ()) -> ContainerModel:
    """Return the standby of one warm move: no JobModel has it, and its tasks keep the state.

    ``without``: tasks whose files are there already.
    """
    return _standby(active, _TEMPORARY, without)


def standby_name(active: TaskName, replica: int | str) -> TaskName:
    """Return the name of the task's replica with this number, from 0."""
    return TaskName(f"Standby-{active}-{replica}")


def standby_task(active: TaskModel, replica: int | str) -> TaskModel:
    """Return the replica of the task with this number, from 0."""
    return TaskModel(
        standby_name(active.task_name, replica),
        active.system_stream_partitions,
        active.changelog_partition,
        TaskMode.STANDBY,
        active.task_name,
    )


def clash(what: str, name: str) -> ConfigError:
    """Return an error where an active container or task has the id of a standby."""
    rule = f"an active {what} has the id {name!r}, which one of its standbys is to have"
    remedy = f"give the {what} another id, or turn hot standby off"
    return keys.JOB_HOT_STANDBY_ENABLED.error("true", rule, remedy)
