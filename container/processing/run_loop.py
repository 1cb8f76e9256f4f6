"""RunLoop: input to pipeline to tasks, one transaction after the other, flushes in between."""

import logging
import math
from collections.abc import Callable, Iterable, Mapping
from functools import partial

import pyarrow as pa

from homeport.config.errors import in_one_line
from homeport.container.host.executors import OneThread, SameThread
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.processing.loop_dependencies import (
    LoopDependencies,
    LoopSettings,
    Task,
    flat,
)
from homeport.container.processing.open_transaction import OpenTransaction
from homeport.container.processing.prefetch import Prefetch, Prefetched
from homeport.container.processing.records import rows_by_task
from homeport.container.processing.timers import Timers
from homeport.container.progress.pace import ENOUGH_ROWS, BatchSize, Filling
from homeport.container.storage.store_flushes import StoreFlushes
from homeport.job_coordinator.model.ids import TaskName

_LOG = logging.getLogger(__name__)

_IDLE_S = 0.2
_QUIET_S = 0.01
"""After a poll of this length without a record there is no input, whatever offsets suggest."""
_SHARE = 1 / 3
"""The largest share of time for micro-batches of few rows, if a batch may fill."""
_PROGRESS_S = 5.0


class RunLoop:
    """Runs until a stop is ordered, all tasks want no more, or something fails.

    One thread, which alone uses the input, the tasks and the stores. If the loop overlaps, the
    pipeline has a thread of its own, and works on batches that the tasks get later. Another thread
    sends and commits a transaction, while the tasks work on the next one. A third one flushes the
    stores.
    """

    def __init__(self, deps: LoopDependencies, settings: LoopSettings, stop: StopFlag) -> None:
        self._deps = deps
        self._settings = settings
        self._stop = stop
        self._clock = deps.clock
        # Plain outputs would leave from both threads.
        sends_beside = settings.overlaps and deps.plain is None
        sending = OneThread("sending") if sends_beside else SameThread()
        self._open = OpenTransaction(deps, settings, stop, sending)
        beside = OneThread("pipeline") if settings.overlaps else SameThread()
        self._prefetch = Prefetch(deps.pipeline, beside, self._clock, deps.typed, deps.adjuncts)
        flushing = OneThread("flushing") if settings.overlaps else SameThread()
        steps = deps.on_step_done, deps.on_step_begin
        self._flushes = StoreFlushes(deps.storage, flushing, self._clock, *steps)
        self._flushed_at = self._clock()
        self._tuning = deps.tuning()
        self._observer = _BatchObserver(deps, settings.max_rows, self._clock)
        self._windows = _Windows(self._clock)
        self._timers = TimerWork(deps.timers, deps.tasks, stop.check)
        self._is_quiet = False
        """Whether the last poll brought nothing, and no batch is on its way."""
        self._fetch_s = 0.0

    def run(self) -> bool:
        """Run; return whether every task has voted for the end, or the input is drained.

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
            # SIGTERM goes to the whole process group: if the JVM ends first, this error is part of
            # the stop.
            if not self._stop.is_set():
                raise
            _LOG.info("ordered to stop: the work under way is dropped (%s)", type(error).__name__)
        else:
            return True
        finally:
            # Batches on their way to the tasks do not count as read.
            self._prefetch.close()
            self._end_sending()
            self._flushes.end()
        self.drop()
        return False

    def _end_sending(self) -> None:
        try:
            self._open.finish()
        except Exception as error:  # noqa: BLE001 - the loop has ended already, for a reason of its own
            _LOG.warning("the last transaction did not arrive: %s", in_one_line(error))
        self._open.close()

    def is_over(self, limit_s: float) -> bool:
        """Wait after ``run`` for the loop's threads, ``limit_s`` each; return whether they ended.

        Until then the pipeline's Spark, and all else that its threads use, belongs to the loop.
        """
        return self._prefetch.is_over(limit_s) and self._open.is_over(limit_s)

    def drop(self) -> None:
        """Drop the open transaction."""
        self._open.drop()

    def turn(self) -> bool:
        """Process arrived input; call windows and timers, commit and flush if they are due.

        Returns:
            Whether all is committed because every task voted for the end, or the input is drained.

        Raises:
            HomeportError: something failed; the open transaction is not committed.
            StopRequestedError: a stop was ordered.
        """
        self._stop.check()
        self._open.finish_if_sent()
        self._tuning = self._open.tuning = self._deps.tuning()
        if self._settings.has_windows:
            self._windows.keep_to(self._tuning.window_ms)
        self._take_input()
        self._poll_heads()
        self._window_if_due()
        self._timers_if_due()
        if self._deps.requests.has_all_of(self._deps.tasks):
            self._finish("every task has voted for the end")
            return True
        if self._is_drained():
            self._finish("its input is drained")
            return True
        if self._open.is_due(self._is_idle):
            self._open.end()
        self._flush_if_due()
        return False

    def _is_drained(self) -> bool:
        if not self._tuning.drains or self._deps.drain is None:
            return False
        return self._deps.drain.is_done(self._open.processed, is_quiet=self._is_quiet)

    def _finish(self, why: str) -> None:
        for name, task in sorted(self._deps.tasks.items()):
            task.end_of_stream()
            self._open.had_rows.add(name)
            self._stop.check()
        self._open.end()
        self._open.finish()
        _LOG.info("%s: finished", why)

    def _window_if_due(self) -> None:
        if not self._windows.is_due():
            return
        for _, task in sorted(self._deps.tasks.items()):
            task.window()
            self._stop.check()
        self._open.add_writes()

    def _timers_if_due(self) -> None:
        called = self._timers.run()
        if called:
            # A BatchTask may write only at the end of the transaction.
            self._open.begin()
            self._open.had_rows |= called
            self._open.add_writes()

    def wait_s(self) -> float:
        """Return the seconds until a window, a timer or the transaction is due, or infinity."""
        look_s = _QUIET_S if self._open.is_on_its_way else math.inf
        own_s = min(self._windows.wait_s(), self._timers.wait_s(), look_s)
        return max(0.0, min(own_s, self._open.time_left_s()))

    def _take_input(self) -> None:
        if self._prefetch.is_empty:
            self._fetch()
        else:
            self._fetch_ahead()
        prefetched = self._prefetch.take(min(_IDLE_S, self.wait_s()))
        self._stop.check()
        if prefetched is None:
            if self._deps.adjuncts is not None:
                self._deps.adjuncts.show_ready(self._deps.on_step_done, self._deps.on_step_begin)
            return
        if self._prefetch.is_empty:
            self._fetch_ahead()
        self._process(prefetched)

    def _poll_heads(self) -> None:
        if self._deps.adjuncts is not None:
            following = self._deps.source.following if self._prefetch.is_empty else None
            self._deps.adjuncts.poll_heads(self._clock(), following)

    def _fetch(self) -> None:
        due_s = min(_IDLE_S, self.wait_s())
        if self._open.is_on_its_way and not self._is_worth_a_batch():
            # The outputs of few records could not leave sooner, and each batch has its cost.
            self._open.wait(due_s)
            return
        early_s = self._open.early_left_s()
        filling_s = self._filling_left_s()
        if filling_s > 0:
            self._stop.wait(min(filling_s, due_s, early_s))
            return
        source = self._deps.source
        patience_s = min(due_s, max(_QUIET_S, early_s))
        batch = self._polled(patience_s)
        self._is_quiet = batch is None and patience_s >= _QUIET_S
        self._stop.check()
        if batch is None:
            self._deps.report.idles(source.is_caught_up, source.lag)
        else:
            self._prefetch.add(batch, self._fetch_s)

    def _fetch_ahead(self) -> None:
        if self._prefetch.works_ahead() and self._is_worth_a_batch():
            batch = self._polled(0)
            if batch is not None:
                self._prefetch.add(batch, self._fetch_s)

    def _is_worth_a_batch(self) -> bool:
        """Return whether enough input waits to take it while something else is under way."""
        return self._deps.source.lag() >= min(ENOUGH_ROWS, self._observer.size.rows)

    def _polled(self, patience_s: float) -> MicroBatch | None:
        began_s = self._clock()
        batch = self._deps.source.poll(self._observer.size.rows, patience_s)
        if batch is not None:
            self._fetch_s = self._clock() - began_s
            self._deps.report.spent("fetch", self._fetch_s)
        return batch

    def _filling_left_s(self) -> float:
        linger_s = self._tuning.linger_ms / 1000
        return self._observer.filling.left_s(self._clock(), linger_s, self._deps.source.lag)

    def _is_idle(self) -> bool:
        if not self._prefetch.is_empty:
            return False
        return self._is_quiet or self._filling_left_s() > 0 or self._deps.source.is_at_end()

    def _process(self, prefetched: Prefetched) -> None:
        batch, adjuncts, began_s = prefetched.batch, self._deps.adjuncts, self._clock()
        is_first = self._observer.begin(batch)
        self._open.begin(prefetched.taken_s)
        if adjuncts is not None:
            # The first batch of a task finds all records of its bootstrap streams in the stores.
            steps = self._deps.on_step_done, self._deps.on_step_begin
            adjuncts.show(prefetched.brought, *steps, waits=is_first)
        if self._deps.typed is not None:
            self._deps.typed.refuse(prefetched.refused)
        by_task = rows_by_task(prefetched.rows, self._settings.pipeline)
        self._observer.note_reads(prefetched)
        seen = [(TaskName(task), own) for task, own in by_task]
        for task, own in seen:
            self._task(task).process_batch(own)
            self._open.had_rows.add(task)
            self._open.add_writes()
            self._stop.check()
        if self._deps.calls is not None:
            self._deps.calls.finish()
            self._open.add_writes()
        self._observer.note_reads(prefetched)
        for task, own in seen:
            # After the calls: within a batch, event time is that of the batch before.
            self._timers.saw(task, own)
        self._open.add_input(batch)
        self._observer.end(prefetched, seen, began_s, self._tuning.batch_target_ms / 1000)

    def _task(self, task_name: TaskName) -> Task:
        try:
            return self._deps.tasks[task_name]
        except KeyError:
            raise self._settings.pipeline.fault(
                f"a row came out of it for task {task_name!r}, which this container does not have",
                "keep the column 'task' as it came in",
            ) from None

    def _flush_if_due(self) -> None:
        is_asked, self._deps.requests.commit = self._deps.requests.commit, False
        age_ms = (self._clock() - self._flushed_at) * 1000
        if is_asked or (age_ms >= self._tuning.commit_ms and not self._flushes.is_in_round):
            self._deps.topics.check()
            if is_asked:
                self._open.finish()
            self._flushes.begin()
            self._flushed_at = self._clock()
        self._note_flushed(self._flushes.step())

    def flush(self) -> None:
        """Finish the ended transaction, flush the stores, and write OFFSET; work no more."""
        self._open.finish()
        self._flushes.end()
        steps = self._deps.on_step_done, self._deps.on_step_begin
        self._note_flushed(self._deps.storage.flush(*steps))

    def _note_flushed(self, moved: int) -> None:
        if moved:
            self._deps.history("commit", stores=moved)


class _Windows:
    """Decides when windows are due: never, or at a fixed rate; the first after a whole period."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._period_s: float | None = None
        self._next = 0.0

    def keep_to(self, period_ms: int | None) -> None:
        """Set the period; a changed one begins now. None: windows are never due."""
        period_s = None if period_ms is None else period_ms / 1000
        if period_s != self._period_s:
            self._period_s = period_s
            self._next = self._clock() + (period_s or 0)

    def wait_s(self) -> float:
        if self._period_s is None:
            return math.inf
        return max(0.0, self._next - self._clock())

    def is_due(self) -> bool:
        """Return whether a window is due, and count it as called; skip missed windows."""
        if self._period_s is None or self.wait_s() > 0:
            return False
        missed = (self._clock() - self._next) // self._period_s
        self._next += (missed + 1) * self._period_s
        return True


class _BatchObserver:
    """Observes the batches: for the report, the history, the traces, the log, and the next batch.

    ``size``: the rows of the next batch. ``filling``: how long it may fill.
    """

    def __init__(self, deps: LoopDependencies, max_rows: int, clock: Callable[[], float]) -> None:
        self._deps = deps
        self._clock = clock
        self.size = BatchSize(max_rows)
        self.filling = Filling(_SHARE)
        self._had_record: set[TaskName] = set()
        self._batches = 0
        self._rows = 0
        self._since = clock()

    def begin(self, batch: MicroBatch) -> bool:
        """Note that the tasks get ``batch``; return whether it has the first records of any."""
        self._batches += 1
        if len(self._had_record) == len(self._deps.tasks):
            return False
        offsets = self._deps.of_tasks(batch.processed)
        if offsets and not self._had_record:
            self._deps.history("first-record", offsets=flat(offsets))
        is_first = not offsets.keys() <= self._had_record
        self._had_record.update(offsets)
        return is_first

    def note_reads(self, prefetched: Prefetched) -> None:
        if self._deps.adjuncts is not None and prefetched.rows.num_rows > 0:
            self._deps.adjuncts.note_reads(self._batches, self._deps.history)

    def end(
        self,
        prefetched: Prefetched,
        seen: Iterable[tuple[TaskName, pa.Table]],
        began_s: float,
        target_s: float,
    ) -> None:
        """Note that the tasks have ``seen`` their rows of the batch, from ``began_s`` to now."""
        report, ended_s = self._deps.report, self._clock()
        rows, took_s = prefetched.batch.table.num_rows, prefetched.pipeline_s
        for task, own in seen:
            report.had_rows(task, own.num_rows)
        self.filling.took(began_s - took_s, ended_s, rows)
        self.size.took(ended_s - began_s + took_s, rows, target_s)
        report.spent("tasks", ended_s - began_s)
        through = None
        if self._deps.pipeline is not None:
            report.spent("pipeline", took_s)
            through = prefetched.ended_s - took_s, prefetched.ended_s
        report.read(rows)
        fetched = prefetched.taken_s - prefetched.fetch_s, prefetched.taken_s
        self._deps.traces.batch(fetched, through, (began_s, ended_s), rows)
        self._log_progress(rows)

    def _log_progress(self, rows: int) -> None:
        if self._rows == 0:
            self._since = max(self._since, self._clock() - _PROGRESS_S)
        self._rows += rows
        passed = self._clock() - self._since
        if passed >= _PROGRESS_S:
            rate, lag = self._rows / passed, self._deps.source.lag()
            _LOG.info("%d records in %.1f s (%.0f/s), lag %d", self._rows, passed, rate, lag)
            self._rows = 0
            self._since = self._clock()


_AT_ONCE = 2_000
"""The most timers of one task in one turn: more would delay the transaction's end."""


class TimerWork:
    """Calls the tasks of due timers; ``go_on``, after each, raises after the order to stop."""

    def __init__(
        self,
        timers: Mapping[TaskName, Timers],
        tasks: Mapping[TaskName, Task],
        go_on: Callable[[], None],
    ) -> None:
        self._timers = timers
        self._busy = set(timers)
        """The tasks that may have a timer: of very many tasks mostly few have."""
        for name, own in timers.items():
            own.on_schedule = partial(self._busy.add, name)
        self._tasks = tasks
        self._go_on = go_on

    def saw(self, task_name: TaskName, rows: pa.Table) -> None:
        """Note the times of ``rows``, which the task has processed."""
        if task_name in self._timers:
            self._timers[task_name].saw(rows)

    def wait_s(self) -> float:
        """Return the seconds until a timer is due; infinite if none will be without more input."""
        return min((self._timers[name].wait_s() for name in self._busy), default=math.inf)

    def run(self) -> set[TaskName]:
        """Call the due timers, task after task; return the tasks.

        A timer that an earlier call has cancelled or moved is not called.
        """
        called: set[TaskName] = set()
        for name in sorted(self._busy):
            timers = self._timers[name]
            if timers.is_empty:
                self._busy.discard(name)
            for timer in timers.due(_AT_ONCE):
                if timers.take(timer):
                    self._tasks[name].on_timer(timer)
                    called.add(name)
                self._go_on()
        return called
