"""Assigns tasks to containers, for the JobModel: TaskNameGrouper.

PURE. One method, the same for YARN and standalone: it gets the tasks, where they were, and the
processors there are. A grouper uses nothing else, so each one serves both, with any ids.

State stays on the machines only if tasks stay where they were. So an unchanged set of processors
keeps its assignment, and a changed one moves no more tasks than the new sizes demand.

Source: HA-STANDALONE, "Public Interfaces"; Samza 1.8, container.grouper.task.
"""

import inspect
import warnings
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import ConfigError
from homeport.config.settings.sections import StandbyConfig
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


_UNKNOWN = TaskLocality()


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
        """Return every task in exactly one container, no container empty.

        Args:
            tasks: the tasks there are now, sorted by name.
            task_locality: where tasks were, of tasks that are gone too; empty where nothing is
                known, and without host affinity.
            processor_locality: the processors there are, in their order, each with its host, None
                where it may be any.

        ConfigError: the processors do not fit the tasks.
        """


def grouped_by(
    grouper: TaskNameGrouper,
    tasks: Sequence[TaskModel],
    task_locality: Mapping[TaskName, TaskLocality],
    processor_locality: Mapping[ProcessorId, Host | None],
) -> ContainerTasks:
    """Return the grouper's answer, also in an older form of ``group``, with a FutureWarning.

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
    """Return tasks in the order of their names, dealt to the processors in the order given."""
    names = sorted(tasks)
    count = len(processor_ids)
    return {p: tuple(names[i::count]) for i, p in enumerate(processor_ids)}


def checked_names(tasks: Iterable[TaskModel], processor_count: int) -> list[TaskName]:
    """Return the names of the tasks, sorted; ConfigError where there is no task or no processor."""
    if processor_count == 0:
        raise ConfigError(_COUNT_KEY, "0", "a job needs at least one container", "write 1 or more")
    names = sorted({task.task_name for task in tasks})
    if not names:
        rule = "the inputs have no partition that gives rise to a task"
        remedy = "name an input stream with partitions that are not broadcast"
        raise keys.TASK_INPUTS.error(None, rule, remedy)
    return names


class SingleContainer(TaskNameGrouper):
    """Every task in one container: that of ``processor.id``, else the first processor."""

    def group(
        self,
        tasks: Sequence[TaskModel],
        task_locality: Mapping[TaskName, TaskLocality],  # noqa: ARG002 - of the base class
        processor_locality: Mapping[ProcessorId, Host | None],
    ) -> ContainerTasks:
        """Return one container; see the base class."""
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
        numbered from "0", when it was numbered so too; a mixed container may have had no task. From
        or to a single container there is nothing to keep apart, and the tasks are assigned from the
        start. The same processors keep their tasks, however lopsided.

        Moves, of T tasks on P processors afterwards, T = s P + r with r < P: sizes of an answer
        that is even within one are s + 1, r times, and s. A processor with t tasks before keeps at
        most min(t, its size), so no even answer keeps more than the sum of these over the best
        choice of the r larger ones. This one takes the first r, and keeps exactly min(t, size) in
        each. From sizes that it made itself (larger ones first, survivors in front) that is the
        best choice; from any others it costs at most r moves more than the best.

        ConfigError: no task, no processor, or more processors than tasks.
        """
        names = checked_names(tasks, len(processor_locality))
        processors = list(processor_locality)
        _check_count(len(names), len(processors))
        previous = _previous_groups(names, task_locality)
        if len(previous) <= 1 or len(processors) == 1 or not self._comparable(previous, processors):
            return round_robin(names, processors)
        if previous.keys() == set(processors):
            return {p: tuple(previous[p]) for p in processors}
        return _balanced(previous, len(names), processors)

    def _comparable(
        self, previous: Collection[ProcessorId], processors: Collection[ProcessorId]
    ) -> bool:
        """Return whether processors' numbers had no gap before; other ids may change."""
        if StandbyConfig.of(self.config).is_mixed:
            return all(p.isdecimal() for p in previous)
        return not _numbered(processors) or _numbered(previous)


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
    """Return each previous processor's sorted tasks; none where they were not these."""
    before = {t: where.processor_id for t, where in task_locality.items() if where.processor_id}
    if sorted(before) != names:
        return {}
    groups: dict[ProcessorId, list[TaskName]] = {}
    for name in names:
        groups.setdefault(before[name], []).append(name)
    return groups


def _numbered(processors: Collection[ProcessorId]) -> bool:
    return set(processors) == {str(i) for i in range(len(processors))}


def _balanced(
    previous: Mapping[ProcessorId, list[TaskName]],
    task_count: int,
    processors: Sequence[ProcessorId],
) -> dict[ProcessorId, tuple[TaskName, ...]]:
    """Return the previous groups brought to even sizes by moving no more tasks than that takes.

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
    """Return shorter ids first: 2 before 10, as Samza has it; else by their letters."""
    return sorted(processors, key=lambda p: (len(p), p))


class GroupByContainerIds(TaskNameGrouper):
    """Sizes even within one; of those, the fewest tasks leave a processor that is still there.

    A task goes back to the processor that had it; where that is gone or full, to one on the host it
    ran on; else to any.

    Source: HA-STANDALONE, "Container to physical host assignment"; Samza 1.8, GroupByContainerIds,
    whose answer depends on the order of a hash set and does not prefer the task's own processor
    among those of its host.
    """

    def group(
        self,
        tasks: Sequence[TaskModel],
        task_locality: Mapping[TaskName, TaskLocality],
        processor_locality: Mapping[ProcessorId, Host | None],
    ) -> ContainerTasks:
        """See the base class. More processors than tasks: some get none, and are left out.

        Nothing known of any of the tasks: dealt round robin, in the order of the processors.

        Moves, of T tasks on P processors, T = s P + r with r < P: in any answer that is even within
        one, r processors have s + 1 tasks and the others s. A processor that had t tasks keeps at
        most min(t, its size), and gains from being one of the r only where t > s. So the tasks that
        leave a present processor are at least the sum of max(0, t - s) less min(r, processors with
        t > s). Exactly so many leave here: the larger size goes to such processors first, and each
        keeps as many as fit. The same answer given back as what was before is therefore kept whole.

        ConfigError: no task, or no processor.
        """
        names = checked_names(tasks, len(processor_locality))
        known = {name: task_locality.get(name, _UNKNOWN) for name in names}
        processors = _chosen(len(names), known, processor_locality)
        if all(where == _UNKNOWN for where in known.values()):
            return round_robin(names, processors)
        return _Dealing(known, {p: processor_locality[p] for p in processors}).deal()


def _chosen(
    task_count: int,
    known: Mapping[TaskName, TaskLocality],
    processor_locality: Mapping[ProcessorId, Host | None],
) -> list[ProcessorId]:
    """Return at most as many processors as tasks, in the order given.

    First those that had a task, then those where one ran, then by id: without a processor that had
    no task, and no task of its host, nothing is lost.
    """
    if len(processor_locality) <= task_count:
        return list(processor_locality)
    owners = {where.processor_id for where in known.values()}
    hosts = {where.host for where in known.values() if where.host is not None}

    def rank(processor_id: ProcessorId) -> tuple[bool, bool, ProcessorId]:
        is_near = processor_locality[processor_id] in hosts
        return (processor_id not in owners, not is_near, processor_id)

    kept = set(sorted(processor_locality, key=rank)[:task_count])
    return [p for p in processor_locality if p in kept]


class _Dealing:
    """One assignment in the making: each task goes to the first rule that finds it room."""

    def __init__(
        self,
        known: Mapping[TaskName, TaskLocality],
        processor_locality: Mapping[ProcessorId, Host | None],
    ) -> None:
        self._known = known
        self._hosts = processor_locality
        self._share, self._larger_left = divmod(len(known), len(processor_locality))
        self._groups: dict[ProcessorId, list[TaskName]] = {p: [] for p in sorted(self._hosts)}

    def deal(self) -> dict[ProcessorId, tuple[TaskName, ...]]:
        rest = self._to_hosts(self._to_own_processors())
        for name, processor_id in zip(rest, self._room(self._groups), strict=True):
            self._groups[processor_id].append(name)
        return {p: tuple(sorted(group)) for p, group in self._groups.items()}

    def _to_own_processors(self) -> list[TaskName]:
        """Leave each processor what it can keep of its own; return the tasks left over.

        Those that did not run on its present host are the first to go: their state is not there.
        """
        own: dict[ProcessorId, list[TaskName]] = {p: [] for p in self._groups}
        rest = []
        for name, where in self._known.items():
            if where.processor_id in own:
                own[where.processor_id].append(name)
            else:
                rest.append(name)
        for processor_id, names in own.items():
            host = self._hosts[processor_id]
            names.sort(key=lambda name: (self._known[name].host != host, name))
            size = self._share
            if len(names) > size and self._larger_left:
                self._larger_left -= 1
                size += 1
            self._groups[processor_id] = names[:size]
            rest += names[size:]
        return sorted(rest)

    def _to_hosts(self, names: Iterable[TaskName]) -> list[TaskName]:
        """Deal tasks to where they ran, as far as there is room; return the tasks left over."""
        there: dict[Host, list[ProcessorId]] = {}
        for candidate in self._groups:
            at = self._hosts[candidate]
            if at is not None:
                there.setdefault(at, []).append(candidate)
        room = {host: self._room(processors) for host, processors in there.items()}
        rest = []
        for name in names:
            host = self._known[name].host
            processor_id = next(room[host], None) if host in room else None
            if processor_id is None:
                rest.append(name)
            else:
                self._groups[processor_id].append(name)
        return rest

    def _room(self, processors: Iterable[ProcessorId]) -> Iterator[ProcessorId]:
        """Yield a processor for each further task, which the caller gives it before it asks again.

        The common size first, then the larger one as long as processors may have it.
        """
        candidates = list(processors)
        for processor_id in candidates:
            while len(self._groups[processor_id]) < self._share:
                yield processor_id
        for processor_id in candidates:
            if self._larger_left and len(self._groups[processor_id]) == self._share:
                self._larger_left -= 1
                yield processor_id
