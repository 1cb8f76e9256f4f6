"""StandbyContainer: one incarnation of a standby: its stores follow their changelogs to its stop.

Adjunct stores follow their streams. It has no task object, no Spark, no producer and no checkpoint:
it reads what active containers have committed, and keeps it where an active one that starts on this
host finds it. Its process gives way to the active containers of the host: it is nicer than they are
by ten, reads at most a thousand records at a time into eight MB of buffers, and asks rarely while
nothing comes.

Source: STANDBY, part 1.
"""

from __future__ import annotations

import logging

from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import LeaseMemory, NoLauncher
from homeport.container.host.niceness import give_way
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.incarnation import start_up
from homeport.container.incarnation.coordinators import Coordinator
from homeport.container.incarnation.environment import Environment
from homeport.container.incarnation.live_tuning import LiveTuning
from homeport.container.incarnation.replicas import Replicas
from homeport.job_coordinator.http.messages import Started

_LOG = logging.getLogger(__name__)


class StandbyContainer:
    """Keeps the standby tasks of a container on YARN; ``run`` once."""

    def __init__(
        self,
        job: ContainerJob,
        permit: Permit,
        environment: Environment,
        coordinator: Coordinator,
        stop: StopFlag,
        launcher: LeaseMemory | NoLauncher,
    ) -> None:
        """Begin nothing; ``launcher`` gets the reports, and keeps a spare for the active one."""
        self._job = job
        self._permit = permit
        self._environment = environment
        self._coordinator = coordinator
        self._stop = stop
        self._want_spare = launcher.want_spare
        self.shutdown_ms = job.task.shutdown_ms
        self.is_over = False
        """Its process is for one incarnation."""
        self._phases = start_up.Phases()
        self._history = start_up.history_of(job, permit, environment)
        self._replicas = Replicas(
            job, permit, environment, self._history, launcher.announce, stop.pause
        )
        self._tuning = LiveTuning(
            job.config, permit.model_version, coordinator.config, launcher, self._history, stop
        )

    def run(self) -> bool:
        """Return False after the order to stop; all that was read is on the disk.

        HomeportError: the container has failed. StopRequestedError: the order came before it
        followed.
        """
        give_way()
        with start_up.open_coordinator_stream(self._job) as stream:
            with self._phases.phase("kafka"):
                start_up.await_kafka(self._job, self._stop)
            with self._phases.phase("fence"):
                start_up.fence_and_only_read(self._job, self._permit, self._history, self._stop)
            with self._phases.phase("coordinator-stream"):
                stream.bootstrap()
            self._coordinator.confirm(stream, self._permit)
            start_up.require_forms(stream, self._job, self._replicas.storage)
            restored = self._replicas.restore(self._phases)
            self._stop.check()
            with self._phases.phase("locality"):
                host = self._environment.host
                start_up.write_locality(stream, self._job, self._permit, host, self._history)
        started = Started(self._permit.incarnation, restored, self._phases.total())
        self._coordinator.report_started(started, self._history, self._stop)
        self._want_spare(self._job.spare)
        try:
            self._replicas.follow(self._flush_s, self._stop.check, self._flushed)
        except StopRequestedError:
            _LOG.info("ordered to stop")
        self._flushed(self._replicas.storage.flush())
        self._replicas.close()
        _LOG.info("stopped in order")
        return False

    def kill_children(self) -> None:
        """Do nothing: it has none."""

    def _flush_s(self) -> float:
        return self._tuning.latest().commit_ms / 1000

    def _flushed(self, moved: int) -> None:
        if moved:
            self._history("commit", stores=moved)
