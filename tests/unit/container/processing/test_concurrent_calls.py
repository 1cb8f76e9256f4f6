"""Calls side by side: their order, the order to stop, and that nothing is under way afterwards."""

from __future__ import annotations

import asyncio
import threading

import pytest

from homeport.container.api import IncomingMessage, MessageCollector, StreamTask, TaskCoordinator
from homeport.container.host.stop_flag import StopFlag, StopRequestedError
from homeport.container.processing.call_watch import CallWatch
from homeport.container.processing.concurrent_calls import LoopCalls, ThreadCalls
from homeport.container.processing.concurrent_tasks import AsyncStreamTask, order_of
from homeport.container.processing.records import pipeline_messages
from homeport.container.processing.stream_task_instance import StreamTaskParts
from homeport.container.processing.task_instance import Context, Outputs, Requests
from homeport.job_coordinator.model.ids import TaskName

WAIT_S = 20.0


class _Order:
    """The order to stop: ``go_on`` raises once it has come."""

    def __init__(self) -> None:
        self.has_come = threading.Event()

    def go_on(self) -> None:
        if self.has_come.is_set():
            raise StopRequestedError("stop")


def test_a_stop_waits_for_the_calls_in_threads_and_begins_no_more() -> None:
    """Stores may be closed after it."""
    order, done, pause = _Order(), [], threading.Event()
    calls = ThreadCalls(2, order.go_on)

    def ends(name: str) -> None:
        order.has_come.set()
        while not calls._is_over:  # until the order was looked for
            pause.wait(0.01)
        done.append(name)

    for name in ("a", "b", "a"):
        calls.add(name, lambda name=name: ends(name))  # type: ignore[misc]  # of the loop's variable
    with pytest.raises(StopRequestedError):
        calls.finish()
    assert sorted(done) == ["a", "b"]
    calls.close()


def test_a_stop_cancels_coroutines_and_waits_for_their_end() -> None:
    """None begins after it."""
    order, ended = _Order(), []
    calls = LoopCalls(2, order.go_on)

    async def waits(name: str) -> None:
        order.has_come.set()
        try:
            await asyncio.sleep(WAIT_S)
        except asyncio.CancelledError:
            ended.append(name)
            raise

    for name in ("a", "b", "a"):
        calls.add(name, lambda name=name: waits(name))  # type: ignore[misc]  # of the loop's variable
    with pytest.raises(StopRequestedError):
        calls.finish()
    assert sorted(ended) == ["a", "b"]
    with pytest.raises(StopRequestedError):
        calls.outcome(waits("c"))
    calls.close()


@pytest.mark.parametrize("kind", [ThreadCalls, LoopCalls])
def test_the_first_error_is_the_one_of_the_first_record(
    kind: type[ThreadCalls | LoopCalls],
) -> None:
    """Of those that were raised; also what ends a process, and a cancelled coroutine."""
    for error in (ValueError("x"), SystemExit(3), asyncio.CancelledError()):
        calls = kind(4, lambda: None)

        def plain(error: BaseException = error) -> None:
            raise error

        async def coroutine(error: BaseException = error) -> None:
            raise error

        for name in ("a", "b"):
            calls.add(name, plain if kind is ThreadCalls else coroutine)  # type: ignore[arg-type]  # of its kind
        with pytest.raises(type(error)):
            calls.finish()
        calls.finish()
        calls.close()


def test_what_a_coroutine_raises_has_its_own_code_as_the_first_frame() -> None:
    """Whose fault it is depends on that."""
    calls = LoopCalls(1, lambda: None)

    async def own() -> None:
        raise ValueError("x")

    async def fine() -> None:
        await asyncio.sleep(0)

    error = calls.outcome(own())
    assert error is not None
    assert error.__traceback__ is not None
    assert error.__traceback__.tb_frame.f_code.co_name == "own"
    assert calls.outcome(fine()) is None
    calls.close()


_TASK = TaskName("Partition 0")


def _message(key: object) -> IncomingMessage:
    return IncomingMessage("kafka", "in", 0, 7, key, None, 0, {})


@pytest.mark.parametrize("key", ["a", 7, ("a", 1), ["a"], {"a": [1]}])
def test_messages_of_one_key_of_a_task_come_in_order(key: object) -> None:
    """Those of other keys and of other tasks do not wait for them."""
    order = order_of("t", _message(key))
    assert {order} == {order_of("t", _message(key))}
    assert order not in {order_of("u", _message(key)), order_of("t", _message("b")), None}


def test_messages_without_a_key_have_no_order() -> None:
    """None of them waits for another one."""
    assert order_of("t", _message(None)) is None


class _Closing(StreamTask):
    """Its close takes longer than the pause between two looks for the order to stop."""

    closed = False

    async def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """Nothing."""

    async def close(self) -> None:
        await asyncio.sleep(0.3)  # a slow end
        type(self).closed = True


def test_the_close_of_a_task_is_waited_for_after_the_order_to_stop() -> None:
    """It may have what the task holds to give back."""
    order = _Order()
    calls = LoopCalls(2, order.go_on)
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
    parts = StreamTaskParts(
        outputs, Requests(), pipeline_messages, frozenset(), StopFlag(), CallWatch(None)
    )
    task = AsyncStreamTask(_Closing, Context(_TASK, {}, {}), parts, calls)
    order.has_come.set()
    task.close()
    assert _Closing.closed
    calls.close()
