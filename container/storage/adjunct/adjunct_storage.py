"""AdjunctStorage: all adjunct stores of one container, those of its tasks and its own.

Source: ADJUNCT, "ContainerStorageManager": directories, validity at the start, flush.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StoreConfig
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.recovery import (
    Recovery,
    StoreAction,
    StreamNow,
    expected_meta,
    recover,
)
from homeport.container.adjunct.steps import SWITCH_STEPS, AdjunctAction, AdjunctStep, flush_steps
from homeport.container.adjunct.store_plan import PlannedStore, StorePlan
from homeport.container.host.beside import Beside, Inline
from homeport.container.progress.input_position import InputPosition, InputRange
from homeport.container.storage.adjunct.filled_store import FilledStore, Reached
from homeport.container.storage.adjunct.read_only_entries import ReadOnlyEntries
from homeport.container.storage.adjunct.store_facts import StoreFacts
from homeport.container.storage.adjunct.unbounded_store import UnboundedStore
from homeport.container.storage.adjunct.versioned_store import VersionedStore
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import Holder, LockWait
from homeport.container.storage.storage_engines import StorageEngines
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)
_KEPT_BYTES = 16 << 20
"""Of what tasks read, by all adjunct stores of a container together."""

Layers = tuple[tuple[FilledStore, Any], ...]
"""What one micro-batch brings to each store that it brings something to."""
Starts = dict[TaskName, dict[SystemStreamPartition, InputPosition]]
LastPosition = Callable[[PlannedStore, SystemStreamPartition], InputPosition]


@dataclass
class AdjunctStorage:
    """``open``, then ``recover``.

    ``configs``: {store: its configuration}. ``logged_root``: holds those that a start may find
    again, ``scratch_root`` the others. ``now_ms``: this host's clock. ``beside``: flushes and
    removes versions while batches go on; it is closed with the stores.
    """

    plan: StorePlan
    configs: Mapping[str, StoreConfig]
    logged_root: Path
    scratch_root: Path
    now_ms: Callable[[], int]
    beside: Beside = field(default_factory=Inline)
    _opened: list[FilledStore] = field(default_factory=list)

    @property
    def count(self) -> int:
        """How many stores there are."""
        return len(self.plan.stores)

    def open(self, engines: StorageEngines, wait: LockWait, holder: Holder | None) -> None:
        """Every directory is locked; errors as of ``ContainerStorage.open``."""
        for planned in self.plan.stores:
            root = self.logged_root if planned.store.is_kept else self.scratch_root
            directory = StoreDirectory(root / planned.directory, wait, holder)
            config = self.configs[planned.store.name]
            kind = VersionedStore if planned.store.is_bounded else UnboundedStore
            kept_bytes = _KEPT_BYTES // self.count
            self._opened.append(kind(planned, config, directory, engines, kept_bytes, self.beside))

    def recover(
        self,
        topic_ids: Mapping[SystemStream, str],
        ranges: Mapping[SystemStreamPartition, InputRange],
        last_position: LastPosition,
    ) -> Starts:
        """Every store is open, with what a start may keep of it; where its stream is read on.

        Args:
            topic_ids: {stream: the broker's id of its topic}.
            ranges: what Kafka has of each partition.
            last_position: where a partition goes on by the checkpoint, else by
                ``samza.offset.default``.

        Returns:
            {task: {partition of an adjunct stream: its position}}; of a store that several tasks
            read, they have the same.

        Raises:
            DiskError: there is no room, or no right.
            StoreError: a directory cannot be used.
        """
        starts: Starts = {}
        for item in self._opened:
            planned = item.planned
            topic_id, now_ms = topic_ids[planned.store.stream], self.now_ms()
            stream = StreamNow(topic_id, {ssp: ranges[ssp] for ssp in planned.partitions})
            last = partial(last_position, planned)
            recovery = recover(planned.store, item.find(), stream, now_ms, last)
            item.begin(recovery, expected_meta(planned.store, topic_id), now_ms)
            _say(item, recovery)
            for task in planned.readers:
                starts.setdefault(task, {}).update(recovery.starts)
        return starts

    def entries(self, store: str, task: TaskName) -> ReadOnlyEntries:
        """What the task sees of the store, once ``recover`` has returned; StoreError without it."""
        return self._of(store, task).entries

    def _of(self, store: str, task: TaskName) -> FilledStore:
        for item in self._opened:
            if item.planned.store.name == store and task in item.planned.readers:
                return item
        raise StoreError(f"no adjunct store {store} of task {task} is open")

    def of_task(self, task: TaskName) -> OpenStores:
        """The stores of one task."""
        return OpenStores(
            {
                item.planned.store.name: item
                for item in self._opened
                if not item.planned.is_of_container and item.planned.writer == task
            }
        )

    def of_container(self) -> OpenStores:
        """The stores that all tasks share."""
        return OpenStores(
            {i.planned.store.name: i for i in self._opened if i.planned.is_of_container}
        )

    def of_name(self, store: str) -> list[FilledStore]:
        """All that are open of that store: the one of the container, or those of its tasks."""
        return [item for item in self._opened if item.planned.store.name == store]

    def facts(self) -> list[tuple[PlannedStore, StoreFacts]]:
        """Each store, and the facts that a report has of it."""
        return [(item.planned, item.facts()) for item in self._opened]

    def bounded(self) -> list[FilledStore]:
        """The stores whose data sets come in versions."""
        return [item for item in self._opened if item.planned.store.is_bounded]

    def sealed(self) -> Layers:
        """What the stores were handed since the last call."""
        found = ((item, item.sealed()) for item in self._opened)
        return tuple((item, layer) for item, layer in found if layer is not None)

    def settle(self, reached: Reached, begins: Reached, *, waits: bool = False) -> None:
        """Between two batches: tasks see the versions that are ready; as of ``FilledStore``."""
        for item in self._opened:
            item.settle(reached, begins, waits=waits)

    def holds_back(self) -> bool:
        """Whether other inputs wait for the first version of a store that is marked for that."""
        return any(i.planned.store.is_bootstrap and not i.is_whole for i in self._opened)

    def flush(self, reached: Reached, begins: Reached) -> int:
        """Every store that has begun is on the disk as it stands; how many had moved."""
        now_ms = self.now_ms()
        return sum([item.flush(now_ms, reached, begins) for item in self._opened])

    def steps(self) -> tuple[tuple[AdjunctStep, ...], tuple[AdjunctStep, ...]]:
        """The steps of a micro-batch that every store has something of, and of the flush after."""
        writes = [
            AdjunctStep(action, item.name)
            for item in self._opened
            for action in (
                AdjunctAction.WRITE,
                *(SWITCH_STEPS if item.planned.store.is_bounded else ()),
            )
        ]
        kept = [item.name for item in self._opened if item.planned.store.is_kept]
        flushes = [step for name in kept for step in flush_steps(name, has_moved=True)]
        return tuple(writes), tuple(flushes)

    def close(self) -> None:
        """Nothing is open or locked."""
        for item in self._opened:
            item.close()
        self._opened.clear()
        self.beside.close()


@dataclass(frozen=True)
class OpenStores:
    """Implements ``BaseStorageManager``: the stores of one task, or those of the container."""

    stores: Mapping[str, FilledStore]

    def adjunct(self, store: str) -> FilledStore | None:
        """The store of that name; None: it is not of this storage."""
        return self.stores.get(store)

    def reset_partitions(self) -> Collection[SystemStreamPartition]:
        """The partitions whose stores begin with nothing."""
        return [p for item in self.stores.values() if item.was_reset for p in item.partitions]


NO_STORES = OpenStores({})
"""Of a task that does not fill those of the container."""


def write(layers: Layers, reached: Reached, begins: Reached) -> None:
    """Tasks see what ``layers`` have."""
    for store, layer in layers:
        store.write(layer, reached, begins)


def _say(item: FilledStore, recovery: Recovery) -> None:
    at = ", ".join(f"{p.partition}: {o.offset}" for p, o in sorted(recovery.starts.items()))
    where = f"its stream {item.planned.store.stream} is read on at {at or 'no partition'}"
    if recovery.refusal is not None:
        _LOG.warning("adjunct store %s is filled again: %s", item.name, recovery.refusal.story)
    what = "is kept" if recovery.action is StoreAction.KEEP else "is new"
    _LOG.info("adjunct store %s %s: %s", item.name, what, where)
