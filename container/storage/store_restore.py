"""RestoreManager: brings the stores of one container to the heads of their changelogs."""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.refusal import Refusal, RefusalReason
from homeport.container.progress.restore import (
    ChangelogTopic,
    LocalState,
    OffsetRange,
    RestoreMeter,
    expected_meta,
    plan_restore,
    restored,
)
from homeport.container.progress.restore_schedule import is_read_in_place
from homeport.container.progress.store_meta import StoreMeta
from homeport.container.storage.changelog_reader import Chunk, RestoreListener, RestoreReader
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.task_store import TaskStore
from homeport.job_coordinator.model.outcomes import Restored

_LOG = logging.getLogger(__name__)

_TELL_S = 1.0


class StoreRestore:
    """The restore of one store: in place, or by a worker that has the directory open meanwhile."""

    def __init__(
        self,
        store: TaskStore,
        changelog: OffsetRange,
        expected: StoreMeta,
        listener: RestoreListener,
    ) -> None:
        """Plan the restore, and read nothing yet. ``expected``: STORE-META as of now."""
        self.store = store
        self.plan = plan_restore(store.local, changelog, expected)
        self._changelog = changelog
        self._expected = expected
        self._listener = listener
        self._reported_s = time.monotonic()
        self._meter = self._new_meter()

    def begin(self) -> None:
        """Empty the directory where the plan does not build on it, and report the begin."""
        store, plan = self.store, self.plan
        self._listener.restore_started(store.config.name, store.task.task_name, plan)
        if plan.reason is not None:
            level = logging.WARNING if plan.rebuild else logging.INFO
            _LOG.log(level, "store %s is read in full: %s", store.name, plan.reason)
        if plan.rebuild:
            store.rebuild()

    def hand_over(self) -> None:
        """Close the store for a worker, from whose flushes a later restore may continue.

        Where all is read, STORE-META has the present time: a restore that continues while deletions
        are kept misses none (safety S2). Else it keeps its old time: the store has not stood
        at the head since. A directory without STORE-META gets one with the time of OFFSET.
        """
        store = self.store
        if store.engine is not None:
            store.engine.close()
            store.engine = None
        if self.plan.reason is not None:
            store.write_meta(self._expected)
        elif store.local.meta is None:
            written = ClockReading(store.local.offset_time_ms)
            store.write_meta(replace(self._expected, at_head=written))

    def again_from_nothing(self, why: StoreError) -> bool:
        """Plan to restore the unusable store in full; return False where it was new already."""
        if self.plan.reason is not None:
            return False
        _LOG.warning("store %s is read in full: %s", self.store.name, why)
        self.store.rebuild()
        damaged = LocalState(exists=True, fault=Refusal(RefusalReason.DAMAGED_STORE, str(why)))
        self.plan = plan_restore(damaged, self._changelog, self._expected)
        self._meter = self._new_meter()
        self.hand_over()
        return True

    @property
    def place(self) -> tuple[SystemStream, int]:
        """Return the changelog partition of the store."""
        return self.store.changelog, self.store.task.changelog_partition

    def open_in_place(self, engines: StorageEngines) -> None:
        """Open the store, if it is not, for ``take``."""
        store = self.store
        store.engine = store.engine or engines.open(store.config, store.directory.path)

    def take(self, chunk: Chunk) -> None:
        """Put the next records of the plan into the store."""
        self.store.opened().write(chunk.entries, chunk.last_offset)
        self.read(chunk.records, chunk.size, chunk.last_offset)

    def end_in_place(self) -> None:
        """Note that the store has all of the plan."""
        engine, last = self.store.opened(), self.plan.head - 1
        if last >= 0 and engine.position != last:
            # The head may lie beyond the last record: transaction markers take offsets too.
            engine.write({}, last)

    def read(self, records: int, size: int, last_offset: int) -> None:
        """Count ``records`` more; report the progress about once a second."""
        self._meter.read(records, size, last_offset)
        now_s = time.monotonic()
        if now_s - self._reported_s >= _TELL_S:
            self._reported_s = now_s
            self._listener.restore_progress(self._meter.progress(now_s))

    def merging(self, files: int) -> None:
        """Report that a worker merges so many files before the store is used."""
        _LOG.info("restored %s: merging %d files", self.store.name, files)
        progress = self._meter.progress(time.monotonic())
        self._listener.restore_progress(replace(progress, merging=files))

    def finish(self, engines: StorageEngines, now: ClockReading) -> Restored:
        """Open the store, which stands at the head as of ``now``.

        Raises:
            StoreError: it stands elsewhere.
        """
        store, head = self.store, self.plan.head
        if store.engine is None:
            store.engine = engines.open(store.config, store.directory.path)
            if store.engine.position != head - 1:
                raise StoreError(
                    f"store {store.name} was restored up to {store.engine.position}, not to "
                    f"{head - 1}: damaged"
                )
        if head > 0:
            store.position = head - 1
        store.expected, store.at_head = self._expected, now
        result = restored(self.plan, self._meter.records)
        self._listener.restore_finished(store.config.name, store.task.task_name, result)
        return result

    def _new_meter(self) -> RestoreMeter:
        task = self.store.task.task_name
        return RestoreMeter(self.store.config.name, task, self.plan, time.monotonic())


class Workers(Protocol):
    """Processes that fill stores beside this one."""

    def run(self, restores: Sequence[StoreRestore]) -> None:
        """Bring every store to the end of its plan; none is open here."""


@dataclass(frozen=True)
class RestoreManager:
    """``grouper``: the class that made the tasks of the input.

    ``forms`` {store: the forms of its keys and values, in brief}, of those that are known.
    """

    engines: StorageEngines
    grouper: str
    reader: RestoreReader
    listener: RestoreListener
    workers: Workers
    forms: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def restore(
        self, stores: Sequence[TaskStore], now: ClockReading
    ) -> dict[str, dict[str, Restored]]:
        """Bring each of ``stores`` to the head of its changelog; return {store: {task: how}}.

        ``now``: the time before the heads are requested. A store at its head had all records then.

        Raises:
            StoreError: a changelog was recreated while it was read.
        """
        places = [(s.changelog, s.task.changelog_partition) for s in stores]
        topics = self.reader.topics([stream for stream, _ in places])
        restores = [
            StoreRestore(
                store,
                changelog,
                expected_meta(
                    store.changelog,
                    topics[store.changelog],
                    store.task,
                    self.grouper,
                    now,
                    self.forms.get(store.config.name),
                ),
                self.listener,
            )
            for store, changelog in zip(stores, self.reader.ranges(places), strict=True)
        ]
        self._read(restores)
        self._require_same_topics(restores, topics)
        results: dict[str, dict[str, Restored]] = {}
        for restore in restores:
            store = restore.store
            result = restore.finish(self.engines, now)
            results.setdefault(store.config.name, {})[store.task.task_name] = result
        return results

    def _read(self, restores: Sequence[StoreRestore]) -> None:
        """Restore all stores as planned; those that are soon read come first, in place."""
        by_workers: list[StoreRestore] = []
        in_place: list[StoreRestore] = []
        for restore in restores:
            restore.begin()
            if is_read_in_place(restore.plan, is_persistent=restore.store.config.is_persistent):
                restore.open_in_place(self.engines)
                in_place.append(restore)
            else:
                by_workers.append(restore)
        while in_place:
            # Together: the broker holds back the news of each end.
            now = {restore.place: restore for restore in in_place}
            spans = {place: (r.plan.start, r.plan.head) for place, r in now.items()}
            for place, chunk in self.reader.read_all(spans):
                now[place].take(chunk)
            for restore in now.values():
                restore.end_in_place()
            in_place = [restore for restore in in_place if now[restore.place] is not restore]
        if by_workers:
            for restore in by_workers:
                restore.hand_over()
            # The longest first, so that none begins when the others are done.
            by_workers.sort(key=lambda restore: restore.plan.start - restore.plan.head)
            self.workers.run(by_workers)

    def _require_same_topics(
        self, restores: Sequence[StoreRestore], topics: Mapping[SystemStream, ChangelogTopic]
    ) -> None:
        """Refuse offsets of a topic that was recreated meanwhile: they mean other records."""
        read = {r.store.changelog for r in restores if r.plan.start < r.plan.head}
        found = self.reader.topics(sorted(read, key=str)) if read else {}
        for stream, topic in found.items():
            if topic.topic_id != topics[stream].topic_id:
                raise StoreError(
                    f"changelog {stream} was recreated while its stores were read: its topic id "
                    f"was {topics[stream].topic_id}, it is {topic.topic_id}; start again, and they "
                    "are read in full"
                )
