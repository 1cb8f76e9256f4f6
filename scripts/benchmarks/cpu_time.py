"""CPU of processes as Linux counts it. Needs no installed package: programs of peers use it too."""

from __future__ import annotations

import os
from pathlib import Path

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """Return the CPU seconds of the process so far, in user and kernel mode; 0: it has ended."""
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S if fields else 0.0


def tree_cpu_s(pid: int | None = None) -> float:
    """Return the same of the process, by default this one, and of all below it that run."""
    pid = os.getpid() if pid is None else pid
    return sum(map(cpu_s, (pid, *pids_below(pid))))


def pids_below(pid: int) -> list[int]:
    """Return the processes that it started, that those started, and so on."""
    started: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            started.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [pid]
    for one in found:
        found += started.get(one, [])
    return found[1:]


def _stat(pid: int) -> list[str]:
    """Return what follows the name: state, parent and so on; nothing of one that has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return []
    return text.rpartition(")")[2].split()
