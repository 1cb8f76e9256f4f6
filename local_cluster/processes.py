"""Find and end the processes of a cluster by what is in their environment.

A process belongs to a cluster when its environment has the cluster's id **and** a node name. The id
alone is not enough: the shell of a cluster's user has it too, and must live on.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from homeport.local_cluster.errors import ClusterError

CLUSTER_VARIABLE = "HOMEPORT_CLUSTER_ID"
NODE_VARIABLE = "HOMEPORT_NODE"

_PROC = Path("/proc")
_POLL_S = 0.05
#: A process that starts another program shows no environment for a moment.
_QUIET_SCANS = 2
_KILL_LIMIT_S = 20.0
_PAUSE_LIMIT_S = 20.0
_THAW_LIMIT_S = 20.0


@dataclass(frozen=True, slots=True)
class ProcessId:
    """One life of a process: the pid alone may be given to another one later."""

    pid: int
    #: Clock ticks since boot, field 22 of /proc/<pid>/stat.
    start_time: int


@dataclass(frozen=True, slots=True)
class ProcessInfo:
    """A living process as /proc shows it."""

    id: ProcessId
    parent: int
    state: str


def parse_stat(text: str) -> ProcessInfo:
    """Read a /proc/<pid>/stat line; the command name in it may contain spaces and brackets."""
    pid, rest = text.split(" ", 1)
    fields = rest.rsplit(")", 1)[1].split()
    return ProcessInfo(
        id=ProcessId(int(pid), start_time=int(fields[19])), parent=int(fields[1]), state=fields[0]
    )


def parse_environment(raw: bytes) -> dict[str, str]:
    """Read /proc/<pid>/environ: NAME=value, each ended by a zero byte."""
    pairs = (entry.split(b"=", 1) for entry in raw.split(b"\0") if b"=" in entry)
    return {os.fsdecode(name): os.fsdecode(value) for name, value in pairs}


def info(pid: int) -> ProcessInfo | None:
    """The process with this pid, None when there is none or it is a zombie."""
    try:
        found = parse_stat((_PROC / str(pid) / "stat").read_text(errors="replace"))
    except (FileNotFoundError, ProcessLookupError):
        return None
    return None if found.state in "ZX" else found


def own() -> ProcessId:
    """The calling process; ClusterError where /proc does not show it."""
    found = info(os.getpid())
    if found is None:
        raise ClusterError("/proc is not mounted or does not show this process")
    return found.id


def is_alive(process: ProcessId) -> bool:
    """Whether this very process still runs."""
    found = info(process.pid)
    return found is not None and found.id == process


def of_cluster(cluster_id: str, node: str | None = None) -> dict[ProcessId, str]:
    """Processes of a cluster, or of one node of it, with the node's name (rm, kafka, nm1...)."""
    wanted = os.fsencode(f"{CLUSTER_VARIABLE}={cluster_id}")
    found: dict[ProcessId, str] = {}
    for process in _all():
        raw = _raw_environment(process.id.pid)
        if wanted not in raw:
            continue
        its_node = parse_environment(raw).get(NODE_VARIABLE)
        if its_node is not None and node in (None, its_node):
            found[process.id] = its_node
    return found


def with_descendants(roots: Iterable[ProcessId]) -> set[ProcessId]:
    """The given processes and everything they started that still has its parent."""
    children: dict[int, list[ProcessId]] = {}
    for found_process in _all():
        children.setdefault(found_process.parent, []).append(found_process.id)
    found: set[ProcessId] = set()
    waiting = list(roots)
    while waiting:
        process = waiting.pop()
        if process not in found:
            found.add(process)
            waiting.extend(children.get(process.pid, ()))
    return found


def children(pid: int) -> list[int]:
    """The pids of the processes that it started and that live; none where it has ended."""
    found: list[int] = []
    for listed in (_PROC / str(pid) / "task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the thread has ended
            found += map(int, listed.read_text(encoding="ascii").split())
    return found


def tree(pid: int) -> list[int]:
    """The process and all below it, each before those that it started."""
    return [pid, *(below for child in children(pid) for below in tree(child))]


def kill_all(find: Callable[[], Iterable[ProcessId]]) -> set[ProcessId]:
    """SIGKILL what `find` finds, with all descendants, until it finds nothing; returns what died.

    Everything is stopped before anything is killed, so that a process which is just starting
    another cannot slip through: the child of a stopped process still has its parent.

    Raises:
        TimeoutError: a process survived, held by the kernel.
    """
    killed: set[ProcessId] = set()
    limit = time.monotonic() + _KILL_LIMIT_S
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
            time.sleep(_POLL_S)
    return killed


def kill_one(process: ProcessId) -> None:
    """SIGKILL this very process alone; what it started lives on. When it returns it is gone.

    Raises:
        TimeoutError: it survived, held by the kernel.
    """
    send(process, signal.SIGKILL)
    if wait_gone({process}, _KILL_LIMIT_S):
        raise TimeoutError(f"process {process.pid} does not end after SIGKILL")


def pause(wanted: Iterable[ProcessId]) -> None:
    """SIGSTOP to these very processes; each thread of theirs stands still, or they are gone.

    On a machine under load a thread may run on for a while after the signal was sent.

    Raises:
        TimeoutError: a thread does not stand still, held by the kernel.
    """
    running = set(wanted)
    for process in running:
        send(process, signal.SIGSTOP)
    limit = time.monotonic() + _PAUSE_LIMIT_S
    while running := {p for p in running if is_alive(p) and not _stands_still(p)}:
        if time.monotonic() > limit:
            raise TimeoutError(f"processes run on after SIGSTOP: {sorted_pids(running)}")
        time.sleep(_POLL_S)  # /proc announces no change of a state


def freeze(find: Callable[[], Iterable[ProcessId]]) -> set[ProcessId]:
    """SIGSTOP what `find` finds, with all descendants, until a scan shows nothing new.

    Parents before what they start meanwhile: the child of a stopped process still has its parent.
    Returns the processes that are stopped, including those that were stopped before.
    """
    frozen: set[ProcessId] = set()
    while True:
        new = with_descendants({*find(), *frozen}) - frozen
        new = {process for process in new if is_alive(process)}
        if not new:
            return frozen
        for process in new:
            send(process, signal.SIGSTOP)
        frozen |= new


def thaw(find: Callable[[], Iterable[ProcessId]]) -> set[ProcessId]:
    """SIGCONT to every stopped process that `find` finds, and to its descendants.

    Children before their parents: no parent that runs sees a stopped child, which it might take for
    one that hangs. Returns the processes that it continued.

    Raises:
        TimeoutError: another process stops them again and again.
    """
    woken: set[ProcessId] = set()
    limit = time.monotonic() + _THAW_LIMIT_S
    while True:
        family = _children_first(with_descendants(find()))
        stopped = {process for process in family if is_stopped(process)}
        if not stopped:
            return woken
        if time.monotonic() > limit:
            raise TimeoutError(f"processes stay stopped after SIGCONT: {sorted_pids(stopped)}")
        for process in family:
            # To the others too: it takes back a SIGSTOP that was not delivered yet, as to a parent
            # that waits in the kernel for a stopped child to start its program.
            send(process, signal.SIGCONT)
        woken |= stopped
        time.sleep(_POLL_S)


def is_stopped(process: ProcessId) -> bool:
    """Whether this very process lives and is stopped by a signal."""
    found = info(process.pid)
    return found is not None and found.id == process and found.state == "T"


def _stands_still(process: ProcessId) -> bool:
    """Whether all threads of the process are stopped by a signal."""
    try:
        tasks = list((_PROC / str(process.pid) / "task").iterdir())
        states = {parse_stat((t / "stat").read_text(errors="replace")).state for t in tasks}
    except (FileNotFoundError, ProcessLookupError):
        return False  # a thread has ended meanwhile, or all have
    return states == {"T"}


def _children_first(group: set[ProcessId]) -> list[ProcessId]:
    """The processes of the group, each before its parent."""
    parents = {p: found.parent for p in group if (found := info(p.pid)) is not None}
    by_pid = {process.pid: process for process in parents}

    def depth(process: ProcessId) -> int:
        above = by_pid.get(parents[process])
        return 0 if above is None else 1 + depth(above)

    return sorted(parents, key=depth, reverse=True)


def send(process: ProcessId, number: signal.Signals) -> None:
    """Send a signal to this very process; a process that is gone is no error."""
    try:
        descriptor = os.pidfd_open(process.pid)
    except ProcessLookupError:
        return
    try:
        # The descriptor pins the process: checked after opening it, no other can be hit.
        if is_alive(process):
            signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return
    finally:
        os.close(descriptor)


def wait_gone(processes: Iterable[ProcessId], timeout_s: float) -> set[ProcessId]:
    """Wait until the processes have ended, at most so long; returns those that still run."""
    limit = time.monotonic() + timeout_s
    left = set(processes)
    while True:
        gone = {process for process in left if not is_alive(process)}
        for process in gone:
            reap(process.pid)
        left -= gone
        if not left or time.monotonic() >= limit:
            return left
        time.sleep(_POLL_S)


def reap(pid: int) -> None:
    """Collect a child of ours that has ended; nothing happens for other processes."""
    try:
        os.waitpid(pid, os.WNOHANG)
    except ChildProcessError:
        return


def sorted_pids(processes: Iterable[ProcessId]) -> list[int]:
    """Just the pids, in order."""
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
    # The daemon outlives this object, which would warn about that when it is dropped; `reap`
    # collects the process.
    process.returncode = 0
    found = info(process.pid)
    # None: it ended within these microseconds; the caller sees that it does not live.
    return ProcessId(process.pid, start_time=0) if found is None else found.id


def _all() -> Iterator[ProcessInfo]:
    """Every living process of this machine."""
    for entry in _PROC.iterdir():
        if entry.name.isdigit():
            found = info(int(entry.name))
            if found is not None:
                yield found


def _raw_environment(pid: int) -> bytes:
    """The environment of a process; empty when it has ended or belongs to another user."""
    try:
        return (_PROC / str(pid) / "environ").read_bytes()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return b""
