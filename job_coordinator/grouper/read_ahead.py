"""The JobModel before tasks change their container: standbys of them are where they are to go.

PURE. Such a version changes no owner of a task. It adds the containers that are to come, without
active tasks, so that they get their hosts and processes. And it adds one standby of each task that
moves, in its next container, beside the standbys that the task has.

A host that has the files of a task, in whichever container, gets no second copy (safety S5).
A container without a host gets no standby: its host may become one that has the task.
"""

from collections import defaultdict
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Self

from homeport.config.settings.sections import JobConfig, StandbyConfig
from homeport.job_coordinator.grouper.mixed_standbys import Places
from homeport.job_coordinator.grouper.previous_assignment import assigned_by
from homeport.job_coordinator.grouper.standby_models import standby_task
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel, TaskMode, TaskModel


@dataclass(frozen=True)
class Goal:
    """Where tasks are to go: {task: its next container}, and all containers there are then."""

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
    lasting = {standby_task(t, n).task_name for t in active.values() for n in range(replicas)}
    tasks = {
        p: {n: t for n, t in c.tasks.items() if t.task_mode is TaskMode.ACTIVE or n in lasting}
        for p, c in model.containers.items()
    }
    there = {p: own for p, own in tasks.items() if own or p in goal.containers}
    there.update((p, {}) for p in goal.containers - there.keys())
    holders = _holders(JobModel(model.config, _containers(there)), places)
    for task, to in goal.to.items():
        if task not in active or not _may_read(places.hosts.get(to), holders[task]):
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
    assigned, holders = assigned_by(model), _holders(model, places)
    found: dict[TaskName, int | None] = {}
    for task, to in goal.to.items():
        owner = model.owners.get(task, to)
        if owner == to or owner not in places.hosts:
            continue
        kept = [n for n, p in assigned.standbys.get(task, {}).items() if p == to]
        host = places.hosts.get(to)
        if kept:
            found[task] = lags.get(kept[0])
        elif host is None or _may_read(host, holders[task]):
            found[task] = None
    return found


def files_on(host: Host | None, model: JobModel, places: Places) -> frozenset[TaskName]:
    """Return the tasks whose files containers of this host have."""
    own = (c for p, c in model.containers.items() if host and places.hosts.get(p) == host)
    return frozenset(task.state_of for container in own for task in container.tasks.values())


def _may_read(host: Host | None, holders: AbstractSet[Host]) -> bool:
    return host is not None and host not in holders


def _holders(model: JobModel, places: Places) -> defaultdict[TaskName, set[Host]]:
    """Return {task: the hosts that have its files}."""
    found: defaultdict[TaskName, set[Host]] = defaultdict(set)
    for processor_id, container in model.containers.items():
        host = places.hosts.get(processor_id)
        if host is not None:
            for task in container.tasks.values():
                found[task.state_of].add(host)
    return found


def _containers(
    tasks: Mapping[ProcessorId, Mapping[TaskName, TaskModel]],
) -> dict[ProcessorId, ContainerModel]:
    return {p: ContainerModel(p, {n: tasks[p][n] for n in sorted(tasks[p])}) for p in sorted(tasks)}
