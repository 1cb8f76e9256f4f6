"""LeaseMemory: what launcher and child share: deadline, last beat, report and other numbers.

It is anonymous memory: numbers of eight bytes, then the child's last report after its length and
checksum. Times are in ms on CLOCK_BOOTTIME, which goes on while the machine sleeps. One side alone
writes each value. A thread of the child watches the deadline and ends the process when it has
passed, even if the launcher stands still (safety C2).
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import zlib
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Generic, TypeVar

from homeport.config.errors import WireError
from homeport.container.host.exit_codes import EXIT_LEASE_LOST
from homeport.job_coordinator.clocks import boot_ms
from homeport.job_coordinator.model.json_values import compact_json, parse_object
from homeport.job_coordinator.status.container_report import ContainerReport

FD_VARIABLE = "HOMEPORT_LEASE_FD"

LEASE_THREAD = "lease"
"""The name of the thread that watches the deadline."""

_NUMBERS = 14 * 8
_NEVER_MS = 1 << 62
_HEAD = struct.Struct("=II")
REPORT_BYTES = 64 * 1024
"""Room for a report of some hundred stores; a longer report leaves single stores out."""
_SIZE = _NUMBERS + _HEAD.size + REPORT_BYTES
_STEP_S = 0.1
_NOTHING = ContainerReport()
_Value = TypeVar("_Value", bound=int)


class SpareKind(IntEnum):
    """How much of a start a spare process has done."""

    NONE = 0
    """No spare is wanted."""
    PLAIN = 1
    """Its imports."""
    SPARK = 2
    """Spark's imports too."""
    WARM = 3
    """Also a Spark that has run the pipeline."""


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
    """Whether a process without a permit has done all of its kind; the child writes it."""
    is_permit_near = _Number(5, bool)
    """Whether a permit for this process is expected soon; the launcher writes it."""
    is_finished = _Number(6, bool)
    """Whether every task has voted for the end and all their work is committed.

    The child writes it as its last act. No exit code can show it: the job's code, or a library of
    it, can exit with any code.
    """
    model_version = _Number(7, int)
    """Version of the JobModel in force, 0 where it is not known; the launcher writes it."""
    fenced = _Number(8, int)
    """Epoch of a processor's incarnation that has fenced its list; the child writes it.

    A processor's child runs one incarnation after another; epochs are at least 1.
    """
    confirmed = _Number(9, int)
    """Epoch that the newest plan had after that (safety I3); the processor writes it."""
    started = _Number(10, int)
    """Epoch of the incarnation that takes input; the child writes it."""
    resting = _Number(11, int)
    """Epoch of the incarnation whose process waits for the next permit; the child writes it."""
    _worked_ms = _Number(12, int)
    has_failed = _Number(13, bool)
    """Whether a process without a permit never gets ready; the child writes it.

    The last line of its log has the reason.
    """

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
        """The ms since the child's last ``say_works``; None: there was none."""
        worked_ms = self._worked_ms
        return max(boot_ms() - worked_ms, 0) if worked_ms else None

    def say_works(self) -> None:
        """Note that the child commits a transaction, or finds no input; the child calls it."""
        self._worked_ms = boot_ms()

    @property
    def spare(self) -> SpareKind:
        """The spare that is to be kept beside the child."""
        asked = self._spare
        return SpareKind(asked) if asked in _SPARE_KINDS else SpareKind.NONE

    @property
    def spare_share_mb(self) -> int:
        """The MB that are set apart for that spare; 0: it uses what the others leave."""
        return max(self._spare_share_mb, 0)

    def want_spare(self, kind: SpareKind, share_mb: int = 0) -> None:
        """Ask the launcher for a spare of that kind from now on; the child calls it."""
        self._spare_share_mb = share_mb
        self._spare = kind

    def say_rests(self, epoch: int) -> None:
        """Note that the incarnation has stopped, and drop its report; the child calls it."""
        with self._writing:
            self._own = self._standbys = _NOTHING
            self._write(_NOTHING)
        self._worked_ms = 0
        self.resting = epoch

    def rest(self) -> None:
        """Give the process no deadline until its next permit; its parent calls it.

        The next incarnation may be of another processor, with the same epoch: it does not rest yet.
        """
        self.deadline_ms, self.resting = _NEVER_MS, 0

    def announce(self, report: ContainerReport) -> None:
        """Leave ``report`` for the launcher, beside the standbys' last one."""
        with self._writing:
            self._own = report
            self._write(report.beside(self._standbys) if self._standbys != _NOTHING else report)

    def announce_standbys(self, report: ContainerReport) -> None:
        """Leave the standbys' ``report`` beside that of the active tasks; from any thread."""
        with self._writing:
            self._standbys = report
            self._write(self._own.beside(report))

    def _write(self, report: ContainerReport) -> None:
        data = compact_json(report.to_json())
        for omitted in ({"figures": ()}, {"figures": (), "own": ()}):
            if len(data) > REPORT_BYTES:
                data = compact_json({**report.to_json(), **omitted})
        if len(data) > REPORT_BYTES:
            data = compact_json(report.in_brief().to_json())
        start = _HEAD.size
        self._report[start : start + len(data)] = data
        self._report[:start] = _HEAD.pack(len(data), zlib.crc32(data))

    def last_report(self) -> ContainerReport | None:
        """Return the child's last whole report; one that is being written comes later."""
        length, checksum = _HEAD.unpack(self._report[: _HEAD.size])
        data = bytes(self._report[_HEAD.size : _HEAD.size + length])
        if data and zlib.crc32(data) == checksum:
            try:
                self._said = ContainerReport.from_json(parse_object(data, "the report"))
            except WireError:
                # Nonsense from a child must not stop its launcher's check-ins.
                self._said = None
        return self._said


def watch_lease(
    environment: Mapping[str, str], end: Callable[[int], object] = os._exit
) -> LeaseMemory | None:
    """Beat until the lease ends, then end this process; return the shared memory.

    None: the process has no launcher, as in tests, and so no lease.
    """
    fd = environment.get(FD_VARIABLE, "")
    if not fd:
        return None
    os.set_inheritable(int(fd), False)  # noqa: FBT003 - the standard library's signature
    memory = LeaseMemory(int(fd))
    threading.Thread(target=_watch, args=(memory, end), name=LEASE_THREAD, daemon=True).start()
    return memory


def unheard(_report: ContainerReport) -> None:
    """Drop a report that no launcher reads."""


def _watch(memory: LeaseMemory, end: Callable[[int], object]) -> None:
    pause = threading.Event()
    while (now_ms := boot_ms()) < memory.deadline_ms:
        memory.beat_ms = now_ms
        pause.wait(_STEP_S)
    end(EXIT_LEASE_LOST)
