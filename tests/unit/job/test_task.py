"""A task class in the place of functions: its methods use the handles of the job."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from homeport import BatchTask, IncomingMessage, Job, StreamTask, TaskContext, Timer
from homeport.config.errors import ConfigError
from homeport.container.callables import TaskFailedError
from homeport.job.handles import OutsideOfCallError
from homeport.testing import TestRunner


def _job(name: str, **keys: str) -> tuple[Job, Any, Any]:
    job = Job(name, kafka="k:1", keys={k.replace("_", "."): v for k, v in keys.items()})
    job.input("in", key=str, value=float)
    return job, job.store("total", key=str, value=float), job.output("out", key=str, value=float)


def _sent(runner: TestRunner) -> list[tuple[object, object]]:
    return [(record.key, record.value) for record in runner.output("out")]


def test_the_methods_of_a_class_use_handles() -> None:
    """Each of them, in the form with one context; its own state stays its own."""
    job, total, out = _job("totals", task_window_ms="1000")

    @job.task
    class Totals(StreamTask):
        def init(self, context: TaskContext) -> None:
            self.count = total.get("count", 0.0)
            context.scheduler.schedule("later", after_ms=5_000)

        def process(self, message: IncomingMessage, context: TaskContext) -> None:
            self.count += 1
            total[message.key] = total.get(message.key, 0.0) + message.value
            out.send(message.key, total[message.key])
            context.send("kafka.other", b"x")

        def window(self, _context: TaskContext) -> None:
            out.send("window", self.count)

        def on_timer(self, timer: Timer, _context: TaskContext) -> None:
            out.send(timer.name, self.count)

        def end_of_stream(self, _context: TaskContext) -> None:
            out.send("end", self.count)

    with TestRunner(job) as runner:
        runner.send("in", key="a", value=2)
        runner.send("in", key="a", value=3)
        runner.run()
        assert _sent(runner) == [("a", 2.0), ("a", 5.0)]
        runner.advance(1_000)
        runner.advance(4_000)
        runner.drain()
        sent = _sent(runner)[2:]
        assert sent[0] == ("window", 2.0)
        assert ("later", 2.0) in sent
        assert sent[-1] == ("end", 2.0)
    with pytest.raises(OutsideOfCallError):
        total.get("a")


def test_a_class_may_have_the_form_of_samza() -> None:
    """With a collector and a coordinator."""
    job, total, out = _job("former")

    class Former(StreamTask):
        def process(self, message: Any, collector: Any, coordinator: Any) -> None:  # noqa: ANN401 - as it was written
            total[message.key] = message.value
            collector.send("kafka.out", total[message.key], message.key)
            coordinator.commit()

        def close(self) -> None:
            out.name  # noqa: B018 - a name needs no call

    assert job.task(Former) is Former
    with TestRunner(job) as runner:
        runner.send("in", key="a", value=1)
        runner.run()
        assert _sent(runner) == [("a", 1.0)]


def test_coroutines_of_a_class_have_calls_of_their_own() -> None:
    """Two wait at once, and each sends for its own record."""
    job, total, out = _job("coroutines", task_max_concurrency="4")
    spans = job.window("spans", value=float, size=10, late=0)
    job.closed(spans)(lambda _key, value: out.send("closed", value))

    @job.task
    class Waits(StreamTask):
        async def init(self, _context: TaskContext) -> None:
            total["begun"] = 1

        async def process(self, message: IncomingMessage, _context: TaskContext) -> None:
            await asyncio.sleep(0)
            total[message.key] = message.value
            spans.add(message, message.value)
            await asyncio.sleep(0)
            out.send(message.key, total[message.key])

    with TestRunner(job) as runner:
        for number, key in enumerate("abc"):
            runner.send("in", key=key, value=number, timestamp=number * 20)
        runner.run()
        sent = _sent(runner)
        assert sorted(pair for pair in sent if pair[0] != "closed") == [
            ("a", 0.0),
            ("b", 1.0),
            ("c", 2.0),
        ]
        assert ("closed", 0.0) in sent
        assert runner.store("total").get("begun") == 1.0


def test_a_batch_task_uses_them_too() -> None:
    """Its timers beside those of windows."""
    job, total, out = _job("batches")
    spans: Any = job.window(
        "spans", value=float, add=lambda own, part: own + part["offset_sum"], size=9
    )
    job.closed(spans)(out.send)

    @job.task
    class Batches(BatchTask):
        def process_batch(self, table: pa.Table, context: TaskContext) -> None:
            total["rows"] = total.get("rows", 0) + table.num_rows
            rows = table.set_column(1, "key", table.column("key").cast(pa.string()))
            spans.add_table(rows, [("offset", "sum")])
            context.scheduler.schedule("own", after_ms=3_000)

        def on_timer(self, timer: Timer, _context: TaskContext) -> None:
            out.send(timer.name, total["rows"])

        def end_transaction(self, _context: TaskContext) -> None:
            total["ends"] = total.get("ends", 0) + 1

    with TestRunner(job) as runner:
        for time in (1, 2, 20):
            runner.send("in", key="a", value=0, timestamp=time)
        runner.run()
        assert _sent(runner) == [("a", 1.0)]
        runner.advance(3_000)
        assert ("own", 3.0) in _sent(runner)
        assert runner.store("total").get("ends", 0) >= 1


class Generates(StreamTask):
    """A call of it runs nothing."""

    def process(self, message: IncomingMessage, context: TaskContext) -> Any:  # noqa: ANN401 - the fault
        """Send nothing."""
        yield message, context


def test_what_the_class_raises_is_skipped_where_the_job_says_so() -> None:
    """The frames between it and the container are not the class's own."""
    job, total, _ = _job("ignores", task_ignored_exceptions="ZeroDivisionError")

    @job.task
    class Divides(StreamTask):
        def process(self, message: IncomingMessage, _context: TaskContext) -> None:
            total[message.key] = 1 / message.value

    with TestRunner(job) as runner:
        runner.send("in", key="a", value=0)
        runner.send("in", key="b", value=2)
        runner.run()
        assert dict(runner.store("total").all()) == {"b": 0.5}


def test_a_fault_of_the_class_is_found_before_it_is_called() -> None:
    """As one of a class that a key names."""
    job, *_ = _job("generates")
    job.task(Generates)
    with pytest.raises(ConfigError, match="its process is a generator: a call of it runs nothing"):
        TestRunner(job)
    other, *_ = _job("raises")

    @other.task
    class Raises(StreamTask):
        def init(self, context: TaskContext) -> None:
            raise KeyError(context.task_name)

        def process(self, message: IncomingMessage, context: TaskContext) -> None:
            """Nothing comes here."""

    with pytest.raises(TaskFailedError, match="failed in init: KeyError"), TestRunner(other):
        pass


@pytest.mark.parametrize("calls", ["1", "4"])
def test_a_method_may_call_another(calls: str) -> None:
    """Handles stand for the task until the outer one returns, also after an error within."""
    job, total, out = _job("within", task_max_concurrency=calls)

    @job.task
    class Within(StreamTask):
        def process(self, message: IncomingMessage, context: TaskContext) -> None:
            total[message.key] = message.value
            self.window(context)
            with pytest.raises(ZeroDivisionError):
                self.end_of_stream(context)
            out.send(message.key, total[message.key])

        def window(self, _context: TaskContext) -> None:
            total["windows"] = total.get("windows", 0.0) + 1

        def end_of_stream(self, _context: TaskContext) -> None:
            raise ZeroDivisionError

    with TestRunner(job) as runner:
        for value in (1, 2):
            runner.send("in", key="a", value=value)
        runner.run()
        assert _sent(runner) == [("a", 1.0), ("a", 2.0)]
        assert runner.store("total").get("windows") == 2


def test_a_method_of_a_batch_task_may_call_another() -> None:
    """As the end of the input is often one more end of a transaction."""
    job, total, out = _job("within-batch")

    @job.task
    class Within(BatchTask):
        def process_batch(self, table: pa.Table, _context: TaskContext) -> None:
            total["rows"] = total.get("rows", 0.0) + len(table)

        def end_transaction(self, _context: TaskContext) -> None:
            out.send("rows", total["rows"])

        def end_of_stream(self, context: TaskContext) -> None:
            self.end_transaction(context)
            out.send("end", total["rows"])

    with TestRunner(job) as runner:
        runner.send("in", key="a", value=1)
        runner.run()
        runner.drain()
        assert ("end", 1.0) in _sent(runner)


def test_a_coroutine_may_await_another() -> None:
    """As a method calls another."""
    job, total, out = _job("within-loop")

    @job.task
    class Within(StreamTask):
        async def process(self, message: IncomingMessage, context: TaskContext) -> None:
            await self.window(context)
            self.end_of_stream(context)
            await asyncio.sleep(0)
            out.send(message.key, total["windows"])

        async def window(self, _context: TaskContext) -> None:
            total["windows"] = total.get("windows", 0.0) + 1

        def end_of_stream(self, _context: TaskContext) -> None:
            total["ends"] = total.get("ends", 0.0) + 1

    with TestRunner(job) as runner:
        for value in (1, 2):
            runner.send("in", key="a", value=value)
        runner.run()
        assert _sent(runner) == [("a", 1.0), ("a", 2.0)]
        assert runner.store("total").get("ends") == 2


def _run_to_its_end(job: Job) -> None:
    """One record, a timer that is due, the end of the stream."""
    with TestRunner(job) as runner:
        runner.send("in", key="a", value=1)
        runner.run()
        runner.advance(10)
        runner.drain()


@pytest.mark.parametrize("calls", ["1", "4"])
def test_arguments_with_a_default_do_not_count(calls: str) -> None:
    """The context is behind the message, not a collector; in each method."""
    job, _, out = _job("defaults", task_max_concurrency=calls, task_window_ms="10")
    seen: list[object] = []

    @job.task
    class More(StreamTask):
        def process(self, message: IncomingMessage, context: TaskContext, more: int = 5) -> None:
            seen.append((context.task_name, more))
            context.scheduler.schedule("due", after_ms=10)
            out.send(message.key, message.value)

        def window(self, context: TaskContext, more: int = 6) -> None:
            seen.append((context.task_name, more))

        def on_timer(self, timer: Timer, context: TaskContext, more: int = 7) -> None:
            seen.append((context.task_name, more, timer.name))

        def end_of_stream(self, context: TaskContext, more: int = 8) -> None:
            seen.append((context.task_name, more))

    _run_to_its_end(job)
    expected: set[object] = {("Partition 0", more) for more in (5, 6, 8)}
    assert {*seen} == {*expected, ("Partition 0", 7, "due")}


def test_arguments_of_batches_with_a_default_do_not_count() -> None:
    """As those of records."""
    job, *_ = _job("batch-defaults")
    seen: list[object] = []

    @job.task
    class More(BatchTask):
        def process_batch(self, table: pa.Table, context: TaskContext, more: int = 5) -> None:
            seen.append((context.task_name, more, table.num_rows))
            context.scheduler.schedule("due", after_ms=10)

        def on_timer(self, timer: Timer, context: TaskContext, more: int = 6) -> None:
            seen.append((context.task_name, more, timer.name))

        def end_transaction(self, context: TaskContext, more: int = 7) -> None:
            seen.append((context.task_name, more))

        def end_of_stream(self, context: TaskContext, more: int = 8) -> None:
            seen.append((context.task_name, more))

    _run_to_its_end(job)
    expected: set[object] = {("Partition 0", more) for more in (7, 8)}
    assert {*seen} == {*expected, ("Partition 0", 5, 1), ("Partition 0", 6, "due")}


class _Called:
    """An object that can be called, and is no method: it gets no object of the class."""

    def __init__(self, use: Callable[..., None]) -> None:
        self.use = use


class _OfContext(_Called):
    def __call__(self, message: IncomingMessage, context: TaskContext) -> None:
        self.use(context.task_name, message.value)


class _OfCollector(_Called):
    def __call__(self, message: object, collector: object, coordinator: TaskContext) -> None:
        assert collector is not coordinator
        self.use(coordinator.task_name, getattr(message, "value", 0))


class _Awaited(_Called):
    async def __call__(self, message: IncomingMessage, context: TaskContext) -> None:
        await asyncio.sleep(0)
        self.use(context.task_name, message.value)


@pytest.mark.parametrize("calls", ["1", "2"])
@pytest.mark.parametrize("made", [_OfContext, _OfCollector, _Awaited])
def test_an_object_in_the_place_of_a_method_is_called_as_it_is(
    made: Callable[..., Any], calls: str
) -> None:
    """With the handles of the job; in each hook."""
    job, total, out = _job("objects", task_max_concurrency=calls, task_window_ms="10")
    seen: list[object] = []

    def start(context: TaskContext) -> None:
        total["started"] = 1
        context.scheduler.schedule("due", after_ms=10)

    @job.task
    class Objects(StreamTask):
        init = functools.partial(start)
        process = made(out.send)
        window = functools.partial(lambda context: out.send(context.task_name, 7))
        on_timer: Any = _OfCollector(out.send)
        end_of_stream = print
        close = functools.partial(seen.append, "closed")

    with TestRunner(job) as runner:
        runner.send("in", key="a", value=1)
        runner.run()
        runner.advance(10)
        assert runner.store("total").get("started") == 1
        runner.drain()
        assert {*_sent(runner)} == {("Partition 0", value) for value in (1.0, 7.0, 0.0)}
    assert seen == ["closed"]


def _nothing(*_given: object) -> None: ...


@pytest.mark.parametrize("kind", [StreamTask, BatchTask])
@pytest.mark.parametrize("hook", [staticmethod(_nothing), classmethod(_nothing)])
def test_a_method_without_its_object_is_refused_where_it_is_declared(
    kind: type[StreamTask | BatchTask], hook: object
) -> None:
    """By the object a call knows its task."""
    job, *_ = _job("static")
    name = "process" if kind is StreamTask else "process_batch"
    for hooks in ({name: hook}, {name: _nothing, "close": hook}):
        own = type("Own", (kind,), hooks)
        with pytest.raises(ConfigError) as refused:
            job.task(own)
        (at,) = (each for each, found in hooks.items() if found is hook)
        assert str(refused.value) == (
            f"job.task = 'Own': its {at} is a {type(hook).__name__}, and gets no object of the "
            f"class; write def {at}(self, ...)"
        )
