"""Finds, stops and ends the processes of a cluster, by their environment.

A process belongs to a cluster when its environment has the cluster's id **and** a node name. The id
alone is not enough: the shell of a cluster's user has it too, and must live on.
"""

import contextlib
import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

CLUSTER_VARIABLE = "HOMEPORT_CLUSTER_ID"
NODE_VARIABLE = "HOMEPORT_NODE"

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_POLL_S = 0.05
#: A process that starts another program shows no environment for a moment.
_QUIET_SCANS = 2
_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One life of a process: another process may get its pid later."""

    pid: int
    #: Clock ticks since boot.
    start_time: int


def identity(process: psutil.Process) -> ProcessId:
    """Return the id of this life of the process."""
    seen: Any = process
    started_s: float = seen._ident[1]  # noqa: SLF001 - create_time moves when the clock is set
    return ProcessId(process.pid, round(started_s * _TICKS_PER_S))


def process_of(pid: int) -> psutil.Process | None:
    """Return the process with this pid; None: no process has it, or a zombie does."""
    with contextlib.suppress(psutil.NoSuchProcess):
        process = psutil.Process(pid)
        if process.status() not in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}:
            return process
    return None


def own() -> ProcessId:
    """Return the id of the calling process."""
    return identity(psutil.Process())


def is_alive(process: ProcessId) -> bool:
    """Return whether this very process still runs."""
    return _living(process) is not None


def is_stopped(process: ProcessId) -> bool:
    """Return whether this very process lives and is stopped by a signal."""
    found = _living(process)
    with contextlib.suppress(psutil.NoSuchProcess):
        return found is not None and found.status() == psutil.STATUS_STOPPED
    return False


def of_cluster(cluster_id: str, node: str | None = None) -> dict[ProcessId, str]:
    """Return {process: its node (rm, kafka, nm1...)} of a cluster, or of one node of it."""
    found: dict[ProcessId, str] = {}
    for process in _all():
        # A process whose environment cannot be read is not of the cluster. psutil is not used: it
        # stops reading at an empty entry.
        with contextlib.suppress(psutil.Error, OSError):
            entries = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
            environment = dict(os.fsdecode(e).split("=", 1) for e in entries if b"=" in e)
            its_node = environment.get(NODE_VARIABLE)
            is_of_cluster = environment.get(CLUSTER_VARIABLE) == cluster_id
            if is_of_cluster and its_node is not None and node in (None, its_node):
                found[identity(process)] = its_node
    return found


def with_descendants(roots: Iterable[ProcessId]) -> set[ProcessId]:
    """Return the processes and all their descendants that still have their parents."""
    # psutil's children() compares times that move with the wall clock.
    children: defaultdict[int, list[ProcessId]] = defaultdict(list)
    for process in _all():
        with contextlib.suppress(psutil.NoSuchProcess):
            if process.status() != psutil.STATUS_ZOMBIE:
                children[process.ppid()].append(identity(process))
    found: set[ProcessId] = set()
    waiting = list(roots)
    while waiting:
        root = waiting.pop()
        if root not in found:
            found.add(root)
            waiting += children[root.pid]
    return found


def kill_all(find: Callable[[], Iterable[ProcessId]]) -> set[ProcessId]:
    """SIGKILL what `find` finds, with all descendants, until it finds nothing; return the killed.

    All are stopped before one is killed, so that no process that is just being started escapes: the
    child of a stopped process still has its parent. TimeoutError: a process survived, held by the
    kernel.
    """
    killed: set[ProcessId] = set()
    limit = time.monotonic() + _LIMIT_S
    quiet = 0
    while quiet < _QUIET_SCANS:
        if time.monotonic() > limit:
            raise TimeoutError(f"processes do not end after SIGKILL: {sorted_pids(find())}")
        frozen = freeze(find)
        for process in frozen:
            send(process, signal.SIGKILL)
        wait_gone(frozen, limit - time.monotonic())
        killed |= frozen
        quiet = 0 if frozen else quiet + 1
        if quiet < _QUIET_SCANS:
            time.sleep(_POLL_S)  # /proc announces no change
    return killed


def kill_one(process: ProcessId) -> None:
    """SIGKILL only this very process, not its children; return when it is gone.

    TimeoutError: the kernel held it, and it survived.
    """
    send(process, signal.SIGKILL)
    if wait_gone({process}, _LIMIT_S):
        raise TimeoutError(f"process {process.pid} does not end after SIGKILL")


def pause(wanted: Iterable[ProcessId]) -> None:
    """SIGSTOP these very processes; wait until each of their threads stands still, or is gone.

    On a busy machine a thread may run on for a while after the signal. TimeoutError: a thread does
    not stand still, held by the kernel.
    """
    running = set(wanted)
    for process in running:
        send(process, signal.SIGSTOP)
    limit = time.monotonic() + _LIMIT_S
    while running := {p for p in running if _runs_on(p)}:
        if time.monotonic() > limit:
            raise TimeoutError(f"processes run on after SIGSTOP: {sorted_pids(running)}")
        time.sleep(_POLL_S)  # /proc announces no change of a state


def freeze(find: Callable[[], Iterable[ProcessId]]) -> set[ProcessId]:
    """SIGSTOP what `find` finds, with all descendants, until a scan shows nothing new.

    Parents stop before the children that they start meanwhile: the child of a stopped process still
    has its parent. Return all stopped processes, also those that were stopped before.
    """
    frozen: set[ProcessId] = set()
    while new := {p for p in with_descendants({*find(), *frozen}) - frozen if is_alive(p)}:
        pause(new)  # one that still runs could start another after the scan
        frozen |= new
    return frozen


def thaw(find: Callable[[], Iterable[ProcessId]]) -> set[ProcessId]:
    """SIGCONT every stopped process that `find` finds, and its descendants.

    Children continue before their parents, which started earlier: a running parent might take a
    stopped child for one that hangs. Return the continued processes. TimeoutError: another process
    stops them again and again.
    """
    woken: set[ProcessId] = set()
    limit = time.monotonic() + _LIMIT_S
    while True:
        family = with_descendants(find())
        stopped = {process for process in family if is_stopped(process)}
        if not stopped:
            return woken
        if time.monotonic() > limit:
            raise TimeoutError(f"processes stay stopped after SIGCONT: {sorted_pids(stopped)}")
        for process in sorted(family, key=lambda p: (p.start_time, p.pid), reverse=True):
            # To the others too: it cancels a SIGSTOP that is not delivered yet, as to a parent that
            # waits in the kernel until a stopped child starts its program.
            send(process, signal.SIGCONT)
        woken |= stopped
        time.sleep(_POLL_S)  # /proc announces no change


def send(process: ProcessId, number: signal.Signals) -> None:
    """Send a signal to this very process; a process that is gone is no error."""
    with contextlib.suppress(ProcessLookupError):
        descriptor = os.pidfd_open(process.pid)
        try:
            if _living(process) is not None:  # after the opening: no other can be hit
                signal.pidfd_send_signal(descriptor, number)
        finally:
            os.close(descriptor)


def end_groups(found: Collection[ProcessId]) -> None:
    """Send SIGTERM to each group that one of these leads, as YARN does.

    Not to a group whose leader comes from another such group: it is left to that one.
    """
    pids = {process.pid for process in found}
    leaders = []
    for process in found:
        with contextlib.suppress(ProcessLookupError, psutil.NoSuchProcess):
            living = _living(process)
            if living is None or os.getpgid(process.pid) != process.pid:
                continue
            if os.getpgid(living.ppid()) not in pids:
                leaders.append(process.pid)
    for leader in leaders:  # once all are known: an orphan has another parent
        with contextlib.suppress(ProcessLookupError):
            os.killpg(leader, signal.SIGTERM)


def wait_gone(processes: Iterable[ProcessId], timeout_s: float) -> set[ProcessId]:
    """Wait until the processes have ended, at most so long; return those that still run."""
    # psutil's wait_procs() waits for zombies that their parents leave behind.
    limit = time.monotonic() + timeout_s
    left = set(processes)
    while True:
        gone = {process for process in left if not is_alive(process)}
        for process in gone:
            with contextlib.suppress(ChildProcessError):  # no child of ours
                os.waitpid(process.pid, os.WNOHANG)
        left -= gone
        if not left or time.monotonic() >= limit:
            return left
        time.sleep(_POLL_S)  # /proc announces no change


def sorted_pids(processes: Iterable[ProcessId]) -> list[int]:
    """Return just the pids, in order."""
    return sorted(process.pid for process in processes)


def spawn(command: list[str], environment: Mapping[str, str], log: Path, folder: Path) -> ProcessId:
    """Start a daemon in its own session; its output is appended to `log`."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            env=dict(environment),
            cwd=folder,
            start_new_session=True,
        )
    # The daemon outlives this object, which would warn about that when it is dropped; `wait_gone`
    # collects the process.
    process.returncode = 0
    found = process_of(process.pid)
    # None: it ended within these microseconds; the caller sees that it does not live.
    return ProcessId(process.pid, start_time=0) if found is None else identity(found)


def _living(process: ProcessId) -> psutil.Process | None:
    found = process_of(process.pid)
    return found if found is not None and identity(found) == process else None


def _all() -> Iterator[psutil.Process]:
    # Not process_iter(), which keeps what it found under a pid that is given to another one.
    for pid in psutil.pids():
        with contextlib.suppress(psutil.NoSuchProcess):
            yield psutil.Process(pid)


def _runs_on(process: ProcessId) -> bool:
    """Return whether it lives and not all of its threads are stopped by a signal."""
    found = _living(process)
    if found is None:
        return False
    try:
        threads = [psutil.Process(thread.id) for thread in found.threads()]
        return any(thread.status() != psutil.STATUS_STOPPED for thread in threads)
    except psutil.NoSuchProcess:
        return True  # a thread has ended meanwhile, or all have
