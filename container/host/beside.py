"""Calls that are made beside the loop's thread, or at once where nothing is to run beside it."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Call(Generic[T]):
    """One call and what came of it. ``is_done``: whether ``result`` can be had."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function: Callable[[], T] | None = function
        self._values: list[T] = []
        self._error: BaseException | None = None
        self.is_done = False

    def make(self) -> None:
        """It is done, whatever it raised."""
        assert self._function is not None  # noqa: S101 - it is made once
        try:
            self._values.append(self._function())
        except BaseException as error:  # noqa: BLE001 - handed to the thread that takes the result
            self._error = error
        self._function = None
        self.is_done = True

    def result(self) -> T:
        """What the call returned; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._values[0]


class Beside(Protocol):
    """Makes calls in their order, one at a time."""

    def submit(self, function: Callable[[], T]) -> Call[T]:
        """The call will be made."""

    def wait(self, call: Call[T], timeout_s: float) -> None:
        """Returns when the call is done, or after ``timeout_s``."""

    def close(self) -> None:
        """No further call is made; one that is being made goes on."""

    def is_over(self, limit_s: float) -> bool:
        """Return whether no call is being made after ``close``; wait ``limit_s`` for that."""


class Inline:
    """Makes each call at once, in the thread that asks for it."""

    def submit(self, function: Callable[[], T]) -> Call[T]:
        """The call is done."""
        call = Call(function)
        call.make()
        return call

    def wait(self, call: Call[T], timeout_s: float) -> None:
        """It is done already."""

    def close(self) -> None:
        """Nothing is left to do."""

    def is_over(self, limit_s: float) -> bool:
        """Return True: calls were made by the caller itself."""
        del limit_s
        return True


class SideThread:
    """Makes the calls in a thread of its own, which begins with the first one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._changed = threading.Condition()
        self._waiting: deque[Call[object]] = deque()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def submit(self, function: Callable[[], T]) -> Call[T]:
        """The call will be made when those before it are done."""
        call = Call(function)
        with self._changed:
            self._waiting.append(call)  # type: ignore[arg-type]  # what it returns is not looked at
            self._changed.notify_all()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            self._thread.start()
        return call

    def wait(self, call: Call[T], timeout_s: float) -> None:
        """Returns when the call is done, or after ``timeout_s``."""
        with self._changed:
            self._changed.wait_for(lambda: call.is_done, timeout_s)

    def close(self) -> None:
        """The thread ends after the call that it makes now, if any."""
        with self._changed:
            self._is_closed = True
            self._waiting.clear()
            self._changed.notify_all()

    def is_over(self, limit_s: float) -> bool:
        """Return whether the thread has ended after ``close``; wait ``limit_s`` for that."""
        if self._thread is None:
            return True
        self._thread.join(limit_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._is_closed or bool(self._waiting))
                if self._is_closed:
                    return
                call = self._waiting.popleft()
            call.make()
            with self._changed:
                self._changed.notify_all()
