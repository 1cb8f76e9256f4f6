"""The flag that a signal handler sets."""

from __future__ import annotations

import signal

import pytest

from homeport.container.runtime.stop_flag import StopFlag, StopRequestedError


def test_it_ends_every_wait_for_good() -> None:
    """Also those that begin later, and in every thread."""
    flag = StopFlag()
    assert not flag.wait(0)
    flag.pause(0)
    flag.check()
    flag.set()
    flag.set()
    assert flag.is_set()
    assert flag.wait()
    with pytest.raises(StopRequestedError):
        flag.pause(60)
    with pytest.raises(StopRequestedError):
        flag.check()


def test_a_handler_can_set_it_while_the_same_thread_waits() -> None:
    """The wait ends; nothing is locked."""
    flag = StopFlag()
    before = signal.signal(signal.SIGALRM, lambda *_: flag.set())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert flag.wait(60)
    finally:
        signal.signal(signal.SIGALRM, before)
