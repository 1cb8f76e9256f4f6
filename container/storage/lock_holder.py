"""The holder of a store directory's lock, as the kernel has it: the lock itself is not touched.

Even a shared lock, taken for a moment to see whether it can be had, would turn away a container
that opens the directory in that moment.

The kernel's list of locks names the process that took one. Where that has ended, a child of it that
was given the lock holds it still, as a restore worker does for a moment: it is found by its files.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Sequence
from pathlib import Path

from homeport.container.storage.directory_lock import LOCK_FILE, Holder, read_holder

_PROC = Path("/proc")
_LOCKS = _PROC / "locks"
_PID_FIELD, _FILE_FIELD = 4, 5


def lock_holder(directory: Path) -> Holder | None:
    """The holder of the lock of ``directory``; None: no process on this machine."""
    file = directory / LOCK_FILE
    try:
        stat = file.stat()
        said = read_holder(file.read_bytes())
    except OSError:
        return None
    wanted = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}"
    pid = _taker_of(wanted)
    if pid is not None and not (_PROC / str(pid)).exists():
        pid = _heir_of(file, wanted)
    if pid is None:
        return None
    if said is not None and said.pid == pid:
        return said
    return Holder(pid, socket.gethostname(), 0)  # the file names none, or an earlier holder


def _taker_of(wanted: str) -> int | None:
    """The process that took the lock of that file, by the kernel's list; it may have ended."""
    try:
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        # A waiter's line has "->" after its number; it holds nothing.
        if _is_lock(fields, wanted) and "->" not in fields:
            return int(fields[_PID_FIELD])
    return None


def _heir_of(file: Path, wanted: str) -> int | None:
    """A living process that has the lock with a file that it was given; None: there is none.

    A process that only waits for the lock has the file open too, but no lock with it.
    """
    for descriptor in _PROC.glob("[0-9]*/fd/*"):
        process = descriptor.parent.parent
        with contextlib.suppress(OSError):
            if descriptor.samefile(file):
                said = (process / "fdinfo" / descriptor.name).read_text(encoding="ascii")
                if any(_is_lock(line.split()[1:], wanted) for line in said.splitlines()):
                    return int(process.name)
    return None


def _is_lock(fields: Sequence[str], wanted: str) -> bool:
    return "FLOCK" in fields and fields[_FILE_FIELD] == wanted
