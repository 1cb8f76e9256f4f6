"""Processors of the standalone flights job: processes of this machine, each with its own location.

What they have done is read from where they write it: their registrations and plans in ZooKeeper,
and the history of their containers.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from check_history.reading import values_in
from kazoo.client import KazooClient
from kazoo.exceptions import ConnectionLoss, NoNodeError, SessionExpiredError

from flights_demo.screen import DemoError, Screen
from homeport.job_coordinator.standalone import nodes
from homeport.job_coordinator.standalone.plan import Plan, Registration
from homeport.job_coordinator.standalone.protocol import BarrierPhase
from homeport.local_cluster import processes

_LIMIT_S = 180.0
_END_LIMIT_S = 60.0
_POLL_S = 0.05
_HISTORY = "*/.history/*.jsonl"
_READY = "waits for its first version"
"""What a new processor's log says as soon as nothing but its tasks is missing."""


@dataclass(frozen=True)
class Done:
    """A transaction of a task that an incarnation has committed. ``at_ms``: since 1970."""

    processor_id: str
    generation: int
    task: str
    at_ms: int


@dataclass(frozen=True)
class Settled:
    """All processors work on what the newest version gives them. Times in ms since 1970.

    Shapes: ``plan``: the version; ``published_ms``, ``done_ms``: of it and of its barrier;
    ``committed_ms`` {task: when its owner first committed, as this incarnation}.
    """

    plan: Plan
    published_ms: int
    done_ms: int
    committed_ms: Mapping[str, int]

    @property
    def owners(self) -> dict[str, str]:
        """{task: processor}."""
        return {str(t): str(m.processor_id) for m in self.plan.members for t in m.tasks}

    @property
    def generations(self) -> dict[str, int]:
        """{processor: of its work}."""
        return {str(m.processor_id): m.generation for m in self.plan.members}

    def restarted(self) -> list[str]:
        """The processors whose work this version has changed."""
        return [m.processor_id for m in self.plan.members if m.generation == self.plan.version]


def commits(lines: Iterable[Mapping[str, Any]]) -> Iterator[Done]:
    """Yield each task of each committed transaction, from the lines of one file. PURE."""
    ending: Mapping[str, Any] = {}
    for line in lines:
        if line["event"] == "transaction-ending":
            ending = line["offsets"]
        elif line["event"] == "transaction-committed":
            for task in ending:
                yield Done(line["processor_id"], line["epoch"], task, line["ts_ms"])
            ending = {}


def first_commits(lines: Iterable[Mapping[str, Any]]) -> Iterable[Done]:
    """Return the first commit of each (incarnation, task), as of ``commits``. PURE."""
    first: dict[tuple[str, int, str], Done] = {}
    for done in commits(lines):
        first.setdefault((done.processor_id, done.generation, done.task), done)
    return first.values()


class Processors:
    """``start`` as many as wanted, ``close`` in any case.

    Args:
        arguments: of ``homeport run-processor``, but for the id and the location.
        environment: of the processes.
        state, logs: folders; a processor has its own in each.
        connect, root: of the job in ZooKeeper.
    """

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        state: Path,
        logs: Path,
        connect: str,
        root: str,
        screen: Screen,
    ) -> None:
        self._arguments = tuple(arguments)
        self._environment = {**os.environ, **environment}
        self._state, self._logs = state, logs
        self._root, self._screen = root, screen
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._shown = ""
        self._paused: list[processes.ProcessId] = []
        self._read: dict[Path, tuple[int, list[Done]]] = {}
        self._client = KazooClient(hosts=connect)
        self._client.start()

    def close(self) -> None:
        """No processor is left, and nothing is connected."""
        for process in self._running.values():
            process.kill()  # its container ends with it
            process.wait(_END_LIMIT_S)
        self._running.clear()
        self._client.stop()
        self._client.close()

    # --- processes

    def start(self, name: str) -> None:
        """The processor of that id, and of a location of that name, runs."""
        (self._state / name).mkdir(parents=True, exist_ok=True)
        argv = [
            *(sys.executable, "-m", "homeport.cli.main", "run-processor"),
            *(*self._arguments, f"--processor-id={name}", f"--config=job.location-id={name}"),
            f"--work-dir={self._logs}",
        ]
        variables = {"LOGGED_STORE_BASE_DIR": str(self._state / name)}
        with self._log(name).open("ab") as log:
            self._running[name] = subprocess.Popen(
                argv,
                env={**self._environment, **variables},
                stdout=log,
                stderr=log,
                process_group=0,
            )

    def kill(self, name: str) -> float:
        """SIGKILL; its container dies with it. When that was, in ms since 1970."""
        process = self._running.pop(name)
        killed_ms = time.time() * 1000
        process.kill()
        process.wait(_END_LIMIT_S)
        return killed_ms

    def leave(self, name: str) -> None:
        """SIGTERM: it has committed, closed its stores and left.

        DemoError: it ends in another way.
        """
        process = self._running.pop(name)
        process.terminate()
        code = process.wait(_END_LIMIT_S)
        if code != 0:
            raise DemoError(f"{name} ended with exit code {code}: {self._last_line(name)}")

    def restart(self, name: str) -> None:
        """It has left after SIGTERM, and a new process of that id begins.

        DemoError: it ends in another way.
        """
        self.leave(name)
        self.start(name)

    def replace(self, name: str) -> None:
        """A new process of that id is there, and the one before has left.

        It got SIGTERM when the new one was ready to take its tasks.

        DemoError: it ends in another way, or the new one does not get ready.
        """
        was, before = self._running[name], self._log(name).read_text().count(_READY)
        self.start(name)
        try:
            self._until(
                lambda: self._log(name).read_text().count(_READY) > before,
                f"the new process of {name} is ready",
            )
        finally:
            new, self._running[name] = self._running[name], was
            self.leave(name)
            self._running[name] = new

    def pause(self, name: str) -> float:
        """SIGSTOP of all its processes. When that was, in ms since 1970."""
        found = processes.process_of(self._running[name].pid)
        if found is None:
            raise DemoError(f"{name} has ended: {self._last_line(name)}")
        paused_ms = time.time() * 1000
        self._paused = list(processes.freeze(lambda: (processes.identity(found),)))
        return paused_ms

    def resume(self) -> None:
        """SIGCONT of all that was paused."""
        processes.thaw(lambda: self._paused)
        self._paused = []

    @property
    def names(self) -> list[str]:
        """The processors that run."""
        return sorted(self._running)

    @property
    def folders(self) -> list[Path]:
        """State and history, of each location."""
        return sorted(folder for folder in self._state.iterdir() if folder.is_dir())

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"

    def _last_line(self, name: str) -> str:
        lines = self._log(name).read_text(encoding="utf-8", errors="replace").splitlines()
        return lines[-1] if lines else "it has said nothing"

    # --- what they do

    def until_gone(self, name: str) -> float:
        """Its session has ended. When that was seen, in ms since 1970."""
        self._until(lambda: name not in self._registered(), f"the end of the session of {name}")
        return time.time() * 1000

    def until_settled(self, names: Iterable[str]) -> Settled:
        """These and no others are there, and each of their tasks has committed.

        DemoError: it does not come to that.
        """
        wanted = set(names)
        found: list[Settled] = []

        def is_settled() -> bool:
            settled = self._settled(wanted)
            found.extend([] if settled is None else [settled])
            return settled is not None

        self._until(is_settled, f"{', '.join(sorted(wanted))} at work on all tasks")
        return found[-1]

    def _until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + _LIMIT_S
        while not self._answers(holds):
            for name, process in self._running.items():
                if process.poll() is not None:
                    raise DemoError(f"{name} has ended: {self._last_line(name)}")
            if time.monotonic() > deadline:
                raise DemoError(f"not in {_LIMIT_S:.0f} s: {what}")
            self._answers(self._tell)
            time.sleep(_POLL_S)  # ZooKeeper and histories are polled

    def _answers(self, ask: Callable[[], bool | None]) -> bool:
        """What ``ask`` finds; False where ZooKeeper does not answer, as after its restart."""
        try:
            return bool(ask())
        except (ConnectionLoss, SessionExpiredError):
            return False

    def _tell(self) -> None:
        """What the newest version says, once, and how many of its tasks have begun."""
        plan = self._plan()
        if plan is None:
            return
        first = {(d.processor_id, d.generation, d.task) for d in self._done()}
        shares = ", ".join(
            f"{m.processor_id} {sum((m.processor_id, m.generation, t) in first for t in m.tasks)}"
            f" of {len(m.tasks)}"
            for m in plan.members
        )
        line = f"  version {plan.version}, tasks that have committed: {shares}"
        if line != self._shown:
            self._shown = line
            self._screen.say(line)

    def _settled(self, wanted: set[str]) -> Settled | None:
        registered, plan = self._registered(), self._plan()
        if plan is None or set(registered) != wanted:
            return None
        members = {str(m.processor_id): m.sequence for m in plan.members}
        barrier = self._get(nodes.BARRIERS, str(plan.version))
        if members != registered or barrier is None:
            return None
        value, stat = barrier
        if value != BarrierPhase.DONE.value.encode():
            return None
        first = {(d.processor_id, d.generation, d.task): d.at_ms for d in self._done()}
        owners = [(m.processor_id, m.generation, t) for m in plan.members for t in m.tasks]
        if not all(owner in first for owner in owners):
            return None
        committed = {str(owner[2]): first[owner] for owner in owners}
        return Settled(plan, stat.ctime, stat.mtime, committed)

    def _done(self) -> list[Done]:
        for path in self._state.glob(f"*/{_HISTORY}"):
            size = path.stat().st_size
            if self._read.get(path, (-1, []))[0] != size:
                self._read[path] = size, list(first_commits(values_in(path)))
        return sorted(
            (done for _, found in self._read.values() for done in found),
            key=lambda done: -done.at_ms,  # of two files of one incarnation the first one counts
        )

    def _registered(self) -> dict[str, int]:
        """{processor: the number of its registration}."""
        found: dict[str, int] = {}
        try:
            names = self._client.get_children(f"{self._root}/{nodes.PROCESSORS}")
        except NoNodeError:
            return found
        for name in names:
            value = self._get(nodes.PROCESSORS, name)
            if value is not None:
                registration: Registration = nodes.decode_registration(name, value[0])
                found[registration.processor_id] = registration.sequence
        return found

    def _plan(self) -> Plan | None:
        value = self._get(nodes.JOB_MODELS)
        version = 0 if value is None else nodes.decode_number(nodes.JOB_MODELS, value[0])
        stored = self._get(nodes.JOB_MODELS, str(version)) if version else None
        if stored is None:
            return None
        names = nodes.segment_names(version, stored[0])
        parts = [self._get(nodes.JOB_MODELS, str(version), name) for name in names]
        if not all(parts):
            return None
        return nodes.decode_plan(version, stored[0], [part[0] for part in parts if part])

    def _get(self, *names: str) -> tuple[bytes, Any] | None:
        """(value, stat) of a node; None where there is none."""
        try:
            found: tuple[bytes, Any] = self._client.get("/".join((self._root, *names)))
        except NoNodeError:
            return None
        return found
