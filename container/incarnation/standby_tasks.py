"""The standby tasks of a container on YARN, or of a standalone processor, beside its active ones.

A container of standbys has no task object, no Spark, no producer and no checkpoint. Its stores
follow their changelogs, and adjunct stores their streams; an active container that starts on this
host finds them. Its process gives way to the active containers of the host: it is nicer by ten,
reads at most a thousand records at a time into eight MB of buffers, and polls rarely while nothing
comes.

In a mixed container one thread keeps the stores of standbys. Their list may change while the active
tasks work (``standby_lists``): the thread first closes the stores that are no longer listed. The
locks of the directories do the rest (safety S5): a process that takes over a store waits for its
lock, opens the store, and reads the tail of its changelog. A failure of standbys does not harm the
active tasks: log and history have it, and the standbys begin again.

Source: STANDBY, parts 1 and 4.
"""

import contextlib
import logging
import threading
from dataclasses import replace

from homeport.config.errors import HomeportError, in_one_line
from homeport.config.settings.tuning import Tuning
from homeport.container.container_job import ContainerJob
from homeport.container.host.niceness import give_way, thread_gives_way
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.incarnation import start_up
from homeport.container.incarnation.context import Container, IncarnationContext, Phases
from homeport.container.incarnation.live_tuning import LiveTuning
from homeport.container.incarnation.replicas import Replicas
from homeport.container.incarnation.standby_lists import StandbyLists, lists_of
from homeport.job_coordinator.model.job_model import JobModel, TaskMode
from homeport.job_coordinator.standalone.child_model import part_of
from homeport.job_coordinator.status.container_report import ContainerReport

_LOG = logging.getLogger(__name__)

_LOOK_S = 0.1
_AGAIN_S = 5.0
"""The pause after a failure of standbys."""
_FIRST_S = 1.0
"""Active tasks that have just started have this time to themselves: their readers wait."""
_FIELDS = {"task": "replica", "tasks": "replicas"}


class StandbyTasks:
    """Keeps standbys beside the active tasks of ``context``, if any: ``start``, then ``close``.

    It begins with the standbys of the context; ``lists`` has later ones.
    """

    def __init__(self, context: IncarnationContext, lists: StandbyLists) -> None:
        self._context = context
        self._lists = lists
        self._wanted = context.standbys
        self._stop = context.stop
        self._processor_id = context.permit.incarnation.processor_id
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def start(self, *, gives_way: bool = False) -> None:
        """Follow in a thread; ``gives_way``: whether it gives way to all other work of the host."""
        self._thread = threading.Thread(
            target=self._run, args=[gives_way], name="standbys", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Flush and close the stores; a process that goes on does so beside its next start.

        What opens one of them waits for its lock.
        """
        self._is_closed = True
        if self._thread is not None and not self._stop.is_to_rest:
            self._thread.join()

    def _run(self, gives_way: bool) -> None:  # noqa: FBT001 - a thread's argument
        if gives_way:
            thread_gives_way()
        else:
            self._stop.wait(_FIRST_S)
        while not self._is_over():
            try:
                self._look_for_orders()
                if self._wanted is None:
                    self._stop.wait(_LOOK_S)
                else:
                    self._follow(self._job_of(self._wanted))
            except StopRequestedError:
                continue
            except Exception as error:  # noqa: BLE001 - the active tasks are not to end with it
                self._failed(error)

    def _write_event(self, name: str, **fields: object) -> None:
        """Write it under a name of its own: readers of a history take others for active tasks'."""
        own = {_FIELDS.get(key, key): value for key, value in fields.items()}
        self._context.history(f"standby-{name}", **own)

    def _failed(self, error: Exception) -> None:
        is_bug = not isinstance(error, HomeportError)
        story = in_one_line(error) if is_bug else str(error)
        _LOG.warning("standbys: %s; they begin again", story, exc_info=error if is_bug else None)
        self._write_event("failed", error=story)
        for _ in range(round(_AGAIN_S / _LOOK_S)):
            if not self._is_over():
                self._stop.wait(_LOOK_S)

    def _job_of(self, wanted: JobModel) -> ContainerJob:
        job = ContainerJob.of(wanted, self._processor_id)
        if self._context.job.is_standby:
            return job
        # The active tasks keep the adjunct stores of the container, whichever tasks these are.
        own = {name: store for name, store in job.adjuncts.items() if not store.is_broadcast}
        return replace(job, adjuncts=own)

    def _is_over(self) -> bool:
        return self._is_closed or self._stop.is_set()

    def _pause(self, seconds: float) -> None:
        self._stop.pause(seconds)
        if self._is_closed or self._look_for_orders():
            raise StopRequestedError("the container ends, or other standbys are wanted")

    def _look_for_orders(self) -> bool:
        containers = self._lists.news()
        if containers is None:
            return False
        wanted = JobModel(self._context.job.config, containers)
        found = part_of(wanted, self._processor_id, TaskMode.STANDBY)
        before, self._wanted = self._wanted, found
        if found is None or before is None:
            return True
        return found.containers != before.containers

    def _follow(self, job: ContainerJob) -> None:
        send, flush_s = self._context.launcher.announce_standbys, Tuning.of(job.config).commit_ms
        own = replace(
            self._context,
            job=job,
            history=self._write_event,
            send=send,
            pause=self._pause,
            phases=Phases(),
        )
        with contextlib.ExitStack() as open_now:
            open_now.callback(send, ContainerReport())
            replicas = Replicas(own)
            open_now.callback(replicas.close)
            replicas.restore()
            self._write_event("following", replicas=[task.task_name for task in job.tasks])
            replicas.follow(lambda: flush_s / 1000)


def standbys_of(context: IncarnationContext) -> StandbyTasks | None:
    """Return what keeps the standbys of a mixed container; None: it has one role."""
    return StandbyTasks(context, lists_of(context)) if context.is_mixed else None


class StandbyContainer(Container):
    """Keeps the standby tasks of a container on YARN. Its process is for one incarnation."""

    def __init__(self, context: IncarnationContext) -> None:
        super().__init__(context)
        self._replicas = Replicas(context)
        self._tuning = LiveTuning(context)

    def run(self) -> bool:
        """As of ``Container``; all that was read of the changelogs is flushed."""
        give_way()
        context, replicas = self._context, self._replicas
        with start_up.confirmed_stream(context, start_up.fence_and_only_read) as (stream, _):
            start_up.require_forms(stream, context.job, replicas.storage, context.environment.host)
            restored = replicas.restore()
            context.stop.check()
            start_up.write_locality(context, stream)
        context.clients.close()  # the process ends with this incarnation
        start_up.report_started(context, restored)
        context.launcher.want_spare(context.job.spare)
        replicas.follow(lambda: self._tuning.latest().commit_ms / 1000, self._flushed)
        replicas.close()
        _LOG.info("stopped in order")
        return False

    def _flushed(self, moved: int) -> None:
        self._context.history("commit", stores=moved)


class StandbysOnly(Container):
    """Runs the standbys of a mixed container without active tasks."""

    def __init__(self, context: IncarnationContext, standbys: StandbyTasks) -> None:
        super().__init__(context)
        self._standbys = standbys

    def run(self) -> bool:
        """As of ``Container``."""
        context = self._context
        with start_up.confirmed_stream(context, start_up.fence_without_tasks):
            pass
        start_up.report_started(context, {})
        if context.standbys is None:  # it lacks nothing of what it keeps
            context.launcher.announce_standbys(ContainerReport.following(()))
        # No other thread becomes nice: the process may run an incarnation with tasks next.
        self._standbys.start(gives_way=True)
        context.stop.wait()
        self._standbys.close()
        self.is_over = True
        _LOG.info("stopped in order")
        return False
