"""A process that gives way has a session of its own for it, and dies with its parent still."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from homeport.container.host import niceness

CHILD = """
import os, sys, time
from pathlib import Path
from homeport.job_coordinator.parent_death import die_with_parent
from homeport.container.host.niceness import give_way
die_with_parent(os.getppid())
give_way()
group = Path("/proc/self/autogroup")
session = group.read_text().split()[-1] if group.exists() else "10"
print(os.getpid(), os.getsid(0), os.getpriority(os.PRIO_PROCESS, 0), session, flush=True)
time.sleep(600)
"""
PARENT = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
LIMIT_S = 60


def test_a_nice_process_leaves_the_session_of_its_parent_and_dies_with_it() -> None:
    """Its threads and its session are nice; the parent's session stays as it is (safety C5)."""
    with subprocess.Popen([sys.executable, "-c", PARENT, CHILD], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        pid, sid, niceness, session = map(int, parent.stdout.readline().split())
        nicer = min(19, os.getpriority(os.PRIO_PROCESS, 0) + 10)  # the highest niceness is 19
        assert (sid, niceness, session) == (pid, nicer, 10)
        assert os.getsid(parent.pid) == os.getsid(0)
        parent.kill()
    deadline = time.monotonic() + LIMIT_S
    while Path(f"/proc/{pid}").exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_thread_gives_way_and_its_process_does_not() -> None:
    """A process with standbys alone may get tasks later, which are not to be nice."""
    found: list[int] = []

    def run() -> None:
        niceness.thread_gives_way()
        found.append(os.getpriority(os.PRIO_PROCESS, threading.get_native_id()))

    before = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == [min(19, before + 10)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == before


class _BusyKernel:
    """Takes one change of a session's niceness in a while, and the last was just now.

    It stands for the clock, the folder of the process in /proc, and the file in it.
    """

    def __init__(self, threads: Path) -> None:
        self.seconds = 0.0
        self.given: list[str] = []
        self._threads = threads

    def __truediv__(self, name: str) -> _BusyKernel | Path:
        return self if name == "autogroup" else self._threads

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds

    def write_text(self, text: str, _encoding: str) -> None:
        if self.seconds < 1:
            raise BlockingIOError
        self.given.append(text)


def test_a_kernel_that_takes_one_change_at_a_time_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A standby beside another that has just given way becomes nice too."""
    kernel = _BusyKernel(tmp_path)
    monkeypatch.setattr(niceness, "_SELF", kernel)
    monkeypatch.setattr(os, "setsid", lambda: None)
    monkeypatch.setattr(niceness, "time", kernel)
    niceness.give_way()
    assert kernel.given == ["10"]
