"""JobModel, ContainerModel, TaskModel, SystemStreamPartition: immutable values.

PURE. Where tasks were is no part of the model, nor which host a container on YARN is to run on
(HA-STANDALONE). A standalone processor registers its own location.

Whether a task or a container is a standby, and of which active, is a field and never the form of
an id. Samza's JSON has no field for the active: there it follows from what a standby mirrors
(``mirrored``).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName

__all__ = [
    "ContainerModel",
    "JobModel",
    "SystemStream",
    "SystemStreamPartition",
    "TaskMode",
    "TaskModel",
    "counts_of",
    "mirrored",
]


class TaskMode(Enum):
    """Whether a task processes input or only keeps a replica of the state."""

    ACTIVE = "Active"
    STANDBY = "Standby"


@dataclass(frozen=True, order=True, slots=True)
class SystemStreamPartition:
    """One partition of a stream; ``key_bucket`` is -1 unless elasticity is used (it is not)."""

    system: str
    stream: str
    partition: int
    key_bucket: int = -1

    @property
    def system_stream(self) -> SystemStream:
        """The stream this is a partition of."""
        return SystemStream(self.system, self.stream)

    @property
    def name(self) -> str:
        """``system.stream.partition``, as files, the history and people name it."""
        return f"{self.system}.{self.stream}.{self.partition}"

    def __str__(self) -> str:
        """Samza's form, part of checkpoint bytes: ``SystemStreamPartition [kafka, in, 0]``."""
        bucket = "" if self.key_bucket < 0 else f", {self.key_bucket}"
        return f"SystemStreamPartition [{self.system}, {self.stream}, {self.partition}{bucket}]"


@dataclass(frozen=True, slots=True)
class TaskModel:
    """One task: its input partitions in sorted order, and its partition of every changelog.

    ``active_task``: the task that a standby is a replica of.
    """

    task_name: TaskName
    system_stream_partitions: tuple[SystemStreamPartition, ...]
    changelog_partition: int
    task_mode: TaskMode = TaskMode.ACTIVE
    active_task: TaskName | None = None

    @property
    def state_of(self) -> TaskName:
        """The task whose state it keeps, under whose name the directories of its stores are."""
        return self.active_task or self.task_name

    @property
    def mirror(self) -> tuple[int, tuple[SystemStreamPartition, ...]]:
        """What a standby has in common with its active task, and with no other."""
        return (self.changelog_partition, self.system_stream_partitions)


@dataclass(frozen=True)
class ContainerModel:
    """One logical container and its tasks, by name in sorted order.

    ``active_processor``: the container whose tasks a standby container replicates.
    ``location_id``: where a standalone processor registered; None on YARN.

    Source: HA-STANDALONE, "Public Interfaces".
    """

    processor_id: ProcessorId
    tasks: Mapping[TaskName, TaskModel]
    active_processor: ProcessorId | None = None
    location_id: Host | None = None

    @property
    def role(self) -> TaskMode:
        """What the container is there for; standby tasks beside active ones do not change it."""
        return TaskMode.ACTIVE if self.active_processor is None else TaskMode.STANDBY


@dataclass(frozen=True)
class JobModel:
    """The whole job: its configuration and its containers, by processor id."""

    config: Config
    containers: Mapping[ProcessorId, ContainerModel]

    @property
    def max_change_log_stream_partitions(self) -> int:
        """Partitions each changelog topic needs: 1 + the highest one; 0 where there is no task."""
        return max(
            (t.changelog_partition + 1 for c in self.containers.values() for t in c.tasks.values()),
            default=0,
        )

    @cached_property
    def owners(self) -> Mapping[TaskName, ProcessorId]:
        """The container of each task that processes input."""
        return {
            name: p
            for p, container in self.containers.items()
            for name, task in container.tasks.items()
            if task.task_mode is TaskMode.ACTIVE
        }

    def active_tasks(self) -> dict[TaskName, TaskModel]:
        """Return {name: task} of all tasks that process input."""
        return {
            name: task
            for container in self.containers.values()
            for name, task in container.tasks.items()
            if task.task_mode is TaskMode.ACTIVE
        }

    def tasks(self) -> dict[TaskName, TaskModel]:
        """Return {name: task} of all tasks."""
        return {name: task for c in self.containers.values() for name, task in c.tasks.items()}

    def unlike(self, other: "JobModel") -> "JobModel":
        """Return the model without the tasks that ``other`` has in the same container.

        It finds those alone that both share as objects, which takes no comparison of values. Equal
        tasks that are two objects stay.
        """
        known = {p: container.tasks for p, container in other.containers.items()}
        found = {}
        for p, container in self.containers.items():
            there = known.get(p, {})
            tasks = {n: t for n, t in container.tasks.items() if there.get(n) is not t}
            found[p] = ContainerModel(p, tasks)
        return JobModel(self.config, found)

    def partition_counts(self) -> dict[SystemStream, int]:
        """Return {input stream: number of its partitions, the highest one of the model plus 1}."""
        tasks = (task for c in self.containers.values() for task in c.tasks.values())
        counts = counts_of(ssp for task in tasks for ssp in task.system_stream_partitions)
        return {SystemStream(*stream): count for stream, count in counts.items()}


def counts_of(partitions: Iterable[SystemStreamPartition]) -> dict[tuple[str, str], int]:
    """Return {(system, stream): the highest of its partitions plus 1}.

    The partitions are many, and a pair is made faster than a SystemStream.
    """
    counts: dict[tuple[str, str], int] = {}
    for ssp in partitions:
        stream = ssp.system, ssp.stream
        counts[stream] = max(counts.get(stream, 0), ssp.partition + 1)
    return counts


def mirrored(
    config: Config, containers: Mapping[ProcessorId, ContainerModel]
) -> dict[ProcessorId, ContainerModel]:
    """Return the containers with ``active_task`` and ``active_processor`` filled in.

    A standby task belongs to the active task with its changelog partition and its inputs. A
    container that has standby tasks only, all of one container's tasks, belongs to that one, if
    ``config`` does not mix roles: there it only has no active task now.
    """
    is_mixed = keys.JOB_CONTAINER_MIXED_ROLES.read(config)
    actives = {
        task.mirror: (task.task_name, processor_id)
        for processor_id, container in containers.items()
        for task in container.tasks.values()
        if task.task_mode is TaskMode.ACTIVE
    }
    found = {p: _mirrored(container, actives) for p, container in containers.items()}
    return {p: replace(c, active_processor=None) for p, c in found.items()} if is_mixed else found


def _mirrored(
    container: ContainerModel,
    actives: Mapping[tuple[int, tuple[SystemStreamPartition, ...]], tuple[TaskName, ProcessorId]],
) -> ContainerModel:
    standbys = {
        name: actives.get(task.mirror)
        for name, task in container.tasks.items()
        if task.task_mode is TaskMode.STANDBY
    }
    if not standbys:
        return container
    tasks = dict(container.tasks)
    for name, active in standbys.items():
        if active is not None:
            tasks[name] = replace(tasks[name], active_task=active[0])
    owners = {active[1] if active else None for active in standbys.values()}
    is_replica = len(standbys) == len(tasks) and len(owners) == 1
    active_processor = owners.pop() if is_replica else container.active_processor
    return replace(container, tasks=tasks, active_processor=active_processor)
