"""Orders: what a child gets from its launcher or its processor, by standard input and SIGTERM.

A launcher writes one permit and closes the pipe. A processor ends each message with a newline and
leaves the pipe open: ``REST`` after a permit orders the child to stop this incarnation and to wait,
perhaps for the next permit. The end of the pipe, and SIGTERM, end the process.
"""

import os
import threading

from homeport.container.host.stop_flag import StopFlag

CONFIG_VARIABLE = "HOMEPORT_CONFIG_FD"
"""Where a child of a processor finds the configuration before it has a permit."""
REST = "rest"
_PIECE = 65536


class Orders:
    """Reads messages from ``fd`` in the main thread; a signal handler may ``terminate``."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._terminated = StopFlag()
        self._stop = StopFlag()
        self._text = bytearray()
        self._is_over = False

    def terminate(self) -> None:
        """Stop the incarnation; the process takes no further permit."""
        self._terminated.set()
        self._stop.set()

    def next_permit(self) -> str | None:
        """Return the text of the next permit; None: there is no further one."""
        found = self._message()
        if self._terminated.is_set():
            return None
        if found is None:  # from a launcher: only the end of the pipe ends it
            found, self._text = self._text.decode(), bytearray()
        return found or None

    def begin(self) -> StopFlag:
        """Return the stop flag of the incarnation whose permit came last."""
        self._stop = stop = StopFlag()
        if self._terminated.is_set():
            stop.set()
        if not self._is_over:
            # A message after the permit is an order to stop: one thread waits for it.
            threading.Thread(
                target=self._await_rest, args=[stop], name="orders", daemon=True
            ).start()
        return stop

    def _await_rest(self, stop: StopFlag) -> None:
        if self._message() == REST:
            stop.rest()
        elif not self._terminated.is_set():
            stop.set()

    def _message(self) -> str | None:
        """Return the text up to the next newline; None at the end, or after ``terminate``."""
        while b"\n" not in self._text:
            if self._is_over or self._terminated.wait_for_input(self._fd):
                return None
            piece = os.read(self._fd, _PIECE)
            self._is_over = not piece
            self._text += piece
        line, _, rest = self._text.partition(b"\n")
        self._text = rest
        return line.decode()
