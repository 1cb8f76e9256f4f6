"""GroupByContainerIds: tasks to whatever processors there are, where their state is.

PURE. Processors come and go, with any texts as ids. A task goes back to the processor that had it;
where that is gone or full, to one on the host it ran on; else to any.

Source: HA-STANDALONE, "Container to physical host assignment"; Samza 1.8, GroupByContainerIds,
whose answer depends on the order of a hash set and does not prefer the
task's own processor among those of its host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from homeport.job_coordinator.grouper.task_name_grouper import (
    ContainerTasks,
    TaskLocality,
    TaskNameGrouper,
    checked_names,
    round_robin,
)
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import TaskModel

_UNKNOWN = TaskLocality()


class GroupByContainerIds(TaskNameGrouper):
    """Sizes even within one; of those, the fewest tasks leave a processor that is still there."""

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

        Raises:
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
    """At most as many processors as tasks, in the order given.

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
        """The tasks of each processor, sorted, in the order of the processors' ids."""
        rest = self._to_hosts(self._to_own_processors())
        for name, processor_id in zip(rest, self._room(self._groups), strict=True):
            self._groups[processor_id].append(name)
        return {p: tuple(sorted(group)) for p, group in self._groups.items()}

    def _to_own_processors(self) -> list[TaskName]:
        """Each processor has what it can keep of its own; the tasks left over.

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
        """Tasks go where they ran, as far as there is room; the tasks left over."""
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
        """A processor for each further task; the caller gives it that task before it asks again.

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
