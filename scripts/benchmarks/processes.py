"""Processes that are measured: their memory and CPU as Linux counts them, and their results."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks.report import BenchmarkError

_STOP_S = 30.0

Serving = AbstractContextManager[tuple[int, int]]
"""(pid, port) of a process that serves inside the block."""


def result_of(module: str, *arguments: str) -> dict[str, Any]:
    """What a module of ours, run in a process of its own, prints as its last line of JSON.

    Raises:
        BenchmarkError: it failed.
    """
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkError(f"benchmarks.{module} ended with exit code {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)  # noqa: S101 - our own module's line
    return found


@contextmanager
def serving(module: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """(pid, port) of a module of ours that prints its port and ends with its standard input."""
    command = [sys.executable, "-m", f"benchmarks.{module}", *arguments]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - asked for above
            line = process.stdout.readline()
            if not line:
                raise BenchmarkError(f"benchmarks.{module} ended before it served")
            yield process.pid, int(line)
            process.communicate("", timeout=_STOP_S)
        finally:
            process.kill()


def cpu_s(pid: int) -> float:
    """CPU seconds of the process so far, in user and kernel mode."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system


def tree_cpu_s(pid: int) -> float:
    """CPU seconds of the process and of all below it that run, so far."""
    return sum(map(cpu_s, (pid, *pids_below(pid))))


def pids_below(pid: int) -> list[int]:
    """Return the processes that it started, that those started, and so on."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]


def resident_mb(pid: int | str = "self") -> float:
    """Resident memory of the process now, in MB."""
    return _memory_mb(pid, "VmRSS:")


def peak_mb(pid: int | str = "self") -> float:
    """The most it has been since the process began, or since ``forget_peak``.

    Not getrusage's: that one inherits the peak of the process that started this one.
    """
    return _memory_mb(pid, "VmHWM:")


def forget_peak(pid: int) -> None:
    """``peak_mb`` counts from now on."""
    Path(f"/proc/{pid}/clear_refs").write_text("5", encoding="ascii")


def _memory_mb(pid: int | str, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith(name))
    return int(kilobytes) / 1024
