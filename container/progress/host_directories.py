"""The kind and the owner of each directory below a job's folder, and whether it may be removed.

PURE. A directory is ``<store>/<task>``, and a standby has that of its active task. The locality
decides which state belongs on a host: that of the processor that last ran the task there, active or
standby. A directory at home or in use is never removed. Others may be needed again (a container
comes home, a rollback) until they are old.

Source: Samza 1.8 ``LocalStoreMonitor``, without its known faults: a store without an OFFSET is as
new as its newest file, and checkpoint directories and vanished tasks are judged too.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath

from homeport.config.path_names import path_part
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import ContainerModel, TaskMode, TaskModel

_CHECKPOINT = re.compile(r"(?P<task>.+)-\d+-\d+")
"""Samza's directories of a store checkpoint: ``<task>-<ms since the epoch>-<nanoseconds>``."""


class DirectoryKind(StrEnum):
    """The kind of a directory."""

    STORE = "store"
    CHECKPOINT = "checkpoint"
    VANISHED_TASK = "vanished task"
    VANISHED_STORE = "vanished store"
    UNKNOWN = "unknown"


class HostRole(StrEnum):
    """The role in which a task last ran on the host; elsewhere: on another host, or never."""

    ACTIVE = "active"
    STANDBY = "standby"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Owner:
    """The task of a directory, its role here, and the host where its active one last ran."""

    store: str
    task: TaskModel
    role: HostRole
    active_host: Host | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a directory may be removed, and why (not)."""

    is_removable: bool
    reason: str


IN_USE = Verdict(is_removable=False, reason="in use")


def owners(
    stores: Iterable[str],
    containers: Iterable[ContainerModel],
    task_hosts: Mapping[TaskName, Host],
    processor_hosts: Mapping[ProcessorId, Host],
    host: Host,
    shared: Iterable[str] = (),
) -> dict[PurePosixPath, Owner]:
    """Return {directory below the job's folder: its owner} for every task and store.

    ``stores``: those that a start may find again, with a part for each task. ``shared``: those that
    each container has whole; their home is that of its first task.
    """
    containers = tuple(containers)
    actives: dict[TaskName, tuple[TaskModel, Host | None]] = {}
    replicas: dict[TaskName, set[Host]] = {}
    for container in containers:
        at = processor_hosts.get(container.processor_id)
        for task in container.tasks.values():
            own = task_hosts.get(task.task_name, at)
            if task.task_mode is TaskMode.ACTIVE:
                actives[task.task_name] = (task, own)
            elif task.active_task is not None and own is not None:
                replicas.setdefault(task.active_task, set()).add(own)

    def owner(store: str, name: TaskName) -> Owner:
        task, active_host = actives[name]
        role = HostRole.STANDBY if host in replicas.get(name, ()) else HostRole.ELSEWHERE
        return Owner(store, task, HostRole.ACTIVE if host == active_host else role, active_host)

    found = {
        task_directory(store, name): owner(store, name) for store in stores for name in actives
    }
    for store in shared:
        for container in containers:
            first = min(container.tasks.values(), key=lambda task: task.state_of, default=None)
            if first is not None and first.task_mode is TaskMode.ACTIVE:
                directory = container_directory(store, container.processor_id)
                found[directory] = owner(store, first.task_name)
    return found


def kind_of(directory: PurePosixPath, known: Mapping[PurePosixPath, Owner]) -> DirectoryKind:
    """Return the kind of ``<store>/<task>`` below the job's folder."""
    if directory in known:
        return DirectoryKind.STORE
    if directory.parent not in {path.parent for path in known}:
        return DirectoryKind.VANISHED_STORE
    match = _CHECKPOINT.fullmatch(directory.name)
    return DirectoryKind.CHECKPOINT if match else DirectoryKind.VANISHED_TASK


def checkpointed(name: str) -> str | None:
    """Return the directory of the task whose checkpoint of Samza's ``name`` is; None: of none."""
    match = _CHECKPOINT.fullmatch(name)
    return None if match is None else match["task"]


def judged(
    kind: DirectoryKind, owner: Owner | None, *, is_held: bool, age_ms: int, limit_ms: int
) -> Verdict:
    """Return the verdict on a directory whose newest file is ``age_ms`` old."""
    if is_held:
        return IN_USE
    if owner is not None and owner.role is not HostRole.ELSEWHERE:
        return Verdict(is_removable=False, reason=f"the job's own: {owner.role} on this host")
    what = _reason(kind, owner)
    if age_ms < limit_ms:
        return Verdict(is_removable=False, reason=f"{what}, but younger than the limit")
    return Verdict(is_removable=True, reason=what)


def _reason(kind: DirectoryKind, owner: Owner | None) -> str:
    if kind is DirectoryKind.CHECKPOINT:
        return "a checkpoint of Samza's, which nothing here reads"
    if kind is DirectoryKind.VANISHED_TASK:
        return "the job has no such task"
    if kind is DirectoryKind.VANISHED_STORE:
        return "the job has no such store with a changelog"
    where = owner.active_host if owner is not None else None
    return f"its task last ran on {where}" if where else "its task never ran on this host"


_UNITS_MS = {"s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(text: str) -> int | None:
    """Return ``7d``, ``12h``, ``30m`` or ``90s`` in milliseconds; None for another form."""
    match = re.fullmatch(r"([0-9]{1,9})([smhd])", text.strip())
    return int(match[1]) * _UNITS_MS[match[2]] if match else None


def freed_bytes(links: Iterable[tuple[tuple[int, int], int, int]]) -> int:
    """Return the bytes that the disk gets back when all of ``links`` are removed.

    A file with a name elsewhere (a checkpoint shares its tables with the store) gives back nothing.
    Shapes: ``links`` ((device, inode), names it has, bytes on the disk) per name.
    """
    removed: Counter[tuple[int, int]] = Counter()
    freed = 0
    for file, names, size in links:
        removed[file] += 1
        if removed[file] == names:
            freed += size
    return freed


def task_directory(store: str, task_name: TaskName) -> PurePosixPath:
    """Return ``<store>/<task>`` below the job's folder, as Samza 1.8: a space becomes ``_``."""
    return PurePosixPath(_spaces(path_part(store)), _spaces(path_part(task_name)))


def container_directory(store: str, owner: ProcessorId) -> PurePosixPath:
    """Return the directory, below the job's folder, of a store that the container has whole."""
    return task_directory(store, TaskName(f"container-{owner}"))


def _spaces(part: str) -> str:
    return part.replace(" ", "_")
