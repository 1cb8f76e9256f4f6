"""StandbyContainer: one incarnation of a standby: its stores follow their changelogs to its stop.

Adjunct stores follow their streams. It has no task object, no Spark, no producer and no checkpoint:
it reads what active containers have committed, and keeps it where an active one that starts on this
host finds it. Its process gives way
to the active containers of the host: it is nicer than they are by ten, reads at most a thousand
records at a time into eight MB of buffers, and asks rarely while nothing comes.

Source: STANDBY, part 1.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence

from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import LeaseMemory, NoLauncher
from homeport.container.host.niceness import give_way
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.incarnation import start_up
from homeport.container.incarnation.adjunct_follower import AdjunctFollower, adjunct_follower
from homeport.container.incarnation.environment import Environment
from homeport.container.incarnation.live_tuning import LiveTuning
from homeport.container.incarnation.predecessors import open_stores
from homeport.container.incarnation.restore_report import RestoreReport
from homeport.container.incarnation.store_forms import require_forms
from homeport.container.kafka.changelog_feed import KafkaChangelogFeed
from homeport.container.kafka.log_reader import KafkaChangelogReader, log_readers
from homeport.container.progress import follow
from homeport.container.storage.changelog_follower import ChangelogFollower, next_offset, place_of
from homeport.container.storage.container_storage import ContainerStorage
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.container_report import ContainerReport, StoreLag

_LOG = logging.getLogger(__name__)

_POLL_S = 0.1
"""An order to stop waits no longer for what has not come; fetches go by times of their own."""
_LOOK_S = 1.0
_PROGRESS_S = 5.0


class StandbyContainer:
    """``run`` once."""

    def __init__(
        self,
        job: ContainerJob,
        permit: Permit,
        environment: Environment,
        client: CoordinatorClient,
        stop: StopFlag,
        launcher: LeaseMemory | NoLauncher,
    ) -> None:
        """Nothing is begun.

        ``launcher``: gets what the AM and its users see of the work, and keeps a spare process
        that can take the place of this one, for the active container above all.
        """
        self._job = job
        self._permit = permit
        self._environment = environment
        self._client = client
        self._stop = stop
        self._send = launcher.announce
        self._want_spare = launcher.want_spare
        self.shutdown_ms = job.task.shutdown_ms
        self.is_over = False
        """Its process is for one incarnation."""
        self._phases = start_up.Phases()
        self._restored: dict[str, dict[str, Restored]] = {}
        self._history = start_up.history_of(job, permit, environment)
        self._storage = start_up.storage_of(job, permit, environment, stop.pause)
        self._adjuncts: AdjunctFollower | None = None
        self._tuning = LiveTuning(
            job.config, permit.model_version, client.config, launcher, self._history, stop
        )

    def run(self) -> bool:
        """False: it was ordered to stop; what it has read is on the disk, and OFFSET says how far.

        Raises:
            HomeportError: the container has failed; what was committed stays.
            StopRequestedError: the order to stop came before it followed.
        """
        give_way()
        with start_up.open_coordinator_stream(self._job) as stream:
            with self._phases.phase("kafka"):
                start_up.await_kafka(self._job, self._stop)
            with self._phases.phase("fence"):
                start_up.fence_and_only_read(self._job, self._permit, self._history, self._stop)
            with self._phases.phase("coordinator-stream"):
                stream.bootstrap()
            start_up.require_newest(stream, self._permit)
            start_up.report_fenced(stream, self._permit)
            require_forms(stream, self._job, self._storage)
            self._restore()
            self._stop.check()
            with self._phases.phase("locality"):
                host = self._environment.host
                start_up.write_locality(stream, self._job, self._permit, host, self._history)
        feed = self._feed()
        started = Started(self._permit.incarnation, self._restored, self._phases.total())
        start_up.report_started(self._client, started, self._history, self._stop)
        self._want_spare(self._job.spare)
        try:
            self._follow(ChangelogFollower(self._storage.logged, feed, self._storage.clocks))
        finally:
            feed.close()
            if self._adjuncts is not None:
                self._adjuncts.close()
        self._flush()
        self._storage.close()
        _LOG.info("stopped in order")
        return False

    def kill_children(self) -> None:
        """It has none."""

    def _restore(self) -> None:
        with log_readers(self._job.systems, self._stop.pause) as readers:
            with self._phases.phase("stores"):
                open_stores(self._storage, self._job, self._permit)
            with self._phases.phase("restore"):
                self._restored = self._storage.restore(
                    KafkaChangelogReader(readers),
                    RestoreReport(self._history, self._send),
                    start_up.restore_workers(self._job, self._stop.pause),
                )
                self._adjuncts = adjunct_follower(
                    self._job,
                    self._storage.adjuncts,
                    readers,
                    self._stop.pause,
                    self._storage.clocks,
                )

    def _feed(self) -> KafkaChangelogFeed:
        starts = {place_of(store): next_offset(store) for store in self._storage.logged}
        system = self._job.transaction_system
        return KafkaChangelogFeed(system, starts, self._stop.pause, self._storage.clocks)

    def _follow(self, follower: ChangelogFollower) -> None:
        """Until the order to stop; flushes every ``task.commit.ms``."""
        look_s = look_interval_s(self._storage)
        following = Following(follower, look_s, self._send, self._adjuncts)
        try:
            while not self._stop.is_set():
                is_due = following.step(self._tuning.latest().commit_ms / 1000)
                if is_due or self._storage.has_first_changes():
                    self._flush()
        except StopRequestedError:
            _LOG.info("ordered to stop")

    def _flush(self) -> None:
        moved = self._storage.flush()
        if moved:
            self._history("commit", stores=moved)


def look_interval_s(storage: ContainerStorage) -> float:
    """The interval of requests for heads: several in the shortest retention of deletions."""
    retentions = [s.expected.delete_retention_ms for s in storage.logged if s.expected]
    own = follow.look_interval_s(retentions, _LOOK_S)
    return own if storage.adjuncts is None else storage.adjuncts.look_interval_s(own)


class Following:
    """The rhythm of a follower: records all the time, looks at the heads, flushes.

    Args:
        follower: of changelogs.
        look_s: from one look at the heads to the next.
        send: gets the report of each look.
        adjuncts: the follower of adjunct streams, if there are any.
    """

    def __init__(
        self,
        follower: ChangelogFollower,
        look_s: float,
        send: Callable[[ContainerReport], object],
        adjuncts: AdjunctFollower | None = None,
    ) -> None:
        self._follower = follower
        self._look_s = look_s
        self._send = send
        self._adjuncts = adjuncts
        self._progress = _Progress(self._lags)
        self._flushed_at = time.monotonic()
        self._looked_at = self._flushed_at - look_s

    def step(self, flush_s: float) -> bool:
        """What came within a moment is in the stores; whether a flush is due."""
        now = time.monotonic()
        adjuncts = self._adjuncts
        if now - self._looked_at >= self._look_s:
            self._looked_at = now
            self._follower.look()
            if adjuncts is not None:
                adjuncts.look()
            states = () if adjuncts is None else adjuncts.states()
            self._send(ContainerReport.following(self._lags(), states))
        came = 0 if adjuncts is None else adjuncts.step(0)
        # While reference data comes, nothing waits for changelogs.
        wait_s = 0 if came else min(_POLL_S, self._look_s)
        self._progress.add(came + self._follower.step(wait_s))
        is_due = now - self._flushed_at >= flush_s
        if is_due:
            self._flushed_at = now
        return is_due

    def _lags(self) -> list[StoreLag]:
        """How far each store is behind."""
        return [*self._follower.lags(), *(self._adjuncts.lags() if self._adjuncts else ())]


class _Progress:
    """One line every few seconds in which something came."""

    def __init__(self, lags: Callable[[], Sequence[StoreLag]]) -> None:
        self._lags = lags
        self._records = 0
        self._since = time.monotonic()

    def add(self, records: int) -> None:
        self._records += records
        passed = time.monotonic() - self._since
        if self._records and passed >= _PROGRESS_S:
            lags = self._lags()
            _LOG.info(
                "followed %d records in %.1f s, behind by %d records and %.1f s",
                self._records,
                passed,
                sum(lag.records for lag in lags),
                max((lag.seconds or 0 for lag in lags), default=0),
            )
            self._records = 0
            self._since = time.monotonic()
