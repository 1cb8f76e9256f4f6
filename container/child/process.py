"""ChildProcess: a process of the stream container's program, from its start to its end.

It waits for a permit on its standard input. Until then it has no lease, opens no directory and asks
Kafka for nothing. A process that is kept waiting is a *spare*, whose imports are done when its
permit comes. If the input ends without a permit, so does the process.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Self

from homeport.config.errors import WireError
from homeport.container.host.lease_memory import FD_VARIABLE, LeaseMemory
from homeport.container.host.orders import CONFIG_VARIABLE
from homeport.container.host.permit import Permit
from homeport.job_coordinator.http.messages import Order
from homeport.job_coordinator.model.json_values import compact_json
from homeport.job_coordinator.own_folders import PRIVATE_UMASK, open_own_file
from homeport.job_coordinator.parent_death import ending_with_us

_MUTE_MS = 2000
"""A process that has not beaten for so long stands still."""


def permit_of(order: Order) -> Permit:
    """Return the permit in an order to run."""
    if order.incarnation is None or order.model_version is None:
        raise WireError("an order to run names no incarnation, or no JobModel")
    return Permit(order.incarnation, order.model_version, order.fence)


class ChildProcess:
    """One process; the main thread starts it, and it ends with that thread (safety C5)."""

    def __init__(
        self, process: subprocess.Popen[bytes], memory: LeaseMemory, log_file: Path, log_fd: int
    ) -> None:
        self.memory = memory
        self.log_file = log_file
        self.pid_fd = os.pidfd_open(process.pid)
        self._process = process
        assert process.stdin is not None  # noqa: S101 - for the type checker
        self._stdin = process.stdin
        self._log_fd = log_fd

    @classmethod
    def start(
        cls,
        command: Sequence[str],
        environment: Mapping[str, str],
        log_file: Path,
        beat_ms: int,
        *,
        has_own_group: bool = False,
        config: Mapping[str, str] | None = None,
    ) -> Self:
        """Return a process that waits for its permit; its output goes to ``log_file``.

        ``has_own_group``: whether a signal to this process's group does not reach it. ``config``:
        the job's, for a process that gets ready and has no AM to ask; no other process sees it.
        OSError: it cannot be started.
        """
        log_file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        log_fd = open_own_file(log_file, os.O_RDWR | os.O_APPEND)
        memory = LeaseMemory.endless(beat_ms)
        given = {} if config is None else {CONFIG_VARIABLE: str(in_memory(dict(config)))}
        fds = [memory.fd, *map(int, given.values())]
        process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=log_fd,
            stderr=log_fd,
            env={**environment, FD_VARIABLE: str(memory.fd), **given},
            pass_fds=fds,
            process_group=0 if has_own_group else None,
            umask=PRIVATE_UMASK,
            # Threads of a lease may run: two system calls need none of what these may hold.
            preexec_fn=ending_with_us(),  # noqa: PLW1509 - as said above
        )
        for fd in fds[1:]:
            os.close(fd)
        return cls(process, memory, log_file, log_fd)

    @property
    def pid(self) -> int:
        """The process."""
        return self._process.pid

    def permit(self, text: str, log_name: str) -> None:
        """Give it the permit in ``text``; its log has that name from now on.

        Call it once the lease is in the child's memory (safety C2). A child that has ended
        meanwhile shows it by its exit code.
        """
        self.name_log(log_name)
        self.send(text)

    def send(self, text: str) -> None:
        """Send it one more message; ``text`` has no newline. See ``host.orders``."""
        with contextlib.suppress(OSError):
            self._stdin.write(text.encode() + b"\n")
            self._stdin.flush()

    def end_orders(self) -> None:
        """Close its input: a process that waits for a message ends."""
        with contextlib.suppress(OSError):
            self._stdin.close()

    def name_log(self, log_name: str) -> None:
        """Give its log that name, unless YARN has removed the folder."""
        log_file = self.log_file.with_name(log_name)
        with contextlib.suppress(OSError):
            self.log_file.rename(log_file)
            self.log_file = log_file

    def signal(self, number: signal.Signals) -> None:
        """Send it the signal, unless it has ended."""
        with contextlib.suppress(ProcessLookupError, OSError):
            signal.pidfd_send_signal(self.pid_fd, number)

    def is_alive(self, now_ms: int) -> bool:
        """Return whether it runs and has beaten lately; else it is of no use."""
        return self.poll() is None and now_ms - self.memory.beat_ms <= _MUTE_MS

    def poll(self) -> int | None:
        """Return its exit code, minus the signal that ended it; None while it runs."""
        return self._process.poll()

    def wait(self) -> int:
        """Return its exit code, once it has ended."""
        return self._process.wait()

    def log_tail(self, size: int) -> bytes:
        """Return the last bytes of its log, even after YARN has removed the file."""
        length = os.fstat(self._log_fd).st_size
        return os.pread(self._log_fd, size, max(0, length - size))

    def close(self) -> None:
        """Close its input, its log, its memory and its pidfd."""
        self.end_orders()
        for fd in (self.pid_fd, self._log_fd, self.memory.fd):
            with contextlib.suppress(OSError):
                os.close(fd)


def in_memory(body: object) -> int:
    """Return a descriptor of a file in memory that has ``body`` as JSON."""
    fd = os.memfd_create("homeport")
    with os.fdopen(os.dup(fd), "wb") as file:
        file.write(compact_json(body))
    return fd
