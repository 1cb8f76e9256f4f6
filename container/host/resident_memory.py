"""The resident memory of a process and of those below it, as YARN counts it.

It is read from /proc without psutil: the launcher, which uses it, imports almost nothing.
"""

import os
from pathlib import Path


def resident_bytes(pid: int, *, below: bool = True) -> int:
    """Return the bytes of the process, with ``below`` also of all below it; 0: it has ended."""
    pids = _tree(pid) if below else [pid]
    return sum(map(_pages, pids)) * os.sysconf("SC_PAGE_SIZE")


def _tree(pid: int) -> list[int]:
    found = [pid]
    try:
        threads = list(Path(f"/proc/{pid}/task").iterdir())
    except OSError:
        return found  # it has ended
    for thread in threads:
        try:
            tasks = thread / "children"
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
