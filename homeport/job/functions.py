"""The task classes of a job that is made of functions."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from homeport.config.errors import ConfigError, HomeportError
from homeport.config.settings.input_section import repartition_name
from homeport.config.system_stream import SystemStream
from homeport.container.api import BatchTask, StreamTask, TaskContext, Timer
from homeport.container.callables import fault_of, is_bound, is_coroutine
from homeport.container.processing.function_task import FunctionTask, PairFunction
from homeport.job.handles import Call, Calls, CoroutineCall, Handle, Repartition
from homeport.job.pipelines import Rows
from homeport.job.windows import TIMER, Window

Function = Callable[..., object]
_PAIR, _MOST = 2, 3
"""Parameters of a function for records."""
_SHOWN = {
    "each": "a function of records",
    "batch": "a function of batches",
    "every": "a function of intervals",
    "on_timer": "a function for timers",
    "task": "a task class",
    "pipeline": "a pipeline",
    "repartition": "a repartition",
}
_EXAMPLES = {"input": "orders", "output": "totals", "window": "sums"}
"""Variables that the remedies of errors show, by kind."""
_NO_YIELD = "remove its yield: send by an output, as in totals.send(key, value)"
_EXCLUDED = {
    "each": ("batch", "task"),
    "batch": ("batch", "each", "every", "task"),
    "every": ("every", "batch", "task"),
    "on_timer": ("on_timer", "task"),
    "task": ("task", "each", "batch", "every", "on_timer"),
    "pipeline": ("pipeline", "each", "batch", "repartition"),
    "repartition": ("pipeline",),
}
"""{what a job declares: what it may not have before}, by the fields of ``Functions``."""


@dataclass
class Functions:
    """The functions of one job.

    ``each``: {``system.stream``: of its records, from a message}. ``pairs``: those of ``each`` that
    take key and value alone, and are no coroutines, as they are. ``is_async``: whether one of
    ``each`` is a coroutine. ``windows``: by their stores. ``task``: the job's own class, in the
    place of other functions. ``pipeline``: its rows. ``repartition``: by name. ``job``: its name.
    """

    each: dict[str, Function] = field(default_factory=dict)
    pairs: dict[str, PairFunction] = field(default_factory=dict)
    is_async: bool = False
    batch: Function | None = None
    on_start: list[Function] = field(default_factory=list)
    every: Function | None = None
    on_timer: Function | None = None
    windows: dict[str, Window[Any, Any]] = field(default_factory=dict)
    task: type[StreamTask | BatchTask] | None = None
    pipeline: Rows | None = None
    repartition: dict[str, Repartition[Any, Any]] = field(default_factory=dict)
    job: str = ""

    def require_room(self, what: str) -> None:
        """Require that the job has nothing beside which it may not have ``what``, a field.

        Raises:
            ConfigError: it has.
        """
        for other in _EXCLUDED[what]:
            if getattr(self, other) not in (None, {}):
                raise self._has(_SHOWN[other])

    def add(self, what: str, function: Function, count: int) -> None:
        """Add the function under ``job.<what>``, the one of the job, of ``count`` arguments.

        Raises:
            ConfigError: as of ``require_room`` and ``require_plain``.
        """
        self.require_room(what)
        require_plain(f"job.{what}", function, count)
        setattr(self, what, function)

    def add_each(self, stream: str, function: Function) -> None:
        """Add the function for the records of ``stream``, a ``system.stream`` or a repartition.

        Raises:
            ConfigError: there is one, or as of ``require_room`` and ``of_message``.
        """
        self.require_room("each")
        if stream in self.each:
            raise self._has(f"a function for {stream}")
        self.each[stream] = of_message(function)
        if inspect.iscoroutinefunction(function):
            self.is_async = True
        elif parameters_of(function) == _PAIR:
            self.pairs[stream] = function

    def of_streams(self, streams: Collection[SystemStream]) -> Functions:
        """Return them with those of repartitions under topics, which have the job's id.

        ``streams``: what the job reads.
        """
        topics = {repartition_name(s.stream) or str(s): str(s) for s in streams}
        each = {topics.get(name, name): function for name, function in self.each.items()}
        pairs = {topics.get(name, name): function for name, function in self.pairs.items()}
        return replace(self, each=each, pairs=pairs)

    def _has(self, what: str) -> ConfigError:
        return ConfigError("job", self.job, f"it has {what} already", "remove one of the two")


def none_of_job(what: str, given: object, kind: str, job: str) -> ConfigError:
    """Return the error of ``given``, an argument of ``what`` that is no ``kind`` of the job.

    ``kind``: ``input``, ``output`` or ``window``. A function that is given is the one below a
    decorator that is written without its argument.
    """
    is_bare = inspect.isroutine(given)
    if is_bare or isinstance(given, str):
        rule = "it is written without what it is of" if is_bare else f"text is no {kind}"
        shown = f"output={_EXAMPLES[kind]}" if kind == "output" else f"@{what}({_EXAMPLES[kind]})"
        remedy = f"write {shown}, of {_EXAMPLES[kind]} = job.{kind}(...)"
        return ConfigError(what, _name_of(given), rule, remedy)
    article = "not an" if kind == "input" else "no"
    rule, remedy = f"it is {article} {kind} of the job {job!r}", f"declare it by job.{kind}"
    return ConfigError(what, str(given), rule, remedy)


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
    fault = fault_of(function, name, parts, may_be_coroutine=is_async, no_yield=_NO_YIELD)
    if fault is not None:
        raise ConfigError(what, name, f"it is {fault.what}", fault.remedy)
    if count == 1:
        return function
    if count == _PAIR:
        return lambda message: function(message.key, message.value)
    return lambda message: function(message.key, message.value, message)


def parameters_of(function: Function) -> int:
    """Return how many arguments the function takes by position without a default."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(
        parameter.kind in kinds and parameter.default is inspect.Parameter.empty
        for parameter in inspect.signature(function).parameters.values()
    )


def _name_of(function: object) -> str:
    return str(getattr(function, "__name__", function))


def require_plain(what: str, function: Function, count: int | None = None) -> None:
    """Require that the function runs when it is called, and takes ``count`` arguments.

    Raises:
        ConfigError: it is a coroutine or a generator, or takes something else.
    """
    name = _name_of(function)
    for is_kind, kind, remedy in (
        (inspect.iscoroutinefunction, "a coroutine", "use def: only that of job.each may be one"),
        (inspect.isasyncgenfunction, "a generator", f"use def, and {_NO_YIELD}"),
        (inspect.isgeneratorfunction, "a generator", _NO_YIELD),
    ):
        if is_kind(function):
            raise ConfigError(what, name, f"it is {kind}, which never runs here", remedy)
    found = parameters_of(function)
    if count is not None and found != count:
        rule = f"it takes {found} arguments"
        raise ConfigError(what, name, rule, f"let it take {count}")


def task_class_of(
    functions: Functions, calls: Calls, *, has_pipeline: bool = False
) -> type[StreamTask | BatchTask]:
    """Return the class whose objects call the functions of the job, or its own with their handles.

    ``has_pipeline``: rows of a pipeline, of whatever stream, go to the one function for records.

    Raises:
        ConfigError: the job has no function for its records.
    """
    own = functions.task or _class_of(functions, has_pipeline=has_pipeline)
    hooks = {name: _method_of(own, name) for name in {*_hooks_of(own), "init", "on_timer"}}
    made: dict[str, Any] = {}
    for name, hook in hooks.items():
        may_wait = is_coroutine(own, name) or (name == "process" and functions.is_async)
        made[name] = _in_coroutine(hook, calls) if may_wait else _in_thread(hook)
    begin, on_timer = made["init"], made["on_timer"]

    def init(self: Any, context: TaskContext) -> Any:  # noqa: ANN401 - of a task; as of _Calling
        self.homeport_calling = calling = _Calling(functions, calls, context)
        found = [*calling.started, begin(self, context)]
        return next((each for each in found if each is not None), None)

    @functools.wraps(on_timer)
    def timed(self: Any, timer: Timer, *arguments: Any) -> Any:  # noqa: ANN401 - as above
        is_of_windows = self.homeport_calling.closes_windows(timer)
        return None if is_of_windows else on_timer(self, timer, *arguments)

    specs = [w.spec for w in functions.windows.values() if "late" not in w.spec.handlers]
    made["windows_of_job"] = [s.name for s in specs if s.options["lateness_ms"] is None]
    made |= {"init": init, "on_timer": timed, "__module__": own.__module__, "__doc__": own.__doc__}
    if "process" not in hooks or inspect.iscoroutinefunction(made["process"]):
        return type(own.__name__, (own,), made)
    made["calling"] = lambda self: self.homeport_calling
    made["called"] = hooks["process"]
    made["of_pairs"] = lambda _, system, stream: functions.pairs.get(f"{system}.{stream}")
    return type(own.__name__, (own, FunctionTask), made)


def _class_of(functions: Functions, *, has_pipeline: bool) -> type[StreamTask | BatchTask]:
    each = _Each(functions.each, has_pipeline=has_pipeline)
    batch, every, on_timer = functions.batch, functions.every, functions.on_timer
    due = _no_function if on_timer is None else on_timer
    made: dict[str, Function] = {"on_timer": lambda _, timer, _context: due(timer)}
    if every is not None:
        made["window"] = lambda _, _context: every()
    if batch is not None:
        made["process_batch"] = lambda _, table, _context: batch(table)
        return type("Batches", (BatchTask,), made)
    if not each:
        rule = "the job has no function for its records"
        raise ConfigError("job.each", None, rule, "write one under @job.each")
    made["process"] = lambda _, message, _context: each[message.system, message.stream](message)
    return type("Records", (StreamTask,), made)


def _no_function(timer: Timer) -> None:
    raise HomeportError(
        f"the timer {timer.name!r} is due, and the job has no function for timers; write one under "
        "@job.on_timer"
    )


def _hooks_of(own: type[StreamTask | BatchTask]) -> list[str]:
    base = StreamTask if issubclass(own, StreamTask) else BatchTask
    names = (name for name in vars(base) if not name.startswith("_"))
    return [n for n in names if inspect.getattr_static(own, n) is not vars(base)[n]]


def require_methods(own: type[StreamTask | BatchTask]) -> None:
    """Require that calls of the hooks of ``own`` hand over its object, by which handles know it.

    Raises:
        ConfigError: one is a static method or a class method.
    """
    for name in _hooks_of(own):
        found = inspect.getattr_static(own, name)
        if isinstance(found, staticmethod | classmethod):
            rule = f"its {name} is a {type(found).__name__}, and gets no object of the class"
            raise ConfigError("job.task", own.__name__, rule, f"write def {name}(self, ...)")


def _method_of(own: type, name: str) -> Function:
    """Return the hook as a function of the object too, which an object that can be called lacks."""
    found = inspect.getattr_static(own, name)
    if is_bound(found):
        return cast("Function", getattr(own, name))

    def method(_task: object, *arguments: object) -> object:
        return found(*arguments)

    with contextlib.suppress(TypeError, ValueError):  # as of a function in C, which shows nothing
        of_found = inspect.signature(found, follow_wrapped=False)
        task = inspect.Parameter("homeport_task", inspect.Parameter.POSITIONAL_ONLY)
        parameters = [task, *of_found.parameters.values()]
        vars(method)["__signature__"] = of_found.replace(parameters=parameters)
    return method


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
        self.started = [self(function) for function in functions.on_start]

    def __enter__(self) -> None:
        outer = self._calls.call
        if outer is not None:
            if outer is not self.call:
                raise HomeportError(
                    f"the job {self._calls.job!r} is run in a call of a function of its own: run "
                    "it in a TestRunner outside of its functions"
                )
            self._calls.within += 1  # a method of the job's own task calls another
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
        is_for_that = timer.name == TIMER
        if is_for_that and timer.key in self._windows:
            self(self._windows[timer.key].tick)
        return is_for_that


def _in_thread(hook: Function) -> Function:
    """Return the method of a task, with handles that stand for the task in its thread."""

    @functools.wraps(hook)
    def call(self: Any, *arguments: Any) -> Any:  # noqa: ANN401 - of any hook
        with self.homeport_calling:
            return hook(self, *arguments)

    return call


def _in_coroutine(hook: Function, calls: Calls) -> Function:
    """Return the method of a task, a coroutine, with handles that stand for the task in it."""

    @functools.wraps(hook)
    async def coroutine(self: Any, *arguments: Any) -> Any:  # noqa: ANN401 - of any hook
        task = self.homeport_calling.call
        call = CoroutineCall(task.context, task.windows)
        outer = calls.of_coroutines.set(call)
        try:
            found = hook(self, *arguments)
            return await found if isinstance(found, Awaitable) else found
        finally:
            call.thread = None  # what the coroutine has begun and not awaited goes on
            calls.of_coroutines.reset(outer)

    return coroutine
