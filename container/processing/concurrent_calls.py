"""Calls of a StreamTask side by side: in threads, or on an event loop of the container's.

A container adds the calls of one micro-batch, of all its tasks, and waits for the last of them.
So processed offsets are contiguous, and a transaction ends when no call is under way. Calls of one
order come one after the other; calls without an order come in any order.
"""

import asyncio
import threading
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from concurrent import futures
from typing import Any, Generic, TypeVar

from homeport.container.processing.call_watch import CallWatch

_LOOK_S = 0.2
"""How often the order to stop is looked for while calls are under way."""
_WHAT = "a call of process beside others"

_Call = TypeVar("_Call", bound=Callable[[], object])


class Calls(ABC, Generic[_Call]):
    """Collects calls, and makes them.

    ``limit``: how many are under way at once; 1: they come in the order of ``add``. ``may_go_on``:
    raises after the order to stop. ``watch``: watches the calls; None: nothing does.
    """

    def __init__(
        self, limit: int, may_go_on: Callable[[], None], watch: CallWatch | None = None
    ) -> None:
        self._limit = limit
        self._may_go_on = may_go_on
        self._watch = watch or CallWatch(None)
        self._chains: dict[Hashable, list[_Call]] = {}

    def add(self, order: Hashable | None, call: _Call) -> None:
        """Add ``call``, to be made after earlier calls of ``order``; None: it has no order."""
        key = 0 if self._limit == 1 else (object() if order is None else order)
        self._chains.setdefault(key, []).append(call)

    def finish(self) -> None:
        """Make all calls; none is under way afterwards, also where this raises.

        Raises:
            BaseException: the exception of the first call, in the order of ``add``, that raised;
                no further call begins. Or the exception of ``may_go_on``.
        """
        chains, self._chains = list(self._chains.values()), {}
        if chains:
            self._make(chains)

    @abstractmethod
    def _make(self, chains: Sequence[Sequence[_Call]]) -> None:
        """As ``finish``."""

    @abstractmethod
    def close(self) -> None:
        """End its threads."""


class ThreadCalls(Calls[Callable[[], None]]):
    """Makes calls in a pool of threads; each is watched by itself."""

    def __init__(
        self, limit: int, may_go_on: Callable[[], None], watch: CallWatch | None = None
    ) -> None:
        super().__init__(limit, may_go_on, watch)
        self._pool = futures.ThreadPoolExecutor(limit, "task")
        self._is_over = False

    def _make(self, chains: Sequence[Sequence[Callable[[], None]]]) -> None:
        self._is_over = False
        under_way = [self._pool.submit(self._make_chain, chain) for chain in chains]
        try:
            while futures.wait(under_way, _LOOK_S).not_done:
                self._may_go_on()
        finally:
            self._is_over = True
            futures.wait(under_way)
        for done in under_way:
            done.result()

    def _make_chain(self, chain: Sequence[Callable[[], None]]) -> None:
        for call in chain:
            if self._is_over:
                return
            try:
                with self._watch.calling(_WHAT):
                    call()
            except BaseException:  # user code may raise anything; ``finish`` raises it
                self._is_over = True
                raise

    def close(self) -> None:
        """End its threads."""
        self._pool.shutdown()


class LoopCalls(Calls[Callable[[], Awaitable[None]]]):
    """Makes calls on an event loop, whose one thread stays between them.

    The calls share a thread, so that no line of its stack is one call's own: they are watched
    together, as one call that goes on with each of them.

    ``is_stopped``: whether the order to stop has come, and cancels calls under way.
    """

    def __init__(
        self, limit: int, may_go_on: Callable[[], None], watch: CallWatch | None = None
    ) -> None:
        super().__init__(limit, may_go_on, watch)
        self.is_stopped = False
        self._loop = asyncio.new_event_loop()
        run = self._loop.run_forever
        self._thread = threading.Thread(target=run, name="task-loop", daemon=True)
        self._thread.start()

    def outcome(
        self, awaitable: Awaitable[object], *, may_be_stopped: bool = True
    ) -> BaseException | None:
        """Run ``awaitable`` on the loop; return its exception, without our frames, or None.

        ``may_be_stopped``: whether the order to stop cancels it.
        """
        return self._result(self._outcome(awaitable), may_be_stopped=may_be_stopped)

    async def _outcome(self, awaitable: Awaitable[object]) -> BaseException | None:
        try:
            await awaitable
        except BaseException as error:  # user code may raise anything, SystemExit too
            if self.is_stopped:
                raise
            # Without this frame: the first frame decides whose code raised.
            trace = error.__traceback__
            return error.with_traceback(None if trace is None else trace.tb_next)
        return None

    def _make(self, chains: Sequence[Sequence[Callable[[], Awaitable[None]]]]) -> None:
        with self._watch.calling(_WHAT, goes_on=True):
            error = self._result(self._make_all(chains))
        if error is not None:
            raise error

    async def _make_all(
        self, chains: Sequence[Sequence[Callable[[], Awaitable[None]]]]
    ) -> BaseException | None:
        room, begins = asyncio.Semaphore(self._limit), self._watch.tick
        errors: dict[int, BaseException] = {}

        async def make(number: int, chain: Sequence[Callable[[], Awaitable[None]]]) -> None:
            for call in chain:
                async with room:
                    if errors:
                        return
                    begins()
                    try:
                        await call()
                    except BaseException as error:  # user code may raise anything
                        if self.is_stopped:
                            raise
                        errors[number] = error
                        return

        await asyncio.gather(*(make(number, chain) for number, chain in enumerate(chains)))
        return errors[min(errors)] if errors else None

    def _result(
        self, work: Coroutine[Any, Any, BaseException | None], *, may_be_stopped: bool = True
    ) -> BaseException | None:
        """Return the result of ``work``; cancel it, and wait for its end, at the order to stop."""
        ended = threading.Event()
        begun: list[asyncio.Task[BaseException | None]] = []

        def begin() -> None:
            begun.append(self._loop.create_task(work))
            begun[0].add_done_callback(lambda _: ended.set())

        def cancel() -> None:
            begun[0].cancel()

        self._loop.call_soon_threadsafe(begin)
        try:
            while not ended.wait(_LOOK_S):
                if may_be_stopped:
                    self._may_go_on()
        except BaseException:  # whatever ends the waiting, nothing stays under way
            self.is_stopped = True
            self._loop.call_soon_threadsafe(cancel)
            ended.wait()
            raise
        return begun[0].result()

    def close(self) -> None:
        """Close the loop, and end its thread."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
