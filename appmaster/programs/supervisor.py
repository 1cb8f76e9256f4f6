"""The AM's master script: keeps driver and lease keeper running until the application ends.

Its children are programs of their own, started from the main thread with parent-death signal
SIGKILL (the signal follows the thread). A child that dies is started again at once, on its port; a
child that stops beating is killed first. The supervisor ends only

- when a child reports the end,
- when a child fails at every start, so that another attempt gets its chance,
- with Skein's JVM, its parent,
- or by SIGTERM, which it passes on.

After an upgrade of the environment the children run in the new one (``WantedPython``); the
supervisor itself stays as the submission has it. Leases run on: the old keeper serves until the new
one has done its imports. Children that fail at every start in another environment go on in the
submission's.

Source: safety A3. It imports little, since it shares the AM's memory with its children.
"""

import contextlib
import logging
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import FrameType

from homeport.appmaster.attempt.heartbeat import PIPE_VARIABLE, TURN_VARIABLE
from homeport.appmaster.attempt.supervision import EXIT_ENDED, SPARE_PAUSE_MS, Vitals, is_the_end
from homeport.appmaster.attempt.wanted_python import WantedPython
from homeport.job_coordinator import logs
from homeport.job_coordinator.own_folders import PRIVATE_UMASK
from homeport.job_coordinator.parent_death import ending_with_us
from homeport.job_coordinator.python_environment import variables_for, words_for

EXIT_TERMINATED = 128 + signal.SIGTERM
EXIT_HOPELESS = 3
DIAGNOSTICS_NAME = "supervisor.stderr"
LOG_NAME = "application.driver.log"
"""The file to which Skein sends our output and our children's."""

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "keeper": (sys.executable, "-m", "homeport.appmaster.programs.lease_keeper"),
    "driver": (sys.executable, "-m", "homeport.appmaster.programs.application_master"),
}

_SPARE_OPTION = "--keeper-spare"
_WITH_SPARE = frozenset({"keeper"})
"""Leases run out while there is no keeper, and on a busy machine its imports take seconds. So a
spare keeper has them done, where the AM's memory has room for it."""

_TICK_S = 0.2
_TERM_S = 2.0

log = logging.getLogger("supervisor")


def now_ms() -> int:
    """Return the time in ms, by a clock that stops while the machine sleeps, as children do."""
    return time.monotonic_ns() // 1_000_000


class Process:
    """One process of a program: it does its imports and waits for ``begin``.

    ``pipe``: has its messages; see ``Heartbeat``.
    """

    def __init__(self, command: tuple[str, ...]) -> None:
        """Start the process; OSError: that fails."""
        self.pipe, write_end = os.pipe()
        turn, self._turn = os.pipe()
        os.set_blocking(self.pipe, False)
        fds = {PIPE_VARIABLE: write_end, TURN_VARIABLE: turn}
        try:
            self.popen = subprocess.Popen(
                command,
                env={**os.environ, **{name: str(fd) for name, fd in fds.items()}},
                pass_fds=tuple(fds.values()),
                umask=PRIVATE_UMASK,
                preexec_fn=ending_with_us(),  # noqa: PLW1509 - two system calls, no threads
            )
        except OSError:
            self.close()
            raise
        finally:
            for fd in fds.values():
                os.close(fd)

    def begin(self, starts: int, port: str) -> None:
        """Give this process its turn, as number ``starts`` of its program, on ``port`` if any."""
        with contextlib.suppress(BrokenPipeError):  # it is gone, which the next look finds
            os.write(self._turn, f"{starts} {port}\n".encode())

    @property
    def is_waiting(self) -> bool:
        """Whether it has done its imports: it has sent its first message."""
        return bool(select.select([self.pipe], [], [], 0)[0]) and self.popen.poll() is None

    def close(self) -> None:
        """Close the pipes."""
        os.close(self.pipe)
        os.close(self._turn)


class Child:
    """One program, started again and again, from the main thread.

    ``wake`` gets a descriptor that is readable when the process has ended. ``has_spare``: whether
    the next process is started while this one serves. It needs the memory of a process, so one
    program alone has it.
    """

    def __init__(
        self, name: str, command: tuple[str, ...], wake: Callable[[int], None], *, has_spare: bool
    ) -> None:
        self.name = name
        self._words, self._arguments = command[:1], command[1:]
        self._wake = wake
        self._has_spare = has_spare
        self._process: Process | None = None
        self._spare: Process | None = None
        self._spare_at_ms = 0
        self._has_missed_spare = False
        self._is_outdated = False
        self._unread = b""
        self._port = ""
        self._cause = ""
        self._starts = 0
        self.has_reported_end = False
        self._vitals = Vitals.at(now_ms())
        self._start_at_ms = 0

    def look(self) -> int | None:
        """Start the process if due, kill it if it hangs; return the exit code if it just ended."""
        process = self._process
        if process is None:
            if now_ms() >= self._start_at_ms:
                self._start()
            return None
        self._read(process)
        exit_code = process.popen.poll()
        if exit_code is not None:
            self._read(process)
            self._forget(process)
            return exit_code
        if self._vitals.is_hung(now_ms()):
            log.error("the %s does not beat: killed", self.name)
            process.popen.kill()
        elif (self._has_spare and self._vitals.is_settled(now_ms())) or (
            self._is_outdated and self._vitals.has_served
        ):
            self._look_at_spare()
            if self._is_outdated and self._spare is not None and self._spare.is_waiting:
                log.info("the %s gives way to one of another environment", self.name)
                process.popen.kill()
        return None

    @property
    def is_hopeless(self) -> bool:
        """Whether the program fails at every start."""
        return self._vitals.is_hopeless

    def why(self, exit_code: int) -> str:
        """Return why the last process ended: its own cause, else its exit code."""
        return self._cause or f"exit code {exit_code}"

    def signal(self, number: signal.Signals) -> None:
        """Send the signal to the process, if there is one."""
        if self._process is not None and self._process.popen.poll() is None:
            self._process.popen.send_signal(number)

    def use(self, words: Collection[str]) -> None:
        """Have the next process started with these words; one that serves gives way to it."""
        self._words = tuple(words)
        self._vitals.in_a_row = 0
        self._end_spare()
        self._spare_at_ms = 0
        self._is_outdated = self._process is not None

    def end(self, patience_s: float) -> None:
        """Wait for the end of the child's process; kill it when the patience is over."""
        self._end_spare()
        process = self._process
        if process is None:
            return
        try:
            process.popen.wait(patience_s)
        except subprocess.TimeoutExpired:
            process.popen.kill()
            process.popen.wait()
        self._forget(process)

    def _end_spare(self) -> None:
        if self._spare is not None:
            self._spare.popen.kill()
            self._spare.popen.wait()
            self._spare.close()
            self._spare = None

    def _start(self) -> None:
        self._is_outdated = False
        self._unread = b""
        self._cause = ""
        self._starts += 1
        self.has_reported_end = False
        process, self._spare = self._spare, None
        if process is not None and process.popen.poll() is not None:
            process.close()
            process = None
        is_spare = process is not None
        if process is None:
            process = Process((*self._words, *self._arguments))
        self._process = process
        process.begin(self._starts, self._port)
        self._vitals.started(now_ms())
        self._wake(os.pidfd_open(process.popen.pid))
        was = ", which was the spare" if is_spare else ""
        log.info(
            "the %s runs as pid %d, start %d%s", self.name, process.popen.pid, self._starts, was
        )

    def _look_at_spare(self) -> None:
        """Start a spare, if there is none; after a failure, at most once in a pause."""
        spare = self._spare
        if spare is None:
            if now_ms() >= self._spare_at_ms:
                self._start_spare()
            return
        exit_code = spare.popen.poll()
        if exit_code is not None:
            log.warning("the spare of the %s has ended with exit code %d", self.name, exit_code)
            spare.close()
            self._spare = None
            self._spare_at_ms = now_ms() + SPARE_PAUSE_MS

    def _start_spare(self) -> None:
        try:
            self._spare = Process((*self._words, *self._arguments))
        except OSError as error:
            if not self._has_missed_spare:
                log.warning("the %s has no spare, which cannot be started: %s", self.name, error)
            self._has_missed_spare = True
            self._spare_at_ms = now_ms() + SPARE_PAUSE_MS

    def _read(self, process: Process) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(process.pipe, 65536):
                self._unread += data
                self._vitals.beaten(now_ms())
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            if line.startswith(b"port "):
                self._port = line[5:].decode()
                self._vitals.has_served = True
            elif line == b"ended":
                self.has_reported_end = True
            elif line.startswith(b"cause "):
                self._cause = line[6:].decode()

    def _forget(self, process: Process) -> None:
        process.close()
        self._process = None
        self._start_at_ms = now_ms() + self._vitals.died(now_ms(), process.popen.poll())


class Supervisor:
    """``run`` once, from the main thread."""

    def __init__(
        self, programs: Mapping[str, tuple[str, ...]], with_spare: Collection[str] = ()
    ) -> None:
        self._parent = os.getppid()
        self._place: str | None = None
        self._refused: set[str | None] = set()
        self._terminated = False
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self._wake_out.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._children = [
            Child(name, command, self._watch, has_spare=name in with_spare)
            for name, command in programs.items()
        ]

    def run(self) -> int:
        """Run until the application ends and no child is left; return the exit code."""
        signal.signal(signal.SIGTERM, self._on_sigterm)
        signal.set_wakeup_fd(self._wake_in.fileno(), warn_on_full_buffer=False)
        code: int | None = None
        while code is None:
            code = self._look()
            if code is None:
                self._wait()
        patience_s = _TERM_S if self._terminated else 0
        for child in self._children:
            child.end(patience_s)
        return code

    def _look(self) -> int | None:
        """Look at all children; return the supervisor's exit code once it is time to end."""
        if os.getppid() != self._parent:
            log.error("Skein's AM is gone: this attempt is over")
            return 1
        if self._terminated:
            for child in self._children:
                child.signal(signal.SIGTERM)
            return EXIT_TERMINATED
        for child in self._children:
            exit_code = child.look()
            if exit_code is None:
                continue
            log.warning("the %s has ended with exit code %d", child.name, exit_code)
            if is_the_end(exit_code, has_reported_end=child.has_reported_end):
                return 0 if exit_code == EXIT_ENDED else 1
            self._follow_environment()
            if child.is_hopeless and self._place is not None:
                log.error("the %s fails at every start in %s", child.name, self._place)
                self._refused.add(self._place)
                self._use(None)
            elif child.is_hopeless:
                story = f"the {child.name} fails at every start: {child.why(exit_code)}"
                log_why(story, os.environ)
                return EXIT_HOPELESS
        return None

    def _follow_environment(self) -> None:
        """Have the children run in the environment that the driver wants for them."""
        wanted = WantedPython.read(Path.cwd())
        if wanted is not None and wanted.place not in {self._place, *self._refused}:
            self._use(wanted.place)

    def _use(self, place: str | None) -> None:
        self._place = place
        os.environ.update(variables_for(place, os.environ))
        for child in self._children:
            child.use(words_for(place, os.environ))

    def _watch(self, pid_fd: int) -> None:
        self._selector.register(pid_fd, selectors.EVENT_READ)

    def _wait(self) -> None:
        for key, _ in self._selector.select(_TICK_S):
            if key.fileobj is self._wake_out:
                with contextlib.suppress(BlockingIOError):
                    self._wake_out.recv(4096)
            else:
                # A child's end: the next look finds out what it means.
                self._selector.unregister(key.fileobj)
                os.close(key.fd)

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        self._terminated = True


def log_why(story: str, environment: Mapping[str, str]) -> None:
    """Write the story and the place of our log to the file of an attempt's diagnostics.

    YARN takes the file with ``stderr`` in its name that was written last in the AM container's log
    folder (``yarn.nodemanager.container.stderr.pattern``). All users of YARN's pages can read it,
    so no line of the log is in it.
    """
    log.error("%s: this attempt is over", story)
    folder = environment.get("LOG_DIRS", "").split(",")[0]
    container, host = environment.get("CONTAINER_ID", "the AM"), environment.get("NM_HOST", "")
    place = f"its log is {LOG_NAME} of {container}" + (f" on {host}" if host else "")
    if folder:
        with contextlib.suppress(OSError):
            (Path(folder) / DIAGNOSTICS_NAME).write_text(f"{story}; {place}\n", encoding="utf-8")


def main() -> int:
    """Supervise the AM's programs until the application ends; return the exit code."""
    logs.begin(sys.stdout, os.environ)
    return Supervisor(PROGRAMS, _WITH_SPARE if _SPARE_OPTION in sys.argv else ()).run()


if __name__ == "__main__":
    sys.exit(main())
