"""The metrics of a job's own, under the TestRunner."""

from __future__ import annotations

from typing import Any

import pytest

from homeport import Counter, IncomingMessage, Job, StreamTask, TaskContext
from homeport.container.callables import TaskFailedError
from homeport.testing import TestRunner, TestRunnerError
from tests.unit.testing.counting_job import config


class _Counting(StreamTask):
    """Counts what it has by its value."""

    def init(self, context: TaskContext) -> None:
        self.all: Counter = context.metrics.counter("records")

    def process(self, message: IncomingMessage, context: TaskContext) -> None:
        self.all.inc()
        metrics = context.metrics
        metrics.counter("by_key", key=message.key).inc()
        metrics.gauge("works").set(1)
        metrics.histogram("size", (1, 10)).observe(message.value["n"])


class _AsyncCounting(_Counting):
    """The same on an event loop."""

    async def process(self, message: IncomingMessage, context: TaskContext) -> None:  # type: ignore[override]  # a coroutine may be
        super().process(message, context)


@pytest.mark.parametrize("calls", [1, 4])
@pytest.mark.parametrize("task", [_Counting, _AsyncCounting])
def test_a_test_reads_them(task: type[StreamTask], calls: int) -> None:
    """Added up over tasks and labels; after a restart they begin at 0."""
    keys = config(task__max__concurrency=calls)
    with TestRunner(keys, task=task, partitions=2) as runner:
        for number in range(10):
            runner.send("kafka.in", key=f"k{number % 3}", value={"n": number}, partition=number % 2)
        runner.run()
        assert runner.metrics("records") == runner.metrics("by_key") == 10
        assert runner.metrics("by_key", key="k0") == 4
        assert runner.metrics("works") == 2
        assert runner.metrics("works", task="Partition 0") == 1
        assert runner.metrics("size_count") == 10
        assert runner.metrics("size_sum") == 45
        known = "known: by_key, records, size_count, size_sum, works"
        with pytest.raises(TestRunnerError, match=rf"no metric size; {known}"):
            runner.metrics("size")
        with pytest.raises(TestRunnerError, match=r'no metric by_key{key="k7"}; known'):
            runner.metrics("by_key", key="k7")
        runner.restart()
        assert runner.metrics("records") == 0


def test_functions_of_a_job_have_them() -> None:
    """By ``job.context.metrics``, also at the start."""
    job = Job("own")
    source = job.input("in", key=str, value=str)

    @job.on_start
    def begin() -> None:
        job.context.metrics.counter("starts").inc()

    @job.each(source)
    def count(key: str, _value: str) -> None:
        job.context.metrics.counter("records", key=key, name="n").inc()

    with TestRunner(job) as runner:
        runner.send("in", key="a", value="x")
        runner.run()
        assert runner.metrics("starts") == runner.metrics("records", key="a", name="n") == 1


def test_a_name_that_prometheus_does_not_take_fails_the_task_in_one_line() -> None:
    """Whatever is ignored: it is no verdict on the record."""

    class Wrong(_Counting):
        def process(self, message: IncomingMessage, context: TaskContext) -> None:
            context.metrics.counter("late-" + message.key)

    keys: dict[str, Any] = config(task__ignored__exceptions="*")
    with TestRunner(keys, task=Wrong) as runner:
        runner.send("kafka.in", key="a", value={"n": 1})
        with pytest.raises(TaskFailedError, match="ValueError: metric 'late-a': it must"):
            runner.run()
