"""Identities of processes, and signals to whole families of them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil

from homeport.local_cluster import processes
from homeport.local_cluster.processes import ProcessId

_BUSY_THREADS = """
import hashlib, threading
def work():
    while True:
        hashlib.sha256(bytes(1_000_000)).digest()
for _ in range(20):
    threading.Thread(target=work).start()
print("runs", flush=True)
"""


def test_an_id_is_one_life_of_a_process() -> None:
    """It has the start in ticks since boot, which no setting of the clock moves."""
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    assert processes.own() == ProcessId(os.getpid(), start_time=int(fields[19]))
    assert processes.is_alive(processes.own())
    assert not processes.is_alive(ProcessId(os.getpid(), start_time=int(fields[19]) - 1))


def test_a_zombie_does_not_live() -> None:
    """It is gone for all, though its parent has not waited for it."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as started:
        own = processes.identity(psutil.Process(started.pid))
        assert processes.is_alive(own)
        started.kill()
        os.waitid(os.P_PID, started.pid, os.WEXITED | os.WNOWAIT)
        assert not processes.is_alive(own)
        assert processes.wait_gone([own], 0) == set()


def test_each_thread_of_a_paused_process_stands_still() -> None:
    """Also where most of them wait for a core when the signal is sent."""
    program = [sys.executable, "-c", _BUSY_THREADS]
    with subprocess.Popen(program, stdout=subprocess.PIPE) as started:
        try:
            assert started.stdout is not None
            started.stdout.readline()
            own = processes.identity(psutil.Process(started.pid))
            processes.pause([own])
            stats = Path(f"/proc/{started.pid}/task").glob("*/stat")
            texts = [path.read_text(encoding="utf-8") for path in stats]
            assert {text.rpartition(")")[2].split()[0] for text in texts} == {"T"}
            assert processes.is_stopped(own)
        finally:
            started.send_signal(signal.SIGKILL)
    processes.pause([own])  # it is gone: nothing to wait for


def test_descendants_are_found_where_their_environment_is_another() -> None:
    """All below a process are stopped before one is killed, and continued from the lowest up."""
    inner = "sleep 300 & wait"
    command = ["/bin/sh", "-c", f"env -i sh -c '{inner}' & wait"]
    marks = {processes.CLUSTER_VARIABLE: "c", processes.NODE_VARIABLE: "nm1"}
    with subprocess.Popen(command, env={**os.environ, **marks}) as started:
        own = processes.identity(psutil.Process(started.pid))

        def find() -> set[ProcessId]:
            return {own} & set(processes.of_cluster("c", "nm1"))

        try:
            limit = time.monotonic() + 30
            # A process that has just been started has no environment for a moment.
            while processes.of_cluster("c") != {own: "nm1"}:
                assert time.monotonic() < limit
            assert processes.of_cluster("c", "nm2") == processes.of_cluster("d") == {}
            while len(family := processes.with_descendants([own])) < 3:
                assert time.monotonic() < limit
            assert processes.freeze(find) == family
            assert all(processes.is_stopped(process) for process in family)
            assert processes.thaw(find) == family
            assert not any(processes.is_stopped(process) for process in family)
            assert processes.kill_all(find) == family
            assert not any(processes.is_alive(process) for process in family)
        finally:
            for process in processes.with_descendants([own]):
                processes.send(process, signal.SIGKILL)


_CONTAINER = """
trap 'echo ended; exit 0' TERM
sleep 600 &
setsid sh -c 'echo $$ runs; exec sleep 600' &
wait
"""


def test_groups_end_but_for_those_of_their_members() -> None:
    """As YARN ends a container: what leads a group of its own is left to its parent."""
    command = ["bash", "-c", _CONTAINER]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as started:
        assert started.stdout is not None
        apart = int(started.stdout.readline().split()[0])
        family = processes.with_descendants([processes.identity(psutil.Process(started.pid))])
        left = {process for process in family if process.pid == apart}
        assert (len(family), len(left)) == (3, 1)
        processes.end_groups(family)
        assert processes.wait_gone(family - left, 30) == set()
        assert started.stdout.readline() == "ended\n"
        processes.end_groups(family - left)  # they are gone: no error
        (inner,) = left
        assert processes.is_alive(inner)
        processes.kill_one(inner)
