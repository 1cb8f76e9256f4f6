"""AdjunctStorage: all adjunct stores of one container: those of its tasks, and those it shares.

Source: ADJUNCT, "ContainerStorageManager": directories, validity at the start, flush.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from homeport.config.errors import StoreError
from homeport.config.settings.stores_section import StoreConfig
from homeport.config.system_stream import SystemStream
from homeport.container.adjunct.recovery import (
    AdjunctMeta,
    Recovery,
    StreamNow,
    expected_meta,
    recover,
)
from homeport.container.adjunct.steps import SWITCH_STEPS, AdjunctAction, AdjunctStep, flush_steps
from homeport.container.adjunct.store_plan import PlannedStore, StorePlan
from homeport.container.host.executors import Executor, SameThread
from homeport.container.progress.clock_reading import ClockReading, elapsed_ms
from homeport.container.progress.follow import STREAM, VERSIONS, Followed, HeadPoll, poll_interval_s
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.input_schedule import StoredInputs
from homeport.container.progress.restore import OffsetRange
from homeport.container.progress.store_meta import least_ms
from homeport.container.storage.adjunct.filled_store import FilledStore, Reached, StoreFacts
from homeport.container.storage.adjunct.read_only_entries import ReadOnlyEntries
from homeport.container.storage.adjunct.unbounded_store import UnboundedStore
from homeport.container.storage.adjunct.versioned_store import VersionedStore
from homeport.container.storage.directory import StoreDirectory
from homeport.container.storage.directory_lock import Holder, LockWait
from homeport.container.storage.storage_engines import StorageEngines
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)
_KEPT_BYTES = 16 << 20
"""The entries that all adjunct stores of a container together keep for readers."""

Layers = tuple[tuple[FilledStore, Any], ...]
"""What one micro-batch brings to each store that it brings something to."""
Starts = dict[TaskName, dict[SystemStreamPartition, InputPosition]]
LastPosition = Callable[[PlannedStore, SystemStreamPartition], InputPosition]


@dataclass(frozen=True, slots=True)
class StreamsNow:
    """Kafka's answer about the streams that fill the stores, to requests at ``asked`` or later.

    ``ids`` {stream: the broker's id of its topic}. ``ranges`` {partition: its offsets}. ``kept_ms``
    {compacted stream of a store that a start may find: how long it keeps deletions}. ``forms``
    {store: the forms of its serdes, as in ``AdjunctMeta``}.
    """

    asked: ClockReading
    ids: Mapping[SystemStream, str]
    ranges: Mapping[SystemStreamPartition, OffsetRange]
    kept_ms: Mapping[SystemStream, int] = field(default_factory=dict)
    forms: Mapping[str, tuple[str, str]] = field(default_factory=dict)


@dataclass
class AdjunctStorage:
    """Call ``open``, then ``recover``, before all else.

    ``configs`` {store: its configuration}. ``logged_root`` holds the stores that a start may find
    again, ``scratch_root`` the others. ``clocks``: those of this machine. ``beside``: flushes and
    removes versions beside the batches; it is closed with the stores. ``followed`` {partition: the
    store's place in it}, from ``recover`` on.
    """

    plan: StorePlan
    configs: Mapping[str, StoreConfig]
    logged_root: Path
    scratch_root: Path
    clocks: Callable[[], ClockReading]
    beside: Executor = field(default_factory=SameThread)
    followed: dict[SystemStreamPartition, Followed] = field(default_factory=dict)
    _opened: list[FilledStore] = field(default_factory=list)

    def now_ms(self) -> int:
        """Return the time of this host's clock."""
        return self.clocks().wall_ms

    @property
    def count(self) -> int:
        """Return how many stores there are."""
        return len(self.plan.stores)

    def open(self, engines: StorageEngines, wait: LockWait, holder: Holder | None) -> None:
        """Lock every directory; errors as of ``ContainerStorage.open``."""
        for planned in self.plan.stores:
            root = self.logged_root if planned.store.is_kept else self.scratch_root
            directory = StoreDirectory(root / planned.directory, wait, holder, below=root)
            config = self.configs[planned.store.name]
            kind = VersionedStore if planned.store.is_bounded else UnboundedStore
            kept_bytes = _KEPT_BYTES // self.count
            store = kind(planned, config, directory, engines, kept_bytes, self.beside)
            self._opened.append(store)

    def recover(self, streams: StreamsNow, last_position: LastPosition) -> Starts:
        """Open every store with what a start may keep of it; return where its stream goes on.

        ``last_position``: as for ``recovery.recover``. Shape: {task: {partition of an adjunct
        stream: its position}}. Tasks that share a store have the same positions.

        Raises:
            DiskError: there is no room, or no right.
            StoreError: a directory cannot be used.
        """
        starts: Starts = {}
        for item in self._opened:
            planned = item.planned
            own = planned.store.stream
            ranges = {ssp: streams.ranges[ssp] for ssp in planned.partitions}
            kept_ms = streams.kept_ms.get(own)
            forms = streams.forms.get(planned.store.name)
            stream = StreamNow(streams.ids[own], ranges, streams.asked, kept_ms, forms)
            found = item.find()
            recovery = recover(planned.store, found, stream, partial(last_position, planned))
            meta = _meta(planned, stream, found.meta if recovery.is_kept else None)
            item.begin(recovery, meta, kept_ms, self.now_ms())
            self._follow(item, recovery, stream, meta)
            _say(item, recovery)
            for task in planned.readers:
                starts.setdefault(task, {}).update(recovery.starts)
        return starts

    def _follow(
        self, item: FilledStore, recovery: Recovery, stream: StreamNow, meta: AdjunctMeta
    ) -> None:
        """Follow the partitions of the store ``item``.

        A partition that is new to a kept store is judged like its other partitions.
        """
        for ssp, position in recovery.starts.items():
            rule = VERSIONS if item.planned.store.is_bounded else STREAM
            followed = Followed(stream.topic_id, position.offset, meta.at_head, rule, meta.kept_ms)
            available = stream.ranges[ssp]
            ends = HeadPoll(stream.asked, available.oldest, available.head, stream.topic_id)
            followed.take_heads(ends)
            self.followed[ssp] = followed

    def read(
        self,
        following: Mapping[SystemStreamPartition, int] | None = None,
        *,
        is_behind_markers: bool = False,
    ) -> None:
        """Note that the stores have all records below ``following``, or below their positions.

        ``is_behind_markers``: as in ``Followed.read``.

        One warning names a store that may lack deletions. The container goes on with it: a new
        start would be no faster, and too late again where deletions are kept for a moment.
        """
        now = self.clocks()
        for item in self._opened:
            for partition, at in item.positions.items():
                behind = at if following is None else max(at, following[partition])
                followed = self.followed[partition]
                stale = followed.read(behind, now, is_behind_markers=is_behind_markers)
                if stale is not None:
                    _LOG.warning(
                        "adjunct store %s may keep keys that were deleted, until a start fills it "
                        "again: partition %d: %s",
                        *(item.name, partition.partition, stale.story),
                    )

    def poll_interval_s(self, most_s: float) -> float:
        """Return the interval of requests for heads: several in the shortest retention."""
        return poll_interval_s((item.kept_ms for item in self.followed.values()), most_s)

    def name_of(self, partition: SystemStreamPartition) -> str:
        """Return the name of the store that the partition fills."""
        own = (planned for planned in self.plan.stores if partition in planned.partitions)
        return next(own).store.name

    def _at_head(self, item: FilledStore) -> ClockReading | None:
        now = self.clocks()
        found = [
            self.followed[ssp].at_head for ssp in item.planned.partitions if ssp in self.followed
        ]

        def age_ms(at: ClockReading) -> float:
            passed_ms = elapsed_ms(at, now)
            return math.inf if passed_ms is None else passed_ms

        return max(found, key=age_ms, default=None)

    def lost(self, partition: SystemStreamPartition, position: InputPosition) -> None:
        """Note the loss in the store that the partition fills; see ``FilledStore.lost``."""
        for item in self._opened:
            if partition in item.planned.partitions:
                item.lost(partition, position)

    @property
    def inputs(self) -> StoredInputs:
        """Return the partitions that fill any of the stores."""
        own = frozenset(ssp for planned in self.plan.stores for ssp in planned.partitions)
        return StoredInputs(own, self.plan.shared, self.awaited)

    def entries(self, store: str, task: TaskName) -> ReadOnlyEntries:
        """Return what the task sees of the store, after ``recover``; StoreError before it."""
        for item in self.of_name(store):
            if task in item.planned.readers:
                return item.entries
        raise StoreError(f"no adjunct store {store} of task {task} is open")

    def of_task(self, task: TaskName) -> OpenStores:
        """Return the stores of one task."""
        return OpenStores(
            {
                item.planned.store.name: item
                for item in self._opened
                if not item.planned.is_of_container and item.planned.writer == task
            }
        )

    def of_container(self) -> OpenStores:
        """Return the stores that all tasks share."""
        return OpenStores(
            {i.planned.store.name: i for i in self._opened if i.planned.is_of_container}
        )

    def of_name(self, store: str) -> list[FilledStore]:
        """Return the open stores of that name: the container's one, or one for each task."""
        return [item for item in self._opened if item.planned.store.name == store]

    def facts(self) -> list[tuple[PlannedStore, StoreFacts]]:
        """Return each store with its facts for a report."""
        return [(item.planned, item.facts()) for item in self._opened]

    def bounded(self) -> list[FilledStore]:
        """Return the stores whose data sets come in versions."""
        return [item for item in self._opened if item.planned.store.is_bounded]

    def sealed(self) -> Layers:
        """Return what the stores took since the last call."""
        found = ((item, item.sealed()) for item in self._opened)
        return tuple((item, layer) for item, layer in found if layer is not None)

    def switch_versions(self, reached: Reached, begins: Reached, *, waits: bool = False) -> None:
        """Show tasks, between two batches, the versions that are ready."""
        for item in self._opened:
            item.switch_versions(reached, begins, waits=waits)

    def awaited(self) -> Mapping[TaskName, str]:
        """Return {task: the first version that its other inputs wait for}; see ``StoredInputs``.

        Raises:
            StoreError: nothing has come of it for too long.
        """
        found: dict[TaskName, str] = {}
        for item in self._opened:
            what = item.awaits(self.now_ms) if item.planned.store.is_bootstrap else None
            if what is not None:
                found |= dict.fromkeys(item.planned.readers, what)
        return found

    def flush(self, reached: Reached, begins: Reached) -> int:
        """Flush every store that has begun, and return how many had moved."""
        now_ms = self.now_ms()
        return sum(
            [item.flush(now_ms, self._at_head(item), reached, begins) for item in self._opened]
        )

    def steps(self) -> tuple[tuple[AdjunctStep, ...], tuple[AdjunctStep, ...]]:
        """Return the steps of a micro-batch that fills every store, and those of a flush."""
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
        """Close and unlock everything."""
        for item in self._opened:
            item.close()
        self._opened.clear()
        self.beside.close()


@dataclass(frozen=True)
class OpenStores:
    """Implements ``BaseStorageManager``: the stores of one task, or those of the container."""

    stores: Mapping[str, FilledStore]

    def adjunct(self, store: str) -> FilledStore | None:
        """Return the store of that name; None: it is not of this storage."""
        return self.stores.get(store)

    def reset_partitions(self) -> Collection[SystemStreamPartition]:
        """Return the partitions whose stores begin with nothing."""
        return [
            p for item in self.stores.values() if item.was_reset for p in item.planned.partitions
        ]


NO_STORES = OpenStores({})
"""Of a task that does not fill those of the container."""


def write(layers: Layers, reached: Reached, begins: Reached) -> None:
    """Write ``layers`` into their stores, for tasks to see."""
    for store, layer in layers:
        store.write(layer, reached, begins)


def _meta(planned: PlannedStore, stream: StreamNow, found: AdjunctMeta | None) -> AdjunctMeta:
    """Return the directory's meta from now on; ``found``: its meta before, where it is kept.

    The shorter retention counts: a longer one brings no dropped deletion back.
    """
    at_head = stream.asked if found is None else found.at_head
    meta = expected_meta(planned.store, stream.topic_id)
    kept_ms = least_ms(stream.kept_ms, None if found is None else found.kept_ms)
    return replace(meta, at_head=at_head, kept_ms=kept_ms, forms=stream.forms)


def _say(item: FilledStore, recovery: Recovery) -> None:
    at = ", ".join(f"{p.partition}: {o.offset}" for p, o in sorted(recovery.starts.items()))
    where = f"its stream {item.planned.store.stream} is read on at {at or 'no partition'}"
    if recovery.refusal is not None:
        _LOG.warning("adjunct store %s is filled again: %s", item.name, recovery.refusal.story)
    what = "is kept" if recovery.is_kept else "is new"
    _LOG.info("adjunct store %s %s: %s", item.name, what, where)
