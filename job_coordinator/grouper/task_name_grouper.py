"""TaskNameGrouper: which tasks run in which container.

PURE. The answer depends on the set of tasks, the previous assignment and the count of containers,
never on hosts: where a container runs is the allocator's affair. Every container of the answer has
at least one task.

State stays on the machines only if tasks stay in their containers. So an unchanged count keeps the
assignment as it is, however lopsided, and a changed count moves no more tasks than the new sizes
demand.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping
from types import MappingProxyType
from typing import Protocol

from homeport.config import keys
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.ids import ProcessorId, TaskName

_COUNT_KEY = keys.JOB_CONTAINER_COUNT.name

ContainerTasks = Mapping[ProcessorId, tuple[TaskName, ...]]
"""{processor id: its tasks, sorted}, in the order of the ids as numbers."""


class TaskNameGrouper(Protocol):
    """A way to deal tasks to containers."""

    def group(
        self,
        tasks: Collection[TaskName],
        task_assignment: Mapping[TaskName, ProcessorId],
        container_count: int,
    ) -> ContainerTasks:
        """Every task in exactly one container, no container empty.

        Args:
            tasks: the tasks there are now.
            task_assignment: {task name: processor id} where tasks ran before; may be empty.
            container_count: containers there shall be.

        Raises:
            ConfigError: the count does not fit the tasks.
        """


class GroupByContainerCount:
    """Containers "0" to "count - 1"; tasks dealt round robin, balanced when only the count changes.

    Source: Samza 1.8, GroupByContainerCount (reference, sections 3.4 and 3.5).
    """

    def group(
        self,
        tasks: Collection[TaskName],
        task_assignment: Mapping[TaskName, ProcessorId],
        container_count: int,
    ) -> ContainerTasks:
        """See the protocol.

        The previous assignment counts only when it is of exactly these tasks and of containers "0"
        to "k - 1"; from or to a single container there is nothing to keep apart, and the tasks are
        dealt anew.
        """
        names = sorted(set(tasks))
        _check_count(len(names), container_count)
        previous = _previous_groups(names, task_assignment)
        if len(previous) <= 1 or container_count == 1:
            groups = [names[i::container_count] for i in range(container_count)]
        elif len(previous) == container_count:
            groups = previous
        else:
            groups = _balanced(previous, len(names), container_count)
        return {ProcessorId(str(i)): tuple(sorted(group)) for i, group in enumerate(groups)}


TASK_NAME_GROUPERS: Mapping[str, Callable[[], TaskNameGrouper]] = MappingProxyType(
    {"org.apache.samza.container.grouper.task.GroupByContainerCountFactory": GroupByContainerCount}
)
"""Groupers by Samza's name of their factory."""


def task_name_grouper(factory: str) -> TaskNameGrouper:
    """The grouper that ``factory`` (Samza's name) stands for; ConfigError where there is none."""
    if factory not in TASK_NAME_GROUPERS:
        known = ", ".join(sorted(TASK_NAME_GROUPERS))
        raise ConfigError(
            keys.TASK_NAME_GROUPER_FACTORY.name,
            factory,
            "no such grouper of tasks",
            f"use one of: {known}",
        )
    return TASK_NAME_GROUPERS[factory]()


def _check_count(task_count: int, container_count: int) -> None:
    if container_count <= 0:
        raise ConfigError(
            _COUNT_KEY,
            str(container_count),
            "a job needs at least one container",
            "write 1 or more",
        )
    if task_count == 0:
        raise ConfigError(
            keys.TASK_INPUTS.name,
            None,
            "the inputs have no partition that gives rise to a task",
            "name an input stream with partitions that are not broadcast",
        )
    if task_count < container_count:
        raise ConfigError(
            _COUNT_KEY,
            str(container_count),
            f"there are only {task_count} tasks, and a container without a task has nothing to do",
            f"write {task_count} or less, or give the input streams more partitions",
        )


def _previous_groups(
    names: list[TaskName], task_assignment: Mapping[TaskName, ProcessorId]
) -> list[list[TaskName]]:
    """Sorted tasks of the previous containers "0" to "k - 1"; none where they cannot be kept."""
    if sorted(task_assignment) != names:
        return []
    groups: dict[ProcessorId, list[TaskName]] = {}
    for name in names:
        groups.setdefault(task_assignment[name], []).append(name)
    ids = [ProcessorId(str(i)) for i in range(len(groups))]
    return [groups[id_] for id_ in ids] if set(ids) == set(groups) else []


def _balanced(
    previous: list[list[TaskName]], task_count: int, container_count: int
) -> list[list[TaskName]]:
    """The previous groups brought to even sizes by moving no more tasks than that takes.

    Containers give up their last tasks until they fit; those queue, and fill the containers that
    have room, in order.
    """
    share, rest = divmod(task_count, container_count)
    sizes = [share + (1 if i < rest else 0) for i in range(container_count)]
    kept = [list(group) for group in previous] + [
        [] for _ in range(container_count - len(previous))
    ]
    queue: deque[TaskName] = deque()
    for i, group in enumerate(kept):
        size = sizes[i] if i < container_count else 0
        while len(group) > size:
            queue.append(group.pop())
    groups = kept[:container_count]
    for size, group in zip(sizes, groups, strict=True):
        while len(group) < size:
            group.append(queue.popleft())
    return groups
