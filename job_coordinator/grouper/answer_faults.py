"""First fault of what a grouper answers, before a JobModel is made of it.

PURE. For a grouper of the job's own: its answer may be anything. ``validation``
checks the whole JobModel.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


def partition_answer_fault(
    answer: object, partitions: Collection[SystemStreamPartition]
) -> str | None:
    """One sentence about the first fault of a grouper of partitions, None where it has none.

    Without fault: a mapping from text to a collection that is not empty, and every one of
    ``partitions``, and nothing else, in exactly one of these.
    """
    if not isinstance(answer, Mapping):
        return _no_mapping(answer)
    return next(_partition_faults(answer, partitions), None)


def task_answer_fault(answer: object, tasks: Collection[TaskName]) -> str | None:
    """One sentence about the first fault of a grouper of tasks, None where it has none.

    Without fault: a mapping from text to a collection, every one of ``tasks``, and nothing else, in
    exactly one of these, and none of these empty.
    """
    if not isinstance(answer, Mapping):
        return _no_mapping(answer)
    return next(_task_faults(answer, tasks), None)


def _partition_faults(
    answer: Mapping[object, Any], partitions: Collection[SystemStreamPartition]
) -> Iterator[str]:
    yield from _shape_faults(answer, "task")
    yield from _member_faults(
        answer,
        {ssp: str(ssp) for ssp in partitions},
        SystemStreamPartition,
        is_empty="task {0!r} has no input",
        is_foreign="task {0!r} has {1}, which is none of the input partitions",
        is_twice="{0} is an input of task {1!r} and of task {2!r}",
        is_missing="{0} belongs to no task",
    )


def _task_faults(answer: Mapping[object, Any], tasks: Collection[TaskName]) -> Iterator[str]:
    yield from _shape_faults(answer, "container")
    yield from _member_faults(
        answer,
        {name: f"task {name!r}" for name in tasks},
        str,
        is_empty="container {0!r} has no task",
        is_foreign="container {0!r} has {1}, which is none of the tasks",
        is_twice="{0} is in container {1!r} and in {2!r}",
        is_missing="{0} is in no container",
    )


def _member_faults(
    answer: Mapping[object, Collection[Any]],
    wanted: Mapping[Any, str],
    kind: type,
    *,
    is_empty: str,
    is_foreign: str,
    is_twice: str,
    is_missing: str,
) -> Iterator[str]:
    """Shapes: ``wanted`` {member, all of type ``kind``: how a sentence calls it}."""
    owners: dict[object, object] = {}
    for key, members in answer.items():
        if not members:
            yield is_empty.format(key)
        for member in members:
            if not isinstance(member, kind) or member not in wanted:
                yield is_foreign.format(key, _shown(member))
            elif member in owners:
                yield is_twice.format(wanted[member], owners[member], key)
            owners[member] = key
    for member, name in wanted.items():
        if member not in owners:
            yield is_missing.format(name)


def _no_mapping(answer: object) -> str:
    return f"it is {_shown(answer)} and no mapping"


def _shape_faults(answer: Mapping[object, Any], what: str) -> Iterator[str]:
    for key, members in answer.items():
        if not isinstance(key, str) or not key:
            yield f"a {what} is called {_shown(key)}, which is no name"
        if not isinstance(members, Collection) or isinstance(members, str):
            yield f"{what} {key!r} has {_shown(members)}, which is no collection"


def _shown(value: object) -> str:
    if isinstance(value, str | int | None | SystemStreamPartition):
        return repr(value) if isinstance(value, str) else str(value)
    return f"a {type(value).__name__}"
