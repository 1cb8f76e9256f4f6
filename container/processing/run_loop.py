"""RunLoop: input to pipeline to tasks, one transaction after the other, commits in between."""

from __future__ import annotations

import logging
import math
import time

from homeport.config.errors import ConfigError
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.kafka.input_consumer import InputConsumer, MicroBatch
from homeport.container.processing.loop_parts import (
    LoopParts,
    LoopSettings,
    OpenTransaction,
    Task,
    flat,
)
from homeport.container.processing.transaction import TransactionShell
from homeport.container.spark.table_order import rows_by_task
from homeport.job_coordinator.model.ids import TaskName

_LOG = logging.getLogger(__name__)

_IDLE_S = 0.2
_PROGRESS_S = 5.0


class RunLoop:
    """Runs until told to stop, until its tasks want no more, or something fails. One thread."""

    def __init__(self, parts: LoopParts, settings: LoopSettings, stop: StopFlag) -> None:
        self._parts = parts
        self._settings = settings
        self._stop = stop
        self._processed = {task: dict(offsets) for task, offsets in parts.processed.items()}
        self._open = OpenTransaction()
        self._transactions = TransactionShell(parts, settings, stop)
        self._committed_at = time.monotonic()
        self._progress = _Progress()
        self._windows = _Windows(settings.window_ms)
        self._had_record = False
        self._has_ended_one = False

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
                else:
                    self._parts.first_work.idles(self._parts.source.is_caught_up)
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
        parts = self._parts
        if self._open.began is None and (parts.outputs.sends or parts.storage.size_bytes):
            self._open.began = time.monotonic()
        self._transactions.hand_out()

    def _patience_s(self) -> float:
        patience_s = min(_IDLE_S, self._windows.wait_s())
        if self._open.began is None:
            return patience_s
        age_s = time.monotonic() - self._open.began
        return max(0.0, min(patience_s, self._settings.limits.max_ms / 1000 - age_s))

    def _process(self, batch: MicroBatch) -> None:
        if not self._had_record:
            self._had_record = True
            self._parts.history("first-record", offsets=flat(batch.processed))
        if self._open.began is None:
            self._open.began = time.monotonic()
        self._open.input_bytes += batch.size_bytes
        table = batch.table
        if self._parts.pipeline is not None:
            table = self._parts.pipeline.run(table)
            self._stop.check()
        for task, rows in rows_by_task(table):
            self._task(TaskName(task)).process_batch(rows)
            self._transactions.hand_out()
            self._open.had_batch.add(TaskName(task))
            self._stop.check()
        for task_name, offsets in batch.first.items():
            known = self._open.first.get(task_name, {})
            self._open.first[task_name] = {**offsets, **known}
        for task_name, offsets in batch.processed.items():
            self._processed[task_name].update(offsets)
            self._open.touched.add(task_name)
        self._progress.add(batch.table.num_rows, self._parts.source)

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
        if self._open.began is None:
            return False
        if self._parts.requests.commit:
            return True
        if self._open.touched and not self._has_ended_one:
            # Its readers have waited for a whole recovery: the first batch is not held back.
            return True
        age_ms = (time.monotonic() - self._open.began) * 1000
        size = (
            self._parts.outputs.size_bytes + self._parts.storage.size_bytes + self._open.input_bytes
        )
        return self._settings.limits.is_due(age_ms, size)

    def _end_transaction(self) -> None:
        self._transactions.end(self._open, self._processed)
        self._has_ended_one = True
        self._drop()

    def _drop(self) -> None:
        self._parts.outputs.clear()
        self._parts.storage.drop()
        self._open = OpenTransaction()

    def _commit_if_due(self) -> None:
        age_ms = (time.monotonic() - self._committed_at) * 1000
        is_asked = self._parts.requests.commit
        is_due = age_ms >= self._settings.commit_ms or self._parts.storage.has_first_changes()
        if is_asked or is_due:
            self._parts.topics.check()
            self.commit()
            self._parts.requests.commit = False

    def commit(self) -> None:
        """All stores are flushed and their OFFSET files name where they stand."""
        moved = self._parts.storage.commit(self._parts.reached)
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
