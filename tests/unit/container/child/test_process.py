"""A process that waits for its permit, from its start to its burial: a shell stands for it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from signal import SIGKILL

import pytest

from homeport.container.child.process import ChildProcess
from homeport.container.host.lease_memory import LeaseMemory

SHELL = "/bin/sh"
Start = Callable[[str], ChildProcess]


@pytest.fixture(name="start")
def _start(tmp_path: Path) -> Iterator[Start]:
    started: list[ChildProcess] = []

    def start(script: str) -> ChildProcess:
        command = [SHELL, "-c", script]
        started.append(ChildProcess.start(command, {}, tmp_path / "logs" / "spare-1.log", 0))
        return started[-1]

    yield start
    for child in started:
        if child.poll() is None:
            child.signal(SIGKILL)
            child.wait()
        child.close()


def test_what_a_child_makes_is_its_users_alone(start: Start, tmp_path: Path) -> None:
    """Its log too, whatever the mask of the process that starts it."""
    before = os.umask(0)
    try:
        start(f"cd {tmp_path}; mkdir folder; touch folder/file").wait()
    finally:
        os.umask(before)
    paths = [tmp_path / name for name in ("folder", "folder/file", "logs", "logs/spare-1.log")]
    assert [path.stat().st_mode & 0o777 for path in paths] == [0o700, 0o600, 0o700, 0o600]


def test_a_childs_log_has_its_output_and_its_errors(start: Start) -> None:
    """The last lines of a child that fails are mostly those of its standard error."""
    child = start("echo out; echo error >&2")
    assert child.wait() == 0
    assert child.log_tail(100) == b"out\nerror\n"
    assert child.log_tail(6) == b"error\n"


def test_a_child_reads_its_permit_and_has_its_own_log(start: Start) -> None:
    """Each permit is a line, and the log is renamed after each incarnation."""
    child = start("read one; echo $one; read another; echo $another; cat")
    child.permit("the permit", "container-0-1.log")
    child.permit("the next", "container-0-2.log")
    assert child.poll() is None, "its input is open"
    child.end_orders()
    assert child.wait() == 0
    assert child.log_file.name == "container-0-2.log"
    assert child.log_file.read_bytes() == b"the permit\nthe next\n"


def test_a_child_that_is_buried_without_a_permit_leaves_no_pipe_open(tmp_path: Path) -> None:
    """A launcher makes many spares in its life: each would cost it a descriptor."""
    memory = LeaseMemory.endless()
    log_file = tmp_path / "spare-1.log"
    log_fd = os.open(log_file, os.O_RDWR | os.O_CREAT)
    with subprocess.Popen([SHELL, "-c", "exit 3"], stdin=subprocess.PIPE) as process:
        child = ChildProcess(process, memory, log_file, log_fd)
        assert child.wait() == 3
        child.close()
        assert process.stdin is not None
        assert process.stdin.closed
