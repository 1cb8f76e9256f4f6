"""JobModel, ContainerModel, TaskModel, SystemStreamPartition: immutable values.

PURE. Which host anything runs on is not part of the model (HA-STANDALONE; design, section 5).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from homeport.config.config import Config
from homeport.config.system_stream import SystemStream
from homeport.job_coordinator.model.ids import ProcessorId, TaskName

__all__ = [
    "ContainerModel",
    "JobModel",
    "SystemStream",
    "SystemStreamPartition",
    "TaskMode",
    "TaskModel",
]


class TaskMode(Enum):
    """Whether a task processes input or only keeps a replica of the state."""

    ACTIVE = "Active"
    STANDBY = "Standby"


@dataclass(frozen=True, order=True, slots=True)
class SystemStreamPartition:
    """One partition of a stream; ``key_bucket`` is -1 unless elasticity is used (it is not)."""

    system: str
    stream: str
    partition: int
    key_bucket: int = -1

    @property
    def system_stream(self) -> SystemStream:
        """The stream this is a partition of."""
        return SystemStream(self.system, self.stream)

    def __str__(self) -> str:
        """Samza's form, part of checkpoint bytes: ``SystemStreamPartition [kafka, in, 0]``."""
        bucket = "" if self.key_bucket < 0 else f", {self.key_bucket}"
        return f"SystemStreamPartition [{self.system}, {self.stream}, {self.partition}{bucket}]"


@dataclass(frozen=True, slots=True)
class TaskModel:
    """One task: its input partitions in sorted order, and its partition of every changelog."""

    task_name: TaskName
    system_stream_partitions: tuple[SystemStreamPartition, ...]
    changelog_partition: int
    task_mode: TaskMode = TaskMode.ACTIVE


@dataclass(frozen=True)
class ContainerModel:
    """One logical container and its tasks, by name in sorted order."""

    processor_id: ProcessorId
    tasks: Mapping[TaskName, TaskModel]


@dataclass(frozen=True)
class JobModel:
    """The whole job: its configuration and its containers, by processor id."""

    config: Config
    containers: Mapping[ProcessorId, ContainerModel]

    @property
    def max_change_log_stream_partitions(self) -> int:
        """Partitions each changelog topic needs: 1 + the highest one; 0 where there is no task."""
        return max(
            (t.changelog_partition + 1 for c in self.containers.values() for t in c.tasks.values()),
            default=0,
        )
