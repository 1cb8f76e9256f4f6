"""The pipes between the supervisor and a child.

The child sends beats, its port, its end and the cause. It gets its turn: a spare has done its
imports and waits for it.

Beats come from a thread of their own, so that replay and long computations do not look like a hang
(safety A3). A stopped process does not beat.
"""

import contextlib
import os
import threading
from collections.abc import Mapping
from pathlib import Path

from homeport.appmaster.attempt.supervision import BEAT_INTERVAL_MS
from homeport.job_coordinator.program_names import SPARE_NAME

PIPE_VARIABLE = "HOMEPORT_SUPERVISOR_FD"
TURN_VARIABLE = "HOMEPORT_TURN_FD"
_NAME = Path("/proc/self/comm")
_MAX_CAUSE = 800
"""Characters: a line of so many, whatever they are, is written whole (PIPE_BUF)."""


class Heartbeat:
    """The child's ends of the pipes; without a supervisor it does nothing."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        fd = environment.get(PIPE_VARIABLE, "")
        self._fd = int(fd) if fd else None
        turn = environment.get(TURN_VARIABLE, "")
        self._turn_fd = int(turn) if turn else None
        self.port: int | None = None
        """The port of the earlier process of this child; None: this is the first."""
        self.starts = 1
        """The number of this child's processes so far, with this one."""

    def await_turn(self) -> None:
        """Wait until this process is the child; ``starts`` and ``port`` are known then.

        SystemExit: the supervisor has ended before.
        """
        if self._turn_fd is None:
            return
        own = _NAME.read_text(encoding="ascii").strip()
        _NAME.write_text(SPARE_NAME, encoding="ascii")
        # The imports are done: from its turn on, silence means that it hangs.
        self._write(b"waits\n")
        os.set_inheritable(self._turn_fd, False)  # noqa: FBT003 - the standard library's signature
        with os.fdopen(self._turn_fd, encoding="ascii") as turn:
            starts, _, port = turn.readline().strip().partition(" ")
        if not starts:
            raise SystemExit(0)
        _NAME.write_text(own, encoding="ascii")
        self.starts, self.port = int(starts), int(port) if port else None

    def start(self) -> None:
        """Start to send beats."""
        if self._fd is not None:
            os.set_inheritable(self._fd, False)  # noqa: FBT003 - the standard library's signature
            threading.Thread(target=self._beat, name="heartbeat", daemon=True).start()

    def send_port(self, port: int) -> None:
        """Send ``port``, which the next process of this child gets."""
        self._write(f"port {port}\n".encode())

    def report_ended(self) -> None:
        """Report that the application has ended, and that exit code 0 will mean that.

        The job's own code that runs here, such as a grouper, can exit with 0 too.
        """
        self._write(b"ended\n")

    def log_cause(self, cause: str) -> None:
        """Send the supervisor the cause of this process's end, for YARN's pages."""
        text = " ".join(cause.split())[:_MAX_CAUSE]
        self._write(f"cause {text}\n".encode())

    def _beat(self) -> None:
        pause = threading.Event()
        while True:
            self._write(b"beat\n")
            pause.wait(BEAT_INTERVAL_MS / 1000)

    def _write(self, line: bytes) -> None:
        if self._fd is not None:
            with contextlib.suppress(OSError):
                os.write(self._fd, line)
