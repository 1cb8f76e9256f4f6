"""Rows of scripts/bench failover: each configuration's failures, their median and range."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from flights_demo.lost_host.timeline import PHASES

from benchmarks.bed import cluster
from benchmarks.failover.runs import (
    PIPELINE,
    PREWARMED,
    PREWARMED_AT_HOME,
    STANDBYS,
    Failure,
    Feeder,
    Job,
)
from benchmarks.report import Row, machine_rows, phased, spread

LEASE_S = 3.0 * 6 / 5
"""With its margin, a fifth."""
_OPEN_LIMIT_S = 2.0
_UP_S, _CHANGE_S, _GROW_S_PER_GB = 45, 45, 150


@dataclass(frozen=True, slots=True)
class Configuration:
    """One way to run the job. ``limit_s``: what a failure is to take at most; None: nothing set."""

    name: str
    overrides: tuple[str, ...]
    limit_s: float | None


HOST_LOST = (
    Configuration("no standby", PIPELINE, None),
    Configuration("standby", PIPELINE + STANDBYS, LEASE_S + 5),
    Configuration("standby, warmed up", PIPELINE + PREWARMED, LEASE_S + 3),
)
PROCESS_LOST = (
    Configuration("with a pipeline", PIPELINE, 5),
    Configuration("with a pipeline, warmed up", PIPELINE + PREWARMED_AT_HOME, 5),
    Configuration("without a pipeline", (), 2),
)


def _measured(
    configurations: Sequence[Configuration],
    size_mb: int,
    run_s: int,
    fail: Callable[[Job], Failure],
    runs: int,
) -> Iterator[Row]:
    """``fail`` happens ``runs`` times in each configuration; ``run_s``: what it takes, roughly."""
    total_s = _UP_S + size_mb * _GROW_S_PER_GB // 1000
    total_s += len(configurations) * (_CHANGE_S + runs * run_s)
    print(
        f"  {runs} failures in each of {len(configurations)} configurations take some"
        f" {-(-total_s // 60)} minutes on two cores that have nothing else to do",
        flush=True,
    )
    with cluster() as yarn:
        feeder = Feeder(yarn.bootstrap_servers)
        try:
            for configuration in configurations:
                job = Job(yarn, configuration.overrides)
                with job.running():
                    feeder.grow_once(size_mb)
                    with feeder.touching():
                        found = []
                        for number in range(1, runs + 1):
                            found.append(fail(job))
                            print(line_of(configuration, number, runs, found[-1]), flush=True)
                yield from rows_of(configuration, found)
        finally:
            feeder.close()


def line_of(configuration: Configuration, number: int, runs: int, found: Failure) -> str:
    """One failure in a line."""
    phases = ", ".join(f"{name} {found.phases_s.get(name, 0):.2f}" for name in PHASES)
    return (
        f"  {configuration.name}, {number} of {runs}: {found.total_s:.2f} s ({phases}); "
        f"{found.records:,} records read; load {found.load:.1f}, cores {found.busy:.0%} busy"
    )


def rows_of(configuration: Configuration, found: Sequence[Failure]) -> Iterator[Row]:
    """In all, phase by phase, what was read, and how busy the machine was."""
    name, limit_s = configuration.name, configuration.limit_s
    phases = {phase: [f.phases_s.get(phase, 0.0) for f in found] for phase in PHASES}
    totals = [failure.total_s for failure in found]
    yield from phased(f"{name}: SIGKILL to first committed output", totals, phases, limit_s)
    has_tail = STANDBYS[0] in configuration.overrides
    stores = [failure.stores_s for failure in found]
    yield spread(
        "  stores opened and brought to their heads",
        stores,
        "s",
        _OPEN_LIMIT_S if has_tail else None,
    )
    yield spread("  changelog records read", [failure.records for failure in found], "")
    yield from machine_rows([f.load for f in found], [f.busy for f in found])


_KILLED = "SIGKILL of all that runs on the host of the active container"
SECTIONS = {
    "small": (
        f"{_KILLED}, state of 10 MB, lease 3 s",
        partial(_measured, HOST_LOST, 10, 50, Job.lose_host),
    ),
    "large": (
        f"{_KILLED}, state of 1 GB, lease 3 s",
        partial(_measured, HOST_LOST, 1000, 70, Job.lose_host),
    ),
    "home": (
        "SIGKILL of the container's process, which comes home; state of 10 MB",
        partial(_measured, PROCESS_LOST, 10, 15, Job.lose_process),
    ),
}
