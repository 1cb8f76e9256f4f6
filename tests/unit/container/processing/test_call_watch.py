"""Calls of the job's code that do not return."""

from __future__ import annotations

import functools
import logging
import queue
import threading
from collections.abc import Iterator
from typing import cast

import pyarrow as pa
import pytest

from homeport.container.api import Timer
from homeport.container.processing.call_watch import (
    SAID_MS,
    CallWatch,
    WatchedPipeline,
    WatchedTask,
)
from homeport.container.processing.concurrent_calls import LoopCalls, ThreadCalls
from homeport.container.processing.loop_dependencies import Pipeline, Task
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.ids import TaskName

LIMIT_MS = 600_000
ROWS = pa.table({"n": [1, 2]})
GIVEN = {"run": (ROWS,), "process_batch": (ROWS,), "on_timer": (Timer("late", "k", 0),)}


class _Blocked:
    """A task, or a pipeline, all of whose calls wait for the end of the test."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_end = threading.Event()
        self.calls: list[ThreadCalls | LoopCalls] = []

    def _wait(self, *_: object) -> None:
        self.has_begun.set()
        self.may_end.wait()

    process_batch = end_transaction = window = on_timer = end_of_stream = run = _wait

    async def _coroutine(self) -> None:
        self._wait()

    def finish(self, watch: CallWatch, *, in_threads: bool) -> None:
        """Make one call beside others, which blocks."""
        if in_threads:
            threads = ThreadCalls(2, lambda: None, watch)
            threads.add(None, self._wait)
        else:
            loop = LoopCalls(2, lambda: None, watch)
            loop.add(None, self._coroutine)
        calls = threads if in_threads else loop
        self.calls.append(calls)
        calls.finish()


@pytest.fixture
def blocked() -> Iterator[_Blocked]:
    """Ends with the test."""
    made = _Blocked()
    yield made
    made.may_end.set()
    for calls in made.calls:
        calls.close()


def _watched(blocked: _Blocked, watch: CallWatch, call: str) -> threading.Thread:
    name = TaskName("Partition 0")
    task = WatchedTask(name, cast("Task", blocked), watch)
    pipeline = WatchedPipeline(cast("Pipeline", blocked), "m:f", watch)
    beside = {
        name: functools.partial(blocked.finish, watch, in_threads=name == "threads")
        for name in ("threads", "loop")
    }
    owner: object = pipeline if call == "run" else task
    target = beside[call] if call in beside else getattr(owner, call)
    arguments = GIVEN.get(call, ())
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    assert blocked.has_begun.wait(30)
    return thread


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("process_batch", "task 'Partition 0', in its batch of 2 rows,"),
        ("end_transaction", "task 'Partition 0', in end_transaction,"),
        ("window", "task 'Partition 0', in window,"),
        ("on_timer", "task 'Partition 0', in on_timer of 'late',"),
        ("end_of_stream", "task 'Partition 0', in end_of_stream,"),
        ("run", "pipeline 'm:f', over 2 rows,"),
        ("threads", "a call of process beside others"),
    ],
)
def test_a_call_over_its_time_is_the_cause_of_an_end(
    call: str, named: str, blocked: _Blocked, caplog: pytest.LogCaptureFixture
) -> None:
    """The line names call, key, place and remedy; the log has the stack."""
    watch = CallWatch(LIMIT_MS)
    thread = _watched(blocked, watch, call)
    (began_ms,) = (one.began_ms for one in watch._calls.values())
    assert watch.overdue(began_ms + LIMIT_MS - 1) is None
    with caplog.at_level(logging.WARNING):
        cause = watch.overdue(began_ms + LIMIT_MS)
    assert cause is not None
    assert cause.startswith(
        f"{named} has not returned within task.callback.timeout.ms (600000); it stands at "
        f"{__file__}:"
    )
    assert cause.endswith("in _wait; give what it waits for a time limit, or raise the key")
    assert "self.may_end.wait()" in caplog.text
    blocked.may_end.set()
    thread.join()
    assert watch.overdue(boot_ms() + 2 * LIMIT_MS) is None


def test_a_long_call_is_logged_each_time_after_twice_as_long(
    blocked: _Blocked, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the key lets it last for ever."""
    watch = CallWatch(None)
    _watched(blocked, watch, "window")
    (began_ms,) = (one.began_ms for one in watch._calls.values())
    counts = []
    with caplog.at_level(logging.WARNING):
        for n in range(1, 5):
            caplog.clear()
            assert watch.overdue(began_ms + n * SAID_MS) is None
            counts.append(len(caplog.records))
    assert counts == [1, 1, 0, 1]
    assert "has not returned for 24" in caplog.text


@pytest.mark.parametrize("call", ["process_batch", "loop"])
def test_each_message_of_a_stream_task_is_a_call_of_its_own(call: str, blocked: _Blocked) -> None:
    """A batch of many slow messages is none that hangs."""
    watch, began = CallWatch(LIMIT_MS), boot_ms()
    _watched(blocked, watch, call)
    for n in range(1, 10):
        watch.ticks += 1
        assert watch.overdue(began + n * LIMIT_MS) is None
    assert watch.overdue(began + 9 * LIMIT_MS + LIMIT_MS - 1) is None
    assert watch.overdue(began + 10 * LIMIT_MS) is not None


@pytest.mark.parametrize("call", ["end_transaction", "window", "on_timer", "end_of_stream", "run"])
def test_a_call_for_no_message_is_one_call(call: str, blocked: _Blocked) -> None:
    """What other calls come to meanwhile does not make it another one."""
    watch = CallWatch(LIMIT_MS)
    _watched(blocked, watch, call)
    (began_ms,) = (one.began_ms for one in watch._calls.values())
    watch.tick()
    assert watch.overdue(began_ms + LIMIT_MS) is not None


def test_a_thread_that_is_gone_stands_at_an_unknown_line() -> None:
    """It may end between the look at its call and the look at its stack."""
    watch = CallWatch(LIMIT_MS)
    call = watch.calling("a call")
    thread = threading.Thread(target=call.__enter__)
    thread.start()
    thread.join()
    cause = watch.overdue(boot_ms() + LIMIT_MS)
    assert cause is not None
    assert "it stands at an unknown line;" in cause


def test_a_watch_looks_again_and_again() -> None:
    """Until it has found a cause, for which it asks for the end once."""
    looks: list[int] = []

    class Later(CallWatch):
        def overdue(self, now_ms: int) -> str | None:
            looks.append(now_ms)
            return None if len(looks) < 3 else "it hangs"

    ended: queue.Queue[str] = queue.Queue()
    before = set(threading.enumerate())
    Later(1).begin(ended.put)
    for looking in set(threading.enumerate()) - before:
        looking.join(30)
    assert [ended.get(timeout=30), ended.empty()] == ["it hangs", True]
    assert len(looks) == 3


def test_a_watch_that_is_closed_says_whether_a_call_is_under_way() -> None:
    """A process with one is not used for another incarnation. Its thread ends."""
    watch, task = CallWatch(LIMIT_MS), _Blocked()
    before = set(threading.enumerate())
    watch.begin(lambda _cause: None)
    (looking,) = set(threading.enumerate()) - before
    assert CallWatch(None).close(0)
    watched = WatchedPipeline(cast("Pipeline", task), "m:f", watch)
    thread = threading.Thread(target=watched.run, args=[ROWS])
    thread.start()
    assert task.has_begun.wait(30)
    assert not watch.close(0.05)
    task.may_end.set()
    assert watch.close(60)
    thread.join()
    looking.join(60)
    assert not looking.is_alive()
