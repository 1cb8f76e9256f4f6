"""One fake clock, and processes whose threads take turns on it.

Every process runs ordinary blocking code, the product's own wherever it can, in threads of which
one at a time has the turn. It gives the turn back only where it waits: for the clock, for a
condition, or for an answer. So a schedule is exact and repeats itself: the thread that is due first
goes first, and of two that are due together the one that was due earlier.

A process can be stopped (SIGSTOP), woken up (SIGCONT) and killed, at any point that it passes.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum

from homeport.config.errors import HomeportError

Condition = Callable[[], bool]
Body = Callable[[], object]

_JOIN_S = 5.0
_TURN_S = 60.0
"""Of real time: a thread that computes longer never ends."""
_ENDLESS = 20_000
"""More turns than any world takes at one instant."""
_ROUTINE = (
    "ask the end",
    "fetch",
    "ask the keeper: revoked",
    "v1/check-in",
    "v1/lease",
    "answered",
)
"""Calls that repeat again and again would drown the story."""


class Killed(BaseException):
    """Raised in the threads of a process that was killed; nothing they do has an effect then."""


class StuckError(AssertionError):
    """What a schedule waits for has not come to pass within its limit."""


class ProcessState(Enum):
    """What the operating system would say of a process."""

    RUNNING = "running"
    STOPPED = "stopped"
    DEAD = "dead"


@dataclass(order=True)
class _Due:
    at_ms: int
    number: int
    action: Callable[[], None] = field(compare=False)


@dataclass
class _Stop:
    """A place at which a process is to be stopped: the ``left``-th point that has these words."""

    words: str
    left: int


class Clock:
    """The time, in ms, and when each thread is due. ``story`` lists what was done, for people."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000
        self.story: list[str] = []
        self.processes: list[Process] = []
        self.current: Thread | None = None
        self.back = _taken()
        self.failure: BaseException | None = None
        self.missed_ms: dict[str, int] = {}
        """{host: how long its own clocks have stood still}."""
        self._queue: list[_Due] = []
        self._numbers = itertools.count()
        self._began_ms = self.now_ms
        self._at_once = 0
        self._is_lost = False
        self._schedule = threading.get_ident()

    # -- for schedules

    def run(self, ms: int) -> None:
        """That much time has passed, and all that was due in it is done."""
        end_ms = self.now_ms + ms
        while self._queue and self._queue[0].at_ms <= end_ms:
            self._do_next()
        self.now_ms = end_ms
        self._settle()

    def run_until(self, condition: Condition, limit_ms: int = 60_000) -> None:
        """The condition holds; no more time has passed than that took.

        Raises:
            StuckError: it does not, after the limit.
        """
        end_ms = self.now_ms + limit_ms
        self._settle()
        while not condition():
            if not self._queue or self._queue[0].at_ms > end_ms:
                self.now_ms = end_ms
                raise StuckError(self.stated(f"after {limit_ms} ms it still does not hold"))
            self._do_next()

    def boot_ms(self) -> int:
        """What the clock of the running process's host says."""
        missed_ms = self.missed_ms.get(self.current.process.host, 0) if self.current else 0
        return self.now_ms - missed_ms

    def process(self, name: str, host: str = "") -> Process:
        """A new process on that host; nothing runs in it yet."""
        process = Process(self, name, host, number=len(self.processes) + 1)
        self.processes.append(process)
        return process

    def announce(self, what: str, who: str | None = None) -> None:
        """One line of the story."""
        if who is None:
            who = self.current.process.name if self.current else "-"
        self.story.append(f"{self.now_ms - self._began_ms:>8} ms  {who:<14} {what}")

    def stated(self, verdict: str, lines: int = 120) -> str:
        """``verdict`` with the end of the story."""
        return "\n".join([verdict, "", *self.story[-lines:]])

    def close(self) -> None:
        """No thread of any process is left, unless one keeps its turn: those end with pytest."""
        if self._is_lost:
            return
        for process in self.processes:
            process.is_held = False
            process.kill()
        self.failure = None
        while any(not t.is_over for p in self.processes for t in p.threads):
            self._do_next()
        for process in self.processes:
            for thread in process.threads:
                thread.join(_JOIN_S)

    # -- for what runs in processes, and for schedules too

    def sleep(self, ms: float) -> None:
        """Returns that much later."""
        if self._is_foreign():
            time.sleep(ms / 1000)  # as without a world: no turn is its own
            return
        thread = self.current
        if thread is None:
            self.run(_whole(ms))
        else:
            thread.give_turn(self.now_ms + _whole(ms), None)

    def wait_for(self, condition: Condition, timeout_ms: float | None = None) -> bool:
        """Returns once the condition holds, or when the time is over; whether it holds."""
        thread = self.current
        if thread is None:
            try:
                self.run_until(condition, round(timeout_ms or 60_000))
            except StuckError:
                return False
            return True
        thread.require_alive()
        if not condition():
            due_ms = None if timeout_ms is None else self.now_ms + _whole(timeout_ms)
            thread.give_turn(due_ms, condition)
        return condition()

    def point(self, words: str) -> None:
        """The running process is at a place of that name; it is stopped there where asked for."""
        thread = self.current
        if thread is None or self._is_foreign():
            return
        thread.require_alive()
        process = thread.process
        if not any(routine in words for routine in _ROUTINE):
            self.announce(words)
        if process.is_to_stop_at(words):
            process.stop()
            thread.give_turn(self.now_ms, None)

    def at(self, delay_ms: float, action: Callable[[], None]) -> None:
        """``action`` is done that much later, by no process's thread."""
        due = _Due(self.now_ms + round(delay_ms), next(self._numbers), action)
        heapq.heappush(self._queue, due)

    def _is_foreign(self) -> bool:
        """Whether a thread calls that tests before the world left behind: it has no turn here."""
        turn = self._schedule if self.current is None else self.current.ident
        return threading.get_ident() != turn

    def await_turn(self) -> None:
        """The thread that was given the turn has given it back.

        Raises:
            StuckError: it has not, after more than any turn takes.
        """
        self._is_lost = True  # also where pytest is being ended meanwhile
        if not self.back.acquire(timeout=_TURN_S):
            raise StuckError(self.stated(f"a turn took more than {_TURN_S:g} s"))
        self._is_lost = False

    def _do_next(self) -> None:
        due = heapq.heappop(self._queue)
        self._at_once = self._at_once + 1 if due.at_ms <= self.now_ms else 0
        if self._at_once > _ENDLESS:
            raise StuckError(self.stated("a thread goes on for ever without any time passing"))
        self.now_ms = max(self.now_ms, due.at_ms)
        due.action()
        self._settle()

    def _settle(self) -> None:
        """Each thread whose condition now holds is due."""
        if self.failure is not None:
            failure, self.failure = self.failure, None
            raise failure
        for process in self.processes:
            for thread in process.threads:
                if thread.waits_for is not None and thread.waits_for():
                    thread.wake()


def _whole(ms: float) -> int:
    """In whole ms; a wait that is not nothing takes some time."""
    return max(1, round(ms)) if ms > 0 else 0


def _taken() -> threading.Lock:
    """A lock that waits for its first release, by the thread that has the turn before."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class Thread:
    """One thread of a process."""

    def __init__(self, clock: Clock, process: Process, body: Body) -> None:
        self.process = process
        self.is_over = False
        self.waits_for: Condition | None = None
        self.children: list[Process] = []
        """Processes that it has started with a parent-death signal."""
        self._clock = clock
        self._body = body
        self._turn = _taken()
        self._turns = 0
        self._is_due = False
        self._thread = threading.Thread(target=self._run, name=process.name, daemon=True)
        self._thread.start()
        self.wake()

    def wake(self) -> None:
        """It has its turn as soon as its process runs."""
        self.waits_for = None
        turn = self._turns
        self._clock.at(0, lambda: self._resume(turn))

    def give_turn(self, due_ms: int | None, condition: Condition | None) -> None:
        """Others run; returns when it is due, or the condition holds."""
        self.require_alive()
        self.waits_for = condition
        if due_ms is not None:
            turn = self._turns
            self._clock.at(due_ms - self._clock.now_ms, lambda: self._resume(turn))
        self._clock.back.release()
        self._turn.acquire()
        self.require_alive()

    @property
    def ident(self) -> int | None:
        """The number of the real thread."""
        return self._thread.ident

    def require_alive(self) -> None:
        """Nothing while the process lives; else the thread ends here."""
        if self.process.state is ProcessState.DEAD:
            raise Killed

    def went_on(self) -> None:
        """The process was woken up."""
        if self._is_due:
            self._is_due = False
            self.wake()

    def join(self, timeout_s: float) -> None:
        """The thread is really gone."""
        self._thread.join(timeout_s)

    def _resume(self, turn: int) -> None:
        """Called by the clock: the thread has its turn until it gives it back."""
        if self.is_over or turn != self._turns:
            return
        if self.process.state is ProcessState.STOPPED:
            self._is_due = True
            return
        self._turns += 1
        self.waits_for = None
        self._clock.current = self
        self._turn.release()
        self._clock.await_turn()
        self._clock.current = None

    def _run(self) -> None:
        self._turn.acquire()
        code: object = 1
        try:
            self.require_alive()
            code = self._body()
        except Killed:
            code = None
        except HomeportError as error:
            self.process.failure = error
            self._clock.announce(f"fails: {type(error).__name__}: {error}")
        except BaseException as error:  # noqa: BLE001 - a fault of the schedule or of the product
            self._clock.failure = error
        self.is_over = True
        for child in self.children:
            child.kill()
        if self.process.threads and self.process.threads[0] is self:
            self.process.ended(code)
        self._clock.back.release()


class Process:
    """One process. It ends with its first thread, and all of its threads with it."""

    def __init__(self, clock: Clock, name: str, host: str, number: int) -> None:
        self.number = number
        self.name = name
        self.host = host
        self.state = ProcessState.RUNNING
        self.is_held = False
        """It stands in the kernel: a SIGKILL stops it, and ends it only when it is let go."""
        self.exit_code: object = None
        self.failure: HomeportError | None = None
        self.threads: list[Thread] = []
        self.at_end: list[Callable[[], None]] = []
        self.on_sigterm: Callable[[], object] | None = None
        self._clock = clock
        self._stops: list[_Stop] = []

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended; it may be stopped."""
        return self.state is not ProcessState.DEAD

    @property
    def is_stopped(self) -> bool:
        """Whether it stands still."""
        return self.state is ProcessState.STOPPED

    def spawn(self, body: Body) -> Thread:
        """A thread of it runs ``body``; what the first one returns is the exit code."""
        thread = Thread(self._clock, self, body)
        self.threads.append(thread)
        return thread

    def stop(self) -> None:
        """SIGSTOP: it does nothing, whatever the clock says."""
        if self.state is ProcessState.RUNNING:
            self.state = ProcessState.STOPPED
            self._clock.announce("is stopped", self.name)

    def go_on(self) -> None:
        """SIGCONT: it goes on where it was, and finds what time it is."""
        if self.state is ProcessState.STOPPED:
            self.state = ProcessState.RUNNING
            self._clock.announce("goes on", self.name)
            for thread in self.threads:
                thread.went_on()

    def kill(self) -> None:
        """SIGKILL: it does nothing more. From within: it ends itself."""
        if self.state is ProcessState.DEAD:
            return
        if self.is_held:
            self.stop()
            return
        self._clock.announce("is killed", self.name)
        self.ended(None)
        current = self._clock.current
        if current is not None and current.process is self:
            raise Killed

    def terminate(self) -> None:
        """SIGTERM: its handler runs as soon as it is not stopped; without one it ends."""
        self._clock.announce("gets SIGTERM", self.name)
        if self.on_sigterm is None:
            self.kill()
        elif self.is_alive:
            self.spawn(self.on_sigterm)

    def exit(self, code: int) -> None:
        """It ends at once with this exit code (``os._exit``). To be called by a thread of it."""
        self._clock.announce(f"exits with {code}", self.name)
        self.ended(code)
        raise Killed

    def ended(self, code: object) -> None:
        """It has ended with this exit code (None: by a signal)."""
        if self.state is ProcessState.DEAD:
            return
        self.state = ProcessState.DEAD
        self.exit_code = code
        for thread in self.threads:
            thread.wake()
        for action in self.at_end:
            action()

    def stop_at(self, words: str, nth: int = 1) -> None:
        """It will be stopped when it passes the ``nth`` point whose name has these words."""
        self._stops.append(_Stop(words, nth))

    def is_to_stop_at(self, words: str) -> bool:
        """Whether this is a point to be stopped at; each is used once."""
        for stop in self._stops:
            if stop.words in words:
                stop.left -= 1
                if stop.left == 0:
                    self._stops.remove(stop)
                    return True
        return False
