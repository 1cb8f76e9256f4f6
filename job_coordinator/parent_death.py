"""A process that does not outlive the one that started it."""

import ctypes
import functools
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def die_with_parent(parent: int) -> None:
    """Have this process killed when the thread that started it ends (safety C5).

    The signal follows the thread, so only main threads start processes. ``parent``: the process of
    that thread; where it has ended already, this one ends here.
    """
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:  # it died before the signal was set
        os._exit(1)


def ending_with_us() -> Callable[[], None]:
    """Return a ``preexec_fn``: the new process is killed when the calling thread ends.

    It makes two system calls, and needs nothing that another thread may hold.
    """
    return functools.partial(die_with_parent, os.getpid())


def run_child(
    command: Sequence[str],
    limit_s: float,
    *,
    given: bytes = b"",
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    log: IO[bytes] | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end; kill it at the limit, and when this process is killed.

    ``limit_s``: when it is killed. ``environment``: None: this process's. ``folder``: where it
    runs; None: here. ``log`` gets all that it writes; None: the answer has it.

    OSError: it cannot be started.
    subprocess.TimeoutExpired: it did not end in time.
    """
    output = subprocess.PIPE if log is None else log
    return subprocess.run(
        command,
        input=given,
        stdout=output,
        stderr=subprocess.PIPE if log is None else subprocess.STDOUT,
        env=environment,
        cwd=folder,
        timeout=limit_s,
        check=False,
        preexec_fn=ending_with_us(),
    )
