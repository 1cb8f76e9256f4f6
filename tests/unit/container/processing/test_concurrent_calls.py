"""Calls side by side: the order to stop, and that nothing is under way afterwards."""

from __future__ import annotations

import asyncio
import threading

import pytest

from homeport.container.host.stop_flag import StopRequestedError
from homeport.container.processing.concurrent_calls import LoopCalls, ThreadCalls

WAIT_S = 20.0


class _Order:
    """The order to stop: ``go_on`` raises once it has come."""

    def __init__(self) -> None:
        self.has_come = threading.Event()

    def go_on(self) -> None:
        """As of a StopFlag."""
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


def test_after_the_order_to_stop_a_last_coroutine_may_be_waited_for() -> None:
    """As the close of a task."""
    order, ended = _Order(), []
    calls = LoopCalls(1, order.go_on)
    order.has_come.set()

    async def closes() -> None:
        await asyncio.sleep(0.3)  # longer than the pause between two looks for the order
        ended.append("closed")

    assert calls.outcome(closes(), may_be_stopped=False) is None
    assert ended == ["closed"]
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
