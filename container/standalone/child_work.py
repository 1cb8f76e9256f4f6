"""ChildWork: the work of one processor in a child process, one incarnation after another.

A child that stops its incarnation in order rests: it keeps its imports and its Spark, and gets the
permit of the next incarnation. A child that fails, or cannot stop in order, ends, and the next
incarnation gets another process. So a task that is promoted or moved mostly waits for no process
and no JVM.

The child is the stream container's program. Its permit has the JobModel of its own tasks. Its
deadline in shared memory is that of the session, so that it ends in time whatever happens to this
process (safety C1, C2). The thread of the coordination spawns it, outlives it, and its end kills
the child (safety C5).
"""

import logging
import signal
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from homeport.config.config import Config
from homeport.config.loading.regex_topics import with_matching
from homeport.config.settings.sections import TaskConfig
from homeport.container.child.process import ChildProcess
from homeport.container.child.running import BeatWatch, RunningChild
from homeport.container.host.lease_memory import SpareKind
from homeport.container.host.orders import rest_order
from homeport.container.host.permit import Permit
from homeport.container.incarnation.environment import (
    LOCATION_VARIABLE,
    TREE_VARIABLE,
    WORK_VARIABLE,
    orders_file,
)
from homeport.container.standalone.protocols import WorkFenced, WorkReport
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.codec import encode_job_model
from homeport.job_coordinator.model.ids import Host, ProcessorId, TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.job_model import JobModel
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.standalone.child_model import model_of_child
from homeport.job_coordinator.standalone.protocol import (
    FollowStandbys,
    StartWork,
    WorkEnded,
    WorkStarted,
)
from homeport.job_coordinator.status.container_report import ContainerReport
from homeport.job_coordinator.zookeeper.session import SessionLease

_LOG = logging.getLogger(__name__)

_REPORT_MS = 1000
_IDLE_MS = 60_000
"""How long a child rests, with all its memory, before it is ended."""
_END_MS, _END_STEP_S = 2000, 0.01
_COMMAND = (sys.executable, "-m", "homeport.container.incarnation.container_runner")


_CAUSES_IN_WORDS = {
    StopCause.LEASE_LOST: "the session did not last",
    StopCause.KILLED: "it was killed by another process, or for want of memory",
}


@dataclass(slots=True, kw_only=True)
class _Child(RunningChild):
    lease: SessionLease
    is_fenced: bool = False
    is_started: bool = False


class ChildWork:
    """Runs the work of a processor in a child, for one thread, which lives until ``kill``.

    ``folder``: a folder that only this processor has, for logs, and for state if the configuration
    names no place. ``environment``, ``command``: the child's.
    """

    def __init__(
        self,
        processor_id: ProcessorId,
        location: Host,
        config: Config,
        folder: Path,
        environment: Mapping[str, str],
        command: Sequence[str] = _COMMAND,
    ) -> None:
        task = TaskConfig.of(config)
        self._processor_id = processor_id
        self._config = config
        self._folder = folder
        self._shutdown_ms, self._hang_ms = task.shutdown_ms, task.hang_ms
        self._environment = {**environment, LOCATION_VARIABLE: location, WORK_VARIABLE: str(folder)}
        self._command = tuple(command)
        kind = SpareKind.SPARK if task.has_pipeline else SpareKind.PLAIN
        self._has_jvm = task.has_pipeline
        self._ready = f"--ready={kind.name.lower()}"
        self._child: _Child | None = None
        self._idle: ChildProcess | None = None
        self._is_fresh = self._has_logged_ready = False
        self._idle_until_ms = 0
        self._reported_ms = 0
        self.report: ContainerReport | None = None
        """The child's last report, one second old at most; None: there is none."""

    def of_tree(self, tree: str) -> None:
        """Give each later child the id of its processor's tree."""
        self._environment[TREE_VARIABLE] = tree

    def prepare(self) -> None:
        """Start a process that imports and starts a Spark, if needed, for the first permit."""
        if self._child is not None or self._idle is not None:
            return
        try:
            process = self._process("starting-0.log", self._ready)
        except OSError as error:
            _LOG.warning("no process is made ready: %s", error)
            return
        process.memory.is_permit_near = True
        self._idle, self._is_fresh, self._has_logged_ready = process, True, False
        self._idle_until_ms = boot_ms() + _IDLE_MS

    def _process(self, log_name: str, *arguments: str) -> ChildProcess:
        return ChildProcess.start(
            (*self._command, *arguments),
            self._environment,
            self._folder / log_name,
            boot_ms(),
            has_own_group=True,
            config=self._config,
        )

    def start(self, order: StartWork, model: JobModel, lease: SessionLease) -> None:
        """Start the incarnation, which ends with its lease; OSError: it cannot be started."""
        config = with_matching(self._config, model.partition_counts())
        own = model_of_child(config, model, self._processor_id, order.standbys)
        text = encode_job_model(own, mask_secrets=False)
        incarnation = Incarnation(self._processor_id, order.generation)
        permit = Permit(incarnation, order.version, order.fence, text.decode())
        is_first = self._is_fresh
        process = self._take_idle()
        if process is None:
            is_first, process = True, self._process(f"starting-{order.generation}.log")
        beats = BeatWatch.at(boot_ms(), self._hang_ms)
        self._child = _Child(incarnation, process, beats, self._shutdown_ms, lease=lease)

        def take(deadline_ms: int) -> None:
            process.memory.deadline_ms = deadline_ms

        lease.hold(take)
        if is_first:
            process.name_log(f"container-{order.generation}.log")
        process.send(permit.to_json())
        log = process.log_file
        _LOG.info("generation %d runs as pid %d, log %s", order.generation, process.pid, log)

    def follow(self, order: FollowStandbys, model: JobModel) -> None:
        """Hand the child the list of the standbys that it keeps; OSError: it cannot be written."""
        child = self._child
        if child is None:
            return
        own = model_of_child(Config({}), model, self._processor_id, order.standbys)
        path = self._folder / orders_file(child.incarnation.epoch)
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(encode_job_model(own, mask_secrets=False))
        temporary.replace(path)

    def stop(self, kept: Collection[TaskName] = ()) -> bool:
        """Order its stop within ``task.shutdown.ms``; return whether there is an incarnation."""
        child = self._child
        if child is None:
            return False
        child.is_ordered = True
        if child.kill_at_ms is None:
            child.kill_at_ms = boot_ms() + child.shutdown_ms
            child.process.send(rest_order(kept))
        return True

    def kill(self) -> None:
        """Kill all its processes; no report of them comes."""
        self._end_idle()
        child = self._child
        if child is not None:
            child.process.signal(signal.SIGKILL)
            child.process.wait()
            self._close(child)

    def confirm(self, incarnation: Incarnation) -> None:
        """Let the incarnation, which has fenced its list, go on."""
        if self._child is not None and self._child.incarnation == incarnation:
            self._child.process.memory.confirmed = incarnation.epoch

    def reports(self) -> Sequence[WorkReport]:
        """Return what is new; kill a child that takes too long to stop."""
        child = self._child
        if child is None:
            self._check_idle()
            return ()
        found: list[WorkReport] = []
        memory, epoch = child.process.memory, child.incarnation.epoch
        if boot_ms() - self._reported_ms >= _REPORT_MS:
            self._reported_ms, self.report = boot_ms(), memory.last_report()
        if memory.fenced == epoch and not child.is_fenced:
            child.is_fenced = True
            found.append(WorkFenced(child.incarnation))
        if memory.started == epoch and not child.is_started:
            child.is_started = True
            found.append(WorkStarted(epoch))
        exit_code = child.process.poll()
        if exit_code is not None:
            found.append(self._end_of(child, exit_code))
            self._close(child)
        elif memory.resting == epoch:
            found.append(WorkEnded(epoch, StopCause.ORDERED, "it rests"))
            # For the next permit, without a lease, since it has no work.
            self._forget(child)
            memory.rest()
            self._idle, self._is_fresh = child.process, False
            self._idle_until_ms = boot_ms() + _IDLE_MS
        elif (why := child.reason_to_kill(boot_ms())) is not None:
            _LOG.error("generation %d %s: killed", epoch, why)
            child.process.signal(signal.SIGKILL)
        return found

    def _check_idle(self) -> None:
        process = self._idle
        if process is None:
            return
        if boot_ms() >= self._idle_until_ms:
            self._end_idle()
        elif self._is_fresh and not self._has_logged_ready and process.memory.is_ready:
            self._has_logged_ready = True
            _LOG.info("pid %d has its imports, and waits for its first version", process.pid)

    def _end_of(self, child: _Child, exit_code: int) -> WorkEnded:
        cause, lines = child.end(exit_code)
        last = lines[-1].removeprefix("error: ") if lines else f"exit code {exit_code}"
        text = _CAUSES_IN_WORDS.get(cause, last)
        return WorkEnded(child.incarnation.epoch, cause, f"{text}; log {child.process.log_file}")

    def _take_idle(self) -> ChildProcess | None:
        process = self._idle
        if process is None:
            return None
        if not process.is_alive(boot_ms()):
            self._end_idle()
            return None
        self._idle = None
        return process

    def _end_idle(self) -> None:
        """Kill a process that rests, as nothing is open; a JVM first gets time to end."""
        process, self._idle = self._idle, None
        if process is None:
            return
        process.end_orders()
        deadline_ms, pause = boot_ms() + _END_MS, threading.Event()
        while self._has_jvm and process.poll() is None and boot_ms() < deadline_ms:
            pause.wait(_END_STEP_S)
        process.signal(signal.SIGKILL)
        process.wait()
        process.close()

    def _close(self, child: _Child) -> None:
        self._forget(child)
        child.process.close()

    def _forget(self, child: _Child) -> None:
        child.lease.hold(None)
        self._child = self.report = None
        (self._folder / orders_file(child.incarnation.epoch)).unlink(missing_ok=True)
