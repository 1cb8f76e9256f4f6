"""Which adjunct stores a container has, and which of its tasks fill and read them.

PURE. Source: ADJUNCT, "Data partitioning" and "Broadcast Streams": one store for each task, or one
for the container, which one of its tasks fills and all of them read.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from homeport.config.settings.adjunct_section import AdjunctStore
from homeport.container.progress.host_directories import container_directory, task_directory
from homeport.job_coordinator.model.ids import ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition, TaskModel


@dataclass(frozen=True, slots=True)
class PlannedStore:
    """One store of one container.

    ``partitions``: those that fill it, sorted; none where its task reads none of the stream.
    ``writer``: the task that its records belong to. ``readers``: the tasks that see it, sorted.
    ``directory``: below the job's folder.
    """

    store: AdjunctStore
    partitions: tuple[SystemStreamPartition, ...]
    writer: TaskName
    readers: tuple[TaskName, ...]
    directory: PurePosixPath

    @property
    def is_of_container(self) -> bool:
        """Return whether the whole container shares it."""
        return self.store.is_broadcast


@dataclass(frozen=True, slots=True)
class StorePlan:
    """All adjunct stores of a container, by name and then by task."""

    stores: tuple[PlannedStore, ...]

    def writes_container_stores(self, task: TaskName) -> bool:
        """Return whether the task is the one that fills the stores of the container."""
        return any(item.is_of_container and item.writer == task for item in self.stores)

    @property
    def shared(self) -> dict[SystemStreamPartition, TaskName]:
        """Return {partition that all tasks read: the task that stores its records}."""
        return {
            ssp: item.writer
            for item in self.stores
            if item.is_of_container
            for ssp in item.partitions
        }


def plan_stores(
    adjuncts: Iterable[AdjunctStore], tasks: Sequence[TaskModel], owner: ProcessorId
) -> StorePlan:
    """Return the stores of a container with ``tasks``, active or standby; equal in each process.

    ``owner``: the container; for a standby its active one, whose directories it keeps.
    """
    by_name = sorted(tasks, key=lambda task: task.state_of)
    found: list[PlannedStore] = []
    for store in sorted(adjuncts, key=lambda item: item.name):
        if not store.is_broadcast:
            found += [_planned(store, [t], task_directory(store.name, t.state_of)) for t in by_name]
        elif by_name:
            found.append(_planned(store, by_name, container_directory(store.name, owner)))
    return StorePlan(tuple(found))


def _planned(
    store: AdjunctStore, tasks: Sequence[TaskModel], directory: PurePosixPath
) -> PlannedStore:
    read = {ssp for task in tasks for ssp in task.system_stream_partitions}
    return PlannedStore(
        store=store,
        partitions=tuple(sorted(ssp for ssp in read if ssp.system_stream == store.stream)),
        writer=tasks[0].task_name,
        readers=tuple(sorted(task.task_name for task in tasks)),
        directory=directory,
    )
