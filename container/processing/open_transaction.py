"""OpenTransaction: the work of a container between two commits in Kafka, and its commit.

Source: safety I5, I6, I7, I8. An error in any step ends the container. An uncommitted transaction
is aborted, or fenced later; changes that Kafka has and the stores lack come from the changelogs.

At most two transactions exist: one that has ended and is on its way to Kafka, and the open one.
Nothing of the open one leaves before the other is committed and in the stores.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from homeport.config.errors import HomeportError, UnavailableError
from homeport.container.host.executors import Executor, SameThread
from homeport.container.host.stop_flag import StopFlag
from homeport.container.kafka.client_properties import TransactionError
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.kafka.transactional_producer import RecordRefusedError, UndeliveredError
from homeport.container.processing.loop_dependencies import (
    LoopDependencies,
    LoopSettings,
    Offsets,
    spans,
)
from homeport.container.progress.pace import Pace
from homeport.container.progress.transaction_plan import (
    Action,
    Changes,
    Step,
    StoreId,
    TransactionContent,
    checkpoint_sends,
    transaction_plan,
)
from homeport.container.storage.task_store import Position
from homeport.job_coordinator.kafka.in_sync import OutputPlace
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_SENDING = frozenset(
    {
        Action.SEND_OUTPUTS,
        Action.SEND_CHANGELOG,
        Action.SEND_CHECKPOINTS,
        Action.DELIVER,
        Action.COMMIT,
    }
)
"""Steps in which Kafka may refuse a record of the transaction."""
_SHARE = 0.5
"""The largest share of time for transactions that end early, while there is no input."""
_LOOK_S = 0.2
"""The longest single wait for a transaction, so that a signal's handler can run."""


@dataclass
class _Ended:
    """A transaction from its end until it is in the stores.

    ``content``: its records. ``first``: the first offsets of its input. ``positions``: the
    offsets of its records, once it is committed.
    """

    content: TransactionContent
    first: Mapping[TaskName, Mapping[SystemStreamPartition, int]]
    changes: Mapping[StoreId, Changes]
    positions: Mapping[Position, int] = field(default_factory=dict)

    def places(self, checkpoint_topic: str | None) -> set[OutputPlace]:
        places: set[OutputPlace] = {(send.topic, send.partition) for send in self.content.outputs}
        places |= {(c.changelog.stream, c.partition) for c in self.content.changes if c.entries}
        if checkpoint_topic is not None:
            places.add((checkpoint_topic, None))
        return places

    def spans(self, of_tasks: Callable[[Offsets], Offsets]) -> Mapping[str, Any]:
        return spans(of_tasks(self.first), of_tasks(self.content.processed))


class OpenTransaction:
    """The transactions of a container, one after the other. Owned by one thread.

    The writes themselves are in the collector of the tasks and in the overlays of the stores.
    ``end`` commits them and ``drop`` clears them, together with the positions of the input.

    ``had_rows``: the tasks that got rows or timers; a pipeline may keep rows back, or make some.
    ``tuning``: decides when the transaction is due.
    """

    def __init__(
        self,
        deps: LoopDependencies,
        settings: LoopSettings,
        stop: StopFlag,
        beside: Executor | None = None,
    ) -> None:
        """Begin without an open transaction.

        ``beside`` sends and commits a transaction: it owns the producer between ``end`` and
        ``finish``. None: this thread does.
        """
        self._deps = deps
        self._settings = settings
        self._stop = stop
        self._beside = beside or SameThread()
        self._clock = deps.clock
        self.tuning = deps.tuning()
        self._processed = {task: dict(offsets) for task, offsets in deps.processed.items()}
        self._is_first = True
        self._pace = Pace(_SHARE)
        self._ended_s = -math.inf
        self._on_its_way: tuple[_Ended, Future[tuple[float, float]]] | None = None
        self._clear()
        stores, logged = deps.storage.ids()
        plan = transaction_plan(
            stores,
            logged,
            outputs_at_once=deps.plain is not None,
            checkpoints=settings.checkpoint_topic is not None,
        )
        (self._end_step,) = (step for step in plan if step.action is Action.END_TASKS)
        self._apply_steps = [step for step in plan if step.action is Action.APPLY]
        others = (Action.END_TASKS, Action.APPLY)
        self._send_steps = [step for step in plan if step.action not in others]
        topic = settings.checkpoint_topic
        self._actions: Mapping[Action, Callable[[Step, _Ended], None]] = {
            Action.AWAIT_BROKER: lambda _, ended: deps.producer.await_brokers(
                lambda: ended.places(topic), stop.pause
            ),
            Action.SETTLE_OUTPUTS: lambda *_: self._settle_outputs(),
            Action.RECORD_ENDING: lambda _, ended: deps.history(
                "transaction-ending", offsets=ended.spans(deps.of_tasks)
            ),
            Action.BEGIN: lambda *_: deps.producer.begin(),
            Action.SEND_OUTPUTS: lambda _, ended: deps.producer.send(ended.content.outputs),
            Action.SEND_CHANGELOG: self._send_changelog,
            Action.SEND_CHECKPOINTS: self._send_checkpoints,
            Action.DELIVER: lambda *_: deps.producer.deliver(),
            Action.COMMIT: self._commit,
            Action.RECORD_COMMITTED: lambda *_: deps.history("transaction-committed"),
            Action.APPLY: self._apply,
        }

    def _clear(self) -> None:
        self.had_rows: set[TaskName] = set()
        self._began_s: float | None = None
        self._input_bytes = 0
        self._first: dict[TaskName, dict[SystemStreamPartition, int]] = {}

    @property
    def processed(self) -> Offsets:
        """Return the last processed offset of each partition of each task, committed or not."""
        return self._processed

    def begin(self, since_s: float | None = None) -> None:
        """Begin the age of the transaction now, unless it has begun.

        ``since_s``: its begin instead, or the end of the transaction before, if that is later.
        """
        if self._began_s is None:
            self._began_s = self._clock() if since_s is None else max(since_s, self._ended_s)

    def add_input(self, batch: MicroBatch) -> None:
        """Add ``batch``, which the tasks have processed."""
        self._input_bytes += batch.size_bytes
        for task_name, offsets in batch.first.items():
            self._first[task_name] = {**offsets, **self._first.get(task_name, {})}
        for task_name, offsets in batch.processed.items():
            self._processed[task_name].update(offsets)

    def add_writes(self) -> None:
        """Begin the transaction if tasks have written; send outputs that are no part of it."""
        if self._began_s is None and (self._deps.outputs.sends or self._deps.storage.size_bytes):
            self.begin()
        if self._deps.plain is not None:
            self._deps.plain.send(self._deps.outputs.take())

    def time_left_s(self) -> float:
        """Return the seconds until its age makes it due; infinite if it has not begun."""
        if self._began_s is None:
            return math.inf
        return self._began_s + self.tuning.transaction_ms / 1000 - self._clock()

    def early_left_s(self) -> float:
        """Return the seconds until it may end early; infinite if it may not."""
        if self._began_s is None or self.tuning.idle_ms is None or self.is_on_its_way:
            return math.inf
        return self._pace.left_s(self._clock(), least_s=self.tuning.idle_ms / 1000)

    def is_due(self, is_idle: Callable[[], bool]) -> bool:
        """Return whether the transaction has begun and must end now.

        ``is_idle``: returns whether there is no input for now; called only if that matters.
        """
        if self._began_s is None:
            return False
        # The readers have waited for a whole recovery: the first batch is not held back.
        if self._deps.requests.commit or (self._first and self._is_first):
            return True
        age_ms = (self._clock() - self._began_s) * 1000
        written = self._deps.outputs.size_bytes + self._deps.storage.size_bytes
        if self.tuning.ends_transaction(age_ms, written + self._input_bytes):
            return True
        return self.early_left_s() <= 0 and is_idle()

    @property
    def is_on_its_way(self) -> bool:
        """Return whether an ended transaction has not reached the stores."""
        return self._on_its_way is not None

    def end(self) -> None:
        """Let the tasks end the transaction, and begin to send it; the next one may begin.

        This first waits for the transaction before. It also waits for the first transaction of a
        container itself: readers have waited for a whole recovery. Errors as of ``finish``.
        """
        self.finish()
        began_s = self._clock()
        self._deps.on_step_begin(self._end_step)
        ended = self._end_tasks()
        self._deps.on_step_done(self._end_step)
        self._deps.outputs.clear()
        self._deps.report.ended()
        self._deps.traces.ended()
        self._clear()
        self._ended_s = self._clock()
        call = self._beside.submit(lambda: (began_s, self._send(ended)))
        self._on_its_way = ended, call
        if self._is_first or call.done():
            self.finish()
        self._is_first = False

    def finish_if_sent(self) -> None:
        """Finish the ended transaction if it has been sent; errors as of ``finish``."""
        if self._on_its_way is not None and self._on_its_way[1].done():
            self.finish()

    def wait(self, timeout_s: float) -> None:
        """Wait until the ended transaction has been sent, ``timeout_s`` at most."""
        if self._on_its_way is not None:
            self._beside.wait(self._on_its_way[1], timeout_s)

    def finish(self) -> None:
        """Wait until the ended transaction, if any, is in Kafka; apply it to the stores.

        Raises:
            HomeportError: it is not; the message has whether it is committed, if that is known.
        """
        if self._on_its_way is None:
            return
        ended, call = self._on_its_way
        while not call.done():
            self._beside.wait(call, _LOOK_S)
        self._on_its_way = None
        try:
            times_s = call.result()
        except (TransactionError, UnavailableError):
            # If a topic was deleted, Kafka only reports that nothing was delivered in time.
            self._deps.topics.check()
            raise
        self._carry_out(self._apply_steps, ended)
        began_s, ended_s = times_s
        self._pace.took(began_s, ended_s)
        self._deps.report.spent("sending", ended_s - began_s)
        self._deps.traces.committed(times_s)
        self._deps.report.committed(self._deps.source.lag)

    def drop(self) -> None:
        """Drop all writes that are not in the stores."""
        self._deps.outputs.clear()
        self._deps.traces.dropped()
        self._deps.storage.drop()
        self._clear()

    def close(self) -> None:
        """Send nothing more."""
        self._beside.close()

    def is_over(self, limit_s: float) -> bool:
        """Wait ``limit_s`` after ``close`` for the end of sending; return whether it has ended."""
        return self._beside.is_over(limit_s)

    def _send(self, ended: _Ended) -> float:
        self._carry_out(self._send_steps, ended)
        return self._clock()

    def _carry_out(self, steps: Iterable[Step], ended: _Ended) -> None:
        for step in steps:
            self._deps.on_step_begin(step)
            try:
                self._actions[step.action](step, ended)
            except (RecordRefusedError, UndeliveredError) as error:
                if step.action not in _SENDING:
                    raise
                raise self._explained(error, ended.content) from None
            self._deps.on_step_done(step)

    def _explained(self, error: HomeportError, content: TransactionContent) -> HomeportError:
        try:
            story = self._deps.refused(content)
        except UnavailableError:
            return error
        if story is None:
            return error
        return TransactionError(f"{story}; nothing of the transaction was committed")

    def _end_tasks(self) -> _Ended:
        deps = self._deps
        for task_name in sorted(self.had_rows):
            deps.tasks[task_name].end_transaction()
        self._stop.check()
        self.add_writes()
        processed = {task: dict(self._processed[task]) for task in sorted(self._first)}
        changes = deps.storage.changes()
        content = TransactionContent(deps.outputs.sends, changes, processed)
        return _Ended(content, self._first, {change.store_id: change for change in changes})

    def _settle_outputs(self) -> None:
        if self._deps.plain is not None:
            self._deps.plain.deliver(self._stop.pause)

    def _send_changelog(self, step: Step, ended: _Ended) -> None:
        changes = ended.changes.get(step.store) if step.store else None
        if changes is not None:
            self._deps.producer.send_changes(changes)

    def _send_checkpoints(self, _step: Step, ended: _Ended) -> None:
        topic, processed = self._settings.checkpoint_topic, ended.content.processed
        if topic is not None:
            self._deps.producer.send(checkpoint_sends(processed, self._settings.grouper, topic))

    def _commit(self, _step: Step, ended: _Ended) -> None:
        ended.positions = self._deps.producer.commit()
        if self._deps.purge is not None:
            self._deps.purge.committed(ended.content.processed)

    def _apply(self, step: Step, ended: _Ended) -> None:
        if step.store is not None:
            self._deps.storage.apply(step.store, ended.positions)
