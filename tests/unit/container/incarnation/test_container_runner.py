"""Whether a process ends with its incarnation, or waits for the permit of another one."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from homeport.config.errors import StoreError, UnavailableError
from homeport.container.host.disk_space import DiskFullError
from homeport.container.host.exit_codes import EXIT_DISK_FULL, EXIT_OVERTAKEN, EXIT_UNAVAILABLE
from homeport.container.host.lease_memory import LeaseMemory
from homeport.container.host.orders import REST, Orders
from homeport.container.host.stop_flag import OvertakenError, StopFlag
from homeport.container.incarnation import container_runner
from homeport.container.incarnation.container_runner import (
    FAILED,
    FINISHED,
    STOPPED,
    Keeping,
    _Given,
)
from homeport.container.incarnation.warm_up import GettingReady

EPOCH = 7


class _Container:
    """Does what the test says, with the order to stop at hand."""

    shutdown_ms = 60_000

    def __init__(self, work: Callable[[], bool], *, is_over: bool) -> None:
        self.run = work
        self.is_over = is_over
        self.kills = 0

    def kill_children(self) -> None:
        self.kills += 1


class _Ready(GettingReady):
    """Counts its ends."""

    def __init__(self) -> None:
        super().__init__(LeaseMemory.endless())
        self.stops = 0

    def stop(self) -> None:
        self.stops += 1


class _Keeping(Keeping):
    """Counts its ends."""

    closes = 0

    def close(self) -> None:
        self.closes += 1


def _ran(
    monkeypatch: pytest.MonkeyPatch, work: Callable[[StopFlag], bool], *, is_over: bool = True
) -> tuple[tuple[int, str | None, int | None], tuple[int, int, int]]:
    """What an incarnation led to; how often children, Spark and kept stores were ended."""
    stop, ready, kept = StopFlag(), _Ready(), _Keeping()
    container = _Container(lambda: work(stop), is_over=is_over)
    monkeypatch.setattr(container_runner, "_prepared", lambda *_, **__: (container, EPOCH))
    ended = container_runner._run(_Given("a permit", stop, None, ready, kept=kept))
    return ended, (container.kills, ready.stops, kept.closes)


def _rests(stop: StopFlag) -> bool:
    stop.rest()
    return False


def _is_terminated(stop: StopFlag) -> bool:
    stop.rest()
    stop.set()
    return False


def _fails_at_its_stop(stop: StopFlag) -> bool:
    stop.rest()
    raise ValueError("a store cannot be closed")


def test_a_process_rests_where_nothing_of_its_incarnation_is_at_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """What the next one can use stays; in all other cases all of it goes with the process."""
    ended, rested = (1, 1, 1), (STOPPED, None, EPOCH)
    assert _ran(monkeypatch, _rests) == (rested, (0, 0, 0))
    stopped = (STOPPED, None, None)
    assert _ran(monkeypatch, _rests, is_over=False) == (stopped, ended)
    assert _ran(monkeypatch, _is_terminated) == (stopped, ended)
    assert _ran(monkeypatch, _fails_at_its_stop) == (stopped, ended)
    assert _ran(monkeypatch, lambda _stop: True) == ((FINISHED, None, None), ended)


def test_a_process_that_rests_is_not_ended_for_its_last_stop(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The limit of that stop is over with the stop."""
    ends, before = list[object](), threading.enumerate()
    monkeypatch.setattr(container_runner, "_end", lambda *ended: ends.append(ended))
    monkeypatch.setattr(_Container, "shutdown_ms", 50)
    _ran(monkeypatch, _rests)
    for thread in {*threading.enumerate()} - {*before}:
        thread.join(60)
    assert ends == []


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (UnavailableError("Kafka is away"), EXIT_UNAVAILABLE),
        (OvertakenError("epoch 2 stands"), EXIT_OVERTAKEN),
        (DiskFullError("/state: no room is left"), EXIT_DISK_FULL),
        (OSError(errno.ENOSPC, "No space left on device"), EXIT_DISK_FULL),
        (StoreError("the store is damaged"), FAILED),
        (ValueError("poison found"), FAILED),
    ],
)
def test_the_exit_code_names_the_cause(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    """The launcher reports it to the AM, which shows it without the job's token."""

    def fails(_stop: StopFlag) -> bool:
        raise error

    ended, _ends = _ran(monkeypatch, fails)
    assert ended[0] == code
    assert str(error) in str(ended[1])


class _Child(NamedTuple):
    writer: int
    orders: Orders
    memory: LeaseMemory


@pytest.fixture
def child() -> Iterator[_Child]:
    """Its orders come by a pipe, whose end is the test's to close."""
    reader, writer = os.pipe()
    memory = LeaseMemory.endless()
    yield _Child(writer, Orders(reader), memory)
    os.close(reader)
    os.close(memory.fd)


def test_incarnations_follow_each_other_until_one_does_not_rest(
    child: _Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each is said to rest when it does; only the first one finds a new process."""
    seen: list[tuple[str, bool, bool]] = []
    ends = iter([(STOPPED, None, EPOCH), (FAILED, "poison found", None)])

    def run(given: _Given) -> tuple[int, str | None, int | None]:
        seen.append((given.permit, given.is_first, child.memory.resting == EPOCH))
        given.stop.wait()
        return next(ends)

    monkeypatch.setattr(container_runner, "_run", run)
    os.write(child.writer, f"one\n{REST}\ntwo\n{REST}\n".encode())
    ended = container_runner._run_all(child.orders, child.memory, _Ready(), None)
    assert ended == (FAILED, "poison found")
    assert seen == [("one", True, False), ("two", False, True)]
    os.close(child.writer)


def test_a_process_that_rests_ends_with_its_pipe(
    child: _Child, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And with it what was left for a next incarnation."""
    ready = _Ready()
    monkeypatch.setattr(container_runner, "_run", lambda *_, **__: (STOPPED, None, EPOCH))
    found: list[tuple[int, str | None]] = []
    os.write(child.writer, f"one\n{REST}\n".encode())

    def run() -> None:
        found.append(container_runner._run_all(child.orders, child.memory, ready, None))

    thread = threading.Thread(target=run)
    thread.start()
    os.close(child.writer)
    thread.join(60)
    assert (found, ready.stops) == ([(STOPPED, None)], 1)
