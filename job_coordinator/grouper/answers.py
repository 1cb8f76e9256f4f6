"""Judges what a grouper answers: whether a JobModel can be made of it. PURE.

A grouper may be the job's own, and answer anything.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, NamedTuple

from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition


class _Sentences(NamedTuple):
    """The faults of one kind of grouper. ``group``: what it makes."""

    group: str
    is_empty: str
    is_foreign: str
    is_twice: str
    is_missing: str


_OF_PARTITIONS = _Sentences(
    group="task",
    is_empty="task {0!r} has no input",
    is_foreign="task {0!r} has {1}, which is none of the input partitions",
    is_twice="{0} is an input of task {1!r} and of task {2!r}",
    is_missing="{0} belongs to no task",
)
_OF_TASKS = _Sentences(
    group="container",
    is_empty="container {0!r} has no task",
    is_foreign="container {0!r} has {1}, which is none of the tasks",
    is_twice="{0} is in container {1!r} and in {2!r}",
    is_missing="{0} is in no container",
)


def partition_answer_fault(
    answer: object, partitions: Collection[SystemStreamPartition]
) -> str | None:
    """Return a sentence about the first fault of a grouper of partitions; None: it has none.

    Without fault: a mapping from text to collections, none of them empty. Each of ``partitions`` is
    in exactly one of them, and nothing else is.
    """
    wanted = {ssp: str(ssp) for ssp in partitions}
    return _first_fault(answer, wanted, SystemStreamPartition, _OF_PARTITIONS)


def task_answer_fault(answer: object, tasks: Collection[TaskName]) -> str | None:
    """Return the same of a grouper of tasks, whose collections have ``tasks``."""
    wanted = {name: f"task {name!r}" for name in tasks}
    return _first_fault(answer, wanted, str, _OF_TASKS)


def _first_fault(
    answer: object, wanted: Mapping[Any, str], kind: type, sentences: _Sentences
) -> str | None:
    """Return it. Shapes: ``wanted`` {member, all of type ``kind``: how a sentence calls it}."""
    if not isinstance(answer, Mapping):
        return f"it is {_shown(answer)} and no mapping"
    return next(_faults(answer, wanted, kind, sentences), None)


def _faults(
    answer: Mapping[object, Any], wanted: Mapping[Any, str], kind: type, sentences: _Sentences
) -> Iterator[str]:
    yield from _shape_faults(answer, sentences.group)
    owners: dict[object, object] = {}
    for key, members in answer.items():
        if not members:
            yield sentences.is_empty.format(key)
        for member in members:
            if not isinstance(member, kind) or member not in wanted:
                yield sentences.is_foreign.format(key, _shown(member))
            elif member in owners:
                yield sentences.is_twice.format(wanted[member], owners[member], key)
            owners[member] = key
    for member, name in wanted.items():
        if member not in owners:
            yield sentences.is_missing.format(name)


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
