"""TransactionShell: carries out the plan of a transaction's end, step by step.

Source: safety I5 to I8. An error in any step ends the container: whatever was not committed is
fenced, or aborted, and what Kafka has but the stores have not is read from the changelogs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from homeport.config.errors import UnavailableError
from homeport.container.host.stop_flag import StopFlag
from homeport.container.kafka.clients import TransactionError
from homeport.container.kafka.transactional_producer import RecordRefusedError, UndeliveredError
from homeport.container.processing.loop_parts import (
    LoopParts,
    LoopSettings,
    Offsets,
    OpenTransaction,
    flat,
)
from homeport.container.progress import oversized
from homeport.container.progress.commit import (
    Action,
    Changes,
    Step,
    StoreId,
    TransactionContent,
    checkpoint_sends,
    transaction_plan,
)
from homeport.job_coordinator.kafka.in_sync import Place


@dataclass
class _Ending:
    """One transaction while it ends; ``content`` is known when its tasks have had their last word.

    ``positions``: {(changelog topic, partition): offset of the last record}, once it is committed.
    """

    seen: OpenTransaction
    processed: Offsets
    content: TransactionContent = field(default_factory=lambda: TransactionContent((), (), {}))
    changes: Mapping[StoreId, Changes] = field(default_factory=dict)
    story: Mapping[str, Any] = field(default_factory=dict)
    positions: Mapping[tuple[str, int], int] = field(default_factory=dict)


class TransactionShell:
    """Ends one transaction after the other. Not thread-safe."""

    def __init__(self, parts: LoopParts, settings: LoopSettings, stop: StopFlag) -> None:
        self._parts = parts
        self._settings = settings
        self._stop = stop
        stores, logged = parts.storage.ids()
        self.plan = transaction_plan(
            stores,
            logged,
            outputs_at_once=parts.plain is not None,
            checkpoints=settings.checkpoint_topic is not None,
        )
        self._actions: Mapping[Action, Callable[[_Ending, Step], None]] = {
            Action.END_TASKS: self._end_tasks,
            Action.AWAIT_BROKER: self._await_broker,
            Action.SETTLE_OUTPUTS: self._settle_outputs,
            Action.TELL_ENDING: self._tell_ending,
            Action.BEGIN: self._begin,
            Action.SEND_OUTPUTS: self._send_outputs,
            Action.SEND_CHANGELOG: self._send_changelog,
            Action.SEND_CHECKPOINTS: self._send_checkpoints,
            Action.DELIVER: self._deliver,
            Action.COMMIT: self._commit,
            Action.TELL_COMMITTED: self._tell_committed,
            Action.APPLY: self._apply,
        }

    def end(self, seen: OpenTransaction, processed: Offsets) -> None:
        """All that the open transaction did is in Kafka and in the stores.

        Args:
            seen: what the transaction has seen.
            processed: the last processed offset of each partition of each task.

        Raises:
            HomeportError: it is not; whether it is committed, the error says where that is known.
        """
        ending = _Ending(seen, processed)
        try:
            for step in self.plan:
                self._actions[step.action](ending, step)
                self._parts.reached(step)
        except (TransactionError, UnavailableError):
            # Of a deleted topic Kafka says no more than that nothing was delivered in time.
            self._parts.topics.check()
            raise

    def hand_out(self) -> None:
        """Outputs that are no part of the transaction are on their way."""
        if self._parts.plain is not None:
            self._parts.plain.send(self._parts.outputs.take())

    def _end_tasks(self, ending: _Ending, _step: Step) -> None:
        parts, seen = self._parts, ending.seen
        for task_name in sorted(seen.had_batch):
            parts.tasks[task_name].end_transaction()
        self._stop.check()
        self.hand_out()
        processed = {task: ending.processed[task] for task in sorted(seen.touched)}
        changes = parts.storage.changes()
        ending.content = TransactionContent(parts.outputs.sends, changes, processed)
        ending.changes = {change.store_id: change for change in changes}
        ending.story = {"first": flat(seen.first), "offsets": flat(processed)}

    def _await_broker(self, ending: _Ending, _step: Step) -> None:
        self._parts.producer.await_brokers(partial(self._places, ending), self._stop.pause)

    def _places(self, ending: _Ending) -> set[Place]:
        """What the transaction writes to."""
        content = ending.content
        places: set[Place] = {(send.topic, send.partition) for send in content.outputs}
        places |= {(c.changelog.stream, c.partition) for c in content.changes if c.entries}
        if self._settings.checkpoint_topic is not None:
            places.add((self._settings.checkpoint_topic, None))
        return places

    def _settle_outputs(self, _ending: _Ending, _step: Step) -> None:
        if self._parts.plain is not None:
            self._parts.plain.settle(self._stop.pause)

    def _tell_ending(self, ending: _Ending, _step: Step) -> None:
        self._parts.history("transaction-ending", **ending.story)

    def _begin(self, _ending: _Ending, _step: Step) -> None:
        self._parts.producer.begin()

    def _send_outputs(self, ending: _Ending, _step: Step) -> None:
        with self._naming_a_refused(ending):
            self._parts.producer.send(ending.content.outputs)

    def _send_changelog(self, ending: _Ending, step: Step) -> None:
        changes = ending.changes.get(step.store) if step.store else None
        if changes is not None:
            with self._naming_a_refused(ending):
                self._parts.producer.send_changes(changes)

    def _send_checkpoints(self, ending: _Ending, _step: Step) -> None:
        topic = self._settings.checkpoint_topic
        if topic is not None:
            with self._naming_a_refused(ending):
                self._parts.producer.send(
                    checkpoint_sends(ending.content.processed, self._settings.grouper, topic)
                )

    def _deliver(self, ending: _Ending, _step: Step) -> None:
        with self._naming_a_refused(ending):
            self._parts.producer.deliver()

    def _commit(self, ending: _Ending, _step: Step) -> None:
        with self._naming_a_refused(ending):
            ending.positions = self._parts.producer.commit()

    def _tell_committed(self, ending: _Ending, _step: Step) -> None:
        self._parts.history("transaction-committed", **ending.story)
        self._parts.first_work.committed()
        self._parts.report.dropped()

    def _apply(self, ending: _Ending, step: Step) -> None:
        if step.store is not None:
            self._parts.storage.apply(step.store, ending.positions)

    @contextmanager
    def _naming_a_refused(self, ending: _Ending) -> Iterator[None]:
        """A record that is too large is named, where it is known which one it is."""
        try:
            yield
        except (RecordRefusedError, UndeliveredError) as error:
            content = ending.content
            try:
                topics = oversized.topics(content)
                limits = {name: self._parts.record_limit(name) for name in topics}
            except UnavailableError:
                raise error from None
            story = oversized.story(content, limits)
            if story is None:
                raise
            raise TransactionError(f"{story}; nothing of the transaction was committed") from None
