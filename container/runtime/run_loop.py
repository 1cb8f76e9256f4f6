"""RunLoop: input to pipeline to tasks, one transaction after the other, commits in between."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import pyarrow as pa

from homeport.config.errors import ConfigError
from homeport.container.kafka.input_consumer import InputConsumer, MicroBatch
from homeport.container.kafka.transactional_producer import TransactionalProducer
from homeport.container.progress.commit import (
    TransactionContent,
    TransactionLimits,
    sends_in_order,
)
from homeport.container.runtime.stop_flag import StopFlag, StopRequestedError
from homeport.container.runtime.task_instance import Outputs, TaskInstance
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


@dataclass(frozen=True)
class LoopParts:
    """What the loop works with.

    ``processed``: per task, what its checkpoint says, and what was skipped by where it started.
    """

    source: InputConsumer
    pipeline: Pipeline | None
    tasks: Mapping[TaskName, TaskInstance]
    outputs: Outputs
    storage: ContainerStorage
    producer: TransactionalProducer
    processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]]
    history: Callable[..., None]


@dataclass(frozen=True)
class LoopSettings:
    """Units: ms, rows. ``checkpoint_topic`` None: no checkpoints are written."""

    limits: TransactionLimits
    commit_ms: int
    max_rows: int
    grouper: str
    checkpoint_topic: str | None


class RunLoop:
    """Runs until told to stop or until something fails. One thread."""

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
        self._had_record = False

    def run(self) -> None:
        """Returns when told to stop; what was not whole by then is dropped, not committed."""
        try:
            while True:
                self._stop.check()
                batch = self._parts.source.poll(self._settings.max_rows, self._patience_s())
                self._stop.check()
                if batch is not None:
                    self._process(batch)
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

    def _patience_s(self) -> float:
        if self._began is None:
            return _IDLE_S
        age_s = time.monotonic() - self._began
        return max(0.0, min(_IDLE_S, self._settings.limits.max_ms / 1000 - age_s))

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
            self._had_batch.add(TaskName(task))
            self._stop.check()
        for task_name, offsets in batch.first.items():
            known = self._first.get(task_name, {})
            self._first[task_name] = {**offsets, **known}
        for task_name, offsets in batch.processed.items():
            self._processed[task_name].update(offsets)
            self._touched.add(task_name)
        self._progress.add(batch.table.num_rows, self._parts.source)

    def _task(self, task_name: TaskName) -> TaskInstance:
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
        age_ms = (time.monotonic() - self._began) * 1000
        size = self._parts.outputs.size_bytes + self._parts.storage.size_bytes + self._input_bytes
        return self._settings.limits.is_due(age_ms, size)

    def _end_transaction(self) -> None:
        parts = self._parts
        for task_name in sorted(self._had_batch):
            parts.tasks[task_name].end_transaction()
        self._stop.check()
        content = TransactionContent(
            parts.outputs.sends,
            parts.storage.changes(),
            {task: self._processed[task] for task in sorted(self._touched)},
        )
        topic = self._settings.checkpoint_topic
        # Told before as well as after: who dies in between has perhaps committed.
        story = {"first": _flat(self._first), "offsets": _flat(content.processed)}
        parts.history("transaction-ending", **story)
        positions = parts.producer.commit(sends_in_order(content, self._settings.grouper, topic))
        parts.history("transaction-committed", **story)
        parts.storage.apply(positions)
        self._drop()

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
        if age_ms >= self._settings.commit_ms or self._parts.storage.has_first_changes():
            self.commit()

    def commit(self) -> None:
        """All stores are flushed and their OFFSET files name where they stand."""
        moved = self._parts.storage.commit()
        self._committed_at = time.monotonic()
        if moved:
            self._parts.history("commit", stores=moved)


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
