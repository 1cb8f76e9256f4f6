"""Processes that are measured: their memory as Linux counts it, and their results."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from benchmarks.report import BenchmarkError

_STOP_S = 30.0


def _command(function: str, arguments: tuple[object, ...]) -> list[str]:
    return [sys.executable, "-m", "benchmarks.processes", function, json.dumps(arguments)]


def result_of(function: str, *arguments: object) -> dict[str, Any]:
    """Return what a function of ours, such as ``allocator.placement.measured``, returns.

    It runs in a process of its own, and gets ``arguments`` as JSON.

    BenchmarkError: it failed.
    """
    command = _command(function, arguments)
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise BenchmarkError(f"benchmarks.{function} ended with exit code {done.returncode}")
    found = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(found, dict)  # noqa: S101 - our own function's
    return found


@contextmanager
def child(command: list[str]) -> Iterator[tuple[subprocess.Popen[str], IO[str], IO[str]]]:
    """Run a process with its standard input and output as pipes; kill it after the block."""
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            if process.stdin is None or process.stdout is None:
                raise BenchmarkError("the process has no pipes")
            yield process, process.stdin, process.stdout
        finally:
            process.kill()


@contextmanager
def serving(function: str, *arguments: object) -> Iterator[tuple[int, int]]:
    """Run a function of ours that prints its port and ends with its standard input: (pid, port)."""
    with child(_command(function, arguments)) as (process, _, lines):
        line = lines.readline()
        if not line:
            raise BenchmarkError(f"benchmarks.{function} ended before it served")
        yield process.pid, int(line)
        process.communicate("", timeout=_STOP_S)


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


def _main(name: str, arguments: str) -> None:
    module, _, function = name.rpartition(".")
    found = getattr(importlib.import_module(f"benchmarks.{module}"), function)(
        *json.loads(arguments)
    )
    print(json.dumps(found or {}), flush=True)
    os._exit(0)  # the threads of clients and stores have nothing to do any more


if __name__ == "__main__":
    _main(*sys.argv[1:])
