"""The resting process: it has let go of its incarnation, and waits for the next permit here.

It keeps its imports, its Spark and the stores of the tasks that are likely to stay. It holds their
directories, so it does not wait for long, and it runs with the package that it has imported.
"""

import logging
import selectors
import signal
from pathlib import Path

from homeport.container.child.process import ChildProcess
from homeport.job_coordinator.clocks import boot_ms

_LIMIT_MS = 60_000
"""How long a process rests; a successor that waits for longer gets another one."""

log = logging.getLogger("launcher")


class Resting:
    """Keeps at most one resting process; for the main thread."""

    def __init__(self, selector: selectors.BaseSelector) -> None:
        self._selector = selector
        self._process: ChildProcess | None = None
        self._package: Path | None = None
        self._until_ms = 0

    @property
    def package(self) -> Path | None:
        """The folder from which the process has imported; None: none rests."""
        return None if self._process is None else self._package

    def keep(self, process: ChildProcess, package: Path) -> None:
        """Keep the process, which runs no incarnation any more; it needs no lease meanwhile."""
        self.end("another process rests")
        process.memory.rest()
        self._process, self._package = process, package
        self._until_ms = boot_ms() + _LIMIT_MS
        self._selector.register(process.pid_fd, selectors.EVENT_READ)

    def take(self, package: Path) -> ChildProcess | None:
        """Hand over the process, if it is sound and has imported from ``package``; else None."""
        process = self._process
        if process is None:
            return None
        if self._package != package:
            self.end("it has another package")
            return None
        if not process.is_alive(boot_ms()):
            self.end("it is of no use")
            return None
        self._selector.unregister(process.pid_fd)
        self._process = None
        return process

    def look_after(self) -> None:
        """End the process if it has ended by itself, or has waited for too long."""
        if self._process is None:
            return
        if self._process.poll() is not None:
            self.end("it has ended")
        elif boot_ms() >= self._until_ms:
            self.end(f"no permit came for {_LIMIT_MS} ms")

    def end(self, why: str) -> None:
        """End the process, if one rests, and wait for it: nothing of it is left to commit."""
        process, self._process = self._process, None
        if process is None:
            return
        process.signal(signal.SIGKILL)
        code = process.wait()
        log.info("pid %d, which rested, is gone: %s, exit code %d", process.pid, why, code)
        self._selector.unregister(process.pid_fd)
        process.close()
