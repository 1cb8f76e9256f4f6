"""The spare: a process that has its imports done and waits for the permit of the next incarnation.

A container, once started, asks for the kind of spare beside it (``LeaseMemory.spare``) and sets
memory apart for it. A spare has imported one package of the job's code: an incarnation with another
package cannot use it. If the spare or its Spark dies, another spare is started after a rest. If the
container needs its memory, the spare is ended, and another is started when there is room
(``config.memory_rule``). The launcher ends it at its own end, and waits for it.

Before a restart that is near, a spare with Spark's imports gives way to one that also starts the
Spark, if the container's memory has room for a second JVM. The container works on meanwhile.
"""

import contextlib
import logging
import os
import selectors
import signal
from collections.abc import Callable
from pathlib import Path

from homeport.config.settings.memory_rule import has_room_for_spare, must_spare_go, needed_for_spare
from homeport.container.child.process import ChildProcess
from homeport.container.host.lease_memory import SpareKind
from homeport.container.host.resident_memory import resident_bytes
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.status.shape import SpareReport

_REST_MS = 3000
"""From the hand-over, or the end, of one to the start of the next: container starts come first."""
_SHORTAGE_MS = 60_000
"""From the end of one whose memory was needed to the start of the next."""
_LOOK_MS = 1000
_TAIL_BYTES = 2048
_MIB = 1024 * 1024

log = logging.getLogger("launcher")


class Spare:
    """Keeps at most one spare; for the main thread.

    ``start``: starts a process of that kind, which imports from that folder; raises OSError.
    ``memory_mb``: the YARN container's memory; 0: not known, so no spare is kept.
    """

    def __init__(
        self,
        start: Callable[[SpareKind, Path], ChildProcess],
        selector: selectors.BaseSelector,
        memory_mb: int,
    ) -> None:
        self._start = start
        self._selector = selector
        self._memory_mb = memory_mb
        self._process: ChildProcess | None = None
        self._kind = self._wanted = SpareKind.NONE
        self._package: Path | None = None
        self._lacks_room = False
        self._is_raised = False  # to one with a Spark, as a restart is near
        self._is_cold = False  # that Spark has no room
        self._was_ready = False
        self._not_before_ms = 0
        self._looked_ms = 0

    @property
    def package(self) -> Path | None:
        """The folder from which the spare imports; None: there is no spare."""
        return None if self._process is None else self._package

    def is_prepared(self, package: Path) -> bool:
        """Return whether the spare is ready with that package, or none is kept now."""
        if self._process is not None:
            return self._package == package and self._process.memory.is_ready
        return self._wanted is SpareKind.NONE or self._memory_mb == 0 or self._lacks_room

    def take(self, package: Path) -> ChildProcess | None:
        """Hand over the spare, if it is sound and imports from ``package``; else None."""
        process = self._process
        self._not_before_ms = boot_ms() + _REST_MS
        if process is None:
            return None
        if self._package != package:
            self.end("it has another package")
            return None
        if not process.is_alive(boot_ms()) or self._has_lost(process):
            self.end("it is of no use")
            return None
        self._selector.unregister(process.pid_fd)
        self._process = None
        return process

    def last_report(self) -> SpareReport | None:
        """Return the report of the spare for the AM; None: there is no spare."""
        if self._process is None:
            return None
        return SpareReport(self._kind.name.lower(), is_ready=self._process.memory.is_ready)

    def expect_permit(self) -> None:
        """Have the spare do now what it would else do at its start: its permit is near."""
        if self._process is not None:
            self._process.memory.is_permit_near = True

    def fault(self) -> str | None:
        """Return why the spare never gets ready; None: it is ready, or may be so yet."""
        process = self._process
        if process is None or not process.memory.has_failed:
            return None
        lines = process.log_tail(_TAIL_BYTES).decode("utf-8", "replace").split("\n")
        return next((line for line in reversed(lines) if line), None)

    def look_after(
        self,
        wanted: SpareKind | None,
        share_mb: int = 0,
        package: Path | None = None,
        *,
        is_restart_near: bool = False,
    ) -> None:
        """Keep a spare of the kind wanted, if there is room; None: the present one stays.

        ``share_mb``: the memory set apart for it. ``package``: the folder from which it imports;
        None: it is not here yet, so that the present spare stays and none is started.
        ``is_restart_near``: whether a restart waits for it, so that it starts its Spark.
        """
        self._is_raised = wanted is SpareKind.SPARK and is_restart_near and package is not None
        self._is_cold = self._is_cold and self._is_raised
        if self._is_raised and not self._is_cold:
            wanted = SpareKind.WARM
        self._wanted = self._wanted if wanted is None else wanted
        process, now_ms = self._process, boot_ms()
        if process is not None and process.poll() is not None:
            self.end("it has ended")
        elif process is not None and self._has_lost(process):
            self.end("what it had made ready is lost")
        elif wanted is None or self._memory_mb == 0:
            return
        elif process is not None:
            self._hold(wanted, package)
        elif (
            wanted is not SpareKind.NONE
            and package is not None
            and now_ms >= self._not_before_ms
            and self._is_time_to_look(now_ms)
        ):
            self._begin_with_room(wanted, share_mb, package)

    def end(self, why: str) -> None:
        """End the spare, if there is one, and wait for it."""
        process = self._process
        if process is None:
            return
        self._process = None
        process.signal(signal.SIGKILL)
        code = process.wait()
        said = process.log_tail(_TAIL_BYTES).decode("utf-8", "replace").strip()
        log.info("spare pid %d is gone: %s, exit code %d %s", process.pid, why, code, said)
        self._selector.unregister(process.pid_fd)
        process.close()
        with contextlib.suppress(OSError):
            process.log_file.unlink()
        self._not_before_ms = boot_ms() + _REST_MS

    def _hold(self, wanted: SpareKind, package: Path | None) -> None:
        """Keep the present one, unless another is wanted or there is no room."""
        now_ms = boot_ms()
        if self._kind is not wanted:
            self.end("another kind is wanted")
        elif package not in {None, self._package}:
            self.end("another package is wanted")
        elif self._is_time_to_look(now_ms) and must_spare_go(self._memory_mb, used_mb()):
            self.end("its memory is needed")
            if self._is_raised and not self._is_cold:
                self._is_cold = True  # one without a Spark may have room
                return
            self._not_before_ms = now_ms + _SHORTAGE_MS
            self._lacks_room = True

    def _begin_with_room(self, kind: SpareKind, share_mb: int, package: Path) -> None:
        whole_mb, used = self._memory_mb, used_mb()
        has_jvm = self._is_raised and not self._is_cold
        if has_jvm and not has_room_for_spare(whole_mb, used, has_jvm=True):
            self._is_cold, has_jvm, kind = True, False, SpareKind.SPARK
            needed = needed_for_spare(whole_mb, has_jvm=True)
            line = "Spark starts with the restart: before it needs %d MB, and %d of %d MB are used"
            log.info(line, needed, used, whole_mb)
        self._lacks_room = not has_room_for_spare(whole_mb, used, share_mb, has_jvm=has_jvm)
        if not self._lacks_room:
            self._begin(kind, package)

    def _begin(self, kind: SpareKind, package: Path) -> None:
        try:
            process = self._start(kind, package)
        except OSError as error:
            log.warning("no spare can be started: %s", error)
            self._lacks_room = True
            self._not_before_ms = boot_ms() + _REST_MS
            return
        self._process, self._kind, self._was_ready = process, kind, False
        self._package = package
        self._selector.register(process.pid_fd, selectors.EVENT_READ)
        log.info("spare pid %d waits", process.pid)

    def _has_lost(self, process: ChildProcess) -> bool:
        """Return whether it was ready and is so no longer, as after the death of its Spark."""
        is_ready = process.memory.is_ready
        self._was_ready = self._was_ready or is_ready
        return self._was_ready and not is_ready

    def _is_time_to_look(self, now_ms: int) -> bool:
        if now_ms - self._looked_ms < _LOOK_MS:
            return False
        self._looked_ms = now_ms
        return True


def used_mb() -> int:
    """Return the resident memory of this process and all below it, as YARN counts it."""
    return resident_bytes(os.getpid()) // _MIB
