"""The standby tasks of a container on YARN, or of a standalone processor, beside its active ones.

A container of standbys has no task object, no Spark, no producer and no checkpoint: its stores
follow their changelogs, and adjunct stores their streams, where an active container that starts on
this host finds them. Its process gives way to the active containers of the host: it is nicer than
they are by ten, reads at most a thousand records at a time into eight MB of buffers, and asks
rarely while nothing comes.

In a processor's child one thread keeps their stores so. Which tasks these are may change while the
active ones work: the processor writes another list into a file, and what is not in it is let go of
before anything else. The locks of the directories do the rest: a process that takes over a store
waits for them (safety S5), opens what is there, and reads the tail of its changelog. A standby that
fails does no harm to the active tasks: log and history say so, and it begins again.

Source: STANDBY, parts 1 and 4.
"""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from homeport.config.config import Config
from homeport.config.errors import HomeportError, in_one_line
from homeport.config.settings.sections import StandbyConfig
from homeport.config.settings.tuning import Tuning
from homeport.container.container_job import ContainerJob
from homeport.container.host.lease_memory import LeaseMemory, NoLauncher, unheard
from homeport.container.host.niceness import give_way, thread_gives_way
from homeport.container.host.permit import Permit
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.incarnation import start_up
from homeport.container.incarnation.coordinators import Coordinator
from homeport.container.incarnation.environment import Environment, orders_file
from homeport.container.incarnation.live_tuning import LiveTuning
from homeport.container.incarnation.replicas import Replicas
from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.model.codec import decode_job_model
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.standalone.child_model import active_part, standby_part
from homeport.job_coordinator.status.container_report import ContainerReport

_LOG = logging.getLogger(__name__)

_LOOK_S = 0.1
_AGAIN_S = 5.0
"""Between two starts of standbys of which the first has failed."""
_FIELDS = {"task": "replica", "tasks": "replicas"}


class _ChangedError(HomeportError):
    """Other standbys are wanted."""


class StandbyTasks:
    """Keeps standbys beside active tasks: ``start``, or ``run`` in any thread; then ``close``.

    ``first``: the standbys to begin with; None: none. ``orders``: the file that lists which are
    wanted, once there is one. ``has_shared``: whether the active tasks keep the adjunct stores of
    the container, which are the processor's whatever its tasks are.
    """

    def __init__(
        self,
        config: Config,
        first: JobModel | None,
        permit: Permit,
        environment: Environment,
        stop: StopFlag,
        orders: Path,
        send: Callable[[ContainerReport], None] = unheard,
        *,
        has_shared: bool = False,
    ) -> None:
        self._config = config
        self._wanted = first
        self._permit = permit
        self._environment = environment
        self._stop = stop
        self._orders = orders
        self._send = send
        self._has_shared = has_shared
        self._read_at: tuple[int, int] | None = None
        self._is_closed = False
        self._history: Callable[..., None] = _no_history
        self._thread: threading.Thread | None = None

    def start(self, history: Callable[..., None], *, gives_way: bool = False) -> None:
        """Follow in a thread of its own; ``gives_way``: to all other work of the host."""

        def run() -> None:
            if gives_way:
                thread_gives_way()
            self.run(history)

        self._thread = threading.Thread(target=run, name="standbys", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Close the stores; what was read is on the disk, and OFFSET has how far."""
        self._is_closed = True
        if self._thread is not None:
            self._thread.join()

    def run(self, history: Callable[..., None]) -> None:
        """Follow until ``close`` or the order to stop.

        Events have names of their own, as the judge of a history takes others for those of active
        tasks.
        """

        def write(name: str, **fields: object) -> None:
            own = {_FIELDS.get(key, key): value for key, value in fields.items()}
            history(f"standby-{name}", **own)

        self._history = write
        while not self._is_over():
            try:
                self._look_for_orders()
                if self._wanted is None:
                    self._stop.wait(_LOOK_S)
                else:
                    self._follow(self._job_of(self._wanted))
            except _ChangedError:
                continue
            except StopRequestedError:
                return
            except Exception as error:  # noqa: BLE001 - the active tasks are not to end with it
                self._failed(error)

    def _failed(self, error: Exception) -> None:
        is_bug = not isinstance(error, HomeportError)
        story = in_one_line(error) if is_bug else str(error)
        _LOG.warning("standbys: %s; they begin again", story, exc_info=error if is_bug else None)
        self._history("failed", error=story)
        for _ in range(round(_AGAIN_S / _LOOK_S)):
            if not self._is_over():
                self._stop.wait(_LOOK_S)

    def _job_of(self, wanted: JobModel) -> ContainerJob:
        job = ContainerJob.of(wanted, self._permit.incarnation.processor_id)
        if not self._has_shared:
            return job
        own = {name: store for name, store in job.adjuncts.items() if not store.is_broadcast}
        return replace(job, adjuncts=own)

    def _is_over(self) -> bool:
        return self._is_closed or self._stop.is_set()

    def _pause(self, seconds: float) -> None:
        self._stop.pause(seconds)
        self._require_wanted()

    def _require_wanted(self) -> None:
        if self._is_closed:
            raise StopRequestedError("the container ends")
        if self._look_for_orders():
            raise _ChangedError("other standbys are wanted")

    def _look_for_orders(self) -> bool:
        """Take over what the file wants; return whether it was written since it was read last."""
        try:
            found = self._orders.stat()
            key = (found.st_ino, found.st_mtime_ns)
            if key == self._read_at:
                return False
            text = self._orders.read_bytes()
        except FileNotFoundError:
            return False
        model = decode_job_model(text)
        self._read_at = key
        wanted = JobModel(self._config, model.containers)
        self._wanted = standby_part(wanted, self._permit.incarnation.processor_id)
        return True

    def _follow(self, job: ContainerJob) -> None:
        given = (self._permit, self._environment, self._history, self._send, self._pause)
        replicas, flush_s = Replicas(job, *given), Tuning.of(job.config).commit_ms / 1000
        with contextlib.ExitStack() as open_now:
            open_now.callback(self._send, ContainerReport())
            open_now.callback(replicas.close)
            replicas.restore(start_up.Phases())
            self._history("following", replicas=[task.task_name for task in job.tasks])
            open_now.callback(replicas.storage.flush)
            replicas.follow(lambda: flush_s, self._check, lambda _moved: None)

    def _check(self) -> None:
        self._stop.check()
        self._require_wanted()


def standbys_of_child(
    model: JobModel,
    permit: Permit,
    environment: Environment,
    stop: StopFlag,
    launcher: LeaseMemory | NoLauncher,
) -> tuple[JobModel, StandbyTasks | None]:
    """Return the model of the child's main thread, and its standbys; None where the job has none.

    The model is that of a standby container where the processor has no active task.
    """
    own = permit.incarnation
    active, first = active_part(model, own.processor_id), standby_part(model, own.processor_id)
    if not StandbyConfig.of(model.config).enabled:
        return model, None
    orders = environment.work_dir / orders_file(own.epoch)
    standbys = StandbyTasks(
        model.config,
        first,
        permit,
        environment,
        stop,
        orders,
        launcher.announce_standbys,
        has_shared=active is not None,
    )
    return active or first or model, standbys


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


class StandbysOnly:
    """Runs the standbys of a processor without active tasks; ``run`` once."""

    def __init__(
        self,
        job: ContainerJob,
        permit: Permit,
        environment: Environment,
        coordinator: Coordinator,
        stop: StopFlag,
        standbys: StandbyTasks,
    ) -> None:
        self._job = job
        self._permit = permit
        self._coordinator = coordinator
        self._stop = stop
        self._standbys = standbys
        self._history = start_up.history_of(
            replace(job, active_processor=None), permit, environment
        )
        self.shutdown_ms = job.task.shutdown_ms
        self.is_over = False
        """Whether it has ended in order, and nothing of it is at work in this process."""

    def run(self) -> bool:
        """Return False after the order to stop.

        HomeportError: it cannot begin. StopRequestedError: the order came before it followed.
        """
        phases = start_up.Phases()
        with start_up.open_coordinator_stream(self._job) as stream:
            with phases.phase("kafka"):
                start_up.await_kafka(self._job, self._stop)
            self._history("fenced", fenced=[], tasks=[])
            stream.bootstrap()
            self._coordinator.confirm(stream, self._permit)
        started = Started(self._permit.incarnation, {}, phases.total())
        self._coordinator.report_started(started, self._history, self._stop)
        # Of the process no other thread: it may run an incarnation with tasks next.
        self._standbys.start(self._history, gives_way=True)
        self._stop.wait()
        self._standbys.close()
        self.is_over = True
        _LOG.info("stopped in order")
        return False

    def kill_children(self) -> None:
        """Do nothing: it has none."""


def _no_history(_name: str, **_fields: object) -> None:
    """Drop events until ``run`` has a history."""
