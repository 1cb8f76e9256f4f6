"""Replicas: the stores of standby tasks, from open to close, wherever they are kept.

open -> restore -> follow -> flush -> close. A standby container follows until the order to stop,
the standbys of a standalone processor also until others are wanted.

Source: STANDBY, part 1; safety S5 (the locks of the directories).
"""

import contextlib
import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn

from confluent_kafka import Consumer

from homeport.config.settings.sections import SystemConfig
from homeport.container.adjunct.store_plan import PlannedStore
from homeport.container.container_job import ContainerJob
from homeport.container.host.executors import SameThread
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.incarnation import start_up
from homeport.container.incarnation.adjunct_start import adjunct_feed, stream_ends, streams_now
from homeport.container.incarnation.context import IncarnationContext
from homeport.container.incarnation.restoring import restore_stores
from homeport.container.kafka.changelog_feed import KafkaChangelogFeed
from homeport.container.kafka.client_properties import follow_properties
from homeport.container.kafka.input_consumer import InputConsumer, Reading
from homeport.container.kafka.log_reader import LogReader, log_readers
from homeport.container.processing.adjunct_feed import AdjunctFeed
from homeport.container.processing.records import BadRecords
from homeport.container.processing.task_instance import Outputs
from homeport.container.progress.clock_reading import ClockReading
from homeport.container.progress.follow import poll_interval_s
from homeport.container.progress.input_position import InputPosition
from homeport.container.progress.input_schedule import NONE_STORED
from homeport.container.reporting.adjunct_report import adjunct_state_of
from homeport.container.storage.adjunct.adjunct_storage import AdjunctStorage
from homeport.container.storage.adjunct.filled_store import cannot_follow
from homeport.container.storage.adjunct.stream_ends import StreamEnds
from homeport.container.storage.changelog_follower import ChangelogFollower, next_offset
from homeport.container.storage.store_flushes import StoreFlushes
from homeport.container.storage.task_store import passed
from homeport.job_coordinator.kafka.clients import consumer
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.container_report import AdjunctState, ContainerReport, StoreLag

_LOG = logging.getLogger(__name__)

_READ_S = 0.1
"""How long a read waits, and an order to stop with it; fetches have times of their own."""
_POLL_S = 1.0
_PROGRESS_S = 5.0
_MOST_RECORDS = 1000
_BUFFER_BYTES = 8 * 1024 * 1024


class AdjunctFollower:
    """Follows the streams of recovered adjunct stores, in one thread."""

    def __init__(
        self, storage: AdjunctStorage, feed: AdjunctFeed, source: InputConsumer, ends: StreamEnds
    ) -> None:
        self._storage = storage
        self._feed = feed
        self._source = source
        self._ends = ends

    def step(self, seconds: float) -> int:
        """Store what comes within ``seconds``; return the number of records.

        StoreError: a store cannot go on; a new start fills it again. HomeportError: a record cannot
        be stored, and may not be dropped.
        """
        records = 0
        batch = self._source.poll(_MOST_RECORDS, seconds)
        if batch is not None:
            records = batch.table.num_rows
            _, brought = self._feed.split(batch)
            self._feed.show(brought, passed, passed)
        else:
            self._feed.show_ready(passed, passed)
        self._storage.read(self._source.following, is_behind_markers=True)
        for partition, fault in self._ends.faults():
            raise cannot_follow(self._storage.name_of(partition), partition, fault.story)
        return records

    def poll_heads(self) -> None:
        """Request the ends of the streams; a later ``step`` has them."""
        self._ends.poll()

    def lags(self) -> list[StoreLag]:
        """Return the lag of each store at the last poll; a container's store is its writer's."""
        return [self._lag(planned) for planned in self._storage.plan.stores]

    def _lag(self, planned: PlannedStore) -> StoreLag:
        own = [self._storage.followed[partition] for partition in planned.partitions]
        seconds = max((followed.lag_s for followed in own), default=0.0)
        records = sum(followed.lag for followed in own)
        return StoreLag(planned.store.name, planned.writer, records, seconds)

    def states(self) -> list[AdjunctState]:
        """Return the state of each store at the last poll."""
        now_ms = self._storage.now_ms()
        return [
            adjunct_state_of(planned, facts, now_ms, self._lag(planned).records)
            for planned, facts in self._storage.facts()
        ]

    def close(self) -> None:
        """Stop reading and polling."""
        self._source.close()
        self._ends.close()


def adjunct_follower(
    job: ContainerJob,
    storage: AdjunctStorage | None,
    readers: Mapping[str, LogReader],
    pause: Callable[[float], None],
    clocks: Callable[[], ClockReading],
) -> AdjunctFollower | None:
    """Return the follower of the standby's adjunct stores, recovered; None where it has none.

    ``readers``: a reader for each system that has one of their streams.

    ConfigError: an extractor or a serde cannot be had. DiskError, StoreError: a directory cannot be
    used. UnavailableError: Kafka does not answer.
    """
    if storage is None:
        return None
    streams = streams_now(job, storage, readers)
    oldest = {ssp: InputPosition(available.oldest) for ssp, available in streams.ranges.items()}
    starts = storage.recover(streams, lambda _, ssp: oldest[ssp])
    positions = start_up.Positions(
        {
            task: {ssp: position.offset for ssp, position in own.items()}
            for task, own in starts.items()
        }
    )
    # The active container has the dead letters.
    bad = BadRecords(Outputs((), (), None), None, drop=job.records.drop_undecodable)
    feed = adjunct_feed(job, storage, bad, positions.processed())
    if feed is None:
        return None
    source = InputConsumer(
        job.systems,
        positions.starts,
        _connect,
        reading=Reading(_BUFFER_BYTES, job.task.input_native),
        lost=storage.lost,
        # Other streams do not wait for a version: no task reads it yet.
        stored=replace(storage.inputs, awaited=NONE_STORED.awaited),
    )
    ends = stream_ends(job, storage.followed, pause, clocks)
    return AdjunctFollower(storage, feed, source, ends)


def _connect(system: SystemConfig, _of_an_active_one: Mapping[str, Any]) -> Consumer:
    return consumer(system, follow_properties(system))


class Replicas:
    """Keeps the standbys of the context's job by ``restore``, ``follow`` and ``close``.

    All in one thread. The context's ``pause`` ends whatever is under way; its ``send`` gets the
    report of each poll of the heads.
    """

    def __init__(self, context: IncarnationContext) -> None:
        self._context = context
        self.storage = start_up.storage_of(context)
        self._reading = contextlib.ExitStack()
        self._followers: list[AdjunctFollower | ChangelogFollower] = []
        """From `restore` on; that of the changelogs is the last one."""

    def restore(self) -> dict[str, dict[str, Restored]]:
        """Open the stores and read their logs to the heads; return {store: {task: how}}.

        HomeportError: a store cannot be used, or its log cannot be read.
        """
        context, job, storage = self._context, self._context.job, self.storage
        pause = context.pause
        with contextlib.ExitStack() as opened:
            with log_readers(job.systems, pause) as readers:
                restored = restore_stores(context, storage, readers)
                with context.phases.phase("restore"):
                    adjuncts = adjunct_follower(
                        job, storage.adjuncts, readers, pause, storage.clocks
                    )
                    if adjuncts is not None:
                        opened.callback(adjuncts.close)
                        self._followers.append(adjuncts)
            starts = {store.place: next_offset(store) for store in storage.logged}
            feed = KafkaChangelogFeed(
                job.transaction_system, starts, pause, storage.clocks, native=job.task.input_native
            )
            opened.callback(feed.close)
            self._followers.append(ChangelogFollower(storage.logged, feed, storage.clocks))
            self._reading = opened.pop_all()
        return restored

    def follow(
        self, flush_s: Callable[[], float], flushed: Callable[[int], object] = lambda _moved: None
    ) -> None:
        """Keep the stores as their logs are until ``pause`` ends that; then flush them.

        Nothing is read afterwards. ``flush_s``: returns the time between flushes. ``flushed``: gets
        how many stores had moved, at each flush of some. StoreError: a store cannot go on.
        """
        with self._reading, contextlib.suppress(StopRequestedError):
            self._follow(flush_s, flushed)
        if moved := self.storage.flush():
            flushed(moved)

    def _follow(self, flush_s: Callable[[], float], flushed: Callable[[int], object]) -> NoReturn:
        flushed_at, progress, adjuncts = time.monotonic(), _Progress(), self.storage.adjuncts
        flushes = StoreFlushes(self.storage, SameThread(), time.monotonic)
        retentions = [s.expected.delete_retention_ms for s in self.storage.logged if s.expected]
        poll_s = poll_interval_s(retentions, _POLL_S)
        poll_s = poll_s if adjuncts is None else adjuncts.poll_interval_s(poll_s)
        polled_at = flushed_at - poll_s
        while True:
            self._context.pause(0)
            now = time.monotonic()
            if now - polled_at >= poll_s:
                polled_at = now
                self._poll_heads()
            progress.add(self._step(min(_READ_S, poll_s)), self._lags)
            if now - flushed_at >= flush_s():
                flushed_at = now
                flushes.begin()
            if moved := flushes.step():
                flushed(moved)

    def close(self) -> None:
        """Close the stores, and the readers of their logs."""
        with self._reading:
            self.storage.close()

    def _step(self, wait_s: float) -> int:
        *adjuncts, changelogs = self._followers
        came = sum(follower.step(0) for follower in adjuncts)
        # While reference data comes, the changelogs are read without a wait.
        return came + changelogs.step(0 if came else wait_s)

    def _poll_heads(self) -> None:
        states: list[AdjunctState] = []
        for follower in self._followers:
            follower.poll_heads()
            if isinstance(follower, AdjunctFollower):
                states += follower.states()
        self._context.send(ContainerReport.following(self._lags(), states))

    def _lags(self) -> list[StoreLag]:
        return [lag for follower in reversed(self._followers) for lag in follower.lags()]


class _Progress:
    def __init__(self) -> None:
        self._records = 0
        self._since = time.monotonic()

    def add(self, records: int, lags: Callable[[], list[StoreLag]]) -> None:
        self._records += records
        passed = time.monotonic() - self._since
        if self._records and passed >= _PROGRESS_S:
            found = lags()
            _LOG.info(
                "followed %d records in %.1f s, behind by %d records and %.1f s",
                self._records,
                passed,
                sum(lag.records for lag in found),
                max((lag.seconds or 0 for lag in found), default=0),
            )
            self._records = 0
            self._since = time.monotonic()
