"""A process that gives way to all others of its host, as a standby does.

Each thread has its own niceness. If the kernel groups processes by session (autogroup, the
default), niceness counts only within a session, and sessions share the processor evenly (measured:
a standby of niceness 10 took as much as its active container). YARN makes a session of each
container. So the process moves to a session of its own, which becomes nice too. Its launcher, which
may run an active container next, stays as it is.
"""

import contextlib
import os
import threading
import time
from pathlib import Path

from homeport.container.host.lease_memory import LEASE_THREAD

NICENESS = 10

_SELF = Path("/proc/self")
_TRIES = 20
_PAUSE_S = 0.2


def give_way() -> None:
    """Make every thread, and later ones, nicer by ten, except the one that watches the lease.

    Some exist already, as libraries start threads when they are imported. The process gets its own
    session and process group: only its launcher signals it, and it dies with its launcher.
    """
    with contextlib.suppress(PermissionError):  # it leads its group already
        os.setsid()
    _make_session_nice()
    wanted = os.getpriority(os.PRIO_PROCESS, 0) + NICENESS
    spared = {own.native_id for own in threading.enumerate() if own.name == LEASE_THREAD}
    for thread in (_SELF / "task").iterdir():
        number = int(thread.name)
        if number not in spared:
            # A thread that ends at this moment is gone.
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, number, wanted)


def thread_gives_way() -> None:
    """Make this thread and those that it starts nicer by ten."""
    own = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + NICENESS)


def _make_session_nice() -> None:
    """Make the session nice, if the kernel has autogroups; unprivileged, that takes small steps."""
    for _ in range(_TRIES):
        try:
            (_SELF / "autogroup").write_text(str(NICENESS), "ascii")
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        except OSError:
            return
        else:
            return
