"""Faults on a user's own job on a local cluster, by a schedule that a seed reproduces.

A user's test::

    def test_every_record_is_counted_once():
        produce(FIRST)
        Chaos.on("my.properties", seed=7).run()
        assert counts() == expected(FIRST)

The job runs meanwhile (``run-job``), and input may come. ``run`` ends when nothing is paused, down
or cut, and all containers work again. See docs/testing.md.
"""

import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final, Protocol, Self

from homeport.cli.job.job_view import require_running
from homeport.config.config import Config
from homeport.config.errors import ConfigError, HomeportError, UnavailableError, WireError
from homeport.config.loading.loader import load
from homeport.config.settings.sections import ClusterManagerConfig
from homeport.job_coordinator.program_names import CONTAINER, DRIVER, LAUNCHER
from homeport.job_coordinator.status.shape import Phase, ShownContainer
from homeport.local_cluster import processes
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.errors import ClusterError
from homeport.testing.fault_schedule import KINDS, LEAST_FAULTS, Extent, Fault, schedule
from homeport.testing.program_search import find_programs, of_processor

CALM_LIMIT_S: Final = 180.0
_TARGET_LIMIT_S: Final = 90.0
_WORK_LIMIT_S: Final = 120.0
_POLL_S: Final = 0.3
_RECOVERY_S: Final = 40.0
"""The time of a fault beyond its own length, on a busy machine."""


class ChaosError(HomeportError):
    """The job does not come back to work, or a process to hit does not appear."""


class DisturbedJob(Protocol):
    """A job that runs on the cluster."""

    @property
    def name(self) -> str:
        """Return the name of the job, for people."""

    def not_working(self) -> dict[str, str] | str:
        """Return what keeps the job from being at work as a whole; empty where it is."""


@dataclass(frozen=True, slots=True)
class Done:
    """A fault that has happened. ``at_s``: since the first step; ``what``: its targets."""

    number: int
    at_s: float
    kind: str
    what: str


class Chaos:
    """One schedule of faults on the jobs of a cluster; each fault hits its target in all jobs.

    ``schedule``: all faults; ``done``: the faults that have happened.
    """

    def __init__(
        self,
        seed: int,
        cluster: LocalCluster,
        jobs: Sequence[DisturbedJob],
        extent: Extent,
        *,
        kinds: Collection[str] = tuple(KINDS),
        faults: int = LEAST_FAULTS,
        say: Callable[[str], None] = print,
    ) -> None:
        """Make the schedule for the kinds whose processes run now, and print it.

        ConfigError: there is no such kind.
        """
        for kind in set(kinds) - set(KINDS):
            raise ConfigError(
                "kinds", kind, "there is no such fault", f"choose from {', '.join(KINDS)}"
            )
        self._cluster = cluster
        self._jobs = jobs
        self._say = say
        there = [kind for kind in kinds if self._is_possible(kind)]
        self.schedule = schedule(seed, there, extent, faults)
        self.done: list[Done] = []
        say(f"chaos: seed {seed}, {len(self.schedule)} faults")
        for number, fault in enumerate(self.schedule, start=1):
            say(f"  {number:>2}. {fault}")
        missing = sorted(set(kinds) - set(there))
        if missing:
            say(f"  not here: {', '.join(missing)}")

    @classmethod
    def on(
        cls,
        config_path: str,
        seed: int,
        *,
        cluster: str = "dev",
        kinds: Collection[str] = tuple(KINDS),
        faults: int = LEAST_FAULTS,
        overrides: Sequence[str] = (),
        say: Callable[[str], None] = print,
    ) -> Self:
        """Return faults on the job of that properties file, which runs on the local cluster.

        ``cluster``: its name, as of ``homeport local up``. ``overrides``: as run-job's --config.
        ConfigError: the file is wrong; or so many failures would end the job. UnavailableError: the
        job does not run, or Kafka does not answer. ClusterError: there is no such cluster.
        """
        attached = LocalCluster.attach(cluster)
        job = JobOfFile(load(config_path, overrides))
        extent = job.extent(faults, attached.nodes)
        return cls(seed, attached, [job], extent, kinds=kinds, faults=faults, say=say)

    @property
    def length_s(self) -> float:
        """Return about how long ``run`` takes; input should come for so long."""
        return sum(fault.gap_s + fault.length_s + _RECOVERY_S for fault in self.schedule)

    def run(self) -> Sequence[Done]:
        """Cause all faults, and wait until nothing is paused, down or cut and all containers work.

        ChaosError: they do not work within three minutes, or a process to hit does not appear.
        """
        began_s = time.monotonic()
        for number, fault in enumerate(self.schedule, start=1):
            if fault.waits:
                self._wait_for_work(_WORK_LIMIT_S)
            time.sleep(fault.gap_s)  # the schedule's own distance
            at_s = time.monotonic() - began_s
            what = self._commit(fault)
            self._say(f"fault {number:>2} at {at_s:5.1f} s: {fault.kind}: {what}")
            self.done.append(Done(number, at_s, fault.kind, what))
        self._wait_for_work(CALM_LIMIT_S)
        return self.done

    # ------------------------------------------------------------------ faults

    def _is_possible(self, kind: str) -> bool:
        if kind.startswith("cut"):
            try:
                self._cluster.faults  # noqa: B018 - it raises where there is no network to cut
            except ClusterError:
                return False
        return bool(find_programs(self._cluster, KINDS[kind]))

    def _commit(self, fault: Fault) -> str:
        if fault.is_of_node:
            return self._hit_node(fault)
        targets = self._targets(fault)
        names = f"pid {', '.join(str(p.pid) for p in targets)}"
        if fault.kind.startswith("pause"):
            with _paused(targets):
                time.sleep(fault.length_s)  # the schedule's own length
            return f"{names} stopped for {fault.length_s:.1f} s"
        for process in targets:
            processes.send(process, signal.SIGKILL)
        return f"SIGKILL of {names}"

    def _hit_node(self, fault: Fault) -> str:
        cluster, node = self._cluster, self._cluster.nodes[fault.target]
        with_am = " (with the AM)" if find_programs(cluster, DRIVER, node) else ""
        hit: Callable[[str], list[int] | None]
        mend: Callable[[str], object]
        match fault.kind.partition("-")[0]:
            case "kill":
                hit, mend, words = cluster.kill_node, cluster.start_node, "killed, down"
            case "cut":
                hit, mend, words = cluster.faults.cut, cluster.faults.heal, "cut off"
            case _:
                hit, mend, words = cluster.pause_node, cluster.resume_node, "stopped"
        pids = hit(node)
        try:
            time.sleep(fault.length_s)  # the schedule's own length
        finally:
            mend(node)
        count = "" if pids is None else f"{len(pids)} processes "
        return f"{node}{with_am}: {count}{words} for {fault.length_s:.1f} s"

    def _targets(self, fault: Fault) -> list[processes.ProcessId]:
        words = KINDS[fault.kind]
        deadline = time.monotonic() + _TARGET_LIMIT_S
        while True:
            if words in {CONTAINER, LAUNCHER}:
                found = of_processor(self._cluster, str(fault.target), words)
            else:
                found = find_programs(self._cluster, words)
            if found:
                return found
            if time.monotonic() > deadline:
                raise ChaosError(f"nothing to hit after {_TARGET_LIMIT_S:.0f} s: {fault}")
            time.sleep(_POLL_S)  # until the deadline

    # ------------------------------------------------------------------ work

    def _wait_for_work(self, limit_s: float) -> None:
        deadline = time.monotonic() + limit_s
        while True:
            idle = {job.name: why for job in self._jobs if (why := job.not_working())}
            if not idle:
                return
            if time.monotonic() > deadline:
                raise ChaosError(f"not all come back to work in {limit_s:.0f} s: {idle}")
            time.sleep(_POLL_S)  # until the deadline


class JobOfFile:
    """A job by its configuration, which runs."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._count = len(self._containers())

    @property
    def name(self) -> str:
        """Return its ``job.name``."""
        return self._config["job.name"]

    def extent(self, faults: int, nodes: Sequence[str]) -> Extent:
        """Return the extent of a schedule; ConfigError where so many failures would end the job."""
        manager = ClusterManagerConfig.of(self._config)
        if manager.fail_job_after_retries and manager.retry_count < faults:
            raise ConfigError(
                "cluster-manager.container.retry.count",
                str(manager.retry_count),
                f"{faults} faults may be charged to one container, and would end the job",
                "run the job with 1000 under faults",
            )
        return Extent(self._count, len(nodes), manager.lease_ms)

    def not_working(self) -> dict[str, str] | str:
        """Return the containers that do not run, or why none is known."""
        try:
            phases = {c.processor_id: c.phase for c in self._containers()}
        except (UnavailableError, WireError):
            return "the AM does not answer"
        waiting = {str(p): phase.value for p, phase in phases.items() if phase != Phase.RUNNING}
        return waiting if len(phases) >= self._count else f"{len(phases)} of {self._count} there"

    def _containers(self) -> Sequence[ShownContainer]:
        # Connect at each look: another AM may answer for the job by now.
        status = require_running(self._config).client.status()
        return [c for c in status.containers if c.role == "active"]


@contextmanager
def _paused(targets: list[processes.ProcessId]) -> Iterator[None]:
    try:
        processes.pause(targets)
        yield
    finally:
        for process in targets:
            processes.send(process, signal.SIGCONT)
