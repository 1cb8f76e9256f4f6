"""The AM's master script: keeps driver and lease keeper running until the application ends.

Its children are programs of their own, started from the main thread with parent-death signal
SIGKILL (the signal follows the thread). One that dies is started again at once, on the port it had;
one that stops beating is killed first. The supervisor itself ends only with a child's final word,
with a child that fails at every start, so that another attempt gets its chance, with Skein's JVM
(its parent), or by SIGTERM, which it passes down.
Source: design 2; safety A3.

It imports next to nothing: it shares the AM's memory with its children.
"""

from __future__ import annotations

import contextlib
import ctypes
import logging
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import FrameType

from homeport.appmaster.attempt.heartbeat import PIPE_VARIABLE, PORT_VARIABLE, STARTS_VARIABLE
from homeport.appmaster.attempt.supervision import (
    EXIT_ENDED,
    Verdict,
    Vitals,
    verdict_of,
)

EXIT_TERMINATED = 128 + signal.SIGTERM
EXIT_HOPELESS = 3
DIAGNOSTICS_NAME = "supervisor.stderr"
LOG_NAME = "application.driver.log"
"""Where Skein sends what we and our children write."""

PROGRAMS: Mapping[str, tuple[str, ...]] = {
    "keeper": (sys.executable, "-m", "homeport.appmaster.programs.lease_keeper"),
    "driver": (sys.executable, "-m", "homeport.appmaster.programs.application_master"),
}

_TICK_S = 0.2
_TERM_S = 2.0
_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)

log = logging.getLogger("supervisor")


def now_ms() -> int:
    """Milliseconds of a clock that stands still while the machine sleeps, as its children do."""
    return time.monotonic_ns() // 1_000_000


class Child:
    """One program, started again and again. To be used from the main thread."""

    def __init__(self, name: str, command: tuple[str, ...], wake: Callable[[int], None]) -> None:
        self.name = name
        self._command = command
        self._wake = wake
        self._process: subprocess.Popen[bytes] | None = None
        self._pipe = -1
        self._unread = b""
        self._port = ""
        self._cause = ""
        self._starts = 0
        self.has_reported_end = False
        self._vitals = Vitals.at(now_ms())
        self._start_at_ms = 0

    def look(self) -> int | None:
        """Started if it is due, killed if it hangs; the exit code of one that has just ended."""
        if self._process is None:
            if now_ms() >= self._start_at_ms:
                self._start()
            return None
        self._read()
        exit_code = self._process.poll()
        if exit_code is not None:
            self._read()
            self._forget()
            return exit_code
        if self._vitals.is_hung(now_ms()):
            log.error("the %s does not beat: killed", self.name)
            self._process.kill()
        return None

    @property
    def is_hopeless(self) -> bool:
        """Whether it fails at every start."""
        return self._vitals.is_hopeless

    def why(self, exit_code: int) -> str:
        """Why the process that ended last did so, by itself or by its exit code."""
        return self._cause or f"exit code {exit_code}"

    def signal(self, number: signal.Signals) -> None:
        """The process, if there is one, has been sent the signal."""
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(number)

    def end(self, patience_s: float) -> None:
        """No process of the child is left; it is killed when the patience is over."""
        if self._process is None:
            return
        try:
            self._process.wait(patience_s)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._forget()

    def _start(self) -> None:
        self._pipe, write_end = os.pipe()
        os.set_blocking(self._pipe, False)
        self._unread = b""
        self._cause = ""
        self._starts += 1
        self.has_reported_end = False
        environment = {
            **os.environ,
            PIPE_VARIABLE: str(write_end),
            STARTS_VARIABLE: str(self._starts),
            PORT_VARIABLE: self._port,
        }
        self._process = subprocess.Popen(
            self._command,
            env=environment,
            pass_fds=(write_end,),
            preexec_fn=_die_with_parent(os.getpid()),  # noqa: PLW1509 - two system calls, no threads
        )
        os.close(write_end)
        self._vitals.started(now_ms())
        self._wake(os.pidfd_open(self._process.pid))
        log.info("the %s runs as pid %d, start %d", self.name, self._process.pid, self._starts)

    def _read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while data := os.read(self._pipe, 65536):
                self._unread += data
                self._vitals.beaten(now_ms())
        *lines, self._unread = self._unread.split(b"\n")
        for line in lines:
            if line.startswith(b"port "):
                self._port = line[5:].decode()
                self._vitals.served()
            elif line == b"ended":
                self.has_reported_end = True
            elif line.startswith(b"cause "):
                self._cause = line[6:].decode()

    def _forget(self) -> None:
        os.close(self._pipe)
        self._process = None
        self._start_at_ms = now_ms() + self._vitals.died(now_ms())


class Supervisor:
    """``run`` once, from the main thread."""

    def __init__(self, programs: Mapping[str, tuple[str, ...]]) -> None:
        self._parent = os.getppid()
        self._terminated = False
        self._selector = selectors.DefaultSelector()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self._wake_out.setblocking(False)  # noqa: FBT003 - the standard library's signature
        self._selector.register(self._wake_out, selectors.EVENT_READ)
        self._children = [Child(name, command, self._watch) for name, command in programs.items()]

    def run(self) -> int:
        """Runs until the application ends; the exit code. No child is left then."""
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
        """The exit code, once it is time to end."""
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
            if verdict_of(exit_code, has_reported_end=child.has_reported_end) is Verdict.END:
                return 0 if exit_code == EXIT_ENDED else 1
            if child.is_hopeless:
                story = f"the {child.name} fails at every start: {child.why(exit_code)}"
                log_why(story, os.environ)
                return EXIT_HOPELESS
        return None

    def _watch(self, pid_fd: int) -> None:
        self._selector.register(pid_fd, selectors.EVENT_READ)

    def _wait(self) -> None:
        for key, _ in self._selector.select(_TICK_S):
            if key.fileobj is self._wake_out:
                with contextlib.suppress(BlockingIOError):
                    self._wake_out.recv(4096)
            else:
                # A child's end: what it means is found when the children are looked at.
                self._selector.unregister(key.fileobj)
                os.close(key.fd)

    def _on_sigterm(self, _number: int, _frame: FrameType | None) -> None:
        self._terminated = True


def log_why(story: str, environment: Mapping[str, str]) -> None:
    """The story, and where our log is, is where YARN looks for an attempt's diagnostics.

    That is the file of the AM container's log folder that was written last among those with
    ``stderr`` in their names (``yarn.nodemanager.container.stderr.pattern``). Everybody can read
    it on YARN's pages, so no line of the log is in it.
    """
    log.error("%s: this attempt is over", story)
    folder = environment.get("LOG_DIRS", "").split(",")[0]
    container, host = environment.get("CONTAINER_ID", "the AM"), environment.get("NM_HOST", "")
    place = f"its log is {LOG_NAME} of {container}" + (f" on {host}" if host else "")
    if folder:
        with contextlib.suppress(OSError):
            (Path(folder) / DIAGNOSTICS_NAME).write_text(f"{story}; {place}\n", encoding="utf-8")


def _die_with_parent(parent: int) -> Callable[[], None]:
    def hook() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != parent:  # it died before the signal was set
            os._exit(1)

    return hook


def main() -> int:
    """Supervises the AM's programs until the application ends; the exit code."""
    logging.basicConfig(
        stream=sys.stdout,
        level=logging.INFO,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    return Supervisor(PROGRAMS).run()


if __name__ == "__main__":
    sys.exit(main())
