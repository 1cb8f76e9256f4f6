"""RunLoop: input to pipeline to tasks, one transaction after the other, flushes in between."""

from __future__ import annotations

import logging
import math
import time

from homeport.config.errors import ConfigError
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.kafka.input_consumer import InputConsumer, MicroBatch
from homeport.container.processing.loop_parts import LoopParts, LoopSettings, Task, flat
from homeport.container.processing.open_transaction import OpenTransaction
from homeport.container.spark.table_order import rows_by_task
from homeport.job_coordinator.model.ids import TaskName

_LOG = logging.getLogger(__name__)

_IDLE_S = 0.2
_PROGRESS_S = 5.0


class RunLoop:
    """Runs until a stop is ordered, all tasks want no more, or something fails. One thread."""

    def __init__(self, parts: LoopParts, settings: LoopSettings, stop: StopFlag) -> None:
        self._parts = parts
        self._settings = settings
        self._stop = stop
        self._open = OpenTransaction(parts, settings, stop)
        self._flushed_at = time.monotonic()
        self._tuning = parts.tuning()
        self._progress = _Progress()
        self._windows = _Windows()
        self._had_record = False

    def run(self) -> bool:
        """Whether every task has voted for the end, with all that was processed committed.

        False when a stop was ordered; the transaction that was open then is dropped.
        """
        try:
            while True:
                self._stop.check()
                self._take_tuning()
                batch = self._parts.source.poll(self._settings.max_rows, self._patience_s())
                self._stop.check()
                if batch is not None:
                    self._process(batch)
                else:
                    source = self._parts.source
                    self._parts.report.idles(source.is_caught_up, source.lag)
                self._window_if_due()
                if self._parts.requests.has_all_of(self._parts.tasks):
                    self._finish()
                    return True
                if self._open.is_due():
                    self._open.end()
                self._flush_if_due()
        except StopRequestedError:
            _LOG.info("ordered to stop: the open transaction is dropped")
        except Exception as error:
            # SIGTERM goes to the whole process group: with the JVM gone first, what fails here is
            # the stop itself.
            if not self._stop.is_set():
                raise
            _LOG.info("ordered to stop: the work under way is dropped (%s)", type(error).__name__)
        self._open.drop()
        return False

    def _take_tuning(self) -> None:
        self._tuning = self._open.tuning = self._parts.tuning()
        if self._settings.has_windows:
            self._windows.keep_to(self._tuning.window_ms)

    def _finish(self) -> None:
        for _, task in sorted(self._parts.tasks.items()):
            task.end_of_stream()
            self._stop.check()
        self._open.end()
        _LOG.info("every task has voted for the end: finished")

    def _window_if_due(self) -> None:
        if not self._windows.is_due():
            return
        for _, task in sorted(self._parts.tasks.items()):
            task.window()
            self._stop.check()
        self._open.add_writes()

    def _patience_s(self) -> float:
        return max(0.0, min(_IDLE_S, self._windows.wait_s(), self._open.time_left_s()))

    def _process(self, batch: MicroBatch) -> None:
        if not self._had_record:
            self._had_record = True
            self._parts.history("first-record", offsets=flat(batch.processed))
        self._open.begin()
        table = batch.table
        if self._parts.pipeline is not None:
            table = self._parts.pipeline.run(table)
            self._stop.check()
        for task, rows in rows_by_task(table):
            self._task(TaskName(task)).process_batch(rows)
            self._open.had_rows.add(TaskName(task))
            self._open.add_writes()
            self._stop.check()
        self._open.add_input(batch)
        self._parts.report.read(batch.table.num_rows)
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

    def _flush_if_due(self) -> None:
        age_ms = (time.monotonic() - self._flushed_at) * 1000
        is_asked = self._parts.requests.commit
        is_due = age_ms >= self._tuning.commit_ms or self._parts.storage.has_first_changes()
        if is_asked or is_due:
            self._parts.topics.check()
            self.flush()
            self._parts.requests.commit = False

    def flush(self) -> None:
        """All stores are flushed and their OFFSET files name where they stand."""
        moved = self._parts.storage.flush(self._parts.reached)
        self._flushed_at = time.monotonic()
        if moved:
            self._parts.history("commit", stores=moved)


class _Windows:
    """When windows are due: never, or at a fixed rate, the first after one whole period."""

    def __init__(self) -> None:
        self._period_s: float | None = None
        self._next = 0.0

    def keep_to(self, period_ms: int | None) -> None:
        """They are due at that rate; another one than before begins now. None: never."""
        period_s = None if period_ms is None else period_ms / 1000
        if period_s != self._period_s:
            self._period_s = period_s
            self._next = time.monotonic() + (period_s or 0)

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
