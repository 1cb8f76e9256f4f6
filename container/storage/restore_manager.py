"""RestoreManager: brings the stores of one container to the heads of their changelogs."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.restore import (
    ChangelogTopic,
    RestorePlan,
    plan_restore,
    restored,
)
from homeport.container.progress.restore_meter import RestoreMeter
from homeport.container.progress.store_meta import Expectation, meta_of
from homeport.container.storage.changelog_reader import ChangelogReader, RestoreListener
from homeport.container.storage.engine import StorageEngines
from homeport.container.storage.task_store import TaskStore
from homeport.job_coordinator.http.messages import Restored

_LOG = logging.getLogger(__name__)

_TELL_S = 1.0


@dataclass(frozen=True)
class RestoreManager:
    """``grouper``: the class that made the tasks of the input."""

    engines: StorageEngines
    grouper: str
    reader: ChangelogReader
    listener: RestoreListener
    clock: Callable[[], float] = time.monotonic

    def restore(
        self, stores: Sequence[TaskStore], now: ClockReading
    ) -> dict[str, dict[str, Restored]]:
        """Each of ``stores`` holds what its changelog holds, up to its head; {store: {task: how}}.

        ``now``: the time before the heads are asked for; each store held then all there was.
        """
        places = [(s.changelog, s.task.changelog_partition) for s in stores]
        topics = self.reader.topics([stream for stream, _ in places])
        results: dict[str, dict[str, Restored]] = {}
        for store, changelog in zip(stores, self.reader.ranges(places), strict=True):
            expected = self._expectation(store, topics[store.changelog], now)
            plan = plan_restore(store.local, changelog, expected)
            self.listener.restore_started(store.config.name, store.task.task_name, plan)
            result = restored(plan, self._read(store, plan))
            store.expected, store.at_head = expected, now
            self.listener.restore_finished(store.config.name, store.task.task_name, result)
            results.setdefault(store.config.name, {})[store.task.task_name] = result
        return results

    def _expectation(
        self, store: TaskStore, topic: ChangelogTopic, now: ClockReading
    ) -> Expectation:
        meta = meta_of(store.changelog, topic.topic_id, store.task, self.grouper, now)
        return Expectation(meta, topic.delete_retention_ms)

    def _read(self, store: TaskStore, plan: RestorePlan) -> int:
        if plan.reason is not None:
            level = logging.WARNING if plan.rebuild else logging.INFO
            _LOG.log(level, "store %s is read in full: %s", store.name, plan.reason)
        if plan.rebuild:
            store.rebuild()
        if store.engine is None:
            store.engine = self.engines.open(store.config, store.directory.path)
        records = 0
        meter = RestoreMeter(store.config.name, store.task.task_name, plan, self.clock())
        told_s = self.clock()
        if plan.start < plan.head:
            partition = store.task.changelog_partition
            for chunk in self.reader.read(store.changelog, partition, plan.start, plan.head):
                store.engine.write(chunk.entries, chunk.last_offset)
                records += chunk.records
                meter.read(chunk.records, chunk.size, chunk.last_offset)
                if self.clock() - told_s >= _TELL_S:
                    told_s = self.clock()
                    self.listener.restore_progress(meter.progress(told_s))
        if plan.head > 0:
            # The head may lie beyond the last record: transaction markers take offsets too.
            store.position = plan.head - 1
            if store.engine.position != store.position:
                store.engine.write({}, store.position)
        return records
