"""The loss of a host under mixed containers, until all of its tasks have output elsewhere.

One of the nodes is full of the AM, two others have a container each: all tasks of the lost one go
to the other, whose process goes on. The fourth is free for the lost container, as beside the other
one it could have no standbys.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from flights_demo.lost_host.first_outputs import Arrivals, arriving
from flights_demo.lost_host.mixed import OVERRIDES, partition_of
from flights_demo.lost_host.timeline import TAKING_OVER, Lost, gained, revoked_ms
from flights_demo.tasks import active_tasks, is_dealt

from benchmarks.bed import Busy, cluster
from benchmarks.failover.grown.package.grown_state import OUTPUT
from benchmarks.failover.rows import LEASE_S
from benchmarks.failover.runs import (
    CALM_LAG,
    PARTITIONS,
    PIPELINE,
    STANDBYS,
    Feeder,
    Job,
    wait_until,
)
from benchmarks.report import Row, at_most, machine_rows, phased, spread
from homeport.job_coordinator.clocks import boot_ms
from homeport.local_cluster.cluster import LocalCluster

_NODES, _COUNT = 4, 2
_SIZE_MB = 10
_BEYOND_S, _BEYOND_P90_S = 0.6, 1.0
_MEMORY_PERCENT = 60
_DETECT, _LAST = "detect", "last task's output"
STEPS = (_DETECT, *TAKING_OVER, _LAST)
_CONFIGURATIONS = (("with a pipeline", PIPELINE), ("without a pipeline", ()))


@dataclass(frozen=True, slots=True)
class Loss:
    """One loss of a host. ``steps_s``: {step: what it took}, in their order; they add up.

    ``records``: what the tasks read of their changelogs. ``load``, ``busy``: of the machine.
    """

    steps_s: Mapping[str, float]
    records: int
    load: float
    busy: float

    @property
    def total_s(self) -> float:
        """From the SIGKILL to the first committed output of the last task."""
        return sum(self.steps_s.values())

    @property
    def beyond_s(self) -> float:
        """Return the part after the driver knew of the loss."""
        return self.total_s - self.steps_s[_DETECT]


class MixedJob(Job):
    """The job with mixed containers."""

    def __init__(self, cluster: LocalCluster, overrides: Sequence[str]) -> None:
        super().__init__(cluster, (*overrides, *OVERRIDES), _COUNT)

    def lose(self, arrivals: Arrivals) -> Loss:
        """A host with active tasks dies, and is back at the end."""
        before = self._calm()
        owned = active_tasks(self._job.get(""))
        processor = max(owned, key=lambda p: (len(owned[p]), p))
        lost = Lost(processor, before[processor]["epoch"], None)
        gainer = next(Lost(p, c["epoch"], None) for p, c in before.items() if p != processor)
        home, busy = before[processor]["host"], Busy()
        with self._losing(home):
            killed_ms = boot_ms()
            self.cluster.kill_node(home)
            wait_until(lambda: self._has_output(arrivals, lost, killed_ms), "output of all tasks")
            share = busy.share()
            wait_until(lambda: self._has_run(gainer), "the gainer's report")
            tasks = owned[processor]
            output_ms = self._outputs_ms(arrivals, lost, killed_ms)
            last_ms = max(output_ms[partition_of(task)] for task in tasks)
            at_ms = self._moments(lost, gainer, killed_ms) | {_LAST: last_ms}
            return Loss(_steps(at_ms, killed_ms), self._records(gainer, tasks), busy.load, share)

    def _outputs_ms(self, arrivals: Arrivals, lost: Lost, killed_ms: int) -> dict[int, int]:
        """{partition: when its first output came after the last one of the lost container}."""
        over_ms = revoked_ms(self.events(), [lost], killed_ms)
        return {} if over_ms is None else arrivals.first_since(over_ms)

    def _has_output(self, arrivals: Arrivals, lost: Lost, killed_ms: int) -> bool:
        return len(self._outputs_ms(arrivals, lost, killed_ms)) == PARTITIONS

    def _has_run(self, gainer: Lost) -> bool:
        now = self._containers()[gainer.processor_id]
        return bool(now["phase"] == "running" and now["epoch"] > gainer.epoch)

    def _moments(self, lost: Lost, gainer: Lost, killed_ms: int) -> dict[str, int]:
        events = self.events()
        found = {moment.name: moment.at_ms for moment in gained(events, gainer, killed_ms)}
        return found | {_DETECT: revoked_ms(events, [lost], killed_ms) or killed_ms}

    def _records(self, gainer: Lost, tasks: set[str]) -> int:
        restored = self._containers()[gainer.processor_id]["restored"].values()
        return sum(how[task]["records"] for how in restored for task in tasks if task in how)

    def _is_calm(self) -> bool:
        """Each task has a standby too, which is not behind."""
        if not super()._is_calm() or not is_dealt(self._job.get("")):
            return False
        lags = [s["lag"] for c in self._containers().values() for s in c["standbys"]]
        return all(lag is not None and lag < CALM_LAG for lag in lags)


def _steps(at_ms: Mapping[str, int], killed_ms: int) -> dict[str, float]:
    """Return what each step took; one that was over before the one before it took nothing."""
    steps, until = {}, killed_ms
    for step in STEPS:
        reached = max(until, at_ms.get(step, until))
        steps[step], until = (reached - until) / 1000, reached
    return steps


def _measured(runs: int) -> Iterator[Row]:
    print(
        f"  {runs} failures in each of {len(_CONFIGURATIONS)} configurations take some "
        f"{3 + runs * 2} minutes on two cores that have nothing else to do",
        flush=True,
    )
    with cluster(_NODES) as yarn:
        feeder = Feeder(yarn.bootstrap_servers)
        try:
            mixed_mb = 0
            for name, overrides in _CONFIGURATIONS:
                job = MixedJob(yarn, overrides)
                with job.running():
                    feeder.grow_once(_SIZE_MB)
                    mixed_mb = job.containers_mb()
                    found = list(_losses(job, feeder, name, runs))
                yield from rows_of(name, found)
            yield memory_row(mixed_mb, _with_standby_containers_mb(yarn))
        finally:
            feeder.close()


def _losses(job: MixedJob, feeder: Feeder, name: str, runs: int) -> Iterator[Loss]:
    servers = job.cluster.bootstrap_servers
    with feeder.touching(), arriving(servers, OUTPUT, PARTITIONS) as arrivals:
        for number in range(1, runs + 1):
            loss = job.lose(arrivals)
            steps = ", ".join(f"{step} {loss.steps_s[step]:.2f}" for step in STEPS)
            print(
                f"  {name}, {number} of {runs}: {loss.total_s:.2f} s, {loss.beyond_s:.2f} of it "
                f"after detection ({steps}); {loss.records:,} records read; load {loss.load:.1f}, "
                f"cores {loss.busy:.0%} busy",
                flush=True,
            )
            yield loss


def _with_standby_containers_mb(yarn: LocalCluster) -> int:
    """Return what YARN has granted the same job with a standby container for each of its own."""
    job = Job(yarn, STANDBYS, _COUNT)
    with job.running():
        return job.containers_mb()


def rows_of(name: str, found: Sequence[Loss]) -> Iterator[Row]:
    """The whole, detection apart from the rest, step by step, and how busy the machine was."""
    steps = {step: [loss.steps_s[step] for loss in found] for step in STEPS}
    totals, beyond = [loss.total_s for loss in found], [loss.beyond_s for loss in found]
    what = f"{name}: SIGKILL to first committed output of all tasks"
    yield from phased(what, totals, steps, LEASE_S + _BEYOND_S)
    yield spread("  all that follows detection", beyond, "s", _BEYOND_S)
    yield at_most("    its 90th percentile", percentile_90(beyond), _BEYOND_P90_S, "s")
    yield spread("  changelog records read", [loss.records for loss in found], "")
    yield from machine_rows([loss.load for loss in found], [loss.busy for loss in found])


def memory_row(mixed_mb: int, standby_mb: int) -> Row:
    """Return the memory of mixed containers as a share of that with standby containers."""
    what = f"memory of {_COUNT} mixed containers ({mixed_mb:,} MB), of that with standby containers"
    return at_most(what, 100 * mixed_mb / standby_mb, _MEMORY_PERCENT, "%")


def percentile_90(values: Sequence[float]) -> float:
    """Return the least value that nine tenths of all are at most."""
    return sorted(values)[math.ceil(0.9 * len(values)) - 1]


SECTIONS = {
    "mixed": (
        "SIGKILL of all that runs on a host of mixed containers, state of 10 MB, lease 3 s",
        _measured,
    )
}
