"""OpenTransaction: all that a container does between two commits in Kafka, and how that ends.

Source: safety I5, I6, I7, I8. An error in any step ends the container: what was not committed is
fenced, or aborted, and what Kafka has but the stores have not is read from the changelogs.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from typing import Any

from homeport.config.errors import HomeportError, UnavailableError
from homeport.container.host.stop_flag import StopFlag
from homeport.container.kafka.clients import TransactionError
from homeport.container.kafka.input_consumer import MicroBatch
from homeport.container.kafka.transactional_producer import RecordRefusedError, UndeliveredError
from homeport.container.processing.loop_parts import LoopParts, LoopSettings, flat
from homeport.container.progress import oversized
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
from homeport.job_coordinator.kafka.in_sync import Place
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


class OpenTransaction:
    """One object for one transaction after the other. Not thread-safe.

    The writes themselves lie in the collector of the tasks and in the overlays of the stores:
    ``end`` commits them and ``drop`` clears them, each together with what is known of the input.

    ``had_rows``: the tasks that got rows; a pipeline may keep rows back, or make some.
    ``tuning``: says when the transaction is due.
    """

    def __init__(self, parts: LoopParts, settings: LoopSettings, stop: StopFlag) -> None:
        self._parts = parts
        self._settings = settings
        self._stop = stop
        self.tuning = parts.tuning()
        self._processed = {task: dict(offsets) for task, offsets in parts.processed.items()}
        self._is_first = True
        self._clear()
        stores, logged = parts.storage.ids()
        self.plan = transaction_plan(
            stores,
            logged,
            outputs_at_once=parts.plain is not None,
            checkpoints=settings.checkpoint_topic is not None,
        )
        self._actions: Mapping[Action, Callable[[Step], None]] = {
            Action.END_TASKS: self._end_tasks,
            Action.AWAIT_BROKER: lambda _: parts.producer.await_brokers(self._places, stop.pause),
            Action.SETTLE_OUTPUTS: self._settle_outputs,
            Action.RECORD_ENDING: lambda _: parts.history("transaction-ending", **self._offsets()),
            Action.BEGIN: lambda _: parts.producer.begin(),
            Action.SEND_OUTPUTS: lambda _: parts.producer.send(self._content.outputs),
            Action.SEND_CHANGELOG: self._send_changelog,
            Action.SEND_CHECKPOINTS: self._send_checkpoints,
            Action.DELIVER: lambda _: parts.producer.deliver(),
            Action.COMMIT: self._commit,
            Action.RECORD_COMMITTED: self._record_committed,
            Action.APPLY: self._apply,
        }

    def _clear(self) -> None:
        self.had_rows: set[TaskName] = set()
        self._began_s: float | None = None
        self._input_bytes = 0
        self._first: dict[TaskName, dict[SystemStreamPartition, int]] = {}
        self._content = TransactionContent((), (), {})
        self._changes: Mapping[StoreId, Changes] = {}
        self._positions: Mapping[Position, int] = {}

    def begin(self) -> None:
        """The age of the transaction counts from now on, unless it does already."""
        if self._began_s is None:
            self._began_s = time.monotonic()

    def add_input(self, batch: MicroBatch) -> None:
        """The tasks have processed ``batch``."""
        self._input_bytes += batch.size_bytes
        for task_name, offsets in batch.first.items():
            self._first[task_name] = {**offsets, **self._first.get(task_name, {})}
        for task_name, offsets in batch.processed.items():
            self._processed[task_name].update(offsets)

    def add_writes(self) -> None:
        """Tasks may have written. Outputs that are no part of the transaction are on their way."""
        if self._began_s is None and (self._parts.outputs.sends or self._parts.storage.size_bytes):
            self.begin()
        if self._parts.plain is not None:
            self._parts.plain.send(self._parts.outputs.take())

    def time_left_s(self) -> float:
        """Seconds until the transaction is due by its age; infinite where it has not begun."""
        if self._began_s is None:
            return math.inf
        return self._began_s + self.tuning.transaction_ms / 1000 - time.monotonic()

    def is_due(self) -> bool:
        """Whether the transaction has begun and ends now."""
        if self._began_s is None:
            return False
        # The readers have waited for a whole recovery: the first batch is not held back.
        if self._parts.requests.commit or (self._first and self._is_first):
            return True
        age_ms = (time.monotonic() - self._began_s) * 1000
        written = self._parts.outputs.size_bytes + self._parts.storage.size_bytes
        return self.tuning.ends_transaction(age_ms, written + self._input_bytes)

    def end(self) -> None:
        """All that the transaction did is in Kafka and in the stores; the next one may begin.

        Raises:
            HomeportError: it is not; whether it is committed, the error says where that is known.
        """
        try:
            for step in self.plan:
                self._carry_out(step)
                self._parts.reached(step)
        except (TransactionError, UnavailableError):
            # Of a deleted topic Kafka says no more than that nothing was delivered in time.
            self._parts.topics.check()
            raise
        self._is_first = False
        self.drop()

    def drop(self) -> None:
        """The transaction holds nothing: what was written and is not committed is gone."""
        self._parts.outputs.clear()
        self._parts.storage.drop()
        self._clear()

    def _carry_out(self, step: Step) -> None:
        try:
            self._actions[step.action](step)
        except (RecordRefusedError, UndeliveredError) as error:
            if step.action not in _SENDING:
                raise
            raise self._explained(error) from None

    def _explained(self, error: HomeportError) -> HomeportError:
        """An error that names the record that is too large, where it is known which one it is."""
        try:
            topics = oversized.topics(self._content)
            limits = {name: self._parts.record_limit(name) for name in topics}
        except UnavailableError:
            return error
        story = oversized.story(self._content, limits)
        if story is None:
            return error
        return TransactionError(f"{story}; nothing of the transaction was committed")

    def _end_tasks(self, _step: Step) -> None:
        parts = self._parts
        for task_name in sorted(self.had_rows):
            parts.tasks[task_name].end_transaction()
        self._stop.check()
        self.add_writes()
        processed = {task: self._processed[task] for task in sorted(self._first)}
        changes = parts.storage.changes()
        self._content = TransactionContent(parts.outputs.sends, changes, processed)
        self._changes = {change.store_id: change for change in changes}

    def _places(self) -> set[Place]:
        """What the transaction writes to."""
        content = self._content
        places: set[Place] = {(send.topic, send.partition) for send in content.outputs}
        places |= {(c.changelog.stream, c.partition) for c in content.changes if c.entries}
        if self._settings.checkpoint_topic is not None:
            places.add((self._settings.checkpoint_topic, None))
        return places

    def _settle_outputs(self, _step: Step) -> None:
        if self._parts.plain is not None:
            self._parts.plain.settle(self._stop.pause)

    def _offsets(self) -> Mapping[str, Any]:
        return {"first": flat(self._first), "offsets": flat(self._content.processed)}

    def _send_changelog(self, step: Step) -> None:
        changes = self._changes.get(step.store) if step.store else None
        if changes is not None:
            self._parts.producer.send_changes(changes)

    def _send_checkpoints(self, _step: Step) -> None:
        topic, processed = self._settings.checkpoint_topic, self._content.processed
        if topic is not None:
            self._parts.producer.send(checkpoint_sends(processed, self._settings.grouper, topic))

    def _commit(self, _step: Step) -> None:
        self._positions = self._parts.producer.commit()

    def _record_committed(self, _step: Step) -> None:
        self._parts.history("transaction-committed", **self._offsets())
        self._parts.report.committed(self._parts.source.lag)

    def _apply(self, step: Step) -> None:
        if step.store is not None:
            self._parts.storage.apply(step.store, self._positions)
