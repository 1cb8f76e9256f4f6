"""Rows of scripts/bench failover: each configuration's failures, their median and range."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from flights_demo.timeline import PHASES

from benchmarks.failover.runs import (
    PIPELINE,
    PREWARMED,
    PREWARMED_AT_HOME,
    STANDBYS,
    Failure,
    Feeder,
    Job,
    cluster_of_three,
)
from benchmarks.report import Row, spread

_LEASE_S = 3.0 * 6 / 5
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
    Configuration("standby", PIPELINE + STANDBYS, _LEASE_S + 5),
    Configuration("standby, warmed up", PIPELINE + PREWARMED, _LEASE_S + 3),
)
PROCESS_LOST = (
    Configuration("with a pipeline", PIPELINE, 5),
    Configuration("with a pipeline, warmed up", PIPELINE + PREWARMED_AT_HOME, 5),
    Configuration("without a pipeline", (), 2),
)


def host_lost(size_mb: int, runs: int) -> Iterator[Row]:
    """The host of the active container dies, ``runs`` times in each configuration."""
    run_s = 50 + size_mb // 50
    return _measured(HOST_LOST, size_mb, runs, run_s, Job.lose_host)


def process_lost(size_mb: int, runs: int) -> Iterator[Row]:
    """The container's process dies, ``runs`` times in each configuration."""
    return _measured(PROCESS_LOST, size_mb, runs, 15, Job.lose_process)


def _measured(
    configurations: Sequence[Configuration],
    size_mb: int,
    runs: int,
    run_s: int,
    fail: Callable[[Job], Failure],
) -> Iterator[Row]:
    total_s = _UP_S + size_mb * _GROW_S_PER_GB // 1000
    total_s += len(configurations) * (_CHANGE_S + runs * run_s)
    print(
        f"  {runs} failures in each of {len(configurations)} configurations take some"
        f" {-(-total_s // 60)} minutes on two cores that have nothing else to do",
        flush=True,
    )
    with cluster_of_three() as cluster:
        feeder = Feeder(cluster.bootstrap_servers)
        try:
            for configuration in configurations:
                job = Job(cluster, configuration.overrides)
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
    parts = tuple((phase, statistics.median(values)) for phase, values in phases.items())
    totals = [failure.total_s for failure in found]
    yield spread(f"{name}: SIGKILL to first committed output", totals, "s", limit_s, parts)
    for phase, values in phases.items():
        yield spread(f"  {phase}", values, "s")
    has_tail = STANDBYS[0] in configuration.overrides
    stores = [failure.stores_s for failure in found]
    yield spread(
        "  stores opened and brought to their heads",
        stores,
        "s",
        _OPEN_LIMIT_S if has_tail else None,
    )
    yield spread("  changelog records read", [failure.records for failure in found], "")
    yield spread("  load average of the minute before", [failure.load for failure in found], "")
    yield spread("  cores busy meanwhile", [100 * failure.busy for failure in found], "%")
