"""Calls side by side under the TestRunner: how many, in what order, and what becomes of errors."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from homeport.config.errors import ConfigError
from homeport.container.api import (
    IncomingMessage,
    MessageCollector,
    StreamTask,
    TaskContext,
    TaskCoordinator,
    Timer,
)
from homeport.container.callables import TaskFailedError
from homeport.testing import TestRunner
from homeport.testing.job_under_test import TaskClass
from tests.unit.testing.counting_job import CountBatch, config, feed, task_of

WAIT_S = 20.0


class _Watch:
    """What goes on in the tasks of a test. ``most``: how many calls were under way at once."""

    def __init__(self) -> None:
        self.most = self.now = 0
        self.lock = threading.Lock()
        self.hook: Callable[[str], Any] = lambda _key: None
        self.notes: list[str] = []

    def __enter__(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)

    def __exit__(self, *_error: object) -> None:
        with self.lock:
            self.now -= 1


WATCH: list[_Watch] = []


@pytest.fixture(autouse=True)
def watch() -> Iterator[_Watch]:
    """Of this test alone; no thread of a container is left after it."""
    WATCH.append(_Watch())
    before = threading.active_count()
    yield WATCH[0]
    WATCH.clear()
    assert threading.active_count() <= before


class _Slow(StreamTask):
    """Counts per key, adds up a sum of all keys, and sends each count."""

    def init(self, context: TaskContext) -> None:
        self.counts = context.store("counts")
        self.scheduler = context.scheduler

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        with WATCH[0]:
            WATCH[0].hook(message.value["is"])
            count = (self.counts.get(message.key or "") or 0) + 1
            self.counts.put(message.key or "", count)
            assert dict(self.counts.all())
            collector.send("out", str(message.value["is"]).encode(), str(message.key).encode())
            self.scheduler.schedule("t", str(message.key), after_ms=1)
            if message.value.get("vote"):
                coordinator.shutdown()

    def on_timer(
        self, timer: Timer, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        del collector, coordinator
        WATCH[0].notes.append(f"timer {timer.key} with {WATCH[0].now} under way")


class _Async(StreamTask):
    async def init(self, context: TaskContext) -> None:
        await asyncio.sleep(0)
        self.counts = context.store("counts")
        self.loop = asyncio.get_running_loop()

    async def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        assert asyncio.get_running_loop() is self.loop
        with WATCH[0]:
            waited = WATCH[0].hook(message.value["is"])
            await (waited if waited is not None else asyncio.sleep(0))
            count = (self.counts.get(message.key or "") or 0) + 1
            self.counts.put(message.key or "", count)
            collector.send("out", str(message.value["is"]).encode(), str(message.key).encode())
            if message.value.get("vote"):
                coordinator.shutdown()

    async def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        await asyncio.sleep(0)
        collector.send("windows", b"async")
        if WATCH[0].notes == ["raise"]:
            raise KeyError("of the window")
        del coordinator

    async def end_of_stream(
        self, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        del coordinator
        assert WATCH[0].now == 0
        collector.send("windows", b"over")

    async def close(self) -> None:
        await asyncio.sleep(0)
        WATCH[0].notes.append("closed")


TASKS = [_Slow, _Async]


def _runner(task: TaskClass, limit: int, **more: Any) -> TestRunner:  # noqa: ANN401 - of keys
    keys = config("rocksdb", task__max__concurrency=limit, **more)
    return TestRunner(keys, task=task, partitions=2)


def _send(runner: TestRunner, *keys: str | None) -> None:
    for number, key in enumerate(keys):
        runner.send("kafka.in", key=key, value={"is": f"{key}{number}"}, partition=number % 2)


def _all_at_once(count: int, task: TaskClass) -> Callable[[str], Any]:
    """A hook that goes on when so many calls have come to it: it shows that they are concurrent."""
    if task is _Slow:
        barrier = threading.Barrier(count)
        return lambda _key: (barrier.wait(WAIT_S), None)[1]
    waiting: list[asyncio.Future[None]] = []

    def hook(_key: str) -> Any:  # noqa: ANN401 - a future
        waiting.append(asyncio.get_running_loop().create_future())
        if len(waiting) == count:
            for future in waiting:
                future.set_result(None)
        return asyncio.wait_for(waiting[-1], WAIT_S)

    return hook


@pytest.mark.parametrize("task", TASKS)
def test_calls_of_different_keys_and_tasks_are_under_way_at_once(
    task: TaskClass, watch: _Watch
) -> None:
    """As many as may be, and no more; what they wrote and sent is all there."""
    with _runner(task, 4) as runner:
        watch.hook = _all_at_once(4, task)
        _send(runner, "a", "b", "c", None)
        runner.run()
        assert watch.most == 4
        watch.hook = lambda _key: None
        _send(runner, *[f"k{n}" for n in range(60)])
        runner.run()
        assert watch.most == 4
        assert len(runner.output("kafka.out")) == 64
        counts = [dict(runner.store("counts", partition=p).all()) for p in (0, 1)]
        assert sum(len(count) for count in counts) == 64
        assert runner.checkpoint(partition=0) == {"kafka.in.0": 31}


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("limit", [1, 3])
def test_the_records_of_a_key_stay_in_their_order(
    task: TaskClass, watch: _Watch, limit: int
) -> None:
    """With one at a time all of them do; each sees what the one before has written."""

    def uneven(key: str) -> Any:  # noqa: ANN401 - perhaps a coroutine
        # Calls of different length: without the order a later one of a key would end first.
        pause_s = 0.002 if key.endswith(("0", "3", "4")) else 0.0
        return asyncio.sleep(pause_s) if task is _Async else time.sleep(pause_s)

    watch.hook = uneven
    with _runner(task, limit) as runner:
        _send(runner, *("abac" * 6))
        runner.run()
        found = [(r.key, int(r.value[1:])) for r in runner.output("kafka.out")]
        for key in (b"a", b"b", b"c"):
            own = [number for k, number in found if k == key]
            assert own == sorted(own)
        if limit == 1:
            evens = [number for _, number in found if number % 2 == 0]
            assert evens == sorted(evens)
            assert watch.most == 1
        assert runner.store("counts", partition=0).get("a") == 12


@pytest.mark.parametrize("task", TASKS)
def test_no_checkpoint_passes_a_record_that_is_not_done(task: TaskClass, watch: _Watch) -> None:
    """L2: one that fails takes the transaction with it, whatever others of its batch have done."""

    def fails(key: str) -> None:
        if key == "b1":
            raise ValueError("this one")

    with _runner(task, 4) as runner:
        watch.hook = fails
        _send(runner, "a", "b", "c", "d")
        with pytest.raises(
            TaskFailedError, match=r"process of in partition 1 offset 0: ValueError: this one"
        ):
            runner.run()
        assert watch.now == 0
        runner.restart()
        assert runner.checkpoint(partition=0) == {"kafka.in.0": -1}
        assert runner.output("kafka.out") == []
        watch.hook = lambda _key: None
        assert runner.run() == 4
        assert len(runner.output("kafka.out")) == 4


@pytest.mark.parametrize("task", TASKS)
def test_exceptions_of_the_task_s_own_code_are_ignored_as_ever(
    task: TaskClass, watch: _Watch
) -> None:
    """And those of a store or of the collector are not."""

    def fails(key: str) -> None:
        if key.startswith("b"):
            raise ValueError("this one")

    watch.hook = fails
    with _runner(task, 4, task__ignored__exceptions="ValueError,TypeError") as runner:
        _send(runner, "a", "b", "c", "b")
        runner.run()
        assert len(runner.output("kafka.out")) == 2
        assert sum(t.ignored for t in runner._running()._parts.tasks.values()) == 2  # type: ignore[attr-defined]  # of that class
    watch.hook = lambda _key: None
    badly = _Badly if task is _Slow else _BadlyAsync
    with _runner(badly, 4, task__ignored__exceptions="*") as runner:
        _send(runner, "a")
        with pytest.raises(TaskFailedError, match="must have bytes or None"):
            runner.run()


_Badly = task_of(lambda _, collector: collector.send("out", "text"))
"""That is its fault: the stream has no serde."""


class _BadlyAsync(StreamTask):
    async def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        del message, coordinator
        collector.send("out", "text")


class _Clocked(StreamTask):
    def init(self, context: TaskContext) -> None:
        self.scheduler = context.scheduler

    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        del message, collector, coordinator
        with WATCH[0].lock:
            WATCH[0].notes.append(str(self.scheduler.watermark_ms))


@pytest.mark.parametrize("limit", [1, 4])
def test_within_a_batch_event_time_is_that_of_the_one_before(watch: _Watch, limit: int) -> None:
    """Also for calls that are made when the whole batch was handed over."""
    with _runner(_Clocked, limit, task__watermark__lateness__ms="0") as runner:
        for at in (1000, 2000):
            runner.send("kafka.in", key="a", value={"n": 1}, timestamp=at, partition=0)
        feed(runner, key="a", value={"n": 1}, timestamp=3000, partition=1)
        assert watch.notes == ["None"] * 3
        feed(runner, key="a", value={"n": 1}, timestamp=9000, partition=0)
        assert watch.notes[3:] == ["2000"]


def _hidden(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:  # noqa: ANN401 - of any function
        return function(*arguments)

    return call


class _Hidden(StreamTask):
    @_hidden
    async def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        raise AssertionError(f"{message, collector, coordinator}: it is never awaited")


# The coroutine is refused, so nothing awaits it.
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited")
def test_a_coroutine_behind_a_decorator_is_refused_at_its_first_message() -> None:
    """Its records would count as processed."""
    with _runner(_Hidden, 1, task__ignored__exceptions="*") as runner:
        _send(runner, "a")
        with pytest.raises(TaskFailedError, match="it has returned a coroutine"):
            runner.run()


def test_timers_and_windows_come_when_nothing_is_under_way(watch: _Watch) -> None:
    """Once per timer, whatever number of threads had scheduled it."""
    with _runner(_Slow, 4) as runner:
        _send(runner, "a", "a", "b", "b")
        runner.run()
        runner.advance(1)
        assert sorted(watch.notes) == sorted(f"timer {k} with 0 under way" for k in "aabb")


def test_every_method_of_an_async_task_may_be_a_coroutine(watch: _Watch) -> None:
    """On the container's one loop; what a window raises fails the task.

    L7: the end of the stream comes when no call is under way.
    """
    with _runner(_Async, 2, task__window__ms=100) as runner:
        runner.advance(2100)
        assert runner.output("kafka.windows")[0].value == b"async"
        for partition in (0, 1):
            value = {"is": "x", "vote": True}
            runner.send("kafka.in", key="a", value=value, partition=partition)
        runner.run()
        assert runner.output("kafka.windows")[-1].value == b"over"
        assert watch.notes == ["closed", "closed"]
    watch.notes[:] = ["raise"]
    with (
        pytest.raises(TaskFailedError, match="failed in window: KeyError"),
        _runner(_Async, 2, task__window__ms=100) as runner,
    ):
        runner.advance(100)


@pytest.mark.parametrize("task", TASKS)
def test_a_crash_before_any_step_counts_every_record_once(task: TaskClass) -> None:
    """As without concurrency."""
    with _runner(task, 3) as runner:
        for number, step in enumerate(runner.commit_steps, start=1):
            _send(runner, "a", "b", "a", "b")
            runner.crash_before(step)
            runner.restart()
            runner.run()
            assert runner.store("counts", partition=0).get("a") == 2 * number
            assert len(runner.output("kafka.out")) == 4 * number


class _HalfAsync(StreamTask):
    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """Nothing."""

    async def window(
        self, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:  # that is the fault
        """Nothing."""


def test_a_coroutine_where_none_is_awaited_is_refused() -> None:
    """It would never run."""
    with pytest.raises(ConfigError, match=r"window is a coroutine.*let process be one too"):
        TestRunner(config(), task=_HalfAsync)
    with pytest.raises(ConfigError, match=r"init is a coroutine.*a BatchTask has none: use def"):
        TestRunner(config(), task=_AsyncBatch)


class _AsyncBatch(CountBatch):
    async def init(self, context: TaskContext) -> None:  # type: ignore[override]  # that is the fault
        """Nothing."""


def test_concurrency_of_a_batch_task_is_refused() -> None:
    """It would have no effect."""
    keys = config(task__max__concurrency=2)
    with pytest.raises(ConfigError, match=r"task\.max\.concurrency.*CountBatch is a BatchTask"):
        TestRunner(keys, task=CountBatch)
