"""What a launcher holds of a process that it has started."""

from __future__ import annotations

import signal
from collections.abc import Callable

from tests.unit.world.clock import Process


class PermitPipe:
    """The launcher's end of a child's standard input; ``permitted`` receives what was written."""

    def __init__(self, permitted: Callable[[str], None]) -> None:
        self.text = ""
        self.is_closed = False
        self._permitted = permitted

    def write(self, data: bytes) -> None:
        """It is on its way."""
        self.text += data.decode()

    def close(self) -> None:
        """What was written is whole: its reader may read it."""
        if self.text and not self.is_closed:
            self._permitted(self.text)
        self.is_closed = True


class Popen:
    """``subprocess.Popen`` of a child."""

    def __init__(self, process: Process, stdin: PermitPipe | None = None) -> None:
        self.process = process
        self.pid = process.number
        self.stdin = stdin

    def poll(self) -> int | None:
        """Its exit code, minus nine where it was killed; None while it lives."""
        if self.process.is_alive:
            return None
        code = self.process.exit_code
        return code if isinstance(code, int) else -int(signal.SIGKILL)

    def wait(self) -> int:
        """Its exit code, once it has ended."""
        self.process._clock.wait_for(lambda: not self.process.is_alive)
        code = self.poll()
        if code is None:
            raise AssertionError("it was waited for")
        return code
