"""The parts that a container's loop and its transactions use."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from homeport.config.declarations import all_keys as keys
from homeport.config.settings.tuning import Tuning
from homeport.container.adjunct.frames import StoreFrames
from homeport.container.api import Timer
from homeport.container.kafka.drain import Drain
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.container.kafka.plain_producer import PlainOutputs
from homeport.container.kafka.purge import Purge
from homeport.container.kafka.topic_watch import TopicWatch
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.processing.adjunct_feed import AdjunctFeed
from homeport.container.processing.task_instance import Outputs, Requests
from homeport.container.processing.timers import Timers
from homeport.container.processing.typed_input import TypedInput
from homeport.container.progress.transaction_plan import TransactionContent
from homeport.container.reporting.traces import NO_TRACES, Traces
from homeport.container.reporting.work_report import WorkReport
from homeport.container.spark.faults import Named
from homeport.container.spark.inputs import Rows
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.task_store import Reached, passed
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

NO_PIPELINE = Named(keys.TASK_PIPELINE_CLASS.name, "")
Offsets = Mapping[TaskName, Mapping[SystemStreamPartition, int]]


class Pipeline(Protocol):
    """Works on the rows between input and tasks."""

    def run(self, given: Rows, stores: StoreFrames, /) -> pa.Table:
        """Return the rows that the pipeline makes of ``given`` and ``stores``, sorted by task."""


class Task(Protocol):
    """One task of the container, of either kind."""

    def process_batch(self, rows: pa.Table) -> None:
        """Call the task with ``rows``."""

    def end_transaction(self) -> None:
        """Give the task its last chance to send."""

    def window(self) -> None:
        """Call the task for its window."""

    def on_timer(self, timer: Timer) -> None:
        """Call the task for ``timer``."""

    def end_of_stream(self) -> None:
        """End the input of the task."""

    def close(self) -> None:
        """Close the task."""


class SideCalls(Protocol):
    """Calls of tasks that were handed over and not made yet."""

    def finish(self) -> None:
        """Make all of them, and wait for their ends."""

    def close(self) -> None:
        """End the threads of the calls."""


@dataclass(frozen=True)
class LoopDependencies:
    """The parts that the loop uses.

    ``processed``: {task: {partition: last processed offset}} at the start, from its checkpoint, or
    the offset before the first that it reads. ``refused``: returns the record that its topic
    refuses, and why; None: no topic refuses one. It raises UnavailableError. ``tuning`` is called
    once per turn of the loop. ``plain``: sends outputs at once; None: they are part of the
    transaction. ``on_step_begin``, ``on_step_done``: get each step of a transaction and of a flush.
    ``typed``: makes columns of the values; None: they are bytes. ``drain``: None: the container is
    never drained. ``calls``: has the calls of tasks until a batch ends; None: each is made when its
    message comes. ``purge``: deletes what is committed; None: there is no repartition.
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
    refused: Callable[[TransactionContent], str | None]
    topics: TopicWatch
    tuning: Callable[[], Tuning]
    plain: PlainOutputs | None = None
    on_step_done: Reached = passed
    report: WorkReport = field(default_factory=WorkReport)
    on_step_begin: Reached = passed
    # Looked up when a loop is made: the world of tests has a module time of its own.
    clock: Callable[[], float] = field(default_factory=lambda: time.monotonic)
    typed: TypedInput | None = None
    timers: Mapping[TaskName, Timers] = field(default_factory=dict)
    calls: SideCalls | None = None
    drain: Drain | None = None
    adjuncts: AdjunctFeed | None = None
    traces: Traces = NO_TRACES
    purge: Purge | None = None

    def of_tasks(self, offsets: Offsets) -> Offsets:
        """Return the offsets of inputs that tasks see.

        An adjunct store has a position of its own, which may be ahead of a dropped transaction.
        """
        if self.adjuncts is None:
            return offsets
        kept = {
            task: {ssp: o for ssp, o in own.items() if ssp not in self.adjuncts.partitions}
            for task, own in offsets.items()
        }
        return {task: own for task, own in kept.items() if own}


@dataclass(frozen=True)
class LoopSettings:
    """Settings of the loop that never change.

    ``max_rows``: the most rows of a micro-batch. ``checkpoint_topic``: None: no checkpoints.
    ``has_windows``: whether tasks have windows. ``overlaps``: whether the pipeline and the sending
    have threads beside the tasks. ``pipeline``: its configuration, for messages.
    """

    max_rows: int
    grouper: str
    checkpoint_topic: str | None
    has_windows: bool
    overlaps: bool
    pipeline: Named = NO_PIPELINE


def flat(offsets: Offsets) -> dict[str, dict[str, Any]]:
    """Return the offsets with partitions as text, ``system.stream.partition``, for the history."""
    return {task: {ssp.name: o for ssp, o in own.items()} for task, own in offsets.items()}


def spans(first: Offsets, last: Offsets) -> dict[str, dict[str, Any]]:
    """Return a transaction's input, for the history: [first, last] offset of each partition.

    A partition of these tasks without records has only the last offset.
    """
    return {
        task: {
            ssp.name: [first[task][ssp], offset] if ssp in first.get(task, ()) else offset
            for ssp, offset in own.items()
        }
        for task, own in last.items()
    }
