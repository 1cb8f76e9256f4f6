"""Pipelines that a Python file declares: their keys, and what is refused. Spark runs elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from homeport import BatchTask, Job, Protobuf, StreamTask
from homeport.config.errors import ConfigError
from homeport.config.settings.validation import validate
from homeport.config.system_stream import SystemStream
from homeport.container.classes import load_function
from homeport.container.spark.work import function_work

piped = Job("piped", kafka="k:1")
flights = piped.input("flights", key=str)
late_flights = piped.input("late-flights", key=str)
planes = piped.reference("planes", key=str, value=str)


@piped.pipeline(late_flights, planes, flights, unordered=True)
def named(late: Any, models: Any, frame: Any) -> Any:  # noqa: ANN401 - frames
    """Return its frames."""
    return [late, models, frame]


@piped.each(named)
def take(_key: object, _row: object) -> None:
    """Take a row."""


def _keys(job: Job) -> dict[str, str]:
    return {
        key: value
        for key, value in job.config.items()
        if key.startswith(("task.pi", "task.cl", "cluster"))
    }


def test_a_pipeline_gets_its_frames_in_the_order_of_the_decorator() -> None:
    """Whatever its parameters are called."""
    assert _keys(piped) == {
        "cluster-manager.container.memory.mb": "1536",
        "task.class": f"{__name__}:piped",
        "task.pipeline.class": f"{__name__}:piped",
        "task.pipeline.unordered": "true",
    }
    assert validate(piped.config) == ()
    streams = {name: SystemStream("kafka", name) for name in ("flights", "late-flights")}
    work = function_work(f"{__name__}:piped", streams, ["planes"])
    frames: Any = {"flights": 1, "late-flights": 2, "planes": 3}
    assert work.takes == streams
    made: Any = work.call(frames)
    assert made == [2, 3, 1]
    function: Any = named
    assert function(5, 6, 7) == [5, 6, 7]
    streams_of_tasks = tuple(streams.values())
    assert issubclass(piped.task_class(streams_of_tasks, has_pipeline=True), StreamTask)


alone = Job("alone", kafka="k:1")
out = alone.output("out", key=str, value=dict)
rows = alone.sql("SELECT key FROM orders", output=out)
alone.input("orders")


def test_sql_alone_needs_no_class() -> None:
    """Its rows leave, and nothing is called."""
    assert _keys(alone) == {
        "cluster-manager.container.memory.mb": "1536",
        "task.pipeline.sql": "SELECT key FROM orders",
        "task.pipeline.output": "kafka.out",
    }
    assert validate(alone.config) == ()
    with pytest.raises(TypeError, match="the pipeline is SQL"):
        rows()
    with pytest.raises(ConfigError, match="the job 'alone' has no pipeline in Python"):
        load_function(f"{__name__}:alone")


def test_batches_of_rows_are_tables() -> None:
    """The function of batches names the pipeline, and no input."""
    job = Job("tables", kafka="k:1")
    orders = job.input("orders")
    small = job.pipeline(orders)(lambda frame: frame)
    job.batch(small)(lambda _table: None)
    assert issubclass(job.task_class((orders.stream,), has_pipeline=True), BatchTask)


def _job() -> tuple[Any, Any, Any]:
    """A job, of which mypy knows nothing: it would see the faults too."""
    job: Any = Job("refuses", kafka="k:1")
    return job, job.input("orders"), job.output("out")


REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "a pipeline of some inputs": (
        lambda: (j := _job(), j[0].input("more"), j[0].pipeline(j[1])(lambda f: f)),
        "job.pipeline = 'kafka.more': a pipeline gets the records of all inputs; name them all",
    ),
    "a pipeline of nothing": (
        lambda: _job()[0].pipeline()(lambda: None),
        ("job.pipeline = 'kafka.orders': a pipeline gets the records of all inputs; name them all"),
    ),
    "other parameters": (
        lambda: (j := _job(), j[0].pipeline(j[1])(lambda _a, _b: None)),
        "job.pipeline = '<lambda>': it takes 2 arguments; let it take 1",
    ),
    "two pipelines": (
        lambda: (j := _job(), j[0].sql("SELECT 1"), j[0].pipeline(j[1])(lambda f: f)),
        "job = 'refuses': it has a pipeline already; remove one of the two",
    ),
    "a pipeline beside a function of its input": (
        lambda: (j := _job(), j[0].each(j[1])(lambda _m: None), j[0].sql("SELECT 1")),
        "job = 'refuses': it has a function of records already; remove one of the two",
    ),
    "a function of the input of a pipeline": (
        lambda: (j := _job(), j[0].sql("SELECT 1"), j[0].each(j[1])(lambda _m: None)),
        (
            "job.each = 'kafka.orders': its records go to the pipeline; give the rows of job.sql, "
            "the pipeline's rows"
        ),
    ),
    "a function of rows that leave": (
        lambda: (j := _job(), j[0].each(j[0].sql("SELECT 1", output=j[2]))(lambda _m: None)),
        (
            "job.each = 'the rows of job.sql': its rows leave to kafka.out; remove the function, "
            "or output="
        ),
    ),
    "an output of another job": (
        lambda: _job()[0].sql("SELECT 1", output=_job()[2]),
        (
            "job.pipeline = 'kafka.out': it is no output of the job 'refuses'; declare it by "
            "job.output"
        ),
    ),
    "rows of another job": (
        lambda: _job()[0].each(_job()[0].sql("SELECT 1"))(lambda _m: None),
        (
            "job.each = 'the rows of job.sql': it is not an input of the job 'refuses'; declare it "
            "by job.input"
        ),
    ),
    "a class that is no task": (
        lambda: _job()[0].task(dict),
        "job.task = 'dict': it must be a subclass of StreamTask or BatchTask; derive it",
    ),
    "a class beside a function": (
        lambda: (j := _job(), j[0].each(j[1])(lambda _m: None), j[0].task(StreamTask)),
        "job = 'refuses': it has a function of records already; remove one of the two",
    ),
    "a function beside a class": (
        lambda: (j := _job(), j[0].task(StreamTask), j[0].each(j[1])(lambda _m: None)),
        "job = 'refuses': it has a task class already; remove one of the two",
    ),
    "a number of partitions": (
        lambda: _job()[0].reference("planes", key=str, value=str, broadcast=0),
        "broadcast of job.reference = '0': it must be a whole number, from 1 on; write 1 or more",
    ),
    "a reference without a name": (
        lambda: _job()[0].reference("", key=str, value=str, topic="planes"),
        "job.reference = '': it is empty; give the store a name",
    ),
    "windows without a span": (
        lambda: _job()[0].window("w", value=int),
        (
            "job.window = 'w': windows have a size, and perhaps a step, or they are sessions with "
            "a gap; given: size=None, step=None, gap=None; give size= or gap=, in ms"
        ),
    ),
    "windows and sessions": (
        lambda: _job()[0].window("w", value=int, size=5, gap=5),
        (
            "job.window = 'w': windows have a size, and perhaps a step, or they are sessions with "
            "a gap; given: size=5, step=None, gap=5; give size= or gap=, in ms"
        ),
    ),
    "a step that does not fit": (
        lambda: _job()[0].window("w", value=int, size=5, step=2),
        (
            "job.window = 'w': windows of 5 ms every 2 ms: the size must be a multiple of the "
            "step, and the step at least 1; correct it"
        ),
    ),
    "a lateness that is no number": (
        lambda: _job()[0].window("w", value=int, size=5, late=True),
        "late of job.window = 'True': it must be a whole number, from 0 on; write 0 or more",
    ),
    "a value without a sum": (
        lambda: _job()[0].window("w", value=dict, size=5),
        "job.window = 'w': dict has no sum; give add=, of the sum and one more value",
    ),
    "a value that begins with nothing": (
        lambda: _job()[0].window("w", value=Any, size=5, add=lambda own, _more: own),
        "job.window = 'w': it has no first value; give init=",
    ),
    "a function that adds nothing": (
        lambda: _job()[0].window("w", value=int, size=5, add=lambda: 5),
        (
            "job.window = 'w': add is not to be called with (aggregate, value): too many "
            "positional arguments: write def add(aggregate, value); correct it"
        ),
    ),
    "sessions that cannot grow": (
        lambda: _job()[0].window("w", value=int, gap=5, add=lambda own, more: own + more),
        "job.window = 'w': sessions grow together; give merge=, of two values to one",
    ),
    "values that a window's store cannot keep": (
        lambda: _job()[0].window("w", value=Protobuf("a.desc", "shop.Order"), size=5),
        (
            "job.window = 'w': windows are in a store of the serde json, long, double, string, "
            "bytes, not shop-Order; give value=dict, and dicts"
        ),
    ),
    "a pipeline without its inputs": (
        lambda: _job()[0].pipeline(repr),
        (
            "job.pipeline = 'repr': it is written without what it is of; write "
            "@job.pipeline(orders), of orders = job.input(...)"
        ),
    ),
    "the name of an output": (
        lambda: _job()[0].sql("SELECT 1", output="out"),
        (
            "job.pipeline = 'out': text is no output; write output=totals, of totals = "
            "job.output(...)"
        ),
    ),
    "dead letters in an output": (
        lambda: (j := _job()[0], j.output("x", key=str), j.dead_letters("x")),
        (
            "job.dead_letters = 'x': it is declared with other types, of the serde string; dead "
            "letters are bytes: give them a topic of their own"
        ),
    ),
    "an output in dead letters": (
        lambda: (j := _job()[0], j.dead_letters("x"), j.output("x", key=str)),
        (
            "job.output = 'x': it is declared with other types, of the serde bytes; dead letters "
            "are bytes: give them a topic of their own"
        ),
    ),
    "late without a window": (
        lambda: _job()[0].late(repr),
        (
            "job.late = 'repr': it is written without what it is of; write @job.late(sums), of "
            "sums = job.window(...)"
        ),
    ),
    "the name of a window": (
        lambda: _job()[0].closed("sums"),
        (
            "job.closed = 'sums': text is no window; write @job.closed(sums), of sums = "
            "job.window(...)"
        ),
    ),
    "a window of another job": (
        lambda: _job()[0].closed(_job()[0].window("w", value=int, size=5)),
        (
            "job.closed = \"Window('w', windows of 5 ms every 5 ms)\": it is no window of the job "
            "'refuses'; declare it by job.window"
        ),
    ),
    "two functions of one window": (
        lambda: (
            j := _job()[0],
            w := j.window("w", value=int, size=5),
            j.late(w)(lambda _late: None),
            j.late(w)(lambda _late: None),
        ),
        "job.late = 'w': w has such a function already; remove one of the two",
    ),
    "a function of windows with too many arguments": (
        lambda: (
            j := _job()[0],
            j.closed(j.window("w", value=int, size=5))(lambda _a, _b, _c, _d: None),
        ),
        (
            "job.closed = '<lambda>': it takes 4 arguments; let it take (key, value), (key, value, "
            "message) or (message)"
        ),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_declaration_is_refused_where_it_stands(case: str) -> None:
    """The line names argument, value, rule and remedy; the call that is wrong raises it."""
    make, line = REFUSED[case]
    with pytest.raises(ConfigError) as refused:
        make()
    assert str(refused.value) == line
