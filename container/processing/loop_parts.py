"""What a container's loop and its transactions work with."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from homeport.config.settings.tuning import Tuning
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.container.kafka.plain_producer import PlainOutputs
from homeport.container.kafka.topic_watch import TopicWatch
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.processing.stream_task_instance import Requests
from homeport.container.processing.task_instance import Outputs
from homeport.container.processing.work_report import WorkReport
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.task_store import Reached, passed
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

Offsets = Mapping[TaskName, Mapping[SystemStreamPartition, int]]


class Pipeline(Protocol):
    """What stands between input and tasks."""

    def run(self, table: pa.Table) -> pa.Table:
        """The pipeline's rows, sorted by task."""


class Task(Protocol):
    """One task of the container, of either kind."""

    def process_batch(self, rows: pa.Table) -> None:
        """The task has seen ``rows``."""

    def end_transaction(self) -> None:
        """The task had its last chance to send."""

    def window(self) -> None:
        """The task had its window."""

    def end_of_stream(self) -> None:
        """The task knows that it gets no more."""

    def close(self) -> None:
        """The task was closed."""


@dataclass(frozen=True)
class LoopParts:
    """What the loop works with.

    ``processed``: per task, what its checkpoint says, and what was skipped by where it started.
    ``requests``: what the tasks ask for. ``record_limit``: the largest record of a topic, in bytes.
    ``tuning``: the tuning in force, asked for once per turn of the loop.
    ``topics``: knows whether changelogs and checkpoint topic are still those it began with.
    ``plain``: sends the outputs at once; None where they are part of the transaction.
    ``reached``: gets each step of a transaction and of a flush when it is done.
    ``report``: reports the work to the AM.
    """

    source: InputConsumer
    pipeline: Pipeline | None
    tasks: Mapping[TaskName, Task]
    requests: Requests
    outputs: Outputs
    storage: ContainerStorage
    producer: TransactionalProducer
    processed: Offsets
    history: Callable[..., None]
    record_limit: Callable[[str], int]
    topics: TopicWatch
    tuning: Callable[[], Tuning]
    plain: PlainOutputs | None = None
    reached: Reached = passed
    report: WorkReport = field(default_factory=WorkReport)


@dataclass(frozen=True)
class LoopSettings:
    """What the loop keeps from start to end.

    ``checkpoint_topic``: None for no checkpoints. ``has_windows``: whether tasks have any.
    """

    max_rows: int
    grouper: str
    checkpoint_topic: str | None
    has_windows: bool = False


def flat(offsets: Offsets) -> dict[str, dict[str, Any]]:
    """The offsets with partitions as text, ``system.stream.partition``, as the history has them."""
    return {
        task: {f"{s.system}.{s.stream}.{s.partition}": offset for s, offset in own.items()}
        for task, own in offsets.items()
    }
