"""Calls of the job's code that do not return."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from typing import cast

import pyarrow as pa
import pytest

from homeport.container.processing.call_watch import (
    SAID_MS,
    CallWatch,
    WatchedPipeline,
    WatchedTask,
)
from homeport.container.processing.loop_parts import Pipeline, Task
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.ids import TaskName

LIMIT_MS = 600_000
ROWS = pa.table({"n": [1, 2]})


class _Blocked:
    """A task, or a pipeline, all of whose calls wait for the end of the test."""

    def __init__(self) -> None:
        self.has_begun = threading.Event()
        self.may_end = threading.Event()

    def _wait(self, *_: object) -> None:
        self.has_begun.set()
        self.may_end.wait()

    process_batch = end_transaction = window = end_of_stream = run = _wait


@pytest.fixture
def blocked() -> Iterator[_Blocked]:
    """Ends with the test."""
    made = _Blocked()
    yield made
    made.may_end.set()


def _watched(blocked: _Blocked, watch: CallWatch, call: str) -> threading.Thread:
    name = TaskName("Partition 0")
    task = WatchedTask(name, cast("Task", blocked), watch)
    pipeline = WatchedPipeline(cast("Pipeline", blocked), "m:f", watch)
    target = pipeline.run if call == "run" else getattr(task, call)
    arguments = (ROWS,) if call in {"run", "process_batch"} else ()
    thread = threading.Thread(target=target, args=arguments, daemon=True)
    thread.start()
    blocked.has_begun.wait()
    return thread


@pytest.mark.parametrize(
    ("call", "named"),
    [
        ("process_batch", "task 'Partition 0', in its batch of 2 rows,"),
        ("end_transaction", "task 'Partition 0', in end_transaction,"),
        ("window", "task 'Partition 0', in window,"),
        ("end_of_stream", "task 'Partition 0', in end_of_stream,"),
        ("run", "pipeline 'm:f', over 2 rows,"),
    ],
)
def test_a_call_over_its_time_is_the_cause_of_an_end(
    call: str, named: str, blocked: _Blocked, caplog: pytest.LogCaptureFixture
) -> None:
    """The line names call, key, place and remedy; the log has the stack."""
    watch = CallWatch(LIMIT_MS)
    thread = _watched(blocked, watch, call)
    (began_ms,) = (one.began_ms for one in watch._calls.values())
    assert watch.look(began_ms + LIMIT_MS - 1) is None
    with caplog.at_level(logging.WARNING):
        cause = watch.look(began_ms + LIMIT_MS)
    assert cause is not None
    assert cause.startswith(
        f"{named} has not returned within task.callback.timeout.ms (600000); it stands at "
        f"{__file__}:"
    )
    assert cause.endswith("in _wait; give what it waits for a time limit, or raise the key")
    assert "self.may_end.wait()" in caplog.text
    blocked.may_end.set()
    thread.join()
    assert watch.look(boot_ms() + 2 * LIMIT_MS) is None


def test_a_long_call_is_logged_each_time_after_twice_as_long(
    blocked: _Blocked, caplog: pytest.LogCaptureFixture
) -> None:
    """Also where the key lets it last for ever."""
    watch = CallWatch(None)
    _watched(blocked, watch, "window")
    (began_ms,) = (one.began_ms for one in watch._calls.values())
    said = []
    with caplog.at_level(logging.WARNING):
        for n in range(1, 5):
            caplog.clear()
            assert watch.look(began_ms + n * SAID_MS) is None
            said.append(len(caplog.records))
    assert said == [1, 1, 0, 1]
    assert "has not returned for 24" in caplog.text


def test_each_message_of_a_stream_task_is_a_call_of_its_own(blocked: _Blocked) -> None:
    """A batch of many slow messages is none that hangs."""
    watch, began = CallWatch(LIMIT_MS), boot_ms()
    _watched(blocked, watch, "process_batch")
    for n in range(1, 10):
        watch.ticks += 1
        assert watch.look(began + n * LIMIT_MS) is None
    assert watch.look(began + 9 * LIMIT_MS + LIMIT_MS - 1) is None
    assert watch.look(began + 10 * LIMIT_MS) is not None


def test_the_end_is_asked_for_once(blocked: _Blocked) -> None:
    """By a thread of the watch's own."""
    watch, ended = CallWatch(1), threading.Event()
    causes: list[str] = []

    def end(cause: str) -> None:
        causes.append(cause)
        ended.set()

    _watched(blocked, watch, "window")
    watch.begin(end)
    assert ended.wait(30)
    for thread in threading.enumerate():
        if thread.name == "call-watch":
            thread.join(30)
    assert len(causes) == 1


def test_a_watch_that_is_closed_says_whether_a_call_is_under_way() -> None:
    """A process with one is not used for another incarnation. Its thread ends."""
    watch, task = CallWatch(LIMIT_MS), _Blocked()
    watch.begin(lambda _cause: None)
    assert CallWatch(None).close(0)
    watched = WatchedPipeline(cast("Pipeline", task), "m:f", watch)
    thread = threading.Thread(target=watched.run, args=[ROWS])
    thread.start()
    assert task.has_begun.wait(60)
    assert not watch.close(0.05)
    task.may_end.set()
    assert watch.close(60)
    thread.join()
