"""The JobModel of mixed containers after a loss: their tasks go where standbys of them are.

PURE. It follows from the JobModel in force alone: no grouper takes part, as a task of a container
that is still there must not move, and no input is looked at.

Source: STANDBY, parts 4 and 6.
"""

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from homeport.config.settings.sections import StandbyConfig
from homeport.job_coordinator.grouper.mixed_standbys import (
    LeastLoaded,
    Places,
    on_backups,
    with_mixed_standbys,
)
from homeport.job_coordinator.grouper.previous_assignment import PreviousAssignment, assigned_by
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, JobModel

_NO_FILES: Mapping[TaskName, Host] = MappingProxyType({})


@dataclass(frozen=True)
class Failover:
    """A JobModel that follows the one in force.

    ``lost``: number of tasks whose container was lost. ``unbacked``: number of these that start
    where no standby of theirs was (STANDBY, part 4: ideally 0).
    """

    model: JobModel
    lost: int = 0
    unbacked: int = 0


def failed_over(
    model: JobModel,
    lost: Collection[ProcessorId],
    places: Places,
    task_hosts: Mapping[TaskName, Host] = _NO_FILES,
) -> Failover:
    """Return the model in which the tasks of ``lost`` containers are where standbys of them were.

    Each task with a standby that is left starts there, and sizes are even as far as that allows:
    even within one for as many tasks as possible. Each other task goes to the container with the
    fewest active tasks. Tasks of other containers stay. A lost container stays in the model,
    without tasks. Then standbys are dealt: with none lost, that is all that changes. If no
    container is left with a host, nothing changes: a container that comes back has the files of its
    tasks.

    Source: STANDBY, part 4: "minimizing (ideally 0) the number of tasks that are not started on
    their backups".

    Args:
        model: the model in force, of mixed containers.
        lost: containers that own nothing from now on.
        places: the containers that run, or hold a host; lost ones are left out.
        task_hosts: {task or standby: where its files may be}.
    """
    gone = frozenset(lost)
    there = {p: h for p, h in places.hosts.items() if p in model.containers and p not in gone}
    places = replace(places.by(model.config), hosts=there)
    if not there:
        return Failover(model)
    before = replace(assigned_by(model), task_hosts=task_hosts)
    orphans = {task for task, p in before.task_processors.items() if p in gone}
    owners = _taken_over(before, orphans, places) if orphans else before.task_processors
    unbacked = sum(owners[task] not in before.standbys.get(task, {}).values() for task in orphans)
    replicas = StandbyConfig.of(model.config).replication_count
    active = _grouped(model, owners)
    containers = with_mixed_standbys(active, places, before, replicas, model.tasks())
    return Failover(JobModel(model.config, containers), len(orphans), unbacked)


def _taken_over(
    before: PreviousAssignment, orphans: Collection[TaskName], places: Places
) -> Mapping[TaskName, ProcessorId]:
    """Return {task: its processor} with each orphan at one of ``places``."""
    owners, live = before.task_processors, places.hosts
    shared = {task for task, p in owners.items() if task in orphans or p in live}
    taken = dict(on_backups(before, live, shared).task_processors)
    load = Counter(taken.values())
    backed = {
        task: [p for p in before.standbys.get(task, {}).values() if p in live]
        for task in sorted(t for t in orphans if taken[t] == owners[t])
    }
    for task, candidates in backed.items():
        if candidates:
            taken[task] = min(candidates, key=lambda p: (load[p], p))
            load[taken[task]] += 1
    least = LeastLoaded(sorted(live), load, places.locations())
    for task in (t for t, candidates in backed.items() if not candidates):
        (taken[task],) = least.take(frozenset())
        load[taken[task]] += 1
        least.push(taken[task])
    return taken


def _grouped(
    model: JobModel, owners: Mapping[TaskName, ProcessorId]
) -> dict[ProcessorId, ContainerModel]:
    tasks = model.active_tasks()
    groups: dict[ProcessorId, list[TaskName]] = {p: [] for p in sorted(model.containers)}
    for name, processor_id in owners.items():
        groups[processor_id].append(name)
    return {
        p: ContainerModel(p, {name: tasks[name] for name in sorted(names)})
        for p, names in groups.items()
    }
