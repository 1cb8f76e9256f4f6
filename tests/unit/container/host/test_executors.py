"""Calls in the caller's thread or in one beside it: their order, results, and end."""

from __future__ import annotations

import threading

import pytest

from homeport.container.host.executors import Executor, OneThread, SameThread

LIMIT_S = 30.0


@pytest.mark.parametrize("beside", [SameThread(), OneThread("test")], ids=["same", "own"])
def test_what_a_call_returns_or_raises_is_its_result(beside: Executor) -> None:
    """Whatever it raises: user code may end a thread, but not unseen."""

    def fails() -> int:
        raise SystemExit(3)

    good, bad = beside.submit(lambda: 7), beside.submit(fails)
    beside.wait(bad, LIMIT_S)
    assert (good.done(), bad.done()) == (True, True)
    assert good.result() == 7
    with pytest.raises(SystemExit):
        bad.result()
    beside.close()


def test_calls_of_a_thread_are_made_in_order_beside_the_caller() -> None:
    """The caller goes on meanwhile, and waits for no longer than it wants."""
    side, may_go_on, made = OneThread("test"), threading.Event(), list[int]()

    def first() -> None:
        may_go_on.wait(LIMIT_S)
        made.append(threading.get_ident())

    one = side.submit(first)
    two = side.submit(lambda: made.append(0))
    side.wait(one, 0.0)
    assert (one.done(), two.done()) == (False, False)
    may_go_on.set()
    side.wait(two, LIMIT_S)
    assert len(made) == 2
    assert made[0] != threading.get_ident()
    assert made[1] == 0
    side.close()


def test_a_closed_thread_makes_no_further_call_and_ends() -> None:
    """The one that it makes goes on to its end."""
    side, begun, may_go_on = OneThread("closing"), threading.Event(), threading.Event()

    def first() -> None:
        begun.set()
        may_go_on.wait(LIMIT_S)

    one, two = side.submit(first), side.submit(lambda: None)
    begun.wait(LIMIT_S)
    (thread,) = [t for t in threading.enumerate() if t.name == "closing"]
    side.close()
    may_go_on.set()
    thread.join(LIMIT_S)
    assert not thread.is_alive()
    assert (one.done(), two.done()) == (True, False)


def test_a_thread_is_over_when_its_last_call_has_returned() -> None:
    """What the call uses may be handed on then, and not before; none was begun: it is over."""
    side, may_go_on = OneThread("test"), threading.Event()
    one = side.submit(lambda: may_go_on.wait(LIMIT_S))
    side.close()
    assert not side.is_over(0.0)
    may_go_on.set()
    assert side.is_over(LIMIT_S)
    assert one.done()
    assert OneThread("idle").is_over(0.0)
    assert SameThread().is_over(0.0)
