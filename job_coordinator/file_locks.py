"""Locks between processes, held as long as a file is open: a dead holder never blocks."""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def exclusive(path: Path, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock `path` inside the block; call `on_wait` once if another process holds it.

    The holder may delete the file: a process that waited for it tries again with the new file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    while True:
        with path.open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if on_wait is not None:
                    on_wait()
                    on_wait = None
                fcntl.flock(file, fcntl.LOCK_EX)
            if _is_still(path, file.fileno()):
                yield
                return


def _is_still(path: Path, descriptor: int) -> bool:
    """Return whether the open file is the one that has this name now."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
