"""The messages that a child gets by standard input, and what ends the waiting for them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from homeport.container.host.orders import REST, Orders, kept_in, rest_order
from homeport.job_coordinator.model.ids import TaskName

LIMIT_S = 10
TASKS = [TaskName('Partition 1 "ü\n'), TaskName("Partition 0")]


class _Pipe(NamedTuple):
    writer: int
    orders: Orders

    def send(self, text: str) -> None:
        os.write(self.writer, text.encode())


@pytest.fixture
def pipe() -> Iterator[_Pipe]:
    """Its end is the test's to close."""
    reader, writer = os.pipe()
    yield _Pipe(writer, Orders(reader))
    os.close(reader)


def test_a_launchers_permit_ends_with_the_pipe(pipe: _Pipe) -> None:
    """In pieces too; then nothing but a signal stops the incarnation, and no other comes."""
    pipe.send("per")
    pipe.send("mit")
    os.close(pipe.writer)
    assert pipe.orders.next_permit() == "permit"
    stop = pipe.orders.begin()
    assert not stop.wait(0)
    pipe.orders.terminate()
    assert stop.is_set()
    assert not stop.is_to_rest
    assert pipe.orders.next_permit() is None


def test_an_incarnation_rests_and_another_permit_comes(pipe: _Pipe) -> None:
    """Its order to stop is its own: the next one begins without."""
    pipe.send("one\nrest\n")  # the order has overtaken the start
    assert pipe.orders.next_permit() == "one"
    first = pipe.orders.begin()
    assert first.wait(LIMIT_S)
    assert first.is_to_rest
    pipe.send("two\n")
    assert pipe.orders.next_permit() == "two"
    second = pipe.orders.begin()
    assert not second.wait(0)
    pipe.send(f"{rest_order(TASKS)}\n")
    assert second.wait(LIMIT_S)
    assert (first.kept, second.kept) == (frozenset(), frozenset(TASKS))
    os.close(pipe.writer)
    assert pipe.orders.next_permit() is None


def test_an_order_to_rest_names_the_tasks_that_stay() -> None:
    """Without any it is the bare word; anything else is no such order, and ends the process."""
    assert rest_order() == REST
    assert kept_in(REST) == frozenset()
    assert "\n" not in rest_order(TASKS)
    assert kept_in(rest_order(TASKS)) == frozenset(TASKS)
    for other in ("", "rests", "rest x", "rest {}", "rest [1]", '{"rest":[]}'):
        assert kept_in(other) is None


def test_a_signal_ends_the_process_though_it_was_to_rest(pipe: _Pipe) -> None:
    """No permit is taken after it, and an incarnation that begins all the same stops at once."""
    pipe.send(f"one\n{rest_order(TASKS)}\n")
    assert pipe.orders.next_permit() == "one"
    stop = pipe.orders.begin()
    assert stop.wait(LIMIT_S)
    pipe.orders.terminate()
    assert not stop.is_to_rest
    assert not stop.kept
    pipe.send("two\n")
    assert pipe.orders.next_permit() is None
    assert pipe.orders.begin().is_set()
    os.close(pipe.writer)


def test_the_end_of_the_pipe_ends_an_incarnation_that_might_have_rested(pipe: _Pipe) -> None:
    """Its processor is gone, or lets it go."""
    pipe.send("one\n")
    assert pipe.orders.next_permit() == "one"
    stop = pipe.orders.begin()
    os.close(pipe.writer)
    assert stop.wait(LIMIT_S)
    assert not stop.is_to_rest


def test_a_wait_without_a_permit_is_noticed_once(pipe: _Pipe) -> None:
    """What the process holds for the next permit is let go; a permit may come all the same."""
    idle: list[str] = []

    def note() -> None:
        idle.append("idle")
        pipe.send("late\n")

    assert pipe.orders.next_permit(note, 0.01) == "late"
    pipe.send("one\ntwo\n")
    assert pipe.orders.next_permit(note, LIMIT_S) == "one"
    assert pipe.orders.next_permit(note, 0) == "two"
    assert idle == ["idle"]
    os.close(pipe.writer)
