"""What a process and those below it hold in memory: resident pages, as YARN counts them.

Read from /proc without psutil, as the launcher uses it, which imports almost nothing.
"""

from __future__ import annotations

import os
from pathlib import Path


def resident_bytes(pid: int, *, below: bool = True) -> int:
    """Return what the process holds, with ``below`` and all that it started; 0: it has ended."""
    pids = _tree(pid) if below else [pid]
    return sum(map(_pages, pids)) * os.sysconf("SC_PAGE_SIZE")


def _tree(pid: int) -> list[int]:
    found = [pid]
    for tasks in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            children = tasks.read_text(encoding="ascii").split()
        except OSError:
            continue  # a thread that has ended
        for child in children:
            found += _tree(int(child))
    return found


def _pages(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0  # it has ended
