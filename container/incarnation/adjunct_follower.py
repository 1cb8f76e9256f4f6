"""AdjunctFollower: keeps the adjunct stores of a standby as their streams are.

They are filled as in an active container: the same managers, the same write of entries and position
together. A standby asks no checkpoint: a store that is new begins at the oldest record, so that it
lacks nothing that the active container's has.

So a failover needs no bootstrap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from confluent_kafka import Consumer

from homeport.config.settings.sections import SystemConfig
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.container_job import ContainerJob
from homeport.container.incarnation.adjunct_start import adjunct_feed, stream_ends, streams_now
from homeport.container.kafka.clients import follow_properties
from homeport.container.kafka.input_consumer import InputConsumer
from homeport.container.kafka.log_reader import LogReader
from homeport.container.processing.adjunct_feed import AdjunctFeed
from homeport.container.processing.records import BadRecords
from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.checkpoint import NOTHING
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.input_schedule import NONE_STORED
from homeport.container.reporting.adjunct_report import adjunct_state_of
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage
from homeport.container.storage.adjunct.filled_store import cannot_follow
from homeport.container.storage.adjunct.stream_ends import StreamEnds
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.kafka.clients import consumer
from homeport.job_coordinator.status.container_report import AdjunctState, StoreLag

_MOST = 1000
_BUFFER_BYTES = 8 * 1024 * 1024


class AdjunctFollower:
    """Of stores that ``recover`` has opened. One thread.

    Args:
        storage: the stores.
        feed: what fills them.
        source: reads their streams.
        ends: where the streams end.

    Raises:
        StoreError: (from ``step``) a store cannot go on from where it stands; a new start fills it
            again.
    """

    def __init__(
        self, storage: AdjunctStorage, feed: AdjunctFeed, source: InputConsumer, ends: StreamEnds
    ) -> None:
        self._storage = storage
        self._feed = feed
        self._source = source
        self._ends = ends

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
        self._storage.read(self._source.following, is_behind_markers=True)
        for partition, fault in self._ends.looked():
            raise cannot_follow(self._storage.name_of(partition), partition, fault.story)
        return records

    def look(self) -> None:
        """Requests the ends of the streams; a later ``step`` has them."""
        self._ends.look()

    def lags(self) -> list[StoreLag]:
        """How far each store is behind, at the last look; one of the container by its writer."""
        return [self._lag(planned) for planned in self._storage.plan.stores]

    def _lag(self, planned: PlannedStore) -> StoreLag:
        own = [self._storage.followed[partition] for partition in planned.partitions]
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
        self._ends.close()


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
    streams = streams_now(job, storage, readers)
    oldest = {ssp: InputPosition(available.oldest) for ssp, available in streams.ranges.items()}
    starts = storage.recover(streams, lambda _, ssp: oldest[ssp])
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
    source = InputConsumer(
        job.systems,
        offsets,
        _connect,
        max_bytes=_BUFFER_BYTES,
        lost=storage.lost,
        # Its other streams do not wait for a version: no task reads it yet.
        stored=replace(storage.inputs, holds_back=NONE_STORED.holds_back),
    )
    ends = stream_ends(job, storage.followed, pause, clocks)
    return AdjunctFollower(storage, feed, source, ends)


def _connect(system: SystemConfig, _of_an_active_one: Mapping[str, Any]) -> Consumer:
    return consumer(system, follow_properties(system))
