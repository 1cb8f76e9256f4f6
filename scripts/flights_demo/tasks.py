"""Which container works on each task, and which keeps its standby, by the JobModel of ``GET /``.

PURE. A standby is a task of its own in the JobModel, of a standby container or of a mixed one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Model = Mapping[str, Any]
Tasks = dict[str, set[str]]
"""{container: names of tasks}."""

_ACTIVE, _STANDBY, _PREFIX = "Active", "Standby", "Standby-"


def active_tasks(model: Model) -> Tasks:
    """Return the tasks that each container works on."""
    return _tasks(model, _ACTIVE)


def standby_tasks(model: Model) -> Tasks:
    """Return {container: the tasks whose standbys it keeps}."""
    found = _tasks(model, _STANDBY)
    return {p: {name.removeprefix(_PREFIX).rpartition("-")[0] for name in found[p]} for p in found}


def owners_of(tasks: Tasks) -> dict[str, str]:
    """Return {task: its container}."""
    return {task: p for p, own in tasks.items() for task in own}


def is_mixed(model: Model) -> bool:
    """Return whether a container has tasks of its own and standbys of others."""
    own, kept = active_tasks(model), standby_tasks(model)
    return any(own[p] and kept[p] for p in own)


def idle_containers(model: Model) -> set[str]:
    """Return the mixed containers that work on no task."""
    own = active_tasks(model)
    return {p for p in own if not own[p]} if is_mixed(model) else set()


def is_dealt(model: Model) -> bool:
    """Return whether each task has its standby in another container."""
    own, kept = owners_of(active_tasks(model)), owners_of(standby_tasks(model))
    return own.keys() == kept.keys() and all(own[task] != kept[task] for task in own)


def _tasks(model: Model, mode: str) -> Tasks:
    containers: Mapping[str, Any] = model["containers"]
    return {
        p: {name for name, task in container["tasks"].items() if task["task-mode"] == mode}
        for p, container in containers.items()
    }
