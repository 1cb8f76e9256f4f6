"""Faults on a running job, by a schedule that a seed reproduces (``scripts/demo --chaos SEED``).

Every kind of fault hits by process role, found by command line: a kind whose process this version
does not have is not in the list. What a schedule names (a processor, a node) is fixed by the seed;
which process that is, is looked up when its time has come.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from flights_demo.job import CONTAINERS, DemoJob
from flights_demo.screen import DemoError, Screen
from homeport.appmaster.attempt.heartbeat import SPARE_NAME
from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster

LEAST_FAULTS = 10
KILLS = 20
"""Of a kill loop, which hits ``KILLED`` only."""
KILLED = ("kill-container", "kill-launcher")
LEASE_MS = 3_000
#: Failures are what this run is made of: none of them may use up the retry keys.
OVERRIDES = (
    "cluster-manager.container.retry.count=1000",
    f"cluster-manager.container.lease.ms={LEASE_MS}",
)
CALM_LIMIT_S = 180.0

_SHORT_S = (0.3, 0.5 * LEASE_MS / 1000)
_LONG_S = (2.0 * LEASE_MS / 1000, 3.0 * LEASE_MS / 1000)
_DOWN_S = (1.0, 5.0)
_GAP_S = (1.0, 4.0)
_TARGET_LIMIT_S = 90.0
_WORK_LIMIT_S = 120.0
_POLL_S = 0.3
#: What a fault costs beside its own length on a machine that has other things to do as well: a job
#: comes back to work. For the pace of the producer, which is let loose when all is over.
_RECOVERY_S = 40.0

CONTAINER = "-m homeport.container.incarnation.container_runner"
LAUNCHER = "-m homeport.container.launcher.launcher"
DRIVER = "-m homeport.appmaster.programs.application_master"
KEEPER = "-m homeport.appmaster.programs.lease_keeper"
AM_JVM = "com.anaconda.skein.ApplicationMaster"

#: Kind to what the command line of the process that it hits says; it must be there for the kind.
KINDS = {
    "kill-container": CONTAINER,
    "kill-launcher": LAUNCHER,
    "kill-node": LAUNCHER,
    "pause-container-short": CONTAINER,
    "pause-container-long": CONTAINER,
    "pause-launcher-short": LAUNCHER,
    "pause-launcher-long": LAUNCHER,
    "pause-node-short": LAUNCHER,
    "pause-node-long": LAUNCHER,
    # Each costs an attempt of YARN's where no supervisor stands between.
    "kill-driver": DRIVER,
    "kill-am": AM_JVM,
    "kill-keeper": KEEPER,
}
_OF_THE_AM = {"kill-driver", "kill-am", "kill-keeper"}


@dataclass(frozen=True)
class Fault:
    """One fault of a schedule. Units: seconds.

    ``target``: the number of a processor or, where the kind says node, of a node. ``gap_s``: how
    long the one before lies back. ``waits``: whether the job is at work again before it comes,
    or is perhaps still recovering from the one before.
    """

    kind: str
    target: int
    gap_s: float
    length_s: float
    waits: bool

    def __str__(self) -> str:
        node = "-node" in self.kind
        whom = f"nm{self.target + 1}" if node else f"processor {self.target}"
        if self.kind in _OF_THE_AM:
            whom = "AM"
        length = f" for {self.length_s:.1f} s" if self.length_s else ""
        when = "when all work" if self.waits else "at once"
        return f"{self.kind:<22} {whom}{length}, {self.gap_s:.1f} s later, {when}"


def schedule(seed: int, kinds: Iterable[str], nodes: int, least: int = LEAST_FAULTS) -> list[Fault]:
    """At least ``least`` faults, each kind once before any comes twice; by the seed alone."""
    chance = random.Random(seed)  # noqa: S311 - a schedule is no secret
    order = sorted(kinds)
    chance.shuffle(order)
    while len(order) < least:
        order.append(chance.choice(sorted(kinds)))
    return [_fault(chance, kind, nodes) for kind in order]


def _fault(chance: random.Random, kind: str, nodes: int) -> Fault:
    limits = (0.0, 0.0)
    if kind == "kill-node":
        limits = _DOWN_S
    elif kind.startswith("pause"):
        limits = _SHORT_S if kind.endswith("short") else _LONG_S
    return Fault(
        kind=kind,
        target=chance.randrange(nodes if "-node" in kind else CONTAINERS),
        gap_s=round(chance.uniform(*_GAP_S), 1),
        length_s=round(chance.uniform(*limits), 1),
        waits=chance.random() < 0.7,  # noqa: PLR2004 - most find a working job, some a recovering one
    )


class Chaos:
    """One schedule on the jobs of a cluster: what it names in one job, it names in all."""

    def __init__(
        self,
        seed: int,
        cluster: LocalCluster,
        jobs: Sequence[DemoJob],
        find_am: Callable[[DemoJob], str | None],
        screen: Screen,
        *,
        kills_only: bool,
    ) -> None:
        """``find_am``: where a job's newest AM answers; an older one may answer too, for a while.

        ``kills_only``: twenty times SIGKILL of a container or a launcher, and no other fault.
        """
        self._kinds = KILLED if kills_only else tuple(KINDS)
        self.least = KILLS if kills_only else LEAST_FAULTS
        self._find_am = find_am
        self._cluster = cluster
        self._jobs = jobs
        self._screen = screen
        self._seed = seed
        self._began = time.monotonic()
        self.schedule: list[Fault] = []
        self.done: list[tuple[str, ...]] = []

    def plan(self) -> int:
        """The schedule is made for what runs now, and printed.

        Returns:
            the seconds that it will take, roughly: for so long input should come.
        """
        there = {words for words in set(KINDS.values()) if self._find(words)}
        kinds = [kind for kind in self._kinds if KINDS[kind] in there]
        self.schedule = schedule(self._seed, kinds, len(self._cluster.nodes), self.least)
        missing = sorted(set(self._kinds) - set(kinds))
        self._screen.say(f"chaos: seed {self._seed}, {len(self.schedule)} faults")
        for number, fault in enumerate(self.schedule, start=1):
            self._screen.say(f"  {number:>2}. {fault}")
        if missing:
            self._screen.say(f"  not in this version: {', '.join(missing)}")
        return round(sum(f.gap_s + f.length_s + _RECOVERY_S for f in self.schedule))

    def run(self, is_fed: Callable[[], bool]) -> None:
        """All faults have happened, and nothing is paused or down any more.

        Args:
            is_fed: whether input is still coming, for the record of each fault.

        Raises:
            DemoError: the job does not come back to work, or a process to hit does not appear.
        """
        self._began = time.monotonic()
        for number, fault in enumerate(self.schedule, start=1):
            if fault.waits:
                self._wait_for_work(_WORK_LIMIT_S)
            time.sleep(fault.gap_s)
            at = time.monotonic() - self._began
            fed = "input coming" if is_fed() else "no input left"
            what = self._commit(fault)
            self._screen.say(f"fault {number:>2} at {at:5.1f} s: {fault.kind}: {what}")
            self.done.append((str(number), f"{at:5.1f} s", fault.kind, what, fed))

    def calm(self) -> None:
        """All containers work again.

        Raises:
            DemoError: they do not, within three minutes.
        """
        self._wait_for_work(CALM_LIMIT_S)

    # ------------------------------------------------------------------ faults

    def _commit(self, fault: Fault) -> str:
        """Do it; what was hit, in words."""
        if "-node" in fault.kind:
            return self._hit_node(fault)
        targets = self._targets(fault)
        names = f"pid {', '.join(str(p.pid) for p in targets)}"
        if fault.kind.startswith("pause"):
            with self._paused(targets):
                time.sleep(fault.length_s)
            return f"{names} stopped for {fault.length_s:.1f} s"
        for process in targets:
            processes.send(process, signal.SIGKILL)
        return f"SIGKILL of {names}"

    def _hit_node(self, fault: Fault) -> str:
        node = self._cluster.nodes[fault.target]
        with_am = " (with the AM)" if self._find(DRIVER, node) else ""
        if fault.kind == "kill-node":
            killed = self._cluster.kill_node(node)
            try:
                time.sleep(fault.length_s)
            finally:
                self._cluster.start_node(node)
            return f"{node}{with_am}: {len(killed)} processes killed, down {fault.length_s:.1f} s"
        paused = self._cluster.pause_node(node)
        try:
            time.sleep(fault.length_s)
        finally:
            self._cluster.resume_node(node)
        return f"{node}{with_am}: {len(paused)} processes stopped for {fault.length_s:.1f} s"

    @contextmanager
    def _paused(self, targets: list[processes.ProcessId]) -> Iterator[None]:
        """These processes, and no others, stand still inside the block."""
        try:
            processes.pause(targets)
            yield
        finally:
            for process in targets:
                processes.send(process, signal.SIGCONT)

    def _targets(self, fault: Fault) -> list[processes.ProcessId]:
        """The living processes that the fault means; waits until there are some.

        Raises:
            DemoError: there are none for a minute and a half.
        """
        words = KINDS[fault.kind]
        deadline = time.monotonic() + _TARGET_LIMIT_S
        while True:
            found = self._find(words)
            if words in {CONTAINER, LAUNCHER}:
                found = self._of_processor(fault.target, words)
            if found:
                return found
            if time.monotonic() > deadline:
                raise DemoError(f"nothing to hit after {_TARGET_LIMIT_S:.0f} s: {fault}")
            time.sleep(_POLL_S)

    def _of_processor(self, number: int, words: str) -> list[processes.ProcessId]:
        """The processor's stream container, or its launcher: the parent of that."""
        containers = [
            process
            for process in self._find(CONTAINER)
            if _log_name(process.pid).startswith(f"container-{number}-")
        ]
        if words == CONTAINER:
            return containers
        parents = [processes.info(process.pid) for process in containers]
        wanted = {found.parent for found in parents if found is not None}
        return [process for process in self._find(LAUNCHER) if process.pid in wanted]

    def _find(self, words: str, node: str | None = None) -> list[processes.ProcessId]:
        """Processes of the cluster, or of one node, whose command line has these words."""
        return find_programs(self._cluster, words, node)

    # ------------------------------------------------------------------ work

    def _wait_for_work(self, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while True:
            resting = {job.name: phases for job in self._jobs if (phases := self._resting(job))}
            if not resting:
                return
            if time.monotonic() > deadline:
                raise DemoError(f"not all come back to work in {limit_s:.0f} s: {resting}")
            self._screen.progress(f"waiting for work: {resting}")
            time.sleep(_POLL_S)

    def _resting(self, job: DemoJob) -> dict[str, str] | str:
        """What keeps the job from being at work as a whole; empty where it is."""
        job.url = self._find_am(job) or job.url
        phases = job.phases()
        if len(phases) == job.count and set(phases.values()) == {"running"}:
            return ""
        return phases or "the AM does not answer"


def find_programs(
    cluster: LocalCluster, words: str, node: str | None = None
) -> list[processes.ProcessId]:
    """Processes of the cluster, or of one node, whose command line has these words."""
    found = processes.of_cluster(cluster.cluster_id, node)
    return sorted((p for p in found if _runs(p.pid, words)), key=lambda p: p.pid)


def _runs(pid: int, words: str) -> bool:
    """Whether the process is the program at work; its shell and its spare have the same words."""
    line = _command_line(pid)
    if words not in line or Path(line.split(" ", 1)[0]).name in {"bash", "sh"}:
        return False
    try:
        return Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").strip() != SPARE_NAME
    except (FileNotFoundError, ProcessLookupError):
        return False


def _log_name(pid: int) -> str:
    """The name of the file that a process writes to; empty where it is gone."""
    try:
        return Path(f"/proc/{pid}/fd/1").readlink().name
    except OSError:
        return ""


def _command_line(pid: int) -> str:
    """The words of a command line, with spaces between; empty where the process is gone."""
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace")
