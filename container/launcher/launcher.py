"""The first process in a YARN container: the parent of the stream container, under the AM's orders.

It polls the AM. On ``run`` it spawns the stream container of that incarnation; on ``stop`` it ends
that one in order; on ``exit`` it exits. It reports a stop only after it has waited for its child:
on that evidence the AM starts a successor (safety P1). Rules:

* There is one child per incarnation. Ordered again to run an incarnation that has ended, it reports
  that this one has stopped (safety C4).
* A ``stop`` that keeps the process has the child let go of its tasks and rest. That the child rests
  is the evidence, as it has closed its producer and the stores that it loses. The next permit goes
  to that process (``resting``). A child that does not rest in time is killed.
* A permit takes effect after one renewal of its lease at the keeper (safety C4); ``lease_holder``
  renews it from then on. The driver may be away without limit. A lost lease ends the child, not the
  launcher, which checks in again (safety C6). A launcher without a child exits when the AM has not
  answered for very long.
* Where the AM does not take the report of a stop, or YARN ends this launcher, ``stop_reporter``
  writes the stop to the coordinator stream too (safety A4).
* A child that does not beat is killed (safety C3). The lease of a killed child is not renewed: if
  the kernel does not let the process go, the end of the lease ends the wait for it.
* The main thread spawns the child with parent-death signal SIGKILL: the signal follows the thread,
  not the process (safety C5). Child and launcher share the process group that YARN signals; a
  standby leaves it (``niceness``), and only its launcher signals it. The child gets its permit on
  standard input, and so may have been spawned long before, as a ``spare``.
* A child runs with the package of the job's code that its order names, or not at all. The launcher
  fetches a package that is not here (``packages``), and the permit comes again with the next
  check-in. If it cannot be fetched, or the keeper stays silent for as long as a silent AM is waited
  for, the launcher reports a stop before the start: the AM tries another host.
* Where that package names another Python environment, the launcher itself goes on in it, between
  two children: the same process, of that environment's code (``renewal``).
* Everything is imported at the start, and the child's log stays open: YARN may remove both folders
  early.
"""

from __future__ import annotations

import contextlib
import logging
import os
import selectors
import signal
import socket
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType

from homeport.config.errors import HomeportError, UnavailableError, WireError
from homeport.container.child.process import ChildProcess, permit_of
from homeport.container.child.running import BeatWatch, RunningChild
from homeport.container.host.exit_codes import EXIT_TERMINATED
from homeport.container.host.lease_memory import SpareKind
from homeport.container.host.orders import rest_order
from homeport.container.launcher.host_cleaning import HostCleaning
from homeport.container.launcher.launcher_settings import LauncherSettings
from homeport.container.launcher.lease_holder import LeaseHolder
from homeport.container.launcher.packages import JobPackages
from homeport.container.launcher.renewal import Handed, Renewable
from homeport.container.launcher.resting import Resting
from homeport.container.launcher.spare import Spare
from homeport.container.launcher.stop_reporter import StopReporter
from homeport.job_coordinator import logs
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.history.writer import HistoryWriter
from homeport.job_coordinator.http.client import CoordinatorClient
from homeport.job_coordinator.http.messages import CheckIn, Order, OrderKind, Renewal, Stopped
from homeport.job_coordinator.http.pinned_tls import certificate_beside, secret_beside
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.model.outcomes import StopCause
from homeport.job_coordinator.status.shape import SpareReport

_RUNNER = "homeport.container.incarnation.container_runner"
_CALL_TIMEOUT_S = 3.0
_FAREWELL_MS = 5000
_KINDS = {kind.name.lower(): kind for kind in SpareKind}
_REST_LOOK_MS = 10
"""Between two looks at a child with the order to rest: its successors wait for it."""

log = logging.getLogger("launcher")


@dataclass(slots=True, kw_only=True)
class _Child(RunningChild):
    lease: LeaseHolder
    package: str | None
    folder: Path
    is_to_rest: bool = False


class Launcher:
    """The launcher of one YARN container. ``run`` must be called from the main thread."""

    def __init__(
        self,
        settings: LauncherSettings,
        client: CoordinatorClient,
        history: HistoryWriter | None,
        command: tuple[str, ...] = (sys.executable, "-m", _RUNNER),
        handed: Handed | None = None,
    ) -> None:
        """``handed``: what this process has kept of the launcher that it was; None: of none."""
        self._settings = settings
        self._client = client
        self._history = history
        self._command = command
        self._stop_reporter = StopReporter(settings.shutdown_ms)
        self._environment = Renewable(os.environ)
        self._packages = JobPackages(
            Path.cwd(), client.package, self._wake, self._environment.make_ready
        )
        handed = handed or Handed()
        self._wanted = handed.package
        self._prepared: str | None = None
        self._prepares: SpareKind | None = None  # for the permit that this launcher waits for
        self._child: _Child | None = None
        self._ended = {stopped.incarnation: stopped for stopped in handed.ended}
        self._report: Stopped | None = None
        self._leaving: int | None = None  # exit code, once we go as soon as the child has gone
        self._answered_ms = self._buried_ms = boot_ms()
        self._held_up_ms: int | None = None  # since when a permit cannot be used here
        self._is_unanswered = False
        self._next_ms = settings.interval_ms
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self._wake_out.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._started = 0
        self._spare = Spare(self._start, self._selector, settings.memory_mb)
        self._resting = Resting(self._selector)
        self._cleaning = HostCleaning(
            settings.clean_after_ms, settings.memory_mb, settings.token_file
        )

    def run(self) -> int:
        """Run until ordered to exit, signalled, refused, or forsaken; return the exit code.

        Afterwards child and spare have ended.
        """
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.set_wakeup_fd(self._wake_in.fileno(), warn_on_full_buffer=False)
        try:
            while True:
                self._look_after_child()
                if self._is_forsaken():
                    log.error("the AM does not answer: leaving")
                    return 1 if self._leaving is None else self._leaving
                if self._leaving is not None and self._is_done():
                    return self._leaving
                self._talk()
                self._look_after_spare()
                self._resting.look_after()
                self._cleaning.look_after()
                self._wait()
        finally:
            self._kill_child("the launcher ends")
            self._spare.end("the launcher ends")
            self._resting.end("the launcher ends")
            self._cleaning.end("the launcher ends")
            if self._report is not None:
                self._stop_reporter.of_stopped(self._report)

    def _is_forsaken(self) -> bool:
        limit_ms = self._settings.lost_ms if self._leaving is None else _FAREWELL_MS
        return self._child is None and boot_ms() - self._answered_ms >= limit_ms

    def _is_done(self) -> bool:
        return self._child is None and self._report is None

    # -- talking to the AM

    def _talk(self) -> None:
        try:
            if self._report is not None:
                self._deliver(self._report)
                self._report = None
                # Before the next permit, whose lease would run meanwhile.
                if self._packages.find(self._wanted) is not None:
                    self._renew_for(self._wanted)
            self._stop_reporter.is_answered()
            if self._leaving is None or self._child is not None:
                self._obey(self._check_in())
            self._is_unanswered = False
        except UnavailableError as e:
            if not self._is_unanswered:
                log.warning("no answer, trying again: %s", e)
            self._is_unanswered = True
            self._held_up_ms = None
            if self._report is not None:
                self._stop_reporter.is_unanswered(self._report)
        except WireError as e:
            log.error("the AM refuses this launcher: %s", e)  # noqa: TRY400 - one line, no traceback
            self._kill_child("refused")
            if self._report is not None:
                self._stop_reporter.of_stopped(self._report)
            self._report = None
            self._leaving = 1

    def _deliver(self, report: Stopped) -> None:
        try:
            self._client.stopped(replace(report, age_ms=boot_ms() - self._buried_ms))
        except WireError as e:
            # The report was for an earlier AM: no other takes it.
            log.warning("the AM refuses the report of %s: %s", report.incarnation, e)

    def _check_in(self) -> Order:
        """Poll once, with the stream container's pid while there is one, else our own."""
        settings = self._settings
        sent_ms = boot_ms()
        order = self._client.check_in(
            CheckIn(
                resource_id=settings.resource_id,
                skein_id=settings.skein_id,
                attempt=settings.attempt,
                host=settings.host,
                pid=self._child.process.pid if self._child else os.getpid(),
                running=self._child.incarnation if self._child else None,
                report=self._child.process.memory.last_report() if self._child else None,
                spare=self._readiness(),
                package=self._child.package if self._child else None,
                prepared=self._prepared,
                unprepared=self._packages.fault(self._wanted) or self._spare.fault(),
                quiet_ms=self._child.process.memory.quiet_ms if self._child else None,
                python=self._environment.python,
                version=self._environment.version,
            )
        )
        self._answered_ms = sent_ms
        self._next_ms = max(order.next_ms, 1)
        return order

    def _obey(self, order: Order) -> None:
        if order.kind is OrderKind.RUN:
            self._obey_run(order)
        elif order.kind is OrderKind.STOP:
            if order.is_replaced:
                self._spare.expect_permit()
            self._obey_stop(order.incarnation, order.keep)
        elif order.kind is OrderKind.WAIT:
            self._prepares = None
            if self._child is not None and order.model_version is not None:
                self._child.process.memory.model_version = order.model_version
                self._wanted = order.package
            elif self._child is None and order.prepare in _KINDS:
                self._wanted, self._prepares = order.package, _KINDS[order.prepare]
        elif self._leaving is None:
            log.info("ordered to exit")
            self._leaving = 0
            self._stop_child(ordered=True)

    def _obey_run(self, order: Order) -> None:
        incarnation = order.incarnation
        if incarnation is None:
            raise WireError("an order to run names no incarnation")
        if self._leaving is not None or (self._child and self._child.incarnation == incarnation):
            return
        if incarnation in self._ended:
            self._report = self._ended[incarnation]
        elif self._child is not None:
            log.error(
                "ordered to run %s while %s runs: not done", incarnation, self._child.incarnation
            )
        else:
            self._wanted = order.package
            folder = self._packages.want(order.package)
            if folder is None or not self._fits(order.package):
                self._keep_lease(order, incarnation)
            if folder is not None:
                if (fault := self._renew_for(order.package)) is not None:
                    self._cannot_begin(incarnation, StopCause.NO_PACKAGE, fault)
                else:
                    self._run_with(folder, order, incarnation)
            elif (fault := self._packages.give_up(order.package)) is not None:
                self._cannot_begin(incarnation, StopCause.NO_PACKAGE, fault)
            elif (fault := self._packages.unanswered(order.package)) is not None:
                self._hold_up(incarnation, fault)

    def _renew_for(self, package: str | None) -> str | None:
        """Go on in the package's environment, if it is another one; return why that fails."""
        if self._leaving is not None or self._fits(package):
            return None
        self._spare.end("the launcher changes its environment")
        self._resting.end("the launcher changes its environment")
        self._cleaning.end("the launcher changes its environment")
        handed = Handed(package, tuple(self._ended.values()))
        return self._environment.become(self._packages.environment(package), handed)

    def _hold_up(self, incarnation: Incarnation, why: str) -> None:
        """Let it wait; if that lasts, this host is cut off from the keeper or the AM."""
        if self._held_up_ms is None:
            self._held_up_ms = boot_ms()
            log.warning("processor %s epoch %d waits: %s", *_parts(incarnation), why)
        if boot_ms() - self._held_up_ms >= self._settings.lost_ms:
            self._cannot_begin(incarnation, StopCause.CUT_OFF, why)

    def _cannot_begin(self, incarnation: Incarnation, cause: StopCause, why: str) -> None:
        log.error("processor %s epoch %d cannot begin: %s", *_parts(incarnation), why)
        self._ends(Stopped(incarnation, cause, 1, (why,)))

    def _ends(self, stopped: Stopped) -> None:
        self._buried_ms = boot_ms()
        self._report = self._ended[stopped.incarnation] = stopped

    def _run_with(self, folder: Path, order: Order, incarnation: Incarnation) -> None:
        self._stop_reporter.prepare(self._client)
        try:
            lease = self._lease_for(order, incarnation)
        except UnavailableError as e:
            self._hold_up(incarnation, str(e))
            return
        self._held_up_ms = None
        if lease is not None:
            said = {"model_version": order.model_version, "package": order.package}
            self._event("permit-received", incarnation, **said)
            self._run_child(folder, order, incarnation, lease)

    def _keep_lease(self, order: Order, incarnation: Incarnation) -> None:
        """Renew the permit's lease once: what comes first may take longer, as a fetch."""
        with contextlib.suppress(HomeportError), contextlib.closing(self._keeper(order)) as keeper:
            keeper.renew(Renewal(self._settings.attempt, incarnation))

    def _lease_for(self, order: Order, incarnation: Incarnation) -> LeaseHolder | None:
        """Return the permit's lease; None: not granted now, the permit comes again."""
        keeper = self._keeper(order)
        return LeaseHolder.acquire(keeper, Renewal(self._settings.attempt, incarnation))

    def _keeper(self, order: Order) -> CoordinatorClient:
        if order.lease_url is None:
            raise UnavailableError("the AM does not say where leases are renewed")
        return self._client.at(order.lease_url, max(order.lease_ms / 4000, 0.1), holds=True)

    def _obey_stop(
        self, incarnation: Incarnation | None, keep: Collection[TaskName] | None
    ) -> None:
        if self._child is not None and incarnation in {None, self._child.incarnation}:
            self._stop_child(ordered=True, keep=keep)
        elif incarnation is not None:
            # Never started here, or ended already: either way it will not run here any more.
            never_run = Stopped(incarnation, StopCause.ORDERED, 0)
            self._report = self._ended.setdefault(incarnation, never_run)

    # -- the child

    def _start(self, kind: SpareKind, package: Path) -> ChildProcess:
        settings = self._settings
        self._started += 1
        environment = dict(
            os.environ,
            EXECUTION_ENV_CONTAINER_ID=settings.resource_id,
            HOMEPORT_TOKEN_FILE=str(settings.token_file),
            PYTHONPATH=os.pathsep.join(filter(None, (str(package), os.environ.get("PYTHONPATH")))),
        )
        log_file = settings.log_folder / f"spare-{self._started}.log"
        command = [*self._command, "--ready", kind.name.lower()]
        return ChildProcess.start(command, environment, log_file, boot_ms())

    def _run_child(
        self, folder: Path, order: Order, incarnation: Incarnation, lease: LeaseHolder
    ) -> None:
        self._prepares = None
        waited = self._resting.take(folder) or self._spare.take(folder)
        process = waited or self._start(SpareKind.NONE, folder)
        beats = BeatWatch.at(boot_ms(), self._settings.hang_ms)
        child = _Child(
            incarnation,
            process,
            beats,
            self._settings.shutdown_ms,
            lease=lease,
            package=order.package,
            folder=folder,
        )
        self._child = child
        lease.hold(process.memory, lambda: self._on_lease_lost(child))
        self._selector.register(process.pid_fd, selectors.EVENT_READ)
        log_name = f"container-{incarnation.processor_id}-{incarnation.epoch}.log"
        process.permit(permit_of(order).to_json(), log_name)
        log.info(
            "processor %s epoch %d runs as pid %d%s, log %s",
            incarnation.processor_id,
            incarnation.epoch,
            process.pid,
            "" if waited is None else ", which has waited",
            process.log_file,
        )
        self._event("child-started", incarnation, child_pid=process.pid)

    def _stop_child(self, *, ordered: bool, keep: Collection[TaskName] | None = None) -> None:
        """Send the child SIGTERM, or let it rest; kill it after ``task.shutdown.ms``.

        ``ordered``: by the AM. ``keep``: it rests, and these tasks are likely to stay; None: it
        ends, also where it was to rest before.
        """
        child = self._child
        if child is None:
            return
        is_stopping = child.kill_at_ms is not None
        if is_stopping and (keep is not None or not child.is_to_rest):
            return
        if not is_stopping:
            child.is_ordered = ordered
            child.kill_at_ms = boot_ms() + child.shutdown_ms
            log.info("stopping processor %s epoch %d", *_parts(child.incarnation))
        child.is_to_rest = keep is not None
        if keep is None:
            child.process.signal(signal.SIGTERM)
        else:
            child.process.send(rest_order(keep))

    def _look_after_child(self) -> None:
        child = self._child
        if child is None:
            return
        exit_code = child.process.poll()
        if exit_code is not None:
            self._record_end(child, exit_code)
        elif child.is_to_rest and child.process.memory.resting == child.incarnation.epoch:
            self._record_rest(child)
        elif self._leaving is not None and child.kill_at_ms is None:
            self._stop_child(ordered=False)  # it was being spawned when the signal came
        elif (why := child.reason_to_kill(boot_ms())) is not None:
            log.error("processor %s epoch %d %s: killed", *_parts(child.incarnation), why)
            self._kill(child)

    def _record_end(self, child: _Child, exit_code: int) -> None:
        child.lease.close()
        cause, lines = child.end(exit_code, is_signalled=self._leaving == EXIT_TERMINATED)
        if cause is StopCause.LEASE_LOST:
            self._event("lease-lost", child.incarnation)
        self._child = None  # before its descriptors go, which a signal's handler would use
        self._selector.unregister(child.process.pid_fd)
        child.process.close()
        stopped = Stopped(child.incarnation, cause, exit_code, tuple(lines))
        self._ends(stopped)
        log.info(
            "processor %s epoch %d %s, exit code %d",
            *_parts(child.incarnation),
            cause.value,
            exit_code,
        )
        why = {"reason": stopped.reason} if stopped.reason else {}
        self._event(
            "child-stopped", child.incarnation, cause=cause.value, exit_code=exit_code, **why
        )

    def _record_rest(self, child: _Child) -> None:
        """Note the stop of an incarnation that has let go; its process waits."""
        child.lease.close()
        self._child = None
        self._selector.unregister(child.process.pid_fd)
        self._resting.keep(child.process, child.folder)
        self._ends(Stopped(child.incarnation, StopCause.ORDERED, 0))
        log.info("processor %s epoch %d has let go, its process rests", *_parts(child.incarnation))
        fields = {"cause": StopCause.ORDERED.value, "exit_code": 0, "rests": True}
        self._event("child-stopped", child.incarnation, **fields)

    def _kill_child(self, why: str) -> None:
        child = self._child
        if child is None:
            return
        log.warning("killing processor %s epoch %d: %s", *_parts(child.incarnation), why)
        self._kill(child)
        self._record_end(child, child.process.wait())

    def _kill(self, child: _Child) -> None:
        """Kill the child; if it does not die, the end of its lease stops it."""
        child.process.signal(signal.SIGKILL)
        child.lease.close()

    def _look_after_spare(self) -> None:
        if self._leaving is None and self._child is None and self._prepares is not None:
            folder = self._packages.want(self._wanted)
            self._spare.look_after(self._prepares, package=self._own(folder))
            self._spare.expect_permit()  # it does not give way to what runs here
            return
        if self._child is None or self._leaving is not None:
            self._spare.look_after(None)
            return
        memory = self._child.process.memory
        folder = self._packages.want(self._wanted)
        own = self._own(folder)
        is_near = self._wanted != self._child.package
        self._spare.look_after(memory.spare, memory.spare_share_mb, own, is_restart_near=is_near)
        if folder is not None and (own is None or self._spare.is_prepared(folder)):
            self._prepared = self._wanted
        # By its place: it may have come since ``want``.
        kept = {self._child.folder, self._packages.place(self._wanted), self._spare.package}
        self._packages.keep_only(kept)

    def _own(self, folder: Path | None) -> Path | None:
        """Return the folder of the wanted package; None: it is not here, or not for this Python.

        Another environment's spare would not outlive the change to it.
        """
        return folder if folder is not None and self._fits(self._wanted) else None

    def _readiness(self) -> SpareReport | None:
        """Return the report of the spare, or of the process that the next permit finds here."""
        if self._prepares is None:
            return self._spare.last_report()
        folder = self._packages.find(self._wanted)
        is_ready = folder is not None and (
            self._resting.package is not None
            or not self._fits(self._wanted)
            or self._spare.is_prepared(folder)
        )
        return SpareReport(self._prepares.name.lower(), is_ready)

    def _fits(self, package: str | None) -> bool:
        return self._environment.is_own(self._packages.environment(package))

    # -- waking up

    def _wait(self) -> None:
        if self._leaving is not None and self._is_done():
            return
        timeout_ms = self._next_ms
        if self._child is not None and self._child.kill_at_ms is not None:
            timeout_ms = min(timeout_ms, max(0, self._child.kill_at_ms - boot_ms()))
            timeout_ms = min(timeout_ms, _REST_LOOK_MS) if self._child.is_to_rest else timeout_ms
        for key, _ in self._selector.select(timeout_ms / 1000):
            if key.fileobj is self._wake_out:
                with contextlib.suppress(BlockingIOError):
                    self._wake_out.recv(4096)

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        if self._leaving is None:
            self._leaving = EXIT_TERMINATED
            self._stop_child(ordered=False)
            if self._child is not None:
                # At once: YARN may kill us long before the child has ended.
                self._stop_reporter.of_running(self._child.incarnation, self._child.process.pid_fd)
            elif self._report is not None:
                self._stop_reporter.of_stopped(self._report)

    def _on_lease_lost(self, child: _Child) -> None:
        """Handle the loss; a thread of the lease calls it, at most once for each child."""
        child.has_lost_lease = True
        child.process.signal(signal.SIGKILL)
        self._wake()

    def _wake(self) -> None:
        """Wake the main thread; other threads call it."""
        with contextlib.suppress(OSError):
            self._wake_in.send(b"\0")

    def _event(self, name: str, incarnation: Incarnation, **fields: object) -> None:
        if self._history is not None:
            self._history.event(name, incarnation.processor_id, incarnation.epoch, **fields)


def _parts(incarnation: Incarnation) -> tuple[str, int]:
    return incarnation.processor_id, incarnation.epoch


def main(words: Sequence[str] = ()) -> int:
    """Run the launcher of this YARN container; ``words``: of its command line."""
    logs.begin(sys.stdout, os.environ)
    try:
        settings = LauncherSettings.from_environment(os.environ)
        file = settings.token_file
        access = (certificate_beside(file), secret_beside(file))
        token = file.read_text(encoding="utf-8").strip()
        client = CoordinatorClient(settings.coordinator_url, token, _CALL_TIMEOUT_S, *access)
        history = None
        if settings.history_folder is not None:
            history = HistoryWriter(
                settings.history_folder, "launcher", settings.host, settings.history_max_mb
            )
        own = (settings.resource_id, settings.host, settings.coordinator_url)
        log.info("launcher of %s on %s, AM %s", *own)
        return Launcher(settings, client, history, handed=Handed.read(words)).run()
    except (HomeportError, OSError) as e:
        log.error("launcher failed: %s", e)  # noqa: TRY400 - one line says it all
        return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
