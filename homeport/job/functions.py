"""The task classes of a job that is made of functions."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from homeport.config.errors import ConfigError
from homeport.container.api import (
    BatchTask,
    IncomingMessage,
    MessageCollector,
    StreamTask,
    TaskContext,
    TaskCoordinator,
    Timer,
)
from homeport.job.handles import Call, Calls

Function = Callable[..., object]
_MOST = 3
"""Parameters of a function for records."""


@dataclass
class Functions:
    """The functions of one job. ``each``: {``system.stream``: of its records, from a message}."""

    each: dict[str, Function] = field(default_factory=dict)
    batch: Function | None = None
    start: list[Function] = field(default_factory=list)
    every: Function | None = None
    timer: Function | None = None

    @property
    def is_async(self) -> bool:
        """Return whether a function for records is a coroutine."""
        return any(inspect.iscoroutinefunction(function) for function in self.each.values())


def of_message(function: Function) -> Function:
    """Return ``function``, for records, as a function of the message.

    It takes the message, or key and value, or key, value and message.

    Raises:
        ConfigError: it takes something else.
    """
    count = parameters_of(function)
    if not 1 <= count <= _MOST:
        raise ConfigError(
            "job.each",
            function.__name__,
            f"it takes {count} arguments",
            "let it take (key, value), (key, value, message) or (message)",
        )
    if count == 1:
        return function
    is_async = inspect.iscoroutinefunction(function)
    return (_async_calls if is_async else _calls)(function, with_message=count == _MOST)


def parameters_of(function: Function) -> int:
    """Return how many arguments the function takes by position without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.kind in kinds and parameter.default is inspect.Parameter.empty
        for parameter in inspect.signature(function).parameters.values()
    )


def _calls(function: Function, *, with_message: bool) -> Function:
    if with_message:
        return lambda message: function(message.key, message.value, message)
    return lambda message: function(message.key, message.value)


def _async_calls(function: Callable[..., Any], *, with_message: bool) -> Function:
    async def whole(message: IncomingMessage) -> object:
        return await function(message.key, message.value, message)

    async def parts(message: IncomingMessage) -> object:
        return await function(message.key, message.value)

    return whole if with_message else parts


def task_class_of(functions: Functions, calls: Calls) -> type[StreamTask | BatchTask]:
    """Return the class whose objects call the functions of the job.

    Raises:
        ConfigError: the job has no function for its records.
    """
    if functions.batch is not None:
        return _batch_task(functions, functions.batch, calls)
    if functions.is_async:
        return _async_task(functions, calls)
    if functions.each:
        return _stream_task(functions, calls)
    raise ConfigError(
        "job.each", None, "the job has no function for its records", "write one under @job.each"
    )


class _Stores(dict[str, Any]):
    """The parts of one task's stores, each looked up when it is used first."""

    def __init__(self, context: TaskContext) -> None:
        super().__init__()
        self._context = context

    def __missing__(self, name: str) -> Any:  # noqa: ANN401 - a store of any types
        return self.setdefault(name, self._context.store(name))


class _Task(StreamTask):
    """Calls what stands beside records: start, timers, and what comes at intervals."""

    functions: Functions
    calls: Calls

    def init(self, context: TaskContext) -> None:
        self._call = Call(context, _Stores(context))
        for function in self.functions.start:
            self._within(function)

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        self._call.collector, self._call.coordinator = collector, coordinator
        if self.functions.every is not None:
            self._within(self.functions.every)

    def on_timer(
        self, timer: Timer, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> Any:  # noqa: ANN401 - as the function returns, for the caller to refuse
        self._call.collector, self._call.coordinator = collector, coordinator
        if self.functions.timer is None:
            return super().on_timer(timer, collector, coordinator)
        return self._within(self.functions.timer, timer)

    def _within(self, function: Function, *arguments: object) -> Any:  # noqa: ANN401 - as above
        self.calls.current.set(self._call)
        try:
            return function(*arguments)
        finally:
            self.calls.current.set(None)


def _stream_task(functions: Functions, calls: Calls) -> type[StreamTask]:
    each = {tuple(name.split(".", 1)): function for name, function in functions.each.items()}
    set_current = calls.current.set

    class Records(_Task):
        def process(
            self,
            message: IncomingMessage,
            collector: MessageCollector,
            coordinator: TaskCoordinator,
        ) -> Any:  # noqa: ANN401 - as above
            call = self._call
            call.collector, call.coordinator = collector, coordinator
            set_current(call)
            try:
                return each[message.system, message.stream](message)
            finally:
                set_current(None)

    Records.functions, Records.calls = functions, calls
    return Records


def _async_task(functions: Functions, calls: Calls) -> type[StreamTask]:
    each = {tuple(name.split(".", 1)): function for name, function in functions.each.items()}

    class Records(_Task):
        async def process(  # type: ignore[override]  # as the container calls it
            self,
            message: IncomingMessage,
            collector: MessageCollector,
            coordinator: TaskCoordinator,
        ) -> None:
            self._call.collector, self._call.coordinator = collector, coordinator
            calls.current.set(self._call)
            try:
                found = each[message.system, message.stream](message)
                if isinstance(found, Awaitable):
                    await found
            finally:
                calls.current.set(None)

    Records.functions, Records.calls = functions, calls
    return Records


def _batch_task(functions: Functions, batch: Function, calls: Calls) -> type[BatchTask]:
    class Batches(BatchTask):
        def init(self, context: TaskContext) -> None:
            self._call = Call(context, _Stores(context))
            for function in functions.start:
                self._within(function)

        def process_batch(self, table: pa.Table, collector: MessageCollector) -> Any:  # noqa: ANN401 - as above
            self._call.collector = collector
            return self._within(batch, table)

        def on_timer(self, timer: Timer, collector: MessageCollector) -> Any:  # noqa: ANN401 - as above
            self._call.collector = collector
            if functions.timer is None:
                return super().on_timer(timer, collector)
            return self._within(functions.timer, timer)

        def _within(self, function: Function, *arguments: object) -> Any:  # noqa: ANN401 - as above
            calls.current.set(self._call)
            try:
                return function(*arguments)
            finally:
                calls.current.set(None)

    return Batches
