"""What the product is given in the place of network, event loop, thread pools, threads, time."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from homeport.config.errors import HomeportError, UnavailableError
from tests.unit.world.clock import Clock, Process, Thread


@dataclass
class Request:
    """One message on its way, and what became of it."""

    words: str
    handle: Callable[[], Any]
    is_done: bool = False
    answer: Any = None
    error: HomeportError | None = None


@dataclass
class Server:
    """The server of one address: the process that listens, and what waits there for it."""

    process: Process
    inbox: deque[Request] = field(default_factory=deque)
    backend: Any = None


@dataclass
class Links:
    """The network between launchers, containers and the AM.

    ``cut``: pairs (from, to) of hosts or processes, by name, "*" for all, between which messages
    are lost, one way.
    """

    clock: Clock
    servers: dict[str, Server] = field(default_factory=dict)
    cut: set[tuple[str, str]] = field(default_factory=set)

    def isolate(self, name: str) -> None:
        """Nothing comes from there and nothing gets there."""
        self.cut |= {(name, "*"), ("*", name)}

    def mend(self) -> None:
        """Every message arrives again."""
        self.cut.clear()

    def call(self, url: str, words: str, act: Callable[[Any], Any], timeout_s: float) -> Any:  # noqa: ANN401 - any answer
        """What ``act`` on the server's backend leads to.

        A request that is not answered in time may still be carried out, later.

        Raises:
            UnavailableError: no process listens there, or no answer came in time.
        """
        clock = self.clock
        here = clock.current.process if clock.current else None
        clock.point(words)
        clock.sleep(1)
        end_ms = clock.now_ms + timeout_s * 1000
        server = self.servers.get(url)
        if server is None or not server.process.is_alive:
            raise UnavailableError(f"{words}: no process listens at {url}")
        if not self._passes(here, server.process):
            clock.sleep(timeout_s * 1000)
            raise UnavailableError(f"{words}: {url} is not reached")
        request = Request(words, lambda: act(server.backend))
        server.inbox.append(request)
        clock.wait_for(
            lambda: request.is_done or not server.process.is_alive, end_ms - clock.now_ms
        )
        if request.is_done and not self._passes(server.process, here):
            clock.sleep(max(0, end_ms - clock.now_ms))
            raise UnavailableError(f"{words}: the answer is lost")
        if not request.is_done:
            raise UnavailableError(f"{words}: {url} does not answer")
        clock.sleep(1)
        clock.point(f"{words} answered")
        if request.error is not None:
            raise request.error
        return request.answer

    def _passes(self, source: Process | None, target: Process | None) -> bool:
        sources, targets = _names(source), _names(target)
        return not any(a in sources and b in targets for a, b in self.cut)


def _names(process: Process | None) -> set[str]:
    return {"*"} if process is None else {"*", process.name, process.host}


_T = TypeVar("_T")


class WorldLoop(asyncio.BaseEventLoop):
    """asyncio on the world's clock, for one thread of a process; takes a server's requests in."""

    def __init__(self, clock: Clock, server: Server) -> None:
        super().__init__()
        self._clock_resolution = 1e-9
        self._clock = clock
        self._server = server
        self._done: deque[Callable[[], None]] = deque()
        self._selector = self
        self._default = Executor()

    def select(self, timeout: float | None) -> list[Any]:
        """Waits for a message, for work done in a thread, or for the time."""
        inbox = self._server.inbox
        if timeout is None or timeout > 0:
            self._clock.wait_for(
                lambda: bool(inbox or self._done), None if timeout is None else timeout * 1000 + 0.5
            )
        while self._done:
            self._done.popleft()()
        while inbox:
            self.create_task(self._answer(inbox.popleft()))
        return []

    def time(self) -> float:
        """Seconds of the world's clock."""
        return self._clock.now_ms / 1000

    def run_in_executor(  # type: ignore[override]  # the same, on the world's threads
        self,
        executor: Executor | None,
        func: Callable[..., Any],
        *args: Any,  # noqa: ANN401 - as asyncio
    ) -> asyncio.Future[Any]:
        """``func`` runs in a thread of the process."""
        future = self.create_future()

        def done(value: object, error: BaseException | None) -> None:
            if future.cancelled():
                return
            if error is None:
                future.set_result(value)
            else:
                future.set_exception(error)

        def work() -> None:
            try:
                value = func(*args)
            except Exception as error:  # noqa: BLE001 - handed on to the waiting caller
                self._done.append(lambda error=error: done(None, error))  # type: ignore[misc]  # lambda
            else:
                self._done.append(lambda: done(value, None))

        (executor or self._default).run(work)
        return future

    def close_all(self) -> None:
        """Nothing is left of tasks that will not go on."""
        for task in asyncio.all_tasks(self):
            task._log_destroy_pending = False  # type: ignore[attr-defined]  # asyncio's
            coroutine = task.get_coro()
            if coroutine is not None:
                with contextlib.suppress(BaseException):  # its process is dead
                    coroutine.close()
        self.close()

    async def _answer(self, request: Request) -> None:
        try:
            request.answer = await request.handle()
        except HomeportError as error:
            request.error = error
        except Exception as error:  # noqa: BLE001 - a fault of the world's or of the product's
            self._clock.failure = error
        request.is_done = True

    def _process_events(self, event_list: list[Any]) -> None:
        pass

    def _write_to_self(self) -> None:
        pass


class Executor:
    """``ThreadPoolExecutor`` on a thread of the process that uses it; ``map`` is done at once."""

    clock: Clock

    def __init__(self, max_workers: int = 1, name: str = "") -> None:
        del max_workers, name
        self._work: deque[Callable[[], None]] = deque()
        self._is_served = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def map(self, func: Callable[[Any], _T], items: Iterable[Any]) -> Iterator[_T]:
        """One after the other, in this thread."""
        return iter([func(item) for item in items])

    def run(self, work: Callable[[], None]) -> None:
        """``work`` will be done, in order."""
        self._work.append(work)
        current = self.clock.current
        if not self._is_served and current is not None:
            self._is_served = True
            current.process.spawn(self._serve)

    def shutdown(self, *, wait: bool = True, cancel_futures: bool = False) -> None:
        """Nothing is done any more."""
        del wait, cancel_futures
        self._work.clear()

    def _serve(self) -> None:
        while True:
            self.clock.wait_for(lambda: bool(self._work))
            while self._work:
                self._work.popleft()()


class Threads:
    """The module ``threading`` as the product sees it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def Thread(  # noqa: N802 - the module's name
        self,
        target: Callable[..., object],
        args: tuple[Any, ...] = (),
        name: str = "",
        *,
        daemon: bool = True,
    ) -> _Starter:
        """A thread of the running process."""
        del name, daemon
        return _Starter(self._clock, lambda: target(*args))

    def Condition(self) -> _Condition:  # noqa: N802 - the module's name
        """A condition; its lock is free whenever its holder waits."""
        return _Condition(self._clock)

    def Event(self) -> _Event:  # noqa: N802 - the module's name
        """An event."""
        return _Event(self._clock)

    def RLock(self) -> _Lock:  # noqa: N802 - the module's name
        """A lock that its holder may take again."""
        return _Lock(self._clock)

    Lock = RLock


class _Starter:
    def __init__(self, clock: Clock, body: Callable[[], object]) -> None:
        self._clock = clock
        self._body = body
        self._thread: Thread | None = None

    def start(self) -> None:
        current = self._clock.current
        if current is None:
            raise AssertionError("only a process starts threads")
        self._thread = current.process.spawn(self._body)

    def is_alive(self) -> bool:
        return self._thread is not None and not self._thread.is_over

    def join(self, timeout: float | None = None) -> None:
        self._clock.wait_for(
            lambda: not self.is_alive(), None if timeout is None else timeout * 1000
        )


class _Lock:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._holder: object = None
        self._depth = 0

    def __enter__(self) -> Self:
        me = self._clock.current
        if self._depth and self._holder is not me:
            self._clock.wait_for(lambda: self._depth == 0)
        self._holder, self._depth = me, self._depth + 1
        return self

    def __exit__(self, *_: object) -> None:
        self._depth -= 1


class _Event:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._is_set = False

    def set(self) -> None:
        self._is_set = True

    def is_set(self) -> bool:
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        return self._clock.wait_for(self.is_set, None if timeout is None else timeout * 1000)


class _Condition:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._notified = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def notify_all(self) -> None:
        self._notified += 1

    def wait(self, timeout: float | None = None) -> bool:
        seen = self._notified
        return self.wait_for(lambda: self._notified != seen, timeout)

    def wait_for(self, predicate: Callable[[], bool], timeout: float | None = None) -> bool:
        return self._clock.wait_for(predicate, None if timeout is None else timeout * 1000)


class Time:
    """The module ``time`` as the product sees it."""

    CLOCK_BOOTTIME = time.CLOCK_BOOTTIME

    def __init__(self, clock: Clock) -> None:
        self._clock = clock

    def monotonic(self) -> float:
        """Seconds."""
        return self._clock.now_ms / 1000

    time = perf_counter = monotonic

    def monotonic_ns(self) -> int:
        """Nanoseconds."""
        return self._clock.now_ms * 1_000_000

    time_ns = perf_counter_ns = monotonic_ns

    def clock_gettime_ns(self, _clock_id: int) -> int:
        """Nanoseconds, of any clock."""
        return self._clock.now_ms * 1_000_000

    def sleep(self, seconds: float) -> None:
        """Returns that much later."""
        self._clock.sleep(seconds * 1000)
