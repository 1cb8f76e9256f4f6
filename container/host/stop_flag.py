"""StopFlag: the order to stop the container, which a signal handler may set."""

import math
import os
import select
import weakref
from collections.abc import Collection, Sequence

from homeport.config.errors import HomeportError
from homeport.job_coordinator.model.ids import TaskName


class StopRequestedError(HomeportError):
    """The container got the order to stop, and stops here."""


class OvertakenError(HomeportError):
    """A newer epoch of the processor is in the coordinator stream: this one must not begin."""


class StopFlag:
    """The order to stop one incarnation; once set, it stays so.

    ``is_ordered``: as ``is_set``, for a look at each of many records. ``is_to_rest``: whether the
    process waits for the next incarnation's permit afterwards. ``kept``: the tasks that this permit
    will probably have too.

    A pipe, not ``threading.Event``: a handler that sets an Event while the same thread waits for it
    can wait for ever for the Event's own lock.
    """

    is_to_rest = False
    kept: frozenset[TaskName] = frozenset()

    def __init__(self) -> None:
        self._reader, self._writer = os.pipe()
        self.is_ordered = False
        # Without a reference, no thread waits any more.
        weakref.finalize(self, _close, self._reader, self._writer).atexit = False

    def rest(self, kept: Collection[TaskName] = ()) -> None:
        """Order the stop, after which the process waits for a permit, unless ``set`` comes too."""
        if not self.is_ordered:
            self.is_to_rest, self.kept = True, frozenset(kept)
            self._wake()

    def set(self) -> None:
        """Order the stop, and the end of the process; wake all that wait."""
        self.is_to_rest, self.kept = False, frozenset()
        self._wake()

    def _wake(self) -> None:
        if not self.is_ordered:
            self.is_ordered = True
            os.write(self._writer, b"x")

    def is_set(self) -> bool:
        """Return whether the container has the order to stop."""
        return self.is_ordered

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until the flag is set, or for ``seconds``; return whether it is set."""
        _readable((self._reader,), seconds)
        return self.is_ordered

    def wait_for_input(self, fd: int, seconds: float | None = None) -> bool:
        """Wait until ``fd`` can be read or the flag is set; False: neither is after ``seconds``."""
        return _readable((self._reader, fd), seconds)

    def pause(self, seconds: float) -> None:
        """Wait for ``seconds``; raise StopRequestedError where the order to stop ends the pause."""
        self.wait(seconds)
        self.check()

    def check(self) -> None:
        """Raise StopRequestedError where the container has the order to stop."""
        if self.is_ordered:
            raise StopRequestedError("ordered to stop")


def _close(*fds: int) -> None:
    for fd in fds:
        os.close(fd)


def _readable(fds: Sequence[int], seconds: float | None) -> bool:
    # Not ``select``, whose descriptors end at 1023: stores may have many files open.
    waiting = select.poll()
    for fd in fds:
        waiting.register(fd, select.POLLIN)
    return bool(waiting.poll(None if seconds is None else math.ceil(seconds * 1000)))
