"""What launcher and child share: until when the child may run, and when it last beat.

Two numbers of eight bytes in anonymous memory, ms on CLOCK_BOOTTIME, which goes on while the
machine sleeps. Each is written by one side only. The child watches its deadline from a thread of
its own and ends the process when it has passed, also where its launcher is stopped (safety C2).
"""

from __future__ import annotations

import mmap
import os
import threading
import time
from collections.abc import Callable, Mapping

from homeport.container.runtime.exit_codes import EXIT_LEASE_LOST

FD_VARIABLE = "HOMEPORT_LEASE_FD"

_SIZE = 16
_DEADLINE, _BEAT = 0, 1
_STEP_S = 0.1


def boot_ms() -> int:
    """Milliseconds since the machine started, time asleep included."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000


class LeaseMemory:
    """One child's memory. The file descriptor is the launcher's to close."""

    def __init__(self, fd: int) -> None:
        self.fd = fd
        self._numbers = memoryview(mmap.mmap(fd, _SIZE)).cast("q")

    @classmethod
    def create(cls, deadline_ms: int, beat_ms: int) -> LeaseMemory:
        """New memory with these two numbers."""
        fd = os.memfd_create("homeport-lease")
        os.ftruncate(fd, _SIZE)
        memory = cls(fd)
        memory.deadline_ms = deadline_ms
        memory.beat_ms = beat_ms
        return memory

    @property
    def deadline_ms(self) -> int:
        """When the child must be gone; the launcher writes it."""
        return int(self._numbers[_DEADLINE])

    @deadline_ms.setter
    def deadline_ms(self, at_ms: int) -> None:
        self._numbers[_DEADLINE] = at_ms

    @property
    def beat_ms(self) -> int:
        """When the child last beat; the child writes it."""
        return int(self._numbers[_BEAT])

    @beat_ms.setter
    def beat_ms(self, at_ms: int) -> None:
        self._numbers[_BEAT] = at_ms


def watch_lease(environment: Mapping[str, str], end: Callable[[int], object] = os._exit) -> None:
    """From now on this process ends when its lease does, and beats until then.

    Without a launcher, which is how tests start a child, it has no lease and lives on.
    """
    fd = environment.get(FD_VARIABLE, "")
    if fd:
        os.set_inheritable(int(fd), False)  # noqa: FBT003 - the standard library's signature
        memory = LeaseMemory(int(fd))
        threading.Thread(target=_watch, args=(memory, end), name="lease", daemon=True).start()


def _watch(memory: LeaseMemory, end: Callable[[int], object]) -> None:
    pause = threading.Event()
    while (now_ms := boot_ms()) < memory.deadline_ms:
        memory.beat_ms = now_ms
        pause.wait(_STEP_S)
    end(EXIT_LEASE_LOST)
