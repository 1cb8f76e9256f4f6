"""Finds the first fault of a JobModel.

PURE. It does not depend on how a JobModel is calculated, so it judges every grouper, the job's own
too. It judges each JobModel before that is published: a fault is a bug of the grouper, and no error
of the user.
"""

from collections.abc import Iterator, Mapping

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.java_names import ALL_SSP_TO_SINGLE_TASK, GROUP_BY_PARTITION, Kind, short_name
from homeport.config.settings.sections import StandbyConfig, TaskConfig
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.grouper.ssp_grouper import broadcast_partitions
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import (
    ContainerModel,
    JobModel,
    SystemStreamPartition,
    TaskMode,
    TaskModel,
)


def first_fault(model: JobModel) -> str | None:
    """Return one sentence about the first fault of ``model``, None where it has none.

    What holds of a model without fault: there is a container, and each has a task, but for mixed
    ones; keys and names agree; a task name occurs once; an active task has an input; an input
    partition belongs to one active task, or, when it is for all, to all; active tasks do not share
    a changelog partition.
    A standby task has the inputs and the changelog partition of an active one, which is the one it
    names, and shares its container neither with that nor with another replica of that; a standby
    container has standbys of one active container's tasks only.
    """
    return next(_faults(model), None)


def uneven_inputs(config: Config, counts: Mapping[SystemStream, int]) -> str | None:
    """Return a warning where counts differ, so that tasks cannot join by key; None: they can.

    Shapes: ``counts`` {input: how many partitions it has}. Broadcast inputs are read by all tasks.
    """
    name = keys.JOB_SSP_GROUPER_FACTORY.read(config) or ""
    if short_name(Kind.SSP_GROUPER, name) != GROUP_BY_PARTITION:
        return None
    found = {str(s): counts[s] for s in TaskConfig.of(config).inputs if s in counts}
    if len(set(found.values())) <= 1:
        return None
    listed = ", ".join(f"{stream} has {count}" for stream, count in found.items())
    return (
        f"{keys.TASK_INPUTS.name}: the inputs have different numbers of partitions ({listed}), and "
        "a task has the same partition of each: records of one key come to different tasks, each "
        "with its own part of a store; where they belong together give the topics one number"
    )


def _faults(model: JobModel) -> Iterator[str]:
    if not model.containers:
        yield "the job has no container"
    may_be_empty = StandbyConfig.of(model.config).is_mixed
    for key in sorted(model.containers):
        if not (may_be_empty or model.containers[key].tasks):
            yield f"container {key!r} has no task"
        yield from _container_faults(key, model.containers[key])
    yield from _duplicate_task_names(model)
    active = [task for task in _tasks(model) if task.task_mode is TaskMode.ACTIVE]
    yield from _input_faults(active, _for_all(model.config, active))
    yield from _changelog_faults(active)
    if any(_has_standbys(container) for container in model.containers.values()):
        yield from _standby_faults(model)


def _for_all(config: Config, active: list[TaskModel]) -> frozenset[SystemStreamPartition]:
    """Return the partitions that every task reads: broadcast ones, or all with such a grouper."""
    name = keys.JOB_SSP_GROUPER_FACTORY.read(config) or ""
    if short_name(Kind.SSP_GROUPER, name) == ALL_SSP_TO_SINGLE_TASK:
        return frozenset(ssp for task in active for ssp in task.system_stream_partitions)
    return broadcast_partitions(config)


def _tasks(model: JobModel) -> Iterator[TaskModel]:
    for key in sorted(model.containers):
        tasks = model.containers[key].tasks
        yield from (tasks[name] for name in sorted(tasks))


def _container_faults(key: ProcessorId, container: ContainerModel) -> Iterator[str]:
    if container.processor_id != key:
        yield f"the container listed as {key!r} says it is {container.processor_id!r}"
    for name in sorted(container.tasks):
        task = container.tasks[name]
        if task.task_name != name:
            yield f"the task listed as {name!r} in container {key!r} says it is {task.task_name!r}"
        if task.changelog_partition < 0:
            yield f"task {name!r} has the changelog partition {task.changelog_partition}"


def _duplicate_task_names(model: JobModel) -> Iterator[str]:
    containers: dict[TaskName, ProcessorId] = {}
    for key in sorted(model.containers):
        for name in sorted(model.containers[key].tasks):
            if name in containers:
                yield f"task {name!r} is in container {containers[name]!r} and in container {key!r}"
            containers[name] = key


def _input_faults(
    active: list[TaskModel], for_all: frozenset[SystemStreamPartition]
) -> Iterator[str]:
    owners: dict[SystemStreamPartition, TaskName] = {}
    for task in active:
        name, own = task.task_name, task.system_stream_partitions
        if not own:
            yield f"task {name!r} has no input"
        for ssp in own:
            known = len(owners)
            owner = owners.setdefault(ssp, name)
            if len(owners) == known:
                if owner == name or ssp not in for_all:
                    yield f"{ssp} is an input of task {owner!r} and of task {name!r}"
                owners[ssp] = name
        for ssp in sorted(for_all.difference(own)) if for_all else ():
            yield f"{ssp} is for every task and is not an input of task {name!r}"


def _changelog_faults(active: list[TaskModel]) -> Iterator[str]:
    owners: dict[int, TaskName] = {}
    for task in active:
        partition = task.changelog_partition
        if partition in owners:
            names = f"{owners[partition]!r} and {task.task_name!r}"
            yield f"tasks {names} share the changelog partition {partition}"
        owners[partition] = task.task_name


def _has_standbys(container: ContainerModel) -> bool:
    return container.role is TaskMode.STANDBY or any(
        task.task_mode is TaskMode.STANDBY for task in container.tasks.values()
    )


def _standby_faults(model: JobModel) -> Iterator[str]:
    # No two active tasks share a changelog partition: that fault comes first.
    actives = {
        task.changelog_partition: (task, key)
        for key, container in model.containers.items()
        for task in container.tasks.values()
        if task.task_mode is TaskMode.ACTIVE
    }
    for key in sorted(model.containers):
        container = model.containers[key]
        owners: dict[TaskName, TaskName] = {}
        for name in sorted(container.tasks):
            task = container.tasks[name]
            if task.task_mode is TaskMode.ACTIVE:
                if container.role is TaskMode.STANDBY:
                    yield f"task {name!r} is active, in the standby container {key!r}"
                continue
            twin, home = actives.get(task.changelog_partition, (None, None))
            if twin is None or twin.mirror != task.mirror:
                yield f"standby task {name!r} has inputs and changelog partition of no active task"
            else:
                active = twin.task_name
                yield from _replica_faults(task, active, container, home)
                if active in owners:
                    yield f"{owners[active]!r} and {name!r}, standbys of one task, share {key!r}"
                owners[active] = name


def _replica_faults(
    task: TaskModel, active: TaskName, container: ContainerModel, home: ProcessorId | None
) -> Iterator[str]:
    name, key = task.task_name, container.processor_id
    if task.active_task not in {None, active}:
        yield f"standby task {name!r} says it is of {task.active_task!r} and mirrors {active!r}"
    if key == home:
        yield f"standby task {name!r} shares container {key!r} with its active task {active!r}"
    if container.role is TaskMode.STANDBY and container.active_processor != home:
        yield (
            f"container {key!r} is a standby of {container.active_processor!r}, and its task "
            f"{name!r} mirrors one of {home!r}"
        )
