"""Callables of a job that would never run are refused at the start, and all others are taken."""

from __future__ import annotations

import functools
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MethodType
from typing import Any

import pytest
from class_questions import code_of

from homeport.config.errors import ConfigError
from homeport.container.callables import TaskFailedError, fault_of, takes_context, unrun
from homeport.container.classes import (
    load_extractor_factory,
    load_function,
    load_serde,
    load_task_class,
)
from homeport.container.windows import Aggregate, Tumbling
from homeport.testing import TestRunner
from tests.unit.container.windows.window_jobs import KEPT, WindowTask, config

_HEAD = """
import functools
from homeport.container.api import BatchTask, KeyValueExtractorFactory, StreamTask

def plain(function):
    @functools.wraps(function)
    def call(*arguments):
        return function(*arguments)
    return call

def adding(function):
    @functools.wraps(function)
    def call(self, message, collector, coordinator):
        return function(self, message, collector, coordinator, "more")
    return call

class Called:
    def __call__(self, *arguments):
        pass

class CalledAsync:
    async def __call__(self, *arguments):
        pass

class Task(StreamTask):
    def process(self, message, collector, coordinator):
        pass

class Batch(BatchTask):
    def process_batch(self, table, collector):
        pass

class Made:
    pass

class CalledGenerator:
    def __call__(self, *arguments):
        yield

"""

_WRONG = [
    ("Task", "def process(self, m, c, co):\n  yield m", "its process is a generator"),
    ("Task", "async def process(self, m, c, co):\n  yield m", "its process is an async generator"),
    ("Task", "process = CalledGenerator()", "its process is a generator"),
    ("Task", "process = None", "its process is None, which cannot be called"),
    ("Task", "process = 5", "its process is a int, which cannot be called"),
    ("Task", "def process(m, c):\n  pass", "write def process(self, message, context)"),
    (
        "Task",
        "def process(self, m):\n  pass",
        "not to be called with (message, context) or (message, collector, coordinator): too many",
    ),
    ("Task", "def window(self):\n  pass", "write def window(self, context)"),
    ("Task", "def on_timer(self, t):\n  pass", "write def on_timer(self, timer, context)"),
    ("Task", "def process(self, m, c, co, x):\n  pass", "missing a required argument: 'co'"),
    ("Task", "def process(self, *, m, c, co):\n  pass", "too many positional arguments"),
    ("Task", "@staticmethod\n def process(self, m, c, co):\n  pass", "a required argument: 'c'"),
    ("Task", "process = functools.partialmethod(print, 1)\n process = lambda self: 1", "too many"),
    ("Task", "process = Made", "too many positional arguments"),
    ("Task", "process = functools.partial(lambda m: 1)", "too many positional arguments"),
    ("Task", "def __init__(self, more):\n  pass", "not to be made without arguments: missing"),
    ("Task", "async def init(self, context):\n  pass", "let process be one too"),
    ("Task", "window = CalledAsync()", "its window is a coroutine, which nothing would await"),
    ("Task", "def init(self):\n  pass", "write def init(self, context)"),
    ("Batch", "def process_batch(self, t, c):\n  yield t", "its process_batch is a generator"),
    ("Batch", "async def process_batch(self, t, c):\n  pass", "a BatchTask has none: use def"),
    ("Batch", "def process_batch(self, t, c, co):\n  pass", "missing a required argument: 'co'"),
    ("Batch", "def on_timer(self, t, c, co):\n  pass", "write def on_timer(self, timer, context)"),
    ("Batch", "def end_transaction(self):\n  pass", "write def end_transaction(self, context)"),
    ("Batch", "def end_transaction(self, c):\n  yield", "its end_transaction is a generator"),
    *[
        ("Task", f"def {hook}(self, *a):\n  yield", f"its {hook} is a generator")
        for hook in ("init", "window", "on_timer", "end_of_stream", "close")
    ],
    *[
        ("Batch", f"async def {hook}(self, *a):\n  yield", f"its {hook} is an async generator")
        for hook in ("init", "on_timer", "end_of_stream", "close")
    ],
]

_RIGHT = [
    ("Task", "def process(self, m, context):\n  pass"),
    ("Task", "async def process(self, m, context):\n  pass\n def window(self, context):\n  pass"),
    ("Task", "@plain\n def process(self, m, context):\n  pass"),
    ("Task", "def on_timer(self, t, context):\n  pass\n def end_of_stream(self, c):\n  pass"),
    ("Task", "async def process(self, m, c, co):\n  pass"),
    ("Task", "async def process(self, m, c, co):\n  pass\n async def init(self, x):\n  pass"),
    ("Task", "def process(self, *arguments):\n  pass"),
    ("Task", "def process(self, message, *rest, more=1, **named):\n  pass"),
    ("Task", "process = lambda self, m, c, co, x=1: None"),
    ("Task", "process = Called()"),
    ("Task", "process = CalledAsync()"),
    ("Task", "process = functools.partial(lambda x, m, c, co: None, 1)"),
    ("Task", "process = functools.partialmethod(lambda self, x, m, c, co: None, 1)"),
    ("Task", "@staticmethod\n def process(m, c, co):\n  pass"),
    ("Task", "@classmethod\n def process(cls, m, c, co):\n  pass"),
    ("Task", "@plain\n def process(self, m, c, co):\n  pass"),
    ("Task", "@adding\n def process(self, m, c, co, more):\n  pass"),
    ("Task", "@property\n def process(self):\n  return lambda m, c, co: None"),
    ("Task", "def __init__(self, more=1, *rest):\n  self.close = lambda: None"),
    ("Task", "def process(self, m, c, co):\n  return [x for x in self.some()]"),
    ("Task", "def process(self, m, c, co):\n  def inner():\n   yield 1\n  list(inner())"),
    ("Batch", "process_batch = functools.singledispatchmethod(lambda self, t, c: None)"),
    ("Batch", "end_transaction = plain(lambda self, c: None)"),
]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of a job, to be written."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path / "called_job.py"
    sys.modules.pop("called_job", None)


@pytest.mark.parametrize(("base", "body", "expected"), _WRONG)
def test_a_method_that_would_never_run_is_refused(
    base: str, body: str, expected: str, module: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """By its kind, in one line, by what run-job runs before it writes anything."""
    module.write_text(f"{_HEAD}class Own({base}):\n {body}\n")
    assert code_of(task_class="called_job:Own") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: task.class = 'called_job:Own': ")
    assert expected in line


@pytest.mark.parametrize(("base", "body"), _RIGHT)
def test_a_method_that_runs_is_taken(base: str, body: str, module: Path) -> None:
    """However it is defined."""
    module.write_text(f"{_HEAD}class Own({base}):\n {body}\n")
    assert load_task_class("called_job:Own", (), has_pipeline=False).__name__ == "Own"


class _Wrapped:
    """A decorator as a class, of whose objects Python sees no parameters once they are bound."""

    def __init__(self, function: Any) -> None:  # noqa: ANN401 - any function
        functools.update_wrapper(self, function)
        self._function = function

    def __get__(self, task: object, _owner: type | None = None) -> Any:  # noqa: ANN401 - as above
        return functools.partial(self, task)

    def __call__(self, *given: object) -> object:
        return self._function(*given)


class _Bound(_Wrapped):
    """Binds as a function does."""

    def __get__(self, task: object, _owner: type | None = None) -> Any:  # noqa: ANN401 - as above
        return MethodType(self, task)


_NAMES = {"functools": functools, "Wrapped": _Wrapped, "Bound": _Bound}
_THROUGH = "functools.wraps(own := ({0}))(lambda *all: own(*all))"


@pytest.mark.parametrize(
    ("hook", "form"),
    [
        ("lambda m, context: None", "context"),
        ("lambda m, collector, coordinator: None", "collector"),
        ("lambda m, context, more=1: None", "context"),
        ("lambda m, context, *, more=1: None", "context"),
        ("lambda m, collector, coordinator, more=1: None", "collector"),
        ("lambda *whatever: None", "collector"),
        (_THROUGH.format("lambda m, context: None"), "context"),
        (_THROUGH.format("lambda m, context, more=1: None"), "context"),
        (_THROUGH.format("lambda m, collector, coordinator: None"), "collector"),
        ("lambda m, collector, coordinator=None: None", "collector"),
        ("lambda m, collector=None, coordinator=None, more=1: None", "collector"),
        (_THROUGH.format("lambda m, collector, coordinator=None: None"), "collector"),
        *[
            (f"{decorator}(lambda self, {own}: None).__get__(1)", form)
            for decorator in ("Wrapped", "Bound", "functools.cache", "functools.lru_cache(5)")
            for own, form in (
                ("m, context", "context"),
                ("m, context, more=1", "context"),
                ("m, collector, coordinator", "collector"),
                ("m, collector, coordinator=None", "collector"),
                ("*whatever", "collector"),
            )
        ],
        ("print", "collector"),
        ("max", "collector"),
    ],
)
def test_the_signature_decides_between_context_and_collector(hook: str, form: str) -> None:
    """What it requires decides, and Samza's names; a decorator that takes all is looked through."""
    assert takes_context(eval(hook, _NAMES), 1) is (form == "context")  # noqa: S307 - of the table above


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("def own(frame):\n yield frame", "the function is a generator"),
        ("async def own(frame):\n yield frame", "the function is an async generator"),
        ("async def own(frame):\n return frame", "a coroutine, which nothing would await"),
        ("own = CalledAsync()", "a coroutine, which nothing would await"),
        ("own = functools.partial(CalledGenerator().__call__, 1)", "the function is a generator"),
        ("own = Made", "this is the class Made"),
        ("own = Made()", "this is a Made"),
    ],
)
def test_a_pipeline_that_would_never_run_is_refused(body: str, expected: str, module: Path) -> None:
    """A partial, an object and a decorated function are taken."""
    module.write_text(f"{_HEAD}{body}\nright = functools.partial(lambda a, frame: frame, 1)\n")
    with pytest.raises(ConfigError, match=r"task\.pipeline\.class = 'called_job:own'") as error:
        load_function("called_job:own")
    assert expected in str(error.value)
    assert code_of(pipeline="called_job:right") == 0


def test_serdes_and_factories_are_looked_at_too(module: Path) -> None:
    """What a coroutine or a generator returns is neither bytes nor a value."""
    module.write_text(
        f"{_HEAD}"
        "class Reads:\n"
        " def to_bytes(self, value):\n  return b''\n"
        " async def from_bytes(self, data):\n  return 1\n"
        "class Writes:\n"
        " def to_bytes(self, value):\n  yield b''\n"
        " def from_bytes(self, data):\n  return 1\n"
        "class Made(KeyValueExtractorFactory):\n"
        " async def get_key_value_extractor(self, config):\n  pass\n"
        "class NotMade(KeyValueExtractorFactory):\n"
        " def __init__(self, more):\n  pass\n"
        " def get_key_value_extractor(self, config):\n  pass\n"
    )
    with pytest.raises(ConfigError, match="its from_bytes is a coroutine, which nothing would"):
        load_serde("stores.s.msg.serde", "called_job:Reads")
    with pytest.raises(ConfigError, match="its to_bytes is a generator"):
        load_serde("stores.s.msg.serde", "called_job:Writes")
    with pytest.raises(ConfigError, match="its get_key_value_extractor is a coroutine"):
        load_extractor_factory("k", "called_job:Made")
    with pytest.raises(ConfigError, match=r"not to be made without arguments: .*'more'"):
        load_extractor_factory("k", "called_job:NotMade")


async def _coroutine(*_arguments: object) -> None:
    raise AssertionError


def _generator(*_arguments: object) -> Iterator[int]:
    yield 1


class _Handler:
    def __init__(self, late: object, collector: object) -> None:
        raise AssertionError((late, collector))


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ({"on_late": _coroutine}, "on_late is a coroutine, which nothing would await: use def"),
        ({"on_late": _generator}, "on_late is a generator"),
        ({"on_late": _Handler}, "on_late is the class _Handler: give a function or a method"),
        ({"on_late": lambda late: late}, r"not to be called with \(late, collector\)"),
        ({"on_late": 5}, "on_late is a int, which cannot be called"),
        ({"span": Tumbling}, "span is the class Tumbling: give an object, such as Tumbling"),
        ({"span": 60_000}, "span is an object of int: give an object, such as Tumbling"),
        ({"aggregate": Aggregate}, "aggregate is the class Aggregate: give an object"),
    ],
)
def test_windows_take_what_runs(kept: dict[str, Any], expected: str) -> None:
    """At the start of the task."""
    KEPT.clear()
    KEPT.update(kept)
    try:
        with (
            pytest.raises(TaskFailedError, match=f"failed in init: TypeError: .*{expected}"),
            TestRunner(config(), task=WindowTask),
        ):
            pass
    finally:
        KEPT.clear()


def test_an_aggregate_takes_functions_that_run() -> None:
    """Where it is made, at the latest when the task's module is imported."""
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"init": _coroutine, "add": max}, "init is a coroutine"),
        ({"init": int, "add": _generator}, "add is a generator"),
        ({"init": int, "add": lambda total: total}, "add is not to be called with"),
        ({"init": int, "add": max, "merge": _coroutine}, "merge is a coroutine"),
        ({"init": int, "add": max, "name": 5}, "name is 5: give a str"),
        ({"init": 0, "add": max}, "init is a int, which cannot be called: define init"),
        ({"init": lambda total: total, "add": max}, r"init is not to be called with \(\)"),
    ]
    for given, expected in wrong:
        with pytest.raises(TypeError, match=expected):
            Aggregate(**given)
    for right in (int, dict, list, lambda: 0, functools.partial(int, "5")):
        Aggregate(right, max, min)


class _HiddenBatch(WindowTask):
    """Its methods do not look like what they return."""

    def init(self, context: Any) -> Any:  # noqa: ANN401 - what it is not to return
        super().init(context)
        return self._hidden("init")

    def _hidden(self, name: str) -> Any:  # noqa: ANN401 - as above
        return _generator() if KEPT.get("hides") == name else None

    def window(self, *_arguments: object) -> Any:  # noqa: ANN401 - as above
        return self._hidden("window")

    def close(self) -> Any:  # noqa: ANN401 - as above
        return self._hidden("close")

    def process(self, *_arguments: object) -> Any:  # noqa: ANN401 - as above
        return self._hidden("process")


@pytest.mark.parametrize("hook", ["init", "process", "window", "close"])
@pytest.mark.parametrize("calls", ["1", "3"])
def test_what_a_decorator_hides_is_refused_when_it_is_called(
    hook: str, calls: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is ignored, as nothing of it has run."""
    monkeypatch.setattr("tests.unit.container.windows.window_jobs.made", lambda *_: KEPT and None)
    monkeypatch.setitem(KEPT, "hides", hook)
    keys = config(
        task__ignored__exceptions="*", task__window__ms="10", task__max__concurrency=calls
    )
    expected = f"failed in {hook}.*: TypeError: it has returned a generator, which is never run"
    with pytest.raises(TaskFailedError, match=expected):
        _run_to_its_end(keys)
    KEPT.clear()


def _run_to_its_end(keys: dict[str, str]) -> None:
    with TestRunner(keys, task=_HiddenBatch) as runner:
        runner.send("kafka.in", key="a", value={"n": 1})
        runner.run()
        runner.advance(20)
        runner.restart()


def test_an_object_in_the_place_of_a_task_class_is_refused() -> None:
    """Before anything runs."""
    with pytest.raises(ConfigError, match="must name a subclass of BatchTask or StreamTask"):
        TestRunner(config(), task=WindowTask())  # type: ignore[arg-type]  # that is the fault


def test_what_cannot_be_seen_is_no_fault() -> None:
    """Functions in C without a signature; what they return shows it."""
    assert fault_of(int, "init", ()) is None
    assert fault_of(max, "add", ("a", "b")) is None
    assert fault_of(json.JSONEncoder().encode, "e", ("a",)) is None
    assert fault_of(io.StringIO().write, "w", ("a",)) is None
    assert unrun(5) is unrun([]) is unrun(None) is None

    async def several() -> Any:  # noqa: ANN401 - an async generator
        yield 1

    assert unrun(several()) == "it has returned a coroutine, which is never awaited"
