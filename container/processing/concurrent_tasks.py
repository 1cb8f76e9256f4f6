"""StreamTasks whose ``process`` is called side by side, or is a coroutine."""

import functools
import inspect
import threading
from abc import abstractmethod
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar

import pyarrow as pa

from homeport.container.api import IncomingMessage, StreamTask
from homeport.container.callables import is_coroutine, unrun
from homeport.container.processing.call_watch import CallWatch
from homeport.container.processing.concurrent_calls import LoopCalls, ThreadCalls
from homeport.container.processing.stream_task_instance import (
    StreamTaskInstance,
    StreamTaskParts,
    step_of,
)
from homeport.container.processing.task_instance import Context, require_run, task_failed

_Side = TypeVar("_Side", ThreadCalls, LoopCalls)


class _ConcurrentStreamTask(StreamTaskInstance, Generic[_Side]):
    """Adds the calls of ``process`` to those of other tasks; all else is as in its base class."""

    def __init__(
        self, task_class: type[StreamTask], context: Context, parts: StreamTaskParts, calls: _Side
    ) -> None:
        self._calls: _Side = calls
        self._counting = threading.Lock()
        super().__init__(task_class, context, parts)

    def process_batch(self, rows: pa.Table) -> None:
        for message in self._parts.messages(rows):
            call: Any = functools.partial(self._process, message)  # of the kind that they make
            self._calls.add(order_of(self._name, message), call)

    @abstractmethod
    def _process(self, message: IncomingMessage) -> object:
        """Return the call for one message."""


class ThreadedStreamTask(_ConcurrentStreamTask[ThreadCalls]):
    """Calls the user's object in threads."""

    def _process(self, message: IncomingMessage) -> None:
        try:
            found: object = self._task.process(message, *self._last["process"])
        except BaseException as error:  # noqa: BLE001 - user code may raise anything
            with self._counting:
                self._raised(step_of(message), error)
        else:
            require_run(self._name, step_of(message), found)


class AsyncStreamTask(_ConcurrentStreamTask[LoopCalls]):
    """Calls the user's object on the container's event loop where its methods are coroutines."""

    async def _process(self, message: IncomingMessage) -> None:
        process: Any = self._task.process  # a coroutine here
        try:
            await process(message, *self._last["process"])
        except BaseException as error:  # user code may raise anything
            if self._calls.is_stopped:
                raise
            self._raised(step_of(message), error)

    def close(self) -> None:
        """Close the task; the order to stop cancels none of it."""
        try:
            self._context.close()
            self._waited(self._task.close(), may_be_stopped=False)
        except BaseException as error:  # user code may raise anything, SystemExit too
            raise task_failed(self._name, "close", error) from error

    def _initialise(self, context: Context) -> None:
        self._waited(self._task.init(context))

    def _call(self, name: str, step: str, *arguments: object) -> None:
        try:
            self._waited(getattr(self._task, name)(*arguments, *self._last[name]))
        except BaseException as error:  # user code may raise anything, SystemExit too
            if self._calls.is_stopped:
                raise
            self._raised(step, error)

    def _waited(self, found: object, *, may_be_stopped: bool = True) -> None:
        if inspect.isawaitable(found):
            error = self._calls.outcome(found, may_be_stopped=may_be_stopped)
            if error is not None:
                raise error
        elif (reason := unrun(found)) is not None:
            raise TypeError(reason)


def order_of(task_name: str, message: IncomingMessage) -> Hashable | None:
    """Return the order of the message's call: its task and key; None: it has no key."""
    if message.key is None:
        return None
    try:
        hash(message.key)
    except TypeError:
        return task_name, repr(message.key)
    return task_name, message.key


def calls_for(
    task_class: type[object],
    limit: int,
    may_go_on: Callable[[], None],
    watch: CallWatch | None = None,
) -> ThreadCalls | LoopCalls | None:
    """Return the maker of these tasks' calls; None: each is made when its message comes."""
    if is_coroutine(task_class, "process"):
        return LoopCalls(limit, may_go_on, watch)
    is_stream = issubclass(task_class, StreamTask)
    return ThreadCalls(limit, may_go_on, watch) if is_stream and limit > 1 else None


class Locked:
    """Has the attributes of another object; its methods have one caller at a time."""

    def __init__(self, found: object, lock: threading.Lock) -> None:
        self._found = found
        self._lock = lock

    def __repr__(self) -> str:
        with self._lock:
            return repr(self._found)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of any object
        attribute = getattr(self._found, name)
        if not callable(attribute):
            return attribute

        @functools.wraps(attribute)
        def call(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - of any method
            with self._lock:
                return attribute(*arguments, **named)

        # A task calls it for each record: found once, it is an attribute of its own.
        self.__dict__[name] = call
        return call
