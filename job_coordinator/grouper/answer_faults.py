"""First fault of what a grouper answers, before a JobModel is made of it.

PURE. For a grouper of the job's own: its answer may be anything. What can be told of the whole
JobModel, ``validation`` tells.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


def partition_answer_fault(
    answer: object, partitions: Collection[SystemStreamPartition]
) -> str | None:
    """One sentence about the first fault of a grouper of partitions, None where it has none.

    Without fault: a mapping from text to a collection that is not empty, and every one of
    ``partitions``, and nothing else, in exactly one of these.
    """
    return next(_partition_faults(answer, partitions), None)


def task_answer_fault(answer: object, tasks: Collection[TaskName]) -> str | None:
    """One sentence about the first fault of a grouper of tasks, None where it has none.

    Without fault: a mapping from text to a collection, every one of ``tasks``, and nothing else, in
    exactly one of these, and none of these empty.
    """
    return next(_task_faults(answer, tasks), None)


def _partition_faults(
    answer: object, partitions: Collection[SystemStreamPartition]
) -> Iterator[str]:
    yield from _shape_faults(answer, "task")
    if not isinstance(answer, Mapping):  # said above
        return
    known = frozenset(partitions)
    owners: dict[object, object] = {}
    for task, ssps in answer.items():
        if not ssps:
            yield f"task {task!r} has no input"
        for ssp in ssps:
            if not isinstance(ssp, SystemStreamPartition) or ssp not in known:
                yield f"task {task!r} has {_shown(ssp)}, which is none of the input partitions"
            if ssp in owners:
                yield f"{ssp} is an input of task {owners[ssp]!r} and of task {task!r}"
            owners[ssp] = task
    for ssp in partitions:
        if ssp not in owners:
            yield f"{ssp} belongs to no task"


def _task_faults(answer: object, tasks: Collection[TaskName]) -> Iterator[str]:
    yield from _shape_faults(answer, "container")
    if not isinstance(answer, Mapping):  # said above
        return
    known = frozenset(tasks)
    owners: dict[object, object] = {}
    for container, names in answer.items():
        if not names:
            yield f"container {container!r} has no task"
        for name in names:
            if not isinstance(name, str) or name not in known:
                yield f"container {container!r} has {_shown(name)}, which is none of the tasks"
            if name in owners:
                yield f"task {name!r} is in container {owners[name]!r} and in {container!r}"
            owners[name] = container
    for name in tasks:
        if name not in owners:
            yield f"task {name!r} is in no container"


def _shape_faults(answer: object, what: str) -> Iterator[str]:
    if not isinstance(answer, Mapping):
        yield f"it is {_shown(answer)} and no mapping"
        return
    for key, members in answer.items():
        if not isinstance(key, str) or not key:
            yield f"a {what} is called {_shown(key)}, which is no name"
        if not isinstance(members, Collection) or isinstance(members, str):
            yield f"{what} {key!r} has {_shown(members)}, which is no collection"


def _shown(value: object) -> str:
    if isinstance(value, str | int | None | SystemStreamPartition):
        return repr(value) if isinstance(value, str) else str(value)
    return f"a {type(value).__name__}"
