"""Who holds the lock of a store's directory, asked of the kernel: the lock itself is not touched.

Even a shared lock, taken for a moment to see whether it can be had, would turn away a container
that opens the directory in that moment.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

from homeport.container.storage.directory_lock import LOCK_FILE, Holder, read_holder

_LOCKS = Path("/proc/locks")
_PID_FIELD, _FILE_FIELD = 4, 5


def lock_holder(directory: Path) -> Holder | None:
    """Who holds the lock of ``directory``; None: nobody on this machine."""
    file = directory / LOCK_FILE
    try:
        stat = file.stat()
        told = read_holder(file.read_bytes())
    except OSError:
        return None
    pid = _pid_of(os.major(stat.st_dev), os.minor(stat.st_dev), stat.st_ino)
    if pid is None:
        return None
    if told is not None and told.pid == pid:
        return told
    return Holder(pid, socket.gethostname(), 0)  # the file names nobody, or an earlier holder


def _pid_of(major: int, minor: int, inode: int) -> int | None:
    wanted = f"{major:02x}:{minor:02x}:{inode}"
    try:
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        fields = line.split()
        # A waiter's line has "->" after its number; it holds nothing.
        if "FLOCK" in fields and "->" not in fields and fields[_FILE_FIELD] == wanted:
            return int(fields[_PID_FIELD])
    return None
