"""What was assigned before: all that a JobModel is calculated from beside configuration and inputs.

PURE. Where the values come from (coordinator stream, ZooKeeper) is the reader's affair; every part
may be empty, and is at a first start.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeVar

from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.job_model import JobModel, SystemStreamPartition, TaskMode

_K = TypeVar("_K")
_V = TypeVar("_V")


def _empty() -> Mapping[_K, _V]:
    return MappingProxyType({})


@dataclass(frozen=True)
class PreviousAssignment:
    """The last assignment and where it ran; of active tasks, but for ``standbys``.

    Shapes: ``task_processors`` {task: the processor that had it}; ``task_partitions`` {task: its
    input partitions, broadcast ones included}; ``changelog_partitions`` {task: its changelog
    partition}, of tasks that are gone too; ``task_hosts`` {task: where it last ran};
    ``processor_hosts`` {processor: where it last ran, or runs}; ``standbys`` {task: {name of its
    standby: the processor that had that}} where processors are mixed, and
    ``task_hosts`` has their names too.

    Source: HA-STANDALONE, "GrouperMetadata"; Samza 1.8, GrouperMetadata.
    """

    task_processors: Mapping[TaskName, ProcessorId] = field(default_factory=_empty)
    task_partitions: Mapping[TaskName, frozenset[SystemStreamPartition]] = field(
        default_factory=_empty
    )
    changelog_partitions: Mapping[TaskName, int] = field(default_factory=_empty)
    task_hosts: Mapping[TaskName, Host] = field(default_factory=_empty)
    processor_hosts: Mapping[ProcessorId, Host] = field(default_factory=_empty)
    standbys: Mapping[TaskName, Mapping[TaskName, ProcessorId]] = field(default_factory=_empty)


NOTHING = PreviousAssignment()
"""Of a job that never ran."""


def assigned_by(model: JobModel) -> PreviousAssignment:
    """Return what a JobModel of mixed containers assigns: its active tasks, and its standbys."""
    owners: dict[TaskName, ProcessorId] = {}
    standbys: dict[TaskName, dict[TaskName, ProcessorId]] = {}
    for processor_id, container in model.containers.items():
        for name, task in container.tasks.items():
            if task.task_mode is TaskMode.ACTIVE:
                owners[name] = processor_id
            else:
                standbys.setdefault(task.state_of, {})[name] = processor_id
    return PreviousAssignment(task_processors=owners, standbys=standbys)
