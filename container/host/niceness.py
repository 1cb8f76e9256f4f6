"""A process that gives way to all others of its host, as a standby does.

Niceness is each thread's own. And where the kernel groups processes by session (autogroup, which is
on unless switched off), it counts within a session alone: whole sessions share the processor evenly
(measured: a standby of niceness 10 took as much as its active container), and YARN makes one of
each container. So the process leaves for a session of its own, which is made nice too; its
launcher, which may run an active container next, stays as it is.
"""

from __future__ import annotations

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
    """Make every thread nicer by ten, but the one that watches the lease; later ones, too.

    Libraries start some when they are imported; those of a spare are so nice already. The process
    has its own session and process group: its launcher signals it, and it dies with that one.
    """
    with contextlib.suppress(PermissionError):  # it leads its group already
        os.setsid()
    _make_session_nice()
    wanted = os.getpriority(os.PRIO_PROCESS, 0) + NICENESS
    spared = {own.native_id for own in threading.enumerate() if own.name == LEASE_THREAD}
    for thread in (_SELF / "task").iterdir():
        number = int(thread.name)
        if number not in spared:
            # One that ends in this moment is nice enough.
            with contextlib.suppress(ProcessLookupError):
                os.setpriority(os.PRIO_PROCESS, number, wanted)


def thread_gives_way() -> None:
    """Make this thread and those that it starts nicer by ten."""
    own = threading.get_native_id()
    os.setpriority(os.PRIO_PROCESS, own, os.getpriority(os.PRIO_PROCESS, own) + NICENESS)


def _make_session_nice() -> None:
    """Make the session nice, where the kernel has autogroups; in small steps without the rights."""
    for _ in range(_TRIES):
        try:
            (_SELF / "autogroup").write_text(str(NICENESS), "ascii")
        except BlockingIOError:
            time.sleep(_PAUSE_S)
        except OSError:
            return
        else:
            return
