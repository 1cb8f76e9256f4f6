"""Orders: what a child gets from its launcher or its processor, by standard input and SIGTERM.

Its parent ends each message with a newline, and leaves the pipe open. ``REST`` after a permit
orders the child to stop this incarnation and to wait, perhaps for the next permit. Behind it may
stand, as a list in JSON, the tasks that probably stay (``rest_order``). The end of the pipe, and
SIGTERM, end the process; so does any other message.
"""

import json
import os
import threading
from collections.abc import Callable, Collection

from homeport.container.host.stop_flag import StopFlag
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.json_values import compact_json

CONFIG_VARIABLE = "HOMEPORT_CONFIG_FD"
"""Where a child of a processor finds the configuration before it has a permit."""
REST = "rest"
_PIECE = 65536


def rest_order(kept: Collection[TaskName] = ()) -> str:
    """Return the order to rest; ``kept``: the tasks that the next permit will probably have too."""
    return f"{REST} {compact_json(sorted(kept)).decode()}" if kept else REST


def kept_in(message: str) -> frozenset[TaskName] | None:
    """Return the tasks that an order to rest keeps; None: it is another message."""
    word, _, names = message.partition(" ")
    if word != REST:
        return None
    try:
        found = json.loads(names or "[]")
    except ValueError:
        return None
    if not isinstance(found, list) or not all(isinstance(name, str) for name in found):
        return None
    return frozenset(map(TaskName, found))


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

    def next_permit(
        self, idle: Callable[[], object] = lambda: None, idle_s: float | None = None
    ) -> str | None:
        """Return the text of the next permit; None: there is no further one.

        ``idle``: called once where nothing comes for ``idle_s``.
        """
        is_here = b"\n" in self._text or self._is_over
        if not (is_here or self._terminated.wait_for_input(self._fd, idle_s)):
            idle()
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
        message = self._message()
        kept = None if message is None else kept_in(message)
        if kept is not None:
            stop.rest(kept)
        elif not self._terminated.is_set():
            stop.set()

    def _ends(self) -> bool:
        self._terminated.wait_for_input(self._fd)
        return self._terminated.is_set()

    def _message(self) -> str | None:
        """Return the text up to the next newline; None at the end, or after ``terminate``."""
        while b"\n" not in self._text:
            if self._is_over or self._ends():
                return None
            piece = os.read(self._fd, _PIECE)
            self._is_over = not piece
            self._text += piece
        line, _, rest = self._text.partition(b"\n")
        self._text = rest
        return line.decode()
