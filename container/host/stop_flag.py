"""StopFlag: the order to stop the container; safe to set in a signal handler."""

from __future__ import annotations

import math
import os
import select
from collections.abc import Sequence

from homeport.config.errors import HomeportError


class StopRequestedError(HomeportError):
    """The container got the order to stop, and stops here."""


class OvertakenError(HomeportError):
    """A newer epoch of the processor is in the coordinator stream: this one must not begin."""


class StopFlag:
    """Set once, for good.

    A pipe, not ``threading.Event``: a handler that sets an Event while the same thread waits for it
    can wait for ever for the Event's own lock.
    """

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self._set = False

    def set(self) -> None:
        """All that wait go on."""
        if not self._set:
            self._set = True
            os.write(self._writer, b"x")

    def is_set(self) -> bool:
        """Whether the container has the order to stop."""
        return self._set

    def wait(self, seconds: float | None = None) -> bool:
        """Returns when set, or after ``seconds``; whether it is set."""
        _readable((self._reader,), seconds)
        return self._set

    def wait_for_input(self, fd: int) -> bool:
        """Returns when ``fd`` can be read, or the flag is set; whether it is set."""
        _readable((self._reader, fd), None)
        return self._set

    def pause(self, seconds: float) -> None:
        """Returns after ``seconds``.

        Raises:
            StopRequestedError: the order to stop ends the pause.
        """
        self.wait(seconds)
        self.check()

    def check(self) -> None:
        """Nothing, while the container may go on.

        Raises:
            StopRequestedError: the container has the order to stop.
        """
        if self._set:
            raise StopRequestedError("ordered to stop")


def _readable(fds: Sequence[int], seconds: float | None) -> None:
    """Returns when one of them can be read, or after ``seconds``."""
    # Not ``select``, whose descriptors end at 1023: stores may have many files open.
    waiting = select.poll()
    for fd in fds:
        waiting.register(fd, select.POLLIN)
    waiting.poll(None if seconds is None else math.ceil(seconds * 1000))
