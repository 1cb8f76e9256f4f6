"""The flag that a signal handler sets."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from homeport.container.host.stop_flag import StopFlag, StopRequestedError


def test_a_stop_request_ends_every_wait() -> None:
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


def test_a_wait_for_input_lasts_until_there_is_some_or_the_flag_is_set() -> None:
    """What comes first ends it; a handler can set the flag while the same thread waits."""
    flag = StopFlag()
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    before = signal.signal(signal.SIGALRM, lambda *_: os.write(writer, b"permit"))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert flag.wait_for_input(reader)
        assert not flag.is_set()
        assert os.read(reader, 100) == b"permit"
        assert not flag.wait_for_input(reader, 0.01)
        signal.signal(signal.SIGALRM, lambda *_: flag.set())
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        assert flag.wait_for_input(reader)
        assert flag.is_set()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        os.close(reader)
        os.close(writer)


def test_a_stop_may_be_one_of_this_incarnation_alone() -> None:
    """Unless the process is to end before or after that."""
    rests, both, ends = StopFlag(), StopFlag(), StopFlag()
    rests.rest()
    both.rest()
    both.set()
    ends.set()
    ends.rest()
    assert [flag.is_to_rest for flag in (rests, both, ends)] == [True, False, False]
    assert all(flag.wait(0) for flag in (rests, both, ends))


def test_a_flag_without_references_keeps_no_file_open() -> None:
    """A process has one for each of its incarnations."""
    folder = Path("/proc/self/fd")
    StopFlag()
    before = len(list(folder.iterdir()))
    for _ in range(5):
        StopFlag().set()
    assert len(list(folder.iterdir())) == before
