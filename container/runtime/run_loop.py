"""RunLoop: input to pipeline to tasks, one transaction after the other, commits in between."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from homeport.config.errors import ConfigError, UnavailableError
from homeport.container.kafka.clients import TransactionError
from homeport.container.kafka.input_consumer import InputConsumer, MicroBatch
from homeport.container.kafka.plain_producer import PlainOutputs
from homeport.container.kafka.transactional_producer import (
    RecordRefusedError,
    TransactionalProducer,
)
from homeport.container.progress import oversized
from homeport.container.progress.commit import (
    TransactionContent,
    TransactionLimits,
    sends_in_order,
)
from homeport.container.runtime.stop_flag import StopFlag, StopRequestedError
from homeport.container.runtime.stream_task_instance import Requests
from homeport.container.runtime.task_instance import Outputs
from homeport.container.storage.managers import ContainerStorage
from homeport.container.table_order import rows_by_task
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)

_IDLE_S = 0.2
_PROGRESS_S = 5.0


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
        """The task was told that it gets no more."""

    def close(self) -> None:
        """The task was closed."""


@dataclass(frozen=True)
class LoopParts:
    """What the loop works with.

    ``processed``: per task, what its checkpoint says, and what was skipped by where it started.
    ``requests``: what the tasks ask for. ``record_limit``: the largest record of a topic, in bytes.
    ``plain``: who sends the outputs at once; None where they are part of the transaction.
    """

    source: InputConsumer
    pipeline: Pipeline | None
    tasks: Mapping[TaskName, Task]
    requests: Requests
    outputs: Outputs
    storage: ContainerStorage
    producer: TransactionalProducer
    processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]]
    history: Callable[..., None]
    record_limit: Callable[[str], int]
    plain: PlainOutputs | None = None


@dataclass(frozen=True)
class LoopSettings:
    """Units: ms, rows. ``checkpoint_topic``, ``window_ms``: None for no checkpoints, no windows."""

    limits: TransactionLimits
    commit_ms: int
    max_rows: int
    grouper: str
    checkpoint_topic: str | None
    window_ms: int | None = None


class RunLoop:
    """Runs until told to stop, until its tasks want no more, or something fails. One thread."""

    def __init__(self, parts: LoopParts, settings: LoopSettings, stop: StopFlag) -> None:
        self._parts = parts
        self._settings = settings
        self._stop = stop
        self._processed = {task: dict(offsets) for task, offsets in parts.processed.items()}
        self._first: dict[TaskName, dict[SystemStreamPartition, int]] = {}
        self._touched: set[TaskName] = set()
        self._had_batch: set[TaskName] = set()
        self._input_bytes = 0
        self._began: float | None = None
        self._committed_at = time.monotonic()
        self._progress = _Progress()
        self._windows = _Windows(settings.window_ms)
        self._had_record = False

    def run(self) -> bool:
        """Whether every task has voted for the end, with all that was processed committed.

        False when told to stop; what was not whole by then is dropped, not committed.
        """
        try:
            while True:
                self._stop.check()
                batch = self._parts.source.poll(self._settings.max_rows, self._patience_s())
                self._stop.check()
                if batch is not None:
                    self._process(batch)
                self._window_if_due()
                if self._parts.requests.has_all_of(self._parts.tasks):
                    self._finish()
                    return True
                if self._is_due():
                    self._end_transaction()
                self._commit_if_due()
        except StopRequestedError:
            _LOG.info("told to stop: the open transaction is dropped")
        except Exception as error:
            # SIGTERM goes to the whole process group: with the JVM gone first, what fails here is
            # the stop itself.
            if not self._stop.is_set():
                raise
            _LOG.info("told to stop: what was being done is dropped (%s)", type(error).__name__)
        self._drop()
        return False

    def _finish(self) -> None:
        for _, task in sorted(self._parts.tasks.items()):
            task.end_of_stream()
            self._stop.check()
        self._end_transaction()
        _LOG.info("every task has voted for the end: finished")

    def _window_if_due(self) -> None:
        if not self._windows.is_due():
            return
        for _, task in sorted(self._parts.tasks.items()):
            task.window()
            self._stop.check()
        if self._began is None and (self._parts.outputs.sends or self._parts.storage.size_bytes):
            self._began = time.monotonic()
        self._hand_out()

    def _patience_s(self) -> float:
        patience_s = min(_IDLE_S, self._windows.wait_s())
        if self._began is None:
            return patience_s
        age_s = time.monotonic() - self._began
        return max(0.0, min(patience_s, self._settings.limits.max_ms / 1000 - age_s))

    def _process(self, batch: MicroBatch) -> None:
        if not self._had_record:
            self._had_record = True
            self._parts.history("first-record", offsets=_flat(batch.processed))
        if self._began is None:
            self._began = time.monotonic()
        self._input_bytes += batch.size_bytes
        table = batch.table
        if self._parts.pipeline is not None:
            table = self._parts.pipeline.run(table)
            self._stop.check()
        for task, rows in rows_by_task(table):
            self._task(TaskName(task)).process_batch(rows)
            self._hand_out()
            self._had_batch.add(TaskName(task))
            self._stop.check()
        for task_name, offsets in batch.first.items():
            known = self._first.get(task_name, {})
            self._first[task_name] = {**offsets, **known}
        for task_name, offsets in batch.processed.items():
            self._processed[task_name].update(offsets)
            self._touched.add(task_name)
        self._progress.add(batch.table.num_rows, self._parts.source)

    def _hand_out(self) -> None:
        """Outputs that are no part of the transaction are on their way."""
        if self._parts.plain is not None:
            self._parts.plain.send(self._parts.outputs.take())

    def _task(self, task_name: TaskName) -> Task:
        try:
            return self._parts.tasks[task_name]
        except KeyError:
            raise ConfigError(
                "task.pipeline.class",
                None,
                f"a row came out of it for task {task_name!r}, which this container does not have",
                "keep the column 'task' as it came in",
            ) from None

    def _is_due(self) -> bool:
        if self._began is None:
            return False
        if self._parts.requests.commit:
            return True
        age_ms = (time.monotonic() - self._began) * 1000
        size = self._parts.outputs.size_bytes + self._parts.storage.size_bytes + self._input_bytes
        return self._settings.limits.is_due(age_ms, size)

    def _end_transaction(self) -> None:
        parts = self._parts
        for task_name in sorted(self._had_batch):
            parts.tasks[task_name].end_transaction()
        self._stop.check()
        self._hand_out()
        content = TransactionContent(
            parts.outputs.sends,
            parts.storage.changes(),
            {task: self._processed[task] for task in sorted(self._touched)},
        )
        topic = self._settings.checkpoint_topic
        parts.producer.await_broker(self._stop.pause)
        if parts.plain is not None:
            parts.plain.settle(self._stop.pause)
        # Told before as well as after: who dies in between has perhaps committed.
        story = {"first": _flat(self._first), "offsets": _flat(content.processed)}
        parts.history("transaction-ending", **story)
        positions = self._sent(content, topic)
        parts.history("transaction-committed", **story)
        parts.storage.apply(positions)
        self._drop()

    def _sent(self, content: TransactionContent, topic: str | None) -> dict[tuple[str, int], int]:
        try:
            sends = sends_in_order(content, self._settings.grouper, topic)
            return self._parts.producer.commit(sends)
        except RecordRefusedError as error:
            try:
                topics = oversized.topics(content)
                limits = {name: self._parts.record_limit(name) for name in topics}
            except UnavailableError:
                raise error from None
            story = oversized.story(content, limits)
            if story is None:
                raise
            raise TransactionError(f"{story}; nothing of the transaction was committed") from None

    def _drop(self) -> None:
        self._parts.outputs.clear()
        self._parts.storage.drop()
        self._first = {}
        self._touched = set()
        self._had_batch = set()
        self._input_bytes = 0
        self._began = None

    def _commit_if_due(self) -> None:
        age_ms = (time.monotonic() - self._committed_at) * 1000
        is_asked = self._parts.requests.commit
        is_due = age_ms >= self._settings.commit_ms or self._parts.storage.has_first_changes()
        if is_asked or is_due:
            self.commit()
            self._parts.requests.commit = False

    def commit(self) -> None:
        """All stores are flushed and their OFFSET files name where they stand."""
        moved = self._parts.storage.commit()
        self._committed_at = time.monotonic()
        if moved:
            self._parts.history("commit", stores=moved)


class _Windows:
    """When windows are due: at a fixed rate, the first after one whole period; None: never."""

    def __init__(self, period_ms: int | None) -> None:
        self._period_s = None if period_ms is None else period_ms / 1000
        self._next = time.monotonic() + (self._period_s or 0)

    def wait_s(self) -> float:
        """Seconds until the next one."""
        if self._period_s is None:
            return math.inf
        return max(0.0, self._next - time.monotonic())

    def is_due(self) -> bool:
        """Whether one is due; it then counts as held. Missed ones are not made up for."""
        if self._period_s is None or self.wait_s() > 0:
            return False
        missed = (time.monotonic() - self._next) // self._period_s
        self._next += (missed + 1) * self._period_s
        return True


class _Progress:
    """One line every few seconds in which something was read."""

    def __init__(self) -> None:
        self._rows = 0
        self._since = time.monotonic()

    def add(self, rows: int, source: InputConsumer) -> None:
        if self._rows == 0:
            self._since = max(self._since, time.monotonic() - _PROGRESS_S)
        self._rows += rows
        passed = time.monotonic() - self._since
        if passed >= _PROGRESS_S:
            rate = self._rows / passed
            _LOG.info(
                "%d records in %.1f s (%.0f/s), lag %d", self._rows, passed, rate, source.lag()
            )
            self._rows = 0
            self._since = time.monotonic()


def _flat(
    processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]],
) -> dict[str, dict[str, Any]]:
    return {
        task: {f"{s.system}.{s.stream}.{s.partition}": offset for s, offset in offsets.items()}
        for task, offsets in processed.items()
    }
