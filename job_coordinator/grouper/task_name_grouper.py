"""TaskNameGrouper: which tasks run in which container.

PURE. One method, the same for YARN and standalone: what the tasks are, where they were, and which
processors there are. A grouper makes no use of anything else, so any of them serves either way of
deployment and any texts as ids.

State stays on the machines only if tasks stay where they were. So an unchanged set of processors
keeps its assignment, and a changed one moves no more tasks than the new sizes demand.

Source: HA-STANDALONE, "Public Interfaces"; Samza 1.8, container.grouper.task.
"""

from __future__ import annotations

import inspect
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import TaskModel

_COUNT_KEY = keys.JOB_CONTAINER_COUNT.name

ContainerTasks = Mapping[ProcessorId, Collection[TaskName]]
"""{processor id: its tasks}, in any order."""


@dataclass(frozen=True, slots=True)
class TaskLocality:
    """Where a task was: the processor that had it and the host it ran on, None where unknown."""

    processor_id: ProcessorId | None = None
    host: Host | None = None


class TaskNameGrouper(ABC):
    """A way to deal tasks to containers; a job's own one subclasses this."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @abstractmethod
    def group(
        self,
        tasks: Sequence[TaskModel],
        task_locality: Mapping[TaskName, TaskLocality],
        processor_locality: Mapping[ProcessorId, Host | None],
    ) -> ContainerTasks:
        """Every task in exactly one container, no container empty.

        Args:
            tasks: the tasks there are now, sorted by name.
            task_locality: where tasks were, of tasks that are gone too; empty where nothing is
                known, and without host affinity.
            processor_locality: the processors there are, in their order, each with its host, None
                where it may be any.

        Raises:
            ConfigError: the processors do not fit the tasks.
        """


def grouped_by(
    grouper: TaskNameGrouper,
    tasks: Sequence[TaskModel],
    task_locality: Mapping[TaskName, TaskLocality],
    processor_locality: Mapping[ProcessorId, Host | None],
) -> ContainerTasks:
    """What the grouper answers, also one whose ``group`` has an older form, with a FutureWarning.

    The older forms are ``group(tasks)`` and ``group(tasks, processor_ids)``: they do not see where
    anything was.

    Source: HA-STANDALONE, "Public Interfaces": both are deprecated.
    """
    group: Callable[..., ContainerTasks] = grouper.group
    parameters = inspect.signature(group).parameters.values()
    kinds = {inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD}
    count = sum(p.kind in kinds for p in parameters)
    older = {1: (tasks,), 2: (tasks, list(processor_locality))}
    if count not in older or any(p.kind is inspect.Parameter.VAR_POSITIONAL for p in parameters):
        return group(tasks, task_locality, processor_locality)
    warnings.warn(
        f"{keys.TASK_NAME_GROUPER_FACTORY.name} = {type(grouper).__qualname__}: the form of its "
        "method group is deprecated, as it does not see where tasks were; write "
        "group(self, tasks, task_locality, processor_locality)",
        FutureWarning,
        stacklevel=2,
    )
    return group(*older[count])


def round_robin(
    tasks: Collection[TaskName], processor_ids: Sequence[ProcessorId]
) -> dict[ProcessorId, tuple[TaskName, ...]]:
    """Tasks in the order of their names, dealt to the processors in the order given."""
    names = sorted(tasks)
    count = len(processor_ids)
    return {p: tuple(names[i::count]) for i, p in enumerate(processor_ids)}


def checked_names(tasks: Iterable[TaskModel], processor_count: int) -> list[TaskName]:
    """The names of the tasks, sorted; ConfigError where there is no task or no processor."""
    if processor_count == 0:
        raise ConfigError(_COUNT_KEY, "0", "a job needs at least one container", "write 1 or more")
    names = sorted({task.task_name for task in tasks})
    if not names:
        raise ConfigError(
            keys.TASK_INPUTS.name,
            None,
            "the inputs have no partition that gives rise to a task",
            "name an input stream with partitions that are not broadcast",
        )
    return names


class SingleContainer(TaskNameGrouper):
    """Every task in one container: that of ``processor.id``, else the first processor."""

    def group(
        self,
        tasks: Sequence[TaskModel],
        task_locality: Mapping[TaskName, TaskLocality],  # noqa: ARG002 - of the base class
        processor_locality: Mapping[ProcessorId, Host | None],
    ) -> ContainerTasks:
        """One container; see the base class."""
        names = checked_names(tasks, len(processor_locality))
        own = keys.PROCESSOR_ID.read(self.config)
        return {ProcessorId(own) if own else next(iter(processor_locality)): names}


class GroupByContainerCount(TaskNameGrouper):
    """Tasks dealt round robin; balanced, with the fewest moves, when the processors change.

    Source: Samza 1.8, GroupByContainerCount.
    """

    def group(
        self,
        tasks: Sequence[TaskModel],
        task_locality: Mapping[TaskName, TaskLocality],
        processor_locality: Mapping[ProcessorId, Host | None],
    ) -> ContainerTasks:
        """See the base class; hosts do not matter here.

        What was before counts only when it is of exactly these tasks, and, where processors are
        numbered from "0", when it was numbered so too. From or to a single container there is
        nothing to keep apart, and the tasks are assigned from the start. The same processors keep
        their tasks, however lopsided.

        Moves, of T tasks on P processors afterwards, T = s P + r with r < P: sizes of an answer
        that is even within one are s + 1, r times, and s. A processor with t tasks before keeps at
        most min(t, its size), so no even answer keeps more than the sum of these over the best
        choice of the r larger ones. This one takes the first r, and keeps exactly min(t, size) in
        each. From sizes that it made itself (larger ones first, survivors in front) that is the
        best choice; from any others it costs at most r moves more than the best.

        Raises:
            ConfigError: no task, no processor, or more processors than tasks.
        """
        names = checked_names(tasks, len(processor_locality))
        processors = list(processor_locality)
        _check_count(len(names), len(processors))
        previous = _previous_groups(names, task_locality)
        if len(previous) <= 1 or len(processors) == 1 or not _comparable(previous, processors):
            return round_robin(names, processors)
        if previous.keys() == set(processors):
            return {p: tuple(previous[p]) for p in processors}
        return _balanced(previous, len(names), processors)


def _check_count(task_count: int, container_count: int) -> None:
    if task_count < container_count:
        raise ConfigError(
            _COUNT_KEY,
            str(container_count),
            f"there are only {task_count} tasks, and a container without a task has nothing to do",
            f"write {task_count} or less, or give the input streams more partitions",
        )


def _previous_groups(
    names: list[TaskName], task_locality: Mapping[TaskName, TaskLocality]
) -> dict[ProcessorId, list[TaskName]]:
    """The sorted tasks of each previous processor; none where they were not exactly these tasks."""
    before = {t: where.processor_id for t, where in task_locality.items() if where.processor_id}
    if sorted(before) != names:
        return {}
    groups: dict[ProcessorId, list[TaskName]] = {}
    for name in names:
        groups.setdefault(before[name], []).append(name)
    return groups


def _comparable(previous: Collection[ProcessorId], processors: Collection[ProcessorId]) -> bool:
    """Whether numbers, where processors have numbers, had no gap before; other ids may change."""
    return not _numbered(processors) or _numbered(previous)


def _numbered(processors: Collection[ProcessorId]) -> bool:
    return set(processors) == {str(i) for i in range(len(processors))}


def _balanced(
    previous: Mapping[ProcessorId, list[TaskName]],
    task_count: int,
    processors: Sequence[ProcessorId],
) -> dict[ProcessorId, tuple[TaskName, ...]]:
    """The previous groups brought to even sizes by moving no more tasks than that takes.

    Processors give up their last tasks until they fit; those queue, and fill the processors that
    have room, in order.
    """
    share, rest = divmod(task_count, len(processors))
    sizes = {p: share + (1 if i < rest else 0) for i, p in enumerate(processors)}
    groups = {p: list(previous.get(p, ())) for p in processors}
    queue: deque[TaskName] = deque()
    for p in (*processors, *_by_number(previous.keys() - set(processors))):
        group = groups[p] if p in groups else list(previous[p])
        while len(group) > sizes.get(p, 0):
            queue.append(group.pop())
    for p, group in groups.items():
        while len(group) < sizes[p]:
            group.append(queue.popleft())
    return {p: tuple(sorted(group)) for p, group in groups.items()}


def _by_number(processors: Iterable[ProcessorId]) -> list[ProcessorId]:
    """Shorter ids first, so that 2 comes before 10, as Samza has it; else by their letters."""
    return sorted(processors, key=lambda p: (len(p), p))
