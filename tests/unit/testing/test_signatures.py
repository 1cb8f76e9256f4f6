"""The context as the last argument of a task's methods, in every kind of task."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from homeport import (
    BatchTask,
    IncomingMessage,
    KeyValueStore,
    MessageCollector,
    StreamTask,
    TaskContext,
    TaskCoordinator,
    Timer,
)
from homeport.container.callables import TaskFailedError
from homeport.testing import TestRunner
from tests.unit.testing.counting_job import config

_KEYS = config(task__window__ms=10)


class _Whole(StreamTask):
    """Takes the context in each method."""

    def init(self, context: TaskContext) -> None:
        self.counts: KeyValueStore[str, int] = context.store("counts")

    def process(self, message: IncomingMessage, context: TaskContext) -> None:
        count = self.counts.get(message.key, 0) + 1
        self.counts.put(message.key, count)
        context.send("out", str(count).encode(), message.key.encode())
        context.scheduler.schedule("late", message.key, after_ms=5)
        if message.value == "end":
            context.shutdown()

    def window(self, context: TaskContext) -> None:
        context.send("windows", b"window")
        context.commit()

    def on_timer(self, timer: Timer, context: TaskContext) -> None:
        context.send("windows", f"timer {timer.key}".encode())

    def end_of_stream(self, context: TaskContext) -> None:
        context.send("windows", b"over")


_Loose: Any = _Whole
"""The same for subclasses of other forms, which mypy takes beside StreamTask alone."""


class _Mixed(_Loose):  # type: ignore[misc]  # see above
    """Takes a collector and a coordinator in some methods, as older tasks do."""

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        count = self.counts.get(message.key, 0) + 1
        self.counts.put(message.key, count)
        collector.send("out", str(count).encode(), message.key.encode())
        if message.value == "end":
            coordinator.shutdown()

    def end_of_stream(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        del coordinator
        collector.send("windows", b"over")

    def init(self, context: TaskContext) -> None:
        super().init(context)
        context.scheduler.schedule("late", "k", after_ms=5)


class _Coroutine(_Loose):  # type: ignore[misc]  # see above
    async def process(self, message: IncomingMessage, context: TaskContext) -> None:
        super().process(message, context)

    async def window(self, context: TaskContext) -> None:
        super().window(context)


def _timed(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: object, **named: object) -> object:
        return function(*arguments, **named)

    return call


class _Decorated(_Whole):
    process = _timed(_Whole.process)
    on_timer = _timed(_Whole.on_timer)


class _Batch(BatchTask):
    """Takes the context in each method, and ends its container."""

    def init(self, context: TaskContext) -> None:
        self.counts: KeyValueStore[str, int] = context.store("counts")

    def process_batch(self, table: pa.Table, context: TaskContext) -> None:
        for key, value in zip(
            table.column("key").to_pylist(), table.column("value").to_pylist(), strict=True
        ):
            count = self.counts.get(key.decode(), 0) + 1
            self.counts.put(key.decode(), count)
            context.send("out", str(count).encode(), key)
            context.scheduler.schedule("late", key.decode(), after_ms=5)
            if value == b'"end"':
                context.shutdown()
        context.commit()

    def on_timer(self, timer: Timer, context: TaskContext) -> None:
        context.send("windows", b"window")
        context.send("windows", f"timer {timer.key}".encode())

    def end_of_stream(self, context: TaskContext) -> None:
        context.send("windows", b"over")


@pytest.mark.parametrize(
    ("task", "calls"),
    [*itertools.product([_Whole, _Mixed, _Coroutine, _Decorated], ["1", "3"]), (_Batch, "1")],
)
def test_a_task_uses_its_context(task: type[StreamTask | BatchTask], calls: str) -> None:
    """Stores, output, timers, commit and the end, whatever calls it."""
    keys = {**_KEYS, "task.max.concurrency": calls}
    with TestRunner(keys, task=task) as runner:
        runner.send("kafka.in", key="k", value=1)
        runner.run()
        runner.advance(12)
        assert runner.store("counts").get("k") == 1
        assert [record.value for record in runner.output("out")] == [b"1"]
        assert {record.value for record in runner.output("windows")} == {b"window", b"timer k"}
        runner.send("kafka.in", key="k", value="end")
        runner.run()
        assert not runner.is_running
        assert runner.output("windows")[-1].value == b"over"
        assert [record.value for record in runner.output("out")] == [b"1", b"2"]


@pytest.mark.parametrize("method", ["init", "close"])
@pytest.mark.parametrize("kind", [_Whole, _Coroutine, _Batch])
@pytest.mark.parametrize(
    ("ask", "expected"),
    [
        (lambda context: context.send("out", b"x"), "send to 'out'"),
        (lambda context: context.commit(), "commit"),
        (lambda context: context.shutdown(), "shutdown"),
    ],
)
def test_init_and_close_cannot_send_or_ask(
    method: str, kind: type[Any], ask: Callable[[TaskContext], None], expected: str
) -> None:
    """There is no transaction for it: one line says so, and nothing is lost in silence."""

    class Own(kind):  # type: ignore[misc]  # one of three classes
        def init(self, context: TaskContext) -> None:
            super().init(context)
            self.context = context
            if method == "init":
                ask(context)

        def close(self) -> None:
            if method == "close":
                ask(self.context)

    line = f"failed in {method}: HomeportError: {expected}: a task's init and close cannot"
    runner = TestRunner(_KEYS, task=Own)
    with pytest.raises(TaskFailedError, match=line), runner:
        runner.stop()
