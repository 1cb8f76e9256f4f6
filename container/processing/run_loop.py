"""RunLoop: input to pipeline to tasks, one transaction after the other, flushes in between."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable

from homeport.config.errors import in_one_line
from homeport.container.host.executors import OneThread, SameThread
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.kafka.input_consumer import InputConsumer, MicroBatch
from homeport.container.processing.ahead import Ahead, Piped
from homeport.container.processing.loop_parts import LoopParts, LoopSettings, Task, flat
from homeport.container.processing.open_transaction import OpenTransaction
from homeport.container.processing.timer_work import TimerWork
from homeport.container.progress.batch_size import BatchSize
from homeport.container.progress.pace import ENOUGH_ROWS, Filling
from homeport.container.spark.table_order import rows_by_task
from homeport.job_coordinator.model.ids import TaskName

_LOG = logging.getLogger(__name__)

_IDLE_S = 0.2
_QUIET_S = 0.01
"""Where a poll of so long brings nothing, there is nothing for now, whatever offsets suggest."""
_SHARE = 1 / 3
"""Of the time, at most, for micro-batches of few rows, where a batch may fill."""
_PROGRESS_S = 5.0


class RunLoop:
    """Runs until a stop is ordered, all tasks want no more, or something fails.

    One thread, which alone uses the input, the tasks and the stores. Where the loop overlaps, the
    pipeline has a thread of its own, and works on batches that the tasks get later; another one
    sends and commits what the tasks have done, while they work on what comes next.
    """

    def __init__(self, parts: LoopParts, settings: LoopSettings, stop: StopFlag) -> None:
        self._parts = parts
        self._settings = settings
        self._stop = stop
        self._clock = parts.clock or time.monotonic
        # Outputs that leave at once would leave from both threads.
        sends_beside = settings.overlaps and parts.plain is None
        sending = OneThread("sending") if sends_beside else SameThread()
        self._open = OpenTransaction(parts, settings, stop, sending)
        beside = OneThread("pipeline") if settings.overlaps else SameThread()
        self._ahead = Ahead(parts.pipeline, beside, self._clock, parts.typed, parts.adjuncts)
        self._flushed_at = self._clock()
        self._tuning = parts.tuning()
        self._progress = _Progress(self._clock)
        self._windows = _Windows(self._clock)
        self._timers = TimerWork(parts.timers, parts.tasks, stop.check)
        self._filling = Filling(_SHARE)
        self._size = BatchSize(settings.max_rows)
        self._is_quiet = False  # else nothing is on its way either: the last poll was the only one
        self._fetch_s = 0.0
        self._had_record = False
        self._batches = 0

    def run(self) -> bool:
        """Whether every task has voted for the end, or the input is drained, and all is committed.

        False when a stop was ordered; the transaction that was open then is dropped.
        """
        try:
            while not self.turn():
                pass
        except StopRequestedError:
            _LOG.info("ordered to stop: the open transaction is dropped")
        except Exception as error:
            if self._open.is_on_its_way:
                said = in_one_line(error)
                _LOG.info("a transaction is on its way, and arrives before the end: %s", said)
            # SIGTERM goes to the whole process group: with the JVM gone first, what fails here is
            # the stop itself.
            if not self._stop.is_set():
                raise
            _LOG.info("ordered to stop: the work under way is dropped (%s)", type(error).__name__)
        else:
            return True
        finally:
            # Of what is on its way to the tasks nothing counts as read.
            self._ahead.close()
            self._settle()
        self.drop()
        return False

    def _settle(self) -> None:
        """A transaction on its way has arrived, or has failed; nothing more is sent."""
        try:
            self._open.finish()
        except Exception as error:  # noqa: BLE001 - the loop has ended already, for a reason of its own
            _LOG.warning("the last transaction did not arrive: %s", in_one_line(error))
        self._open.close()

    def is_over(self, limit_s: float) -> bool:
        """Return whether no thread of the loop works after ``run``; wait ``limit_s`` for each.

        Until then the pipeline's Spark, and all else that threads of the loop use, is its own.
        """
        return self._ahead.is_over(limit_s) and self._open.is_over(limit_s)

    def drop(self) -> None:
        """What the open transaction holds is gone."""
        self._open.drop()

    def turn(self) -> bool:
        """What has arrived is processed; windows, timers, transaction and flush came if due.

        Whether every task has voted for the end, or the input is drained, and all is committed.

        Raises:
            HomeportError: something failed; the open transaction is not committed.
            StopRequestedError: a stop was ordered.
        """
        self._stop.check()
        self._open.look()
        self._take_tuning()
        self._take_input()
        self._look_at_streams()
        self._window_if_due()
        self._timers_if_due()
        if self._parts.requests.has_all_of(self._parts.tasks):
            self._finish("every task has voted for the end")
            return True
        if self._is_drained():
            self._finish("its input is drained")
            return True
        if self._open.is_due(self._is_idle):
            self._open.end()
        self._flush_if_due()
        return False

    def _take_tuning(self) -> None:
        self._tuning = self._open.tuning = self._parts.tuning()
        if self._settings.has_windows:
            self._windows.keep_to(self._tuning.window_ms)

    def _is_drained(self) -> bool:
        if not self._tuning.drains or self._parts.drain is None:
            return False
        return self._parts.drain.is_done(self._open.processed, is_quiet=self._is_quiet)

    def _finish(self, why: str) -> None:
        for name, task in sorted(self._parts.tasks.items()):
            task.end_of_stream()
            self._open.had_rows.add(name)
            self._stop.check()
        self._open.end()
        self._open.finish()
        _LOG.info("%s: finished", why)

    def _window_if_due(self) -> None:
        if not self._windows.is_due():
            return
        for _, task in sorted(self._parts.tasks.items()):
            task.window()
            self._stop.check()
        self._open.add_writes()

    def _timers_if_due(self) -> None:
        called = self._timers.run()
        if called:
            # A BatchTask may write at the end of the transaction only.
            self._open.begin()
            self._open.had_rows |= called
            self._open.add_writes()

    def wait_s(self) -> float:
        """Seconds until a window, timer or the open transaction is due; infinite: none will be."""
        look_s = _QUIET_S if self._open.is_on_its_way else math.inf
        own_s = min(self._windows.wait_s(), self._timers.wait_s(), look_s)
        return max(0.0, min(own_s, self._open.time_left_s()))

    def _take_input(self) -> None:
        """A batch that is through the pipeline is processed; others are on their way meanwhile.

        Waits for one, or for something due.
        """
        if self._ahead.is_empty:
            self._fetch()
        else:
            self._fetch_ahead()
        piped = self._ahead.take(min(_IDLE_S, self.wait_s()))
        self._stop.check()
        if piped is None:
            if self._parts.adjuncts is not None:
                self._parts.adjuncts.settle(self._parts.reached, self._parts.begins)
            return
        if self._ahead.is_empty:
            self._fetch_ahead()
        self._process(piped)

    def _look_at_streams(self) -> None:
        if self._parts.adjuncts is not None:
            following = self._parts.source.following if self._ahead.is_empty else None
            self._parts.adjuncts.look(self._clock(), following)

    def _fetch(self) -> None:
        """What has arrived is on its way, unless it is to wait for more; waits for what is due."""
        due_s = min(_IDLE_S, self.wait_s())
        if self._open.is_on_its_way and not self._is_worth_a_batch():
            # What few records do now could leave no sooner, and each batch has its price.
            self._open.wait(due_s)
            return
        early_s = self._open.early_left_s()
        filling_s = self._filling_left_s()
        if filling_s > 0:
            self._stop.wait(min(filling_s, due_s, early_s))
            return
        source = self._parts.source
        patience_s = min(due_s, max(_QUIET_S, early_s))
        batch = self._polled(patience_s)
        self._is_quiet = batch is None and patience_s >= _QUIET_S
        self._stop.check()
        if batch is None:
            self._parts.report.idles(source.is_caught_up, source.lag)
        else:
            self._ahead.add(batch, self._fetch_s)

    def _fetch_ahead(self) -> None:
        """The pipeline has work while the tasks have some, where as much waits as is worth it."""
        if self._ahead.works_ahead() and self._is_worth_a_batch():
            batch = self._polled(0)
            if batch is not None:
                self._ahead.add(batch, self._fetch_s)

    def _is_worth_a_batch(self) -> bool:
        """Whether so much input waits that it is taken while something else is under way."""
        return self._parts.source.lag() >= min(ENOUGH_ROWS, self._size.rows)

    def _polled(self, patience_s: float) -> MicroBatch | None:
        began_s = self._clock()
        batch = self._parts.source.poll(self._size.rows, patience_s)
        if batch is not None:
            self._fetch_s = self._clock() - began_s
            self._parts.report.spent("fetch", self._fetch_s)
        return batch

    def _filling_left_s(self) -> float:
        linger_s = self._tuning.linger_ms / 1000
        return self._filling.left_s(self._clock(), linger_s, self._parts.source.lag)

    def _is_idle(self) -> bool:
        if not self._ahead.is_empty:
            return False
        return self._is_quiet or self._filling_left_s() > 0 or self._parts.source.is_at_end()

    def _process(self, piped: Piped) -> None:
        batch, began_s = piped.batch, self._clock()
        self._batches += 1
        # The first batch of the tasks finds all that bootstrap has brought.
        waits = not self._had_record
        if not self._had_record and (offsets := self._parts.of_tasks(batch.processed)):
            self._had_record = True
            self._parts.history("first-record", offsets=flat(offsets))
        self._open.begin(piped.taken_s)
        parts = self._parts
        if parts.adjuncts is not None:
            parts.adjuncts.show(piped.brought, parts.reached, parts.begins, waits=waits)
        if self._parts.typed is not None:
            self._parts.typed.refuse(piped.refused)
        by_task = rows_by_task(piped.rows, self._settings.pipeline)
        self._note_reads(piped)
        seen = [(TaskName(task), own) for task, own in by_task]
        for task, own in seen:
            self._task(task).process_batch(own)
            self._open.had_rows.add(task)
            self._open.add_writes()
            self._stop.check()
        if self._parts.calls is not None:
            self._parts.calls.finish()
            self._open.add_writes()
        self._note_reads(piped)
        for task, own in seen:
            # Not before the calls: within a batch event time is that of the one before.
            self._timers.saw(task, own)
            self._parts.report.had_rows(task, own.num_rows)
        self._open.add_input(batch)
        rows, ended_s = batch.table.num_rows, self._clock()
        self._filling.took(began_s - piped.pipeline_s, ended_s, rows)
        target_s = self._tuning.batch_target_ms / 1000
        self._size.took(ended_s - began_s + piped.pipeline_s, rows, target_s)
        report, took = self._parts.report, piped.pipeline_s
        report.spent("tasks", ended_s - began_s)
        has_pipeline = self._parts.pipeline is not None
        if has_pipeline:
            report.spent("pipeline", took)
        report.read(rows)
        through = (piped.ended_s - took, piped.ended_s) if has_pipeline else None
        fetched = (piped.taken_s - piped.fetch_s, piped.taken_s)
        self._parts.traces.batch(fetched, through, (began_s, ended_s), rows)
        self._progress.add(rows, self._parts.source)

    def _note_reads(self, piped: Piped) -> None:
        """Where the batch has rows for tasks, the history has the versions that they read."""
        if self._parts.adjuncts is not None and piped.rows.num_rows > 0:
            self._parts.adjuncts.note_reads(self._batches, self._parts.history)

    def _task(self, task_name: TaskName) -> Task:
        try:
            return self._parts.tasks[task_name]
        except KeyError:
            raise self._settings.pipeline.fault(
                f"a row came out of it for task {task_name!r}, which this container does not have",
                "keep the column 'task' as it came in",
            ) from None

    def _flush_if_due(self) -> None:
        age_ms = (self._clock() - self._flushed_at) * 1000
        is_asked = self._parts.requests.commit
        is_due = age_ms >= self._tuning.commit_ms or self._parts.storage.has_first_changes()
        if is_asked or is_due:
            self._parts.topics.check()
            self.flush()
            self._parts.requests.commit = False

    def flush(self) -> None:
        """All that was ended is in the stores, they are flushed, and OFFSET names where."""
        self._open.finish()
        moved = self._parts.storage.flush(self._parts.reached, self._parts.begins)
        self._flushed_at = self._clock()
        if moved:
            self._parts.history("commit", stores=moved)


class _Windows:
    """When windows are due: never, or at a fixed rate, the first after one whole period."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._period_s: float | None = None
        self._next = 0.0

    def keep_to(self, period_ms: int | None) -> None:
        """They are due at that rate; another one than before begins now. None: never."""
        period_s = None if period_ms is None else period_ms / 1000
        if period_s != self._period_s:
            self._period_s = period_s
            self._next = self._clock() + (period_s or 0)

    def wait_s(self) -> float:
        """Seconds until the next one."""
        if self._period_s is None:
            return math.inf
        return max(0.0, self._next - self._clock())

    def is_due(self) -> bool:
        """Whether one is due; it then counts as held. Missed ones are not made up for."""
        if self._period_s is None or self.wait_s() > 0:
            return False
        missed = (self._clock() - self._next) // self._period_s
        self._next += (missed + 1) * self._period_s
        return True


class _Progress:
    """One line every few seconds in which something was read."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rows = 0
        self._since = clock()

    def add(self, rows: int, source: InputConsumer) -> None:
        if self._rows == 0:
            self._since = max(self._since, self._clock() - _PROGRESS_S)
        self._rows += rows
        passed = self._clock() - self._since
        if passed >= _PROGRESS_S:
            rate = self._rows / passed
            _LOG.info(
                "%d records in %.1f s (%.0f/s), lag %d", self._rows, passed, rate, source.lag()
            )
            self._rows = 0
            self._since = self._clock()
