"""The JobModel before tasks change their container: their standbys are where they will go.

PURE. Such a version changes no owner of a task. It adds the containers that are to come, without
active tasks, so that they get their hosts and processes. And it adds one standby of each task that
moves, in its next container, beside the standbys that the task has.

A host that has the files of a task, in whichever container, gets no second copy (safety S5).
A container without a host gets no standby: its host may become one that has the task.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from homeport.config.settings.sections import JobConfig, StandbyConfig
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.grouper.standby_models import standby_name, standby_task
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskMode, TaskModel


@dataclass(frozen=True)
class Goal:
    """Where tasks will go: {task: its next container}, and all containers there are then."""

    to: Mapping[TaskName, ProcessorId]
    containers: AbstractSet[ProcessorId]

    @classmethod
    def between(cls, before: JobModel, after: JobModel) -> Self:
        """Return the goal of the tasks that both models have, with different owners."""
        owners = before.owners
        moved = {t: p for t, p in after.owners.items() if owners.get(t, p) != p}
        return cls(moved, frozenset(after.containers))

    @classmethod
    def none(cls, model: JobModel) -> Self:
        """Return the goal in which no task moves, and none is left that came for such a move."""
        count = JobConfig.of(model.config).container_count
        own = frozenset(ProcessorId(str(number)) for number in range(count))
        return cls({}, own & model.containers.keys())


def with_read_ahead(model: JobModel, goal: Goal, places: Places) -> JobModel:
    """Return the model with standbys of the tasks that move, and without those of earlier goals."""
    replicas, active = StandbyConfig.of(model.config).replication_count, model.active_tasks()
    tasks = {
        p: {n: t for n, t in c.tasks.items() if _lasts(t, replicas)}
        for p, c in model.containers.items()
    }
    there = {p: own for p, own in tasks.items() if own or p in goal.containers}
    there.update((p, {}) for p in goal.containers - there.keys())
    kept = _kept(there, goal)
    for task, to in goal.to.items():
        if task not in active or not _may_read(to, kept[task], places):
            continue
        standby = standby_task(active[task], replicas)
        if standby.task_name not in active:
            there[to][standby.task_name] = standby
    return JobModel(model.config, _containers(there))


def left_to_read(
    model: JobModel, goal: Goal, places: Places, lags: Mapping[TaskName, int]
) -> dict[TaskName, int | None]:
    """Return what is left to read of each task that moves, in records; None: not known yet.

    A task whose owner has no host is left out, as no one works on it meanwhile. So is one whose
    files another container of the host has.

    Shapes: ``lags`` {standby: records that it lacks, by the last report}.
    """
    kept = _kept({p: c.tasks for p, c in model.containers.items()}, goal)
    found: dict[TaskName, int | None] = {}
    for task, to in goal.to.items():
        owner = model.owners.get(task, to)
        if owner == to or owner not in places.hosts:
            continue
        if to in kept[task]:
            found[task] = lags.get(kept[task][to])
        elif to not in places.hosts or _may_read(to, kept[task], places):
            found[task] = None
    return found


def files_on(host: Host | None, model: JobModel, places: Places) -> frozenset[TaskName]:
    """Return the tasks whose files containers of this host have."""
    own = (c for p, c in model.containers.items() if host and places.hosts.get(p) == host)
    return frozenset(task.state_of for container in own for task in container.tasks.values())


def _may_read(at: ProcessorId, kept: Iterable[ProcessorId], places: Places) -> bool:
    host = places.hosts.get(at)
    return host is not None and all(places.hosts.get(p) != host for p in kept)


def _lasts(task: TaskModel, replicas: int) -> bool:
    """Return whether the task is no standby that reads ahead."""
    if task.task_mode is TaskMode.ACTIVE:
        return True
    return any(task.task_name == standby_name(task.state_of, n) for n in range(replicas))


def _kept(
    tasks: Mapping[ProcessorId, Mapping[TaskName, TaskModel]], goal: Goal
) -> defaultdict[TaskName, dict[ProcessorId, TaskName]]:
    """Return {task that moves: {each container that has its files: under which name}}."""
    found: defaultdict[TaskName, dict[ProcessorId, TaskName]] = defaultdict(dict)
    for processor_id, own in tasks.items():
        for name, task in own.items():
            state_of = task.active_task or name
            if state_of in goal.to:
                found[state_of][processor_id] = name
    return found


def _containers(
    tasks: Mapping[ProcessorId, Mapping[TaskName, TaskModel]],
) -> dict[ProcessorId, ContainerModel]:
    return {p: ContainerModel(p, {n: tasks[p][n] for n in sorted(tasks[p])}) for p in sorted(tasks)}
