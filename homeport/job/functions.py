"""The task classes of a job that is made of functions."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from homeport.config.errors import ConfigError, HomeportError
from homeport.container.api import BatchTask, IncomingMessage, StreamTask, TaskContext, Timer
from homeport.container.callables import fault_of
from homeport.container.processing.function_task import FunctionTask, PairFunction
from homeport.job.handles import Call, Calls, CoroutineCall, Handle
from homeport.job.windows import Window, due

Function = Callable[..., object]
_PAIR, _MOST = 2, 3
"""Parameters of a function for records."""


@dataclass
class Functions:
    """The functions of one job.

    ``each``: {``system.stream``: of its records, from a message}. ``pairs``: those of ``each`` that
    take key and value alone, and are no coroutines, as they are. ``windows``: by their stores.
    ``task``: the job's own class, in the place of other functions.
    """

    each: dict[str, Function] = field(default_factory=dict)
    pairs: dict[str, PairFunction] = field(default_factory=dict)
    batch: Function | None = None
    start: list[Function] = field(default_factory=list)
    every: Function | None = None
    timer: Function | None = None
    windows: dict[str, Window[Any, Any]] = field(default_factory=dict)
    task: type[StreamTask | BatchTask] | None = None

    def add_each(self, stream: str, function: Function) -> None:
        """Add the function for the records of ``stream``, a ``system.stream``.

        Raises:
            ConfigError: as of ``of_message``.
        """
        self.each[stream] = of_message(function)
        if parameters_of(function) == _PAIR and not inspect.iscoroutinefunction(function):
            self.pairs[stream] = function

    @property
    def is_async(self) -> bool:
        """Return whether a function for records is a coroutine."""
        return any(inspect.iscoroutinefunction(function) for function in self.each.values())


def of_message(function: Function, what: str = "job.each") -> Function:
    """Return ``function``, for records, as a function of the message; ``what``: its decorator.

    It takes the message, or key and value, or key, value and message.

    Raises:
        ConfigError: it takes something else, or is a generator.
    """
    count, name = parameters_of(function), _name_of(function)
    if not 1 <= count <= _MOST:
        remedy = "let it take (key, value), (key, value, message) or (message)"
        raise ConfigError(what, name, f"it takes {count} arguments", remedy)
    is_async = inspect.iscoroutinefunction(function)
    parts = ("key", "value", "message")[:count] if count > 1 else ("message",)
    fault = fault_of(function, name, parts, may_be_coroutine=is_async)
    if fault is not None:
        raise ConfigError(what, name, f"it is {fault.what}", fault.remedy)
    if count == 1:
        return function
    return (_async_calls if is_async else _calls)(function, with_message=count == _MOST)


def parameters_of(function: Function) -> int:
    """Return how many arguments the function takes by position without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.kind in kinds and parameter.default is inspect.Parameter.empty
        for parameter in inspect.signature(function).parameters.values()
    )


def _name_of(function: Function) -> str:
    return str(getattr(function, "__name__", function))


def require_plain(what: str, function: Function, count: int | None = None) -> None:
    """Require that the function runs when it is called, and takes ``count`` arguments.

    Raises:
        ConfigError: it is a coroutine or a generator, or takes something else.
    """
    name = _name_of(function)
    for is_kind, kind, remedy in (
        (inspect.iscoroutinefunction, "a coroutine", "use def: only that of job.each may be one"),
        (inspect.isasyncgenfunction, "a generator", "use def, and no yield"),
        (inspect.isgeneratorfunction, "a generator", "use no yield"),
    ):
        if is_kind(function):
            raise ConfigError(what, name, f"it is {kind}, which never runs here", remedy)
    found = parameters_of(function)
    if count is not None and found != count:
        rule = f"it takes {found} arguments"
        raise ConfigError(what, name, rule, f"let it take {count}")


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


def task_class_of(
    functions: Functions, calls: Calls, *, has_pipeline: bool = False
) -> type[StreamTask | BatchTask]:
    """Return the class whose objects call the functions of the job.

    ``has_pipeline``: rows of a pipeline, of whatever stream, go to the one function for records.

    Raises:
        ConfigError: the job has no function for its records.
    """
    if functions.task is not None:
        return _own_task(functions.task, functions, calls)
    if functions.batch is not None:
        return _batch_task(functions, functions.batch, calls)
    if functions.each:
        return _stream_task(functions, calls, has_pipeline=has_pipeline)
    raise ConfigError(
        "job.each", None, "the job has no function for its records", "write one under @job.each"
    )


class _Each(dict[tuple[str, str], Function]):
    """{(system, stream): the function for its records}, from a message.

    ``has_pipeline``: the records are rows of a pipeline, which need not have a stream's name.
    """

    def __init__(self, functions: Mapping[str, Function], *, has_pipeline: bool) -> None:
        super().__init__()
        for name, function in functions.items():
            system, _, stream = name.partition(".")
            self[system, stream] = function
        self._rest = function if has_pipeline and len(functions) == 1 else None

    def __missing__(self, stream: tuple[str, str]) -> Function:
        if self._rest is not None:
            return self._rest
        raise HomeportError(
            f"{'.'.join(stream)}: the job has no function for these records; write one under "
            "@job.each, or do not read them"
        )


_Methods = Sequence[tuple[Handle, Mapping[str, Function]]]


class _Calling:
    """Makes the calls of one task; a context within which handles stand for it, in this thread.

    Threads may make calls of one task at once. What a function returns by mistake, as a generator,
    goes back to the container to refuse.
    """

    def __init__(self, functions: Functions, calls: Calls, context: TaskContext) -> None:
        self._calls = calls
        self._windows = functions.windows
        self._bound: tuple[Function | None, _Methods] = None, ()
        self.call = Call(context)
        for window in functions.windows.values():
            window.begin(self.call)
        self.started = [self(function) for function in functions.start]

    def __enter__(self) -> None:
        if self._calls.call is self.call:  # a method of the job's own task calls another
            self._calls.within += 1
            return
        context = self.call.context
        send, bound = self._bound
        if context.send != send:  # a task may send once it has begun
            send, bound = context.send, [(h, h.methods(context)) for h in self._calls.handles]
            self._bound = send, bound  # at once: other threads take both
        self._calls.call = self.call
        for handle, methods in bound:
            vars(handle).update(methods)

    def __exit__(self, *_: object) -> None:
        if self._calls.within:
            self._calls.within -= 1
            return
        self._calls.call = None
        for handle, methods in self._bound[1]:  # the names are those of any thread's
            for name in methods:
                del vars(handle)[name]

    def __call__(self, function: Function, *arguments: object) -> Any:  # noqa: ANN401 - see above
        with self:
            return function(*arguments)

    def closes_windows(self, timer: Timer) -> bool:
        """Close windows whose input rests, where the timer is for that; return whether it is."""
        call = due(timer, self._windows)
        if call is not None:
            self(call)
        return call is not None


def _stream_task(functions: Functions, calls: Calls, *, has_pipeline: bool) -> type[StreamTask]:
    each = _Each(functions.each, has_pipeline=has_pipeline)

    class Records(FunctionTask):
        def init(self, context: TaskContext) -> Any:  # noqa: ANN401 - as of _Calling
            self._calling = _Calling(functions, calls, context)
            return next((found for found in self._calling.started if found is not None), None)

        def calling(self) -> _Calling:
            return self._calling

        def of_pairs(self, system: str, stream: str) -> PairFunction | None:
            return functions.pairs.get(f"{system}.{stream}")

        def called(self, message: IncomingMessage, _context: TaskContext) -> Any:  # noqa: ANN401 - as of _Calling
            return each[message.system, message.stream](message)

        def process(self, message: IncomingMessage, context: TaskContext) -> Any:  # noqa: ANN401 - as of _Calling
            with self._calling:
                return self.called(message, context)

        def window(self, _context: TaskContext) -> Any:  # noqa: ANN401 - as above
            return None if functions.every is None else self._calling(functions.every)

        def on_timer(self, timer: Timer, context: TaskContext) -> Any:  # noqa: ANN401 - as above
            if self._calling.closes_windows(timer):
                return None
            if functions.timer is None:
                return super().on_timer(timer, context)
            return self._calling(functions.timer, timer)

    return Records if not functions.is_async else _async_task(Records, each, calls)


def _async_task(
    records: Any,  # noqa: ANN401 - the class above
    each: Mapping[tuple[str, str], Function],
    calls: Calls,
) -> type[StreamTask]:
    class Coroutines(records):  # type: ignore[misc]  # as above
        async def process(self, message: IncomingMessage, _context: TaskContext) -> None:
            task = self._calling.call
            call = CoroutineCall(task.context, task.windows)
            outer = calls.of_coroutines.set(call)
            try:
                found = each[message.system, message.stream](message)
                if isinstance(found, Awaitable):
                    await found
            finally:
                call.thread = None  # what the coroutine has begun and not awaited goes on
                calls.of_coroutines.reset(outer)

    return Coroutines


def _batch_task(functions: Functions, batch: Function, calls: Calls) -> type[BatchTask]:
    class Batches(BatchTask):
        def init(self, context: TaskContext) -> Any:  # noqa: ANN401 - as of _Calling
            self._calling = _Calling(functions, calls, context)
            return next((found for found in self._calling.started if found is not None), None)

        def process_batch(self, table: pa.Table, _context: TaskContext) -> Any:  # noqa: ANN401 - as of _Calling
            return self._calling(batch, table)

        def on_timer(self, timer: Timer, context: TaskContext) -> Any:  # noqa: ANN401 - as above
            if self._calling.closes_windows(timer):
                return None
            if functions.timer is None:
                return super().on_timer(timer, context)
            return self._calling(functions.timer, timer)

    return Batches


_HOOKS: dict[type, tuple[str, ...]] = {
    StreamTask: ("process", "window", "on_timer", "end_of_stream", "close"),
    BatchTask: ("process_batch", "on_timer", "end_transaction", "end_of_stream", "close"),
}


def _own_task(
    own: type[StreamTask | BatchTask], functions: Functions, calls: Calls
) -> type[StreamTask | BatchTask]:
    """Return the job's own class, whose methods may use its handles."""
    hooks = _HOOKS[StreamTask if issubclass(own, StreamTask) else BatchTask]
    made = {name: _with_handles(name, getattr(own, name), calls) for name in ("init", *hooks)}
    begin = made["init"]

    def init(self: Any, context: TaskContext) -> Any:  # noqa: ANN401 - of the class below
        self.homeport_calling = _Calling(functions, calls, context)
        return begin(self, context)

    made |= {"init": init, "__module__": own.__module__, "__doc__": own.__doc__}
    process = getattr(own, "process", None)
    if process is None or inspect.iscoroutinefunction(process):
        return type(own.__name__, (own,), made)
    made |= {"calling": lambda self: self.homeport_calling, "of_pairs": lambda *_: None}
    made["called"] = process
    return type(own.__name__, (own, FunctionTask), made)


def _with_handles(name: str, hook: Callable[..., Any], calls: Calls) -> Any:  # noqa: ANN401 - a method
    """Return the method of a task of the job's own, with handles that stand for the task."""

    @functools.wraps(hook)
    def call(self: Any, *arguments: Any) -> Any:  # noqa: ANN401 - of any hook
        calling = self.homeport_calling
        if name == "on_timer" and calling.closes_windows(arguments[0]):
            return None
        return calling(hook, self, *arguments)

    @functools.wraps(hook)
    async def coroutine(self: Any, *arguments: Any) -> Any:  # noqa: ANN401 - of any hook
        calling = self.homeport_calling
        if name == "on_timer" and calling.closes_windows(arguments[0]):
            return None
        current = CoroutineCall(calling.call.context, calling.call.windows)
        outer = calls.of_coroutines.set(current)
        try:
            return await hook(self, *arguments)
        finally:
            current.thread = None
            calls.of_coroutines.reset(outer)

    return coroutine if inspect.iscoroutinefunction(hook) else call
