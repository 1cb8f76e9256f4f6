"""What launcher and child share: the child's deadline, its last beat and its report.

Numbers of eight bytes in anonymous memory, of which three are ms on CLOCK_BOOTTIME, which goes on
while the machine sleeps; behind them the child's last report, with its length and checksum
before it. Each is written by one side only. The child watches its deadline from a thread of its own
and ends the process when it has passed, also where its launcher is stopped (safety C2).
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import zlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import IntEnum
from typing import Generic, TypeVar

from homeport.config.errors import WireError
from homeport.container.host.exit_codes import EXIT_LEASE_LOST
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.json_values import compact_json, parse_object
from homeport.job_coordinator.status.container_report import ContainerReport

FD_VARIABLE = "HOMEPORT_LEASE_FD"

LEASE_THREAD = "lease"
"""Name of the thread that watches the deadline, which has to be in time."""

_NUMBERS = 13 * 8
_NEVER_MS = 1 << 62
_HEAD = struct.Struct("=II")
REPORT_BYTES = 64 * 1024
"""Room for a report of some hundred stores; of a longer one single stores are left out."""
_SIZE = _NUMBERS + _HEAD.size + REPORT_BYTES
_STEP_S = 0.1
_NOTHING = ContainerReport()
_Value = TypeVar("_Value", bound=int)


class SpareKind(IntEnum):
    """How much of a start a spare process has behind it."""

    NONE = 0
    """There is to be none."""
    PLAIN = 1
    """Its imports."""
    SPARK = 2
    """Spark's imports too."""
    WARM = 3
    """A Spark that has met the pipeline, too."""


_SPARE_KINDS = frozenset(SpareKind)


class _Number(Generic[_Value]):
    """One of the numbers, by its place; both sides read it."""

    def __init__(self, place: int, kind: Callable[[int], _Value]) -> None:
        self._place = place
        self._kind = kind

    def __get__(self, memory: LeaseMemory, _owner: type) -> _Value:
        return self._kind(memory.numbers[self._place])

    def __set__(self, memory: LeaseMemory, value: _Value) -> None:
        memory.numbers[self._place] = value


class LeaseMemory:
    """One child's memory. The file descriptor is the launcher's to close."""

    deadline_ms = _Number(0, int)
    """When the child must be gone; the launcher writes it."""
    beat_ms = _Number(1, int)
    """When the child last beat; the child writes it."""
    _spare = _Number(2, int)
    _spare_share_mb = _Number(3, int)
    is_ready = _Number(4, bool)
    """Whether a process without a permit has done all that its kind asks for; it writes it."""
    is_permit_near = _Number(5, bool)
    """Whether a permit is expected soon, which would be this process's; the launcher writes it."""
    is_finished = _Number(6, bool)
    """Whether every task has voted for the end and all that they did is committed.

    The child writes it as the last thing that it does. An exit code cannot show it: code of the
    job's, or a library of its, can exit with any.
    """
    model_version = _Number(7, int)
    """Version of the JobModel in force, 0 where it is not known; the launcher writes it."""
    fenced = _Number(8, int)
    """Epoch of a processor's incarnation that has fenced its list; the child writes it.

    A processor's child runs one incarnation after another. An epoch is at least 1.
    """
    confirmed = _Number(9, int)
    """Epoch that stood in the newest plan after that (safety I3); the processor writes it."""
    started = _Number(10, int)
    """Epoch of the incarnation that takes input; the child writes it."""
    resting = _Number(11, int)
    """Epoch of the incarnation that has stopped in order: its process waits for a permit."""
    _worked_ms = _Number(12, int)

    def __init__(self, fd: int) -> None:
        self.fd = fd
        memory = memoryview(mmap.mmap(fd, _SIZE))
        self.numbers = memory[:_NUMBERS].cast("q")
        self._report = memory[_NUMBERS:]
        self._said: ContainerReport | None = None
        self._writing = threading.Lock()
        self._own = self._standbys = ContainerReport()

    @classmethod
    def endless(cls, beat_ms: int = 0) -> LeaseMemory:
        """Return new memory of a process that has no permit yet, and so no deadline."""
        fd = os.memfd_create("homeport-lease")
        os.ftruncate(fd, _SIZE)
        memory = cls(fd)
        memory.deadline_ms, memory.beat_ms = _NEVER_MS, beat_ms
        return memory

    @property
    def quiet_ms(self) -> int | None:
        """How long ago the child has worked; None: it has not yet."""
        worked_ms = self._worked_ms
        return max(boot_ms() - worked_ms, 0) if worked_ms else None

    def say_works(self) -> None:
        """Note for the launcher that the child commits a transaction, or finds no input waiting."""
        self._worked_ms = boot_ms()

    @property
    def spare(self) -> SpareKind:
        """The spare that is to be kept beside the child."""
        asked = self._spare
        return SpareKind(asked) if asked in _SPARE_KINDS else SpareKind.NONE

    @property
    def spare_share_mb(self) -> int:
        """The MB that are set apart for that spare; 0: it lives of what the others leave."""
        return max(self._spare_share_mb, 0)

    def want_spare(self, kind: SpareKind, share_mb: int = 0) -> None:
        """Have the launcher keep one of that kind from now on, if it can; the child calls it."""
        self._spare_share_mb = share_mb
        self._spare = kind

    def say_rests(self, epoch: int) -> None:
        """Note that nothing of it is at work any more, and drop its report; the child's call."""
        with self._writing:
            self._own = self._standbys = _NOTHING
            self._write(_NOTHING)
        self._worked_ms = 0
        self.resting = epoch

    def rest(self) -> None:
        """Give the process no deadline until its next permit; its processor calls it."""
        self.deadline_ms = _NEVER_MS

    def announce(self, report: ContainerReport) -> None:
        """Leave ``report`` for the launcher, with that of the standbys beside."""
        with self._writing:
            self._own = report
            self._write(report.beside(self._standbys) if self._standbys != _NOTHING else report)

    def announce_standbys(self, report: ContainerReport) -> None:
        """Leave ``report`` for the launcher beside that of the active tasks; from any thread."""
        with self._writing:
            self._standbys = report
            self._write(self._own.beside(report))

    def _write(self, report: ContainerReport) -> None:
        data = compact_json(report.to_json())
        if len(data) > REPORT_BYTES:
            data = compact_json(replace(report, figures=()).to_json())
        if len(data) > REPORT_BYTES:
            data = compact_json(report.in_brief().to_json())
        start = _HEAD.size
        self._report[start : start + len(data)] = data
        self._report[:start] = _HEAD.pack(len(data), zlib.crc32(data))

    def last_report(self) -> ContainerReport | None:
        """Return the child's last report; one that is being written waits for the next look."""
        length, checksum = _HEAD.unpack(self._report[: _HEAD.size])
        data = bytes(self._report[_HEAD.size : _HEAD.size + length])
        if data and zlib.crc32(data) == checksum:
            try:
                self._said = ContainerReport.from_json(parse_object(data, "the report"))
            except WireError:
                # A child that writes nonsense there is not to cost its launcher the AM's ear.
                self._said = None
        return self._said


def watch_lease(
    environment: Mapping[str, str], end: Callable[[int], object] = os._exit
) -> LeaseMemory | None:
    """Beat until the lease ends, then end this process; return the shared memory.

    None where there is no launcher, as tests start a child: it lives on.
    """
    fd = environment.get(FD_VARIABLE, "")
    if not fd:
        return None
    os.set_inheritable(int(fd), False)  # noqa: FBT003 - the standard library's signature
    memory = LeaseMemory(int(fd))
    threading.Thread(target=_watch, args=(memory, end), name=LEASE_THREAD, daemon=True).start()
    return memory


def unheard(_report: ContainerReport) -> None:
    """Drop a report: the child has no launcher."""


def _watch(memory: LeaseMemory, end: Callable[[int], object]) -> None:
    pause = threading.Event()
    while (now_ms := boot_ms()) < memory.deadline_ms:
        memory.beat_ms = now_ms
        pause.wait(_STEP_S)
    end(EXIT_LEASE_LOST)
