"""StreamTaskInstance: the user's StreamTask of one task, and its messages."""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from operator import length_hint
from traceback import walk_tb

import pyarrow as pa

from homeport.config.errors import HomeportError
from homeport.config.settings.records_section import ALL_EXCEPTIONS
from homeport.container.api import IncomingMessage, StreamTask, Timer
from homeport.container.callables import takes_context
from homeport.container.host.stop_flag import StopFlag
from homeport.container.processing.call_watch import CallWatch
from homeport.container.processing.function_task import FunctionTask, PairFunction
from homeport.container.processing.records import Messages, ReadRecords
from homeport.container.processing.task_instance import (
    Context,
    Outputs,
    Requests,
    checked,
    require_run,
    task_failed,
)

_LOG = logging.getLogger(__name__)
_PROJECT = "homeport."
"""The prefix of its modules' names."""
_BEFORE = {"process": 1, "window": 0, "on_timer": 1, "end_of_stream": 0}
"""{method: the number of its arguments before the context}."""
_CALLS_FUNCTIONS = f"{_PROJECT}job.functions"
"""Between a task's call and the functions of a job in Python."""


@dataclass(frozen=True)
class StreamTaskParts:
    """The parts that the StreamTasks of one container share.

    ``ignored``: class names of exceptions that are skipped if the task itself raises them.
    ``read``: as ``InputMessages.parts``; None after a pipeline. ``stop`` is looked at before each
    message, and ``watch`` has a tick for it.
    """

    outputs: Outputs
    requests: Requests
    messages: Messages
    ignored: frozenset[str]
    stop: StopFlag
    watch: CallWatch
    read: Callable[[pa.Table], Iterator[ReadRecords | Iterator[IncomingMessage]]] | None = None


class StreamTaskInstance:
    """Calls the user's object, and attributes each exception.

    Raises:
        TaskFailedError: (from every method) the object raised, or its code did not run.
    """

    def __init__(
        self, task_class: type[StreamTask], context: Context, parts: StreamTaskParts
    ) -> None:
        self._name = context.task_name
        self._parts = parts
        self._context = context
        self.ignored = 0
        self._task = checked(self._name, "init", task_class)
        self._last: dict[str, tuple[object, ...]] = {
            name: (context,)
            if takes_context(getattr(self._task, name), before)
            else (parts.outputs, context)
            for name, before in _BEFORE.items()
        }
        self._is_short = len(self._last["process"]) == 1
        self._run("init", self._initialise, context)
        context.open(parts.outputs, parts.requests)

    def _initialise(self, context: Context) -> object:
        return self._task.init(context)

    def process_batch(self, rows: pa.Table) -> None:
        """Call the task with every message of ``rows``.

        Raises:
            UndecodableError: a record cannot be read, and may not be dropped.
        """
        task, parts = self._task, self._parts
        if not isinstance(task, FunctionTask):
            self._process_messages(parts.messages(rows), task.process)
            return
        with task.calling():
            if parts.read is None:
                self._process_messages(parts.messages(rows), task.called)
                return
            for part in parts.read(rows):
                if not isinstance(part, ReadRecords):
                    self._process_messages(part, task.called)
                elif (function := task.of_pairs(part.system, part.stream)) is not None:
                    self._process_pairs(part, function)
                else:
                    self._process_messages(part.messages(), task.called)

    def _process_messages(
        self, messages: Iterator[IncomingMessage], process: Callable[..., object]
    ) -> None:
        outputs, context, is_short = self._parts.outputs, self._context, self._is_short
        stop, watch = self._parts.stop, self._parts.watch
        for message in messages:
            watch.ticks += 1
            if stop.is_ordered:
                stop.check()
            try:
                if is_short:
                    found = process(message, context)
                else:
                    found = process(message, outputs, context)
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                self._raised(step_of(message), error)
            else:
                if found is not None:
                    require_run(self._name, step_of(message), found)

    def _process_pairs(self, part: ReadRecords, function: PairFunction) -> None:
        stop, watch = self._parts.stop, self._parts.watch
        keys = iter(part.keys)

        def step() -> str:
            number = len(part.keys) - length_hint(keys) - 1
            rows = part.rows.slice(number, 1)
            return step_of(next(part._replace(keys=[None], values=[None], rows=rows).messages()))

        for key, value in zip(keys, part.values, strict=True):
            watch.ticks += 1
            if stop.is_ordered:
                stop.check()
            try:
                found = function(key, value)
            except BaseException as error:  # noqa: BLE001 - user code may raise anything
                self._raised(step(), error)
            else:
                if found is not None:
                    require_run(self._name, step(), found)

    def end_transaction(self) -> None:
        """Do nothing: a StreamTask sends when it is called."""

    def window(self) -> None:
        """Call the task for its window."""
        self._call("window", "window")

    def on_timer(self, timer: Timer) -> None:
        """Call the task for ``timer``."""
        self._call("on_timer", f"on_timer of {timer.name!r}", timer)

    def end_of_stream(self) -> None:
        """End the input of the task."""
        self._call("end_of_stream", "end_of_stream")

    def close(self) -> None:
        """Close the task."""
        self._context.close()
        self._run("close", self._task.close)

    def _run(self, step: str, hook: Callable[..., object], *arguments: object) -> None:
        require_run(self._name, step, checked(self._name, step, hook, *arguments))

    def _call(self, name: str, step: str, *arguments: object) -> None:
        try:
            found = getattr(self._task, name)(*arguments, *self._last[name])
        except BaseException as error:  # noqa: BLE001 - user code may raise anything
            self._raised(step, error)
        else:
            require_run(self._name, step, found)

    def _raised(self, step: str, error: BaseException) -> None:
        kind = type(error)
        names = {ALL_EXCEPTIONS, kind.__name__, f"{kind.__module__}.{kind.__qualname__}"}
        failure = task_failed(self._name, step, error)
        if names.isdisjoint(self._parts.ignored) or not _is_of_the_task(error):
            raise failure from error
        self.ignored += 1
        _LOG.warning("ignored: %s (%d so far)", failure, self.ignored)
        # A task may raise one object many times: its traceback would grow each time.
        error.__traceback__ = None


def step_of(message: IncomingMessage) -> str:
    """Return the name of the call of ``process`` for the message."""
    return f"process of {message.stream} partition {message.partition} offset {message.offset}"


def _is_of_the_task(error: BaseException) -> bool:
    """Return whether the task's own code raised ``error``; the first frame called it.

    An exception from a store, the collector or other code of this project is no verdict of the task
    on its message: skipping it would commit a message whose reads or writes have failed.
    """
    if not isinstance(error, Exception) or isinstance(error, (HomeportError, MemoryError)):
        return False
    below = islice(walk_tb(error.__traceback__), 1, None)
    modules = {frame.f_globals.get("__name__", "") for frame, _ in below} - {_CALLS_FUNCTIONS}
    return not any(module.startswith(_PROJECT) for module in modules)
