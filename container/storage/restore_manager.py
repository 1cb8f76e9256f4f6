"""RestoreManager: brings the stores of one container to the heads of their changelogs."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from homeport.config.errors import StoreError
from homeport.config.system_stream import SystemStream
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.restore import ChangelogTopic, expectation_of
from homeport.container.progress.restore_schedule import is_read_in_place, largest_first
from homeport.container.storage.changelog_reader import ChangelogReader, RestoreListener
from homeport.container.storage.storage_engines import StorageEngines
from homeport.container.storage.store_restore import StoreRestore
from homeport.container.storage.task_store import TaskStore
from homeport.job_coordinator.model.outcomes import Restored


class Workers(Protocol):
    """Processes that fill stores beside this one."""

    def run(self, restores: Sequence[StoreRestore]) -> None:
        """Every store holds all of its plan; none is open here."""


@dataclass(frozen=True)
class RestoreManager:
    """``grouper``: the class that made the tasks of the input.

    ``forms`` {store: the forms of its keys and values, in brief}, of those that are known.
    """

    engines: StorageEngines
    grouper: str
    reader: ChangelogReader
    listener: RestoreListener
    workers: Workers
    clock: Callable[[], float] = time.monotonic
    forms: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def restore(
        self, stores: Sequence[TaskStore], now: ClockReading
    ) -> dict[str, dict[str, Restored]]:
        """Each of ``stores`` holds what its changelog holds, up to its head; {store: {task: how}}.

        ``now``: the time before the request of the heads; each store held then all there was.

        Raises:
            StoreError: a changelog was recreated while it was read.
        """
        places = [(s.changelog, s.task.changelog_partition) for s in stores]
        topics = self.reader.topics([stream for stream, _ in places])
        restores = [
            StoreRestore(
                store,
                changelog,
                expectation_of(
                    store.changelog,
                    topics[store.changelog],
                    store.task,
                    self.grouper,
                    now,
                    self.forms.get(store.config.name),
                ),
                self.listener,
                self.clock,
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
        """All stores hold what their plans say. Those that are soon read come first: in place."""
        by_workers: list[StoreRestore] = []
        for restore in restores:
            restore.begin()
            if is_read_in_place(restore.plan, is_persistent=restore.store.config.is_persistent):
                restore.read_in_place(self.reader, self.engines)
            else:
                by_workers.append(restore)
        if by_workers:
            for restore in by_workers:
                restore.hand_over()
            self.workers.run(largest_first((r, r.plan) for r in by_workers))

    def _require_same_topics(
        self, restores: Sequence[StoreRestore], topics: Mapping[SystemStream, ChangelogTopic]
    ) -> None:
        """Offsets of a topic that was recreated meanwhile mean other records."""
        read = {r.store.changelog for r in restores if r.plan.start < r.plan.head}
        found = self.reader.topics(sorted(read, key=str)) if read else {}
        for stream, topic in found.items():
            if topic.topic_id != topics[stream].topic_id:
                raise StoreError(
                    f"changelog {stream} was recreated while its stores were read: its topic id "
                    f"was {topics[stream].topic_id}, it is {topic.topic_id}; start again, and they "
                    "are read in full"
                )
