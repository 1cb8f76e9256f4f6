"""Section fleet: many light processors on a real ZooKeeper."""

from __future__ import annotations

import contextlib
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from zookeeper_process import ZooKeeperServer

from benchmarks.bed import Busy, scratch
from benchmarks.cpu_time import tree_cpu_s
from benchmarks.report import BenchmarkError, Row, at_most, figure
from homeport.job_coordinator.parent_death import die_with_parent

PROCESSORS, PROCESSES, TASKS, DEBOUNCE_MS = 50, 5, 500, 2000
_TITLE = (
    f"{PROCESSORS} light processors in {PROCESSES} processes share {TASKS} tasks by a ZooKeeper"
)
_TARGET_S = 5.0
_LIMIT_S = 180.0


def rows() -> Iterator[Row]:
    """They begin; one leaves; the leader leaves."""
    print("  it takes some 2 minutes", flush=True)
    with _zookeeper() as server, fleet(server.connect, PROCESSORS, PROCESSES, TASKS) as there:
        yield from measured(there)


def measured(there: Fleet) -> Iterator[Row]:
    """The rows of a fleet that has just begun."""
    for what in ("all have begun", "one has left", "the leader has left"):
        busy, cpu = Busy(), there.cpu_s()
        if what != "all have begun":
            there.leave(there.leader if "leader" in what else there.names[-1])
        seconds = there.until_settled()
        yield at_most(f"{what}: after the debounce time, until all work", seconds, _TARGET_S, "s")
        yield figure("  CPU of the processors meanwhile", there.cpu_s() - cpu, "s")
        yield figure("  cores busy meanwhile", 100 * busy.share(), "%")
        yield figure("  load average of the last minute", os.getloadavg()[0], "")


class Fleet:
    """The processors that run, and what they say."""

    def __init__(self, processes: Sequence[subprocess.Popen[str]], names: list[str]) -> None:
        self._processes = processes
        self._share = -(-len(names) // len(processes))
        self._places = {name: n // self._share for n, name in enumerate(names)}
        self.names = names
        self.leader = ""
        self._lines: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self._last: dict[str, dict[str, Any]] = {}
        self._computed: dict[int, dict[str, Any]] = {}
        for process in processes:
            threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def _read(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self._lines.put(json.loads(line))

    def leave(self, name: str) -> None:
        """The processor is to leave."""
        stream = self._processes[self._places[name]].stdin
        if stream is None:
            raise BenchmarkError("the process has no standard input")
        stream.write(f"{name}\n")
        stream.flush()
        self.names.remove(name)

    def cpu_s(self) -> float:
        """CPU seconds of all of them so far."""
        return sum(tree_cpu_s(process.pid) for process in self._processes)

    def until_settled(self) -> float:
        """Seconds from the newest version's computation until all work on what it gives them.

        BenchmarkError: it does not come to that.
        """
        deadline = time.monotonic() + _LIMIT_S
        while not self._is_settled():
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                raise BenchmarkError(f"not settled in {_LIMIT_S:.0f} s: {self._last}") from None
            if "computes" in line:
                self._computed[line["computes"] + 1] = line
            else:
                self._last[line["processor"]] = line
        last = [self._last[name] for name in self.names]
        computed = self._computed[last[0]["version"]]
        self.leader = computed["processor"]
        at: float = max(line["at"] for line in last)
        return at - float(computed["at"])

    def _is_settled(self) -> bool:
        last = [self._last.get(name) for name in self.names]
        versions = {line and line["version"] for line in last}
        all_work = all(line and line["works"] and line["done"] for line in last)
        of_these = {v for v, c in self._computed.items() if c["there"] == len(self.names)}
        return all_work and len(versions) == 1 and versions <= of_these


@contextlib.contextmanager
def fleet(connect: str, processors: int, processes: int, tasks: int) -> Iterator[Fleet]:
    """So many run inside the block."""
    names = [f"p{number:03d}" for number in range(processors)]
    share = -(-processors // processes)
    with contextlib.ExitStack() as stack:
        started = []
        for first in range(0, processors, share):
            arguments = connect, "/bench", str(DEBOUNCE_MS), str(tasks)
            command = [
                *(sys.executable, "-m", "benchmarks.standalone.fleet_member"),
                *(*arguments, *names[first : first + share]),
            ]
            process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
            stack.callback(process.wait)
            stack.callback(process.kill)
            started.append(process)
        yield Fleet(started, names)


@contextlib.contextmanager
def _zookeeper() -> Iterator[ZooKeeperServer]:
    with scratch() as folder:
        server = ZooKeeperServer(folder, first=partial(die_with_parent, os.getpid()))
        try:
            server.start()
            yield server
        finally:
            server.kill()


SECTIONS = {"fleet": (_TITLE, rows)}
