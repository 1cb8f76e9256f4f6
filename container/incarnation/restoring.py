"""The stores of one container: opened, restored, and reported to history, log and AM.

A predecessor may still hold their locks: the kernel may not have freed those of a killed process
yet, and a launcher kills an isolated container only when its lease has run out. That is no failure
of this container's.
"""

import contextlib
import logging
import time
from collections.abc import Callable, Mapping

from homeport.config.errors import StoreError, UnavailableError
from homeport.container.container_job import ContainerJob
from homeport.container.host.permit import Permit
from homeport.container.incarnation.context import History, IncarnationContext
from homeport.container.incarnation.look_ahead import Looked, LookedUp
from homeport.container.kafka.log_reader import KafkaChangelogReader, LogReader
from homeport.container.progress.restore import RestorePlan, progress_line
from homeport.container.progress.restore_schedule import worker_limits
from homeport.container.restore.restore_workers import RestoreWorkers
from homeport.container.storage.container_storage import ContainerStorage
from homeport.container.storage.directory_lock import DirectoryHeldError, Holder
from homeport.container.storage.host_survey import samzas_checkpoints
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.outcomes import Restored
from homeport.job_coordinator.status.container_report import ContainerReport, RestoreProgress

_LOG = logging.getLogger(__name__)

_SAY_S = 5.0

_Place = tuple[str, TaskName]


class RestoreReport:
    """A ``RestoreListener`` that sends the state of all restores to AM and history."""

    def __init__(self, history: History, send: Callable[[ContainerReport], None]) -> None:
        self._history = history
        self._send = send
        self._began: dict[_Place, float] = {}
        self._said: dict[_Place, float] = {}
        self._under_way: dict[_Place, RestoreProgress] = {}

    def restore_started(self, store: str, task_name: TaskName, plan: RestorePlan) -> None:
        """Note that the store is about to be read."""
        self._began[store, task_name] = self._said[store, task_name] = time.monotonic()
        self._history(
            "restore-started",
            store=store,
            task=task_name,
            head=plan.head,
            rebuild=plan.rebuild,
            reason=plan.reason,
            **{"from": plan.start},
        )

    def restore_progress(self, progress: RestoreProgress) -> None:
        """Report it to the AM, and log it every five seconds."""
        place = (progress.store, progress.task)
        now = time.monotonic()
        if now - self._said[place] >= _SAY_S:
            self._said[place] = now
            _LOG.info("%s", progress_line(progress))
        self._under_way[place] = progress
        self._send_all()

    def restore_finished(self, store: str, task_name: TaskName, result: Restored) -> None:
        """Note that the store stands at the head."""
        seconds = time.monotonic() - self._began[store, task_name]
        kind, records = result.kind.value, result.records
        _LOG.info(
            "restored %s/%s: %s, %d records, %.2f s", store, task_name, kind, records, seconds
        )
        self._history("restore-finished", store=store, task=task_name, **result.to_json())
        if self._under_way.pop((store, task_name), None) is not None:
            self._send_all()

    def _send_all(self) -> None:
        self._send(ContainerReport(restoring=tuple(self._under_way.values())))


def open_stores(storage: ContainerStorage, job: ContainerJob, permit: Permit) -> None:
    """Open the stores.

    UnavailableError: a predecessor still holds a directory. StoreError: another process does, or a
    directory cannot be used.
    """
    try:
        storage.open()
    except DirectoryHeldError as error:
        if error.holder is None or not is_predecessor(job.job.directory_name, permit, error.holder):
            raise
        raise UnavailableError(f"{error}: a predecessor that has not ended yet") from None


def is_predecessor(job: str, permit: Permit, holder: Holder) -> bool:
    """Return whether ``holder`` is an incarnation of ``job`` that the permit replaces."""
    own = permit.incarnation
    if holder.epoch is None or holder.job != job:
        return False
    if permit.model or holder.processor_id == own.processor_id:
        # Generations of standalone processors are versions, which are in one order for all.
        return holder.epoch < own.epoch
    return any(
        (i.processor_id, i.epoch) == (holder.processor_id, holder.epoch) for i in permit.fence
    )


def restore_stores(
    context: IncarnationContext,
    storage: ContainerStorage,
    readers: Mapping[str, LogReader],
    look: Callable[[], Looked] | None = None,
) -> dict[str, dict[str, Restored]]:
    """Open the stores and read their changelogs to the heads; return {store: {task: how}}.

    ``look``: returns what was looked up, the heads too; None: nothing was.

    HomeportError: as ``open_stores``, or a changelog cannot be read.
    """
    with context.phases.phase("stores"):
        open_stores(storage, context.job, context.permit)
        with contextlib.suppress(StoreError):  # a notice, no condition of a start
            _note_checkpoints(storage)
    with context.phases.phase("restore"):
        report = RestoreReport(context.history, context.send)
        workers = restore_workers(context.job, context.pause)
        if look is None:
            return storage.restore(KafkaChangelogReader(readers), report, workers)
        looked = look()
        return storage.restore(LookedUp(readers, looked), report, workers, looked.at)


def _note_checkpoints(storage: ContainerStorage) -> None:
    """Log what Samza has left beside the stores; StoreError: a folder may not be read."""
    left = samzas_checkpoints(store.directory.path for store in storage.logged)
    if left:
        _LOG.warning(
            "nothing reads %d directories of Samza's store checkpoints, such as %s: homeport clean "
            "removes them",
            len(left),
            left[0],
        )


def restore_workers(job: ContainerJob, pause: Callable[[float], None]) -> RestoreWorkers:
    """Return the processes that restore large stores; ``pause`` waits, and raises to stop."""
    cores = job.cluster.container_cpu_cores
    limits = worker_limits(job.task.memory, cores, len(job.stores) * len(job.tasks))
    return RestoreWorkers(job.config, limits, cores, pause)
