"""AdjunctFollower: keeps the adjunct stores of a standby as their streams are.

They are filled as in an active container: the same managers, the same write of entries and position
together. A standby asks no checkpoint: a store that is new begins at the oldest record, so that it
lacks nothing that the active container's has.

Source: design, adjunct stores, point 8: a failover needs no bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from confluent_kafka import Consumer

from homeport.config.errors import StoreError
from homeport.config.settings.sections import SystemConfig
from homeport.container.adjunct.following import FollowedPartition
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation.adjunct_start import adjunct_feed
from homeport.container.kafka.clients import follow_properties
from homeport.container.kafka.head_watch import HeadWatch, Looks
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.container.kafka.log_reader import LogReader, input_ranges, topic_ids
from homeport.container.processing.adjunct_feed import AdjunctFeed
from homeport.container.processing.records import BadRecords
from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.checkpoint import NOTHING
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.refusal import Refusal
from homeport.container.reporting.adjunct_report import adjunct_state_of
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.http.container_report import AdjunctState, StoreLag
from homeport.job_coordinator.kafka.clients import consumer
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_MOST = 1000
_BUFFER_BYTES = 8 * 1024 * 1024
_DELETED = "the stream of an adjunct store was deleted while it was followed"


class Watch(Protocol):
    """Where the partitions of one system end."""

    def ask(self) -> bool:
        """A look is under way; False where the one before it still is."""

    def looks(self) -> Looks:
        """The outcome of the last look; nothing until it is there."""

    def close(self) -> None:
        """No look comes any more."""


class AdjunctFollower:
    """Of stores that ``recover`` has opened. One thread.

    Args:
        storage: the stores.
        feed: what fills them.
        source: reads their streams.
        watches: {system: where the partitions end that it reads of it}.
        followed: {partition: where it stands}.

    Raises:
        StoreError: (from ``step``) a store cannot go on from where it stands; a new start fills it
            again.
    """

    def __init__(
        self,
        storage: AdjunctStorage,
        feed: AdjunctFeed,
        source: InputConsumer,
        watches: Mapping[str, Watch],
        followed: Mapping[SystemStreamPartition, FollowedPartition],
    ) -> None:
        self._storage = storage
        self._feed = feed
        self._source = source
        self._watches = watches
        self._followed = followed
        self._asked: dict[SystemStreamPartition, int] = {}

    def step(self, seconds: float) -> int:
        """What came within ``seconds`` is in the stores; how many records that were.

        Raises:
            HomeportError: a record cannot be stored, and may not be dropped.
        """
        records = 0
        batch = self._source.poll(_MOST, seconds)
        if batch is not None:
            records = batch.table.num_rows
            _, brought = self._feed.split(batch)
            self._feed.show(brought, passed, passed)
        else:
            self._feed.settle(passed, passed)
        for partition, followed in self._followed.items():
            followed.read(self._source.following[partition])
        for system, watch in self._watches.items():
            for (topic, number), look in watch.looks().items():
                partition = SystemStreamPartition(system, topic, number)
                fault = self._followed[partition].looked(look, self._asked[partition])
                if fault is not None:
                    raise self._ended(partition, fault)
        return records

    def look(self) -> None:
        """Requests the ends of the streams; a later ``step`` has them."""
        for system, watch in self._watches.items():
            if watch.ask():
                for partition, followed in self._followed.items():
                    if partition.system == system:
                        self._asked[partition] = followed.next

    def lags(self) -> list[StoreLag]:
        """How far each store is behind, at the last look; one of the container by its writer."""
        return [self._lag(planned) for planned in self._storage.plan.stores]

    def _lag(self, planned: PlannedStore) -> StoreLag:
        own = [self._followed[partition] for partition in planned.partitions]
        seconds = max((followed.lag_s for followed in own), default=0.0)
        records = sum(followed.lag for followed in own)
        return StoreLag(planned.store.name, planned.writer, records, seconds)

    def states(self) -> list[AdjunctState]:
        """Each store as it stands, at the last look."""
        now_ms = self._storage.now_ms()
        return [
            adjunct_state_of(planned, facts, now_ms, self._lag(planned).records)
            for planned, facts in self._storage.facts()
        ]

    def close(self) -> None:
        """Nothing is read any more, and no thread looks at the ends."""
        self._source.close()
        for watch in self._watches.values():
            watch.close()

    def _ended(self, partition: SystemStreamPartition, fault: Refusal) -> StoreError:
        names = [s.store.name for s in self._storage.plan.stores if partition in s.partitions]
        return _ended(names[0], partition, fault.story)


def adjunct_follower(
    job: ContainerJob,
    storage: AdjunctStorage | None,
    readers: Mapping[str, LogReader],
    pause: Callable[[float], None],
    clocks: Callable[[], ClockReading],
) -> AdjunctFollower | None:
    """Follows the streams of the standby's adjunct stores, which are recovered; None: it has none.

    Args:
        job: the standby's view.
        storage: its stores, open.
        readers: of each system that has one of their streams.
        pause: waits the seconds given, and raises to stop.
        clocks: the clocks of this machine.

    Raises:
        ConfigError: an extractor or a serde cannot be had.
        DiskError, StoreError: a directory cannot be used.
        UnavailableError: Kafka does not answer.
    """
    if storage is None:
        return None
    plan = storage.plan
    ids = topic_ids(readers, job.adjunct_streams)
    ranges = input_ranges(readers, (ssp for item in plan.stores for ssp in item.partitions))
    starts = storage.recover(ids, ranges, lambda _, ssp: InputPosition(ranges[ssp].oldest))
    offsets = {
        task: {ssp: position.offset for ssp, position in own.items()}
        for task, own in starts.items()
    }
    # The active container has the dead letters.
    bad = BadRecords(Outputs((), (), None), None, drop=job.records.drop_undecodable)
    processed = {
        task: {ssp: NOTHING if offset == 0 else offset - 1 for ssp, offset in own.items()}
        for task, own in offsets.items()
    }
    feed = adjunct_feed(job, storage, bad, processed)
    if feed is None:
        return None
    now = clocks()
    followed = {
        ssp: FollowedPartition(ids[ssp.system_stream], offset, now)
        for own in offsets.values()
        for ssp, offset in own.items()
    }
    source = InputConsumer(
        job.systems,
        offsets,
        _connect,
        max_bytes=_BUFFER_BYTES,
        lost=_lost,
        shared=plan.shared,
    )
    watches = {}
    for name in sorted({ssp.system for ssp in followed}):
        places = [(ssp.stream, ssp.partition) for ssp in sorted(followed) if ssp.system == name]
        watches[name] = HeadWatch(job.systems[name], places, pause, clocks, _DELETED)
    return AdjunctFollower(storage, feed, source, watches, followed)


def _connect(system: SystemConfig, _of_an_active_one: Mapping[str, Any]) -> Consumer:
    return consumer(system, follow_properties(system))


def _lost(partition: SystemStreamPartition, position: InputPosition) -> None:
    """An active container may go on behind a gap; a standby's store would lack what was in it."""
    story = f"{position.lost} records were deleted before they were read"
    raise _ended("", partition, story)


def _ended(store: str, partition: SystemStreamPartition, story: str) -> StoreError:
    what = f"adjunct store {store}" if store else "an adjunct store"
    return StoreError(
        f"{what} cannot follow its stream {partition.system_stream} partition "
        f"{partition.partition} any more: {story}; the next start fills it again"
    )
