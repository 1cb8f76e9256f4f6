"""Reading /proc, and signals to whole processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from homeport.local_cluster import processes
from homeport.local_cluster.processes import ProcessId, ProcessInfo, parse_environment, parse_stat

_BUSY_THREADS = """
import hashlib, threading
def work():
    while True:
        hashlib.sha256(bytes(1_000_000)).digest()
for _ in range(20):
    threading.Thread(target=work).start()
print("runs", flush=True)
"""


def test_command_names_with_brackets_do_not_shift_the_fields() -> None:
    """Field 22 is the start time, counted from the last closing bracket."""
    fields = " ".join(str(number) for number in range(5, 53))
    line = f"42 (a) S (b)) R 7 {fields}"
    assert parse_stat(line) == ProcessInfo(id=ProcessId(42, start_time=22), parent=7, state="R")


def test_environment_values_may_contain_equal_signs() -> None:
    """Entries end with a zero byte; those without = are not variables."""
    assert parse_environment(b"A=1=2\0B=\0junk\0") == {"A": "1=2", "B": ""}


def test_each_thread_of_a_paused_process_stands_still() -> None:
    """Also where most of them wait for a core when the signal is sent."""
    program = [sys.executable, "-c", _BUSY_THREADS]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as started:
        try:
            assert started.stdout is not None
            started.stdout.readline()
            found = processes.info(started.pid)
            assert found is not None
            processes.pause([found.id])
            stats = Path(f"/proc/{started.pid}/task").glob("*/stat")
            assert {parse_stat(path.read_text(encoding="utf-8")).state for path in stats} == {"T"}
            assert processes.is_stopped(found.id)
        finally:
            started.send_signal(signal.SIGKILL)
    processes.pause([found.id])  # it is gone: nothing to wait for


def test_a_tree_has_each_process_before_those_that_it_started() -> None:
    """One that has ended started none."""
    script = "sleep 300 & wait"
    command = ["/bin/sh", "-c", f"sh -c '{script}' & wait"]
    with subprocess.Popen(command, start_new_session=True) as started:
        try:
            limit = time.monotonic() + 30
            while len(found := processes.tree(started.pid)) < 3:
                assert time.monotonic() < limit
            parent, child, grandchild = found
            assert parent == started.pid
            assert processes.children(parent) == [child]
            assert processes.children(child) == [grandchild]
        finally:
            os.killpg(started.pid, signal.SIGKILL)
    assert processes.children(grandchild) == []
