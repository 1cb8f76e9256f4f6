"""Executors make calls in their order, in the caller's thread or in one of their own.

Their own thread is a daemon: a call of user code that hangs must not hold up the end of the
process. The interpreter waits at its end for threads of ThreadPoolExecutor.
"""

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Protocol, TypeVar

T = TypeVar("T")


class Executor(Protocol):
    """Makes calls in their order, one at a time."""

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Make the call, now or when those before it are done."""

    def wait(self, call: Future[T], timeout_s: float) -> None:
        """Return when the call is done, or after ``timeout_s``."""

    def close(self) -> None:
        """Make no further call; one that is being made goes on."""

    def is_over(self, limit_s: float) -> bool:
        """Return whether no call is being made after ``close``; wait ``limit_s`` for that."""


def complete(call: Future[T], function: Callable[[], T]) -> None:
    """Give the future what the function returns or raises, whatever that is."""
    try:
        call.set_result(function())
    except BaseException as error:  # noqa: BLE001 - handed to the thread that takes the result
        call.set_exception(error)


class SameThread:
    """Makes each call at once, in the thread that submits it."""

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Make the call; return it done."""
        call = Future[T]()
        complete(call, function)
        return call

    def wait(self, call: Future[T], timeout_s: float) -> None:
        """Return at once: the call is done."""

    def close(self) -> None:
        """Leave nothing to do: each call was made when it was submitted."""

    def is_over(self, limit_s: float) -> bool:
        """Return True."""
        del limit_s
        return True


class OneThread:
    """Makes the calls in a thread of its own, which begins with the first one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._calls: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def submit(self, function: Callable[[], T]) -> Future[T]:
        """Make the call when those before it are done."""
        call = Future[T]()
        with self._changed:
            self._calls.append(partial(complete, call, function))
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return call

    def wait(self, call: Future[T], timeout_s: float) -> None:
        """Return when the call is done, or after ``timeout_s``."""
        with self._changed:
            self._changed.wait_for(call.done, timeout_s)

    def close(self) -> None:
        """End the thread after the call that it makes now, if any."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def is_over(self, limit_s: float) -> bool:
        """Return whether the thread has ended; wait ``limit_s`` for that."""
        if self._thread is None:
            return True
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while self._make_next():
            pass  # it keeps nothing of a call while it waits for the next

    def _make_next(self) -> bool:
        with self._changed:
            self._changed.notify_all()  # of the call before
            self._changed.wait_for(lambda: self._is_closed or bool(self._calls))
            if self._is_closed:
                return False
            call = self._calls.popleft()
        call()
        return True
