"""StreamTasks whose calls are made side by side: what comes in order, and their end."""

from __future__ import annotations

import asyncio
import threading

import pytest

from homeport.container.api import IncomingMessage, MessageCollector, StreamTask, TaskCoordinator
from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.processing.concurrent_calls import LoopCalls
from homeport.container.processing.concurrent_tasks import AsyncStreamTask, order_of
from homeport.container.processing.records import PipelineMessages
from homeport.container.processing.stream_task_instance import Requests, StreamTaskParts
from homeport.container.processing.task_instance import Context, Outputs
from homeport.job_coordinator.model.ids import TaskName

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

    async def process(  # type: ignore[override]  # a coroutine may be
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """Nothing."""

    async def close(self) -> None:  # type: ignore[override]  # as above
        await asyncio.sleep(0.3)
        type(self).closed = True


def test_the_close_of_a_task_is_waited_for_after_the_order_to_stop() -> None:
    """It may have what the task holds to give back."""
    stop = threading.Event()

    def go_on() -> None:
        if stop.is_set():
            raise StopRequestedError("stop")

    calls = LoopCalls(2, go_on)
    outputs = Outputs({"kafka"}, {"kafka"}, "kafka")
    parts = StreamTaskParts(outputs, Requests(), PipelineMessages(), frozenset(), go_on)
    task = AsyncStreamTask(_Closing, Context(_TASK, {}, {}), parts, calls)
    stop.set()
    task.close()
    assert _Closing.closed
    calls.close()
