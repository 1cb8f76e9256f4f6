"""DirectoryLock: one opener of a store's directory at a time.

The kernel has the lock, so that it ends with its holder in any case. The text of the lock file is
for people, and gives no right to write (safety S5).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import logging
import os
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from homeport.config.errors import StoreError
from homeport.container.host.disk_space import room_on_disk_of
from homeport.job_coordinator.model.ids import Host
from homeport.job_coordinator.model.incarnation import Incarnation
from homeport.job_coordinator.own_folders import own_folder

_LOG = logging.getLogger(__name__)

LOCK_FILE = ".homeport-lock"

_STEP_S = 0.05
_TELL_EVERY_S = 5.0
_LONGEST_TEXT = 4096
_JOB_STORE_TASK = 3
_PROC = Path("/proc")
_LOCKS = _PROC / "locks"
_PID_FIELD, _FILE_FIELD = 4, 5


@dataclass(frozen=True, slots=True)
class Holder:
    """The holder of a directory, and since when. Units: ms since the epoch.

    ``job`` (its folder's name), ``processor_id`` and ``epoch`` are of a container's incarnation; a
    tool has none of them.
    """

    pid: int
    host: str
    since_ms: int
    processor_id: str | None = None
    epoch: int | None = None
    job: str | None = None

    @staticmethod
    def of_this_process() -> Holder:
        """Return this process, a tool."""
        return Holder(os.getpid(), socket.gethostname(), time.time_ns() // 1_000_000)

    @staticmethod
    def of(job: str, incarnation: Incarnation, host: Host) -> Holder:
        """Return this process, the container that runs ``incarnation`` of ``job``."""
        now_ms = time.time_ns() // 1_000_000
        own = incarnation
        return Holder(os.getpid(), host, now_ms, own.processor_id, own.epoch, job)

    def __str__(self) -> str:
        if self.processor_id is None:
            return f"pid {self.pid} on {self.host}"
        return (
            f"pid {self.pid} on {self.host} (job {self.job} processor {self.processor_id} "
            f"epoch {self.epoch})"
        )


def read_holder(text: bytes) -> Holder | None:
    """Return the holder that a lock file names; None where it names none."""
    try:
        return Holder(**json.loads(text))
    except (ValueError, TypeError):
        return None


class DirectoryHeldError(StoreError):
    """Another process holds the directory. ``holder``: None where its file does not name it."""

    def __init__(self, path: Path, holder: Holder | None, waited_s: float) -> None:
        self.holder = holder
        waited = f" after {waited_s:.0f} s of waiting" if waited_s >= 1 else ""
        super().__init__(
            f"{path}: another process has it open{waited}: {holder or 'its lock does not say who'}"
        )


def _monotonic_s() -> float:
    return time.monotonic()


def _no_pause(_seconds: float) -> None:
    raise AssertionError("a caller that waits must say how")


@dataclass(frozen=True, slots=True)
class LockWait:
    """How long a held lock is waited for; ``pause`` waits, and raises where that must end."""

    limit_s: float = 0.0
    pause: Callable[[float], None] = _no_pause
    clock: Callable[[], float] = _monotonic_s


NO_WAIT = LockWait()


class DirectoryLock:
    """An exclusive lock, until ``release``.

    ``descriptor``: the open file with the lock. Only child processes that are started with it
    inherit it. The lock is then held until the last of them has ended, too.
    """

    def __init__(self, path: Path, own: Holder, wait: LockWait, below: Path | None = None) -> None:
        """Take the lock of the directory ``path``, and write its holder into the lock file.

        ``below``: all folders between it and ``path`` must be this user's alone; None: ``path`` is
        ``<job>/<store>/<task>`` below it.

        Raises:
            DiskError: the disk has no room for the lock file, or may not be used.
            DirectoryHeldError: another still holds it after the wait.
            NotOwnError: a folder is another user's, or others can write there.
            StoreError: the file system has no locks.
        """
        parents = path.absolute().parents
        self._below = below or parents[min(_JOB_STORE_TASK, len(parents)) - 1]
        self.descriptor = self._opened(path)
        try:
            self._take(path, wait)
        except BaseException:
            self.release()
            raise
        self.name_holder(own)

    def name_holder(self, own: Holder) -> None:
        """Write the present holder into the lock file."""
        # Only people read it: a full disk does not keep a store from being opened.
        with contextlib.suppress(OSError):
            os.ftruncate(self.descriptor, 0)
            os.pwrite(self.descriptor, json.dumps(asdict(own)).encode() + b"\n", 0)

    def _take(self, path: Path, wait: LockWait) -> None:
        began = wait.clock()
        said: float | None = None
        while not self._is_taken(path):
            waited_s = wait.clock() - began
            if waited_s >= wait.limit_s:
                raise DirectoryHeldError(path, self._holder(), waited_s)
            if said is None or waited_s - said >= _TELL_EVERY_S:
                said = waited_s
                _LOG.warning(
                    "%s is held by %s: waiting for it, %.0f s so far, at most %.0f s",
                    path,
                    self._holder() or "another process",
                    waited_s,
                    wait.limit_s,
                )
            wait.pause(_STEP_S)
        if said is not None:
            _LOG.info("%s is free after %.1f s", path, wait.clock() - began)

    def _is_taken(self, path: Path) -> bool:
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise StoreError(f"{path}: it cannot be locked: {error.strerror}") from None
        if _is_lock_of(self.descriptor, path):
            return True
        # Its holder has removed the directory, and this file with it: it locks nothing any more.
        os.close(self.descriptor)
        self.descriptor = self._opened(path)
        return self._is_taken(path)

    def _opened(self, path: Path) -> int:
        with room_on_disk_of(path), own_folder(path.absolute(), self._below.absolute()) as folder:
            # Python's descriptors are close-on-exec: no child inherits one that it was not given.
            flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
            return os.open(LOCK_FILE, flags, 0o600, dir_fd=folder)

    def _holder(self) -> Holder | None:
        try:
            return read_holder(os.pread(self.descriptor, _LONGEST_TEXT, 0))
        except OSError:
            return None

    def release(self) -> None:
        """Release the lock; children that have ``descriptor`` keep it until they end."""
        # Once: the next file that this process opens may get the number.
        descriptor, self.descriptor = self.descriptor, -1
        with contextlib.suppress(OSError):
            os.close(descriptor)


def _is_lock_of(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), (path / LOCK_FILE).stat())
    except FileNotFoundError:
        return False


def lock_holder(directory: Path) -> Holder | None:
    """Return the holder of the lock of ``directory``; None: no process on this machine."""
    file = directory / LOCK_FILE
    try:
        stat = file.stat()
        holder = read_holder(file.read_bytes())
    except OSError:
        return None
    wanted = f"{os.major(stat.st_dev):02x}:{os.minor(stat.st_dev):02x}:{stat.st_ino}"
    pid = _taker_of(wanted)
    if pid is not None and not (_PROC / str(pid)).exists():
        pid = _heir_of(file, wanted)
    if pid is None:
        return None
    if holder is not None and holder.pid == pid:
        return holder
    return Holder(pid, socket.gethostname(), 0)  # the file names none, or an earlier holder


def _taker_of(wanted: str) -> int | None:
    """Return the process that took the lock of that file; it may have ended."""
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
    """Return a living process that has the lock with a file that it was given; None: there is none.

    A process that only waits for the lock has the file open too, but no lock with it.
    """
    for descriptor in _PROC.glob("[0-9]*/fd/*"):
        process = descriptor.parent.parent
        with contextlib.suppress(OSError):
            if descriptor.samefile(file):
                text = (process / "fdinfo" / descriptor.name).read_text(encoding="ascii")
                if any(_is_lock(line.split()[1:], wanted) for line in text.splitlines()):
                    return int(process.name)
    return None


def _is_lock(fields: Sequence[str], wanted: str) -> bool:
    return "FLOCK" in fields and fields[_FILE_FIELD] == wanted
