"""Memory, threads and CPU of each process of a job that has nothing to do.

A YARN of one node on loopback runs the job. All that YARN's node has started is counted: also the
shells, and the JVM of a Spark, whose environment is not the container's.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil
from confluent_kafka import Producer
from flights_demo.job import DemoJob

from benchmarks.bed import Busy, cluster, make_topics
from benchmarks.cpu_time import cpu_s
from benchmarks.failover.grown.package.grown_state import OUTPUT
from benchmarks.failover.runs import EXAMPLE, INPUT, PIPELINE, wait_until
from benchmarks.report import BenchmarkError, Row, at_most, machine_rows
from homeport.job_coordinator import program_names
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.processes import of_cluster, with_descendants

_OVER_S = 60.0
_REST_S = 20.0
_OTHER = "shells of YARN"
_ROLES = {
    program_names.AM_JVM: "AM: Skein's JVM",
    "-m homeport.appmaster.programs.supervisor": "AM: supervisor",
    program_names.DRIVER: "AM: driver",
    program_names.KEEPER: "AM: keeper",
    program_names.LAUNCHER: "launcher",
    program_names.CONTAINER: "container",
    "org.apache.spark": "Spark's JVM",
}
"""{part of the command line: role}; the first that fits, as a JVM's shell has its command too."""
_KEEPER_SPARE, _SPARE = "AM: spare of the keeper", "spare of the container"
_OF_CONTAINER = ("launcher", "container", _SPARE, "Spark's JVM")
_DAEMONS = ("org.apache.hadoop.yarn.server", "kafka.Kafka")

#: As a user's job: the benchmark of failures has a shorter lease, and an AM that fills its host.
_USUAL = (
    "cluster-manager.container.lease.ms=10000",
    "yarn.am.container.memory.mb=1024",
    "task.commit.ms=60000",
)


@dataclass(frozen=True, slots=True)
class Taken:
    """What processes of one role take. ``cores``: CPU per time, 1 is one core."""

    count: int = 0
    mb: float = 0.0
    threads: int = 0
    cores: float = 0.0

    def plus(self, other: Taken) -> Taken:
        """Return both together."""
        return Taken(
            self.count + other.count,
            self.mb + other.mb,
            self.threads + other.threads,
            self.cores + other.cores,
        )


def role_of(words: Sequence[str], comm: str) -> str | None:
    """Return the role of a process by its command line; None: a daemon of the cluster."""
    line = " ".join(words)
    if any(daemon in line for daemon in _DAEMONS):
        return None
    if words and Path(words[0]).name in {"bash", "sh"}:
        return _OTHER
    role = next((role for part, role in _ROLES.items() if part in line), "other processes")
    return _KEEPER_SPARE if comm == program_names.SPARE_NAME else role


def together(found: Iterable[Taken]) -> Taken:
    """Return what all of them take."""
    total = Taken()
    for one in found:
        total = total.plus(one)
    return total


def _roles(yarn: LocalCluster, serving: Collection[int]) -> dict[int, str]:
    """{pid: role} of all that YARN's nodes have started; ``serving``: what is no spare."""
    found = {}
    for one in with_descendants(of_cluster(yarn.cluster_id)):
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(one.pid)
            if (role := role_of(process.cmdline(), process.name())) is not None:
                is_spare = role == "container" and one.pid not in serving
                found[one.pid] = _SPARE if is_spare else role
    return found


def _pss_mb(pid: int) -> float:
    """Return its resident memory, of pages that several processes have its share alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    (kilobytes,) = (line.split()[1] for line in lines if line.startswith("Pss:"))
    return int(kilobytes) / 1024


def _taken(roles: Mapping[int, str]) -> dict[str, Taken]:
    """{role: what its processes take}, over ``_OVER_S``."""
    began = time.monotonic(), {pid: cpu_s(pid) for pid in roles}
    time.sleep(_OVER_S)  # the span of the measurement
    over_s = time.monotonic() - began[0]
    found: dict[str, Taken] = {}
    for pid, role in roles.items():
        if not psutil.pid_exists(pid):
            raise BenchmarkError(f"{role}, pid {pid}, has ended meanwhile: the job is not idle")
        threads = psutil.Process(pid).num_threads()
        cores = (cpu_s(pid) - began[1][pid]) / over_s
        own = Taken(1, _pss_mb(pid), threads, cores)
        found[role] = found.get(role, Taken()).plus(own)
    return found


def _measured(
    overrides: Sequence[str], containers: int, partitions: int, limits: Mapping[str, float]
) -> Iterator[Row]:
    with cluster(nodes=1) as yarn:
        _make_input(yarn.bootstrap_servers, partitions)
        values = (*_USUAL, f"job.container.count={containers}", *overrides)
        job = DemoJob(EXAMPLE, yarn.env(), yarn.bootstrap_servers, values)
        job.count = containers
        job.submit()
        try:
            job.wait_until_running(lambda _: None)
            wait_until(lambda: all(map(_has_spare, job.containers())), "the spares")
            time.sleep(_REST_S)  # processes that have just started work on in the background
            busy = Busy()
            found = _taken(_roles(yarn, [c["pid"] for c in job.containers()]))
            share = busy.share()
        finally:
            job.kill()
    yield from rows_of(found, containers, limits)
    yield from machine_rows([busy.load], [share])


def _has_spare(container: dict[str, object]) -> bool:
    spare = container["spare"]
    return isinstance(spare, dict) and bool(spare["ready"])


def rows_of(
    found: Mapping[str, Taken], containers: int, limits: Mapping[str, float]
) -> Iterator[Row]:
    """Yield the job in all, one container of it, and each role, the largest first.

    ``limits``: MB of the ``job`` and of a ``container``, and ``cpu``, in % of a core.
    """
    job = together(found.values())
    own = together(taken for role, taken in found.items() if role in _OF_CONTAINER)
    yield at_most(f"the job: {_about(job)}", job.mb, limits.get("job"), "MB")
    yield at_most("CPU of the job, of a core", 100 * job.cores, limits.get("cpu"), "%")
    yield at_most(
        f"a container with all that belongs to it, mean of {containers}: {_about(own)}",
        own.mb / containers,
        limits.get("container"),
        "MB",
    )
    for role, taken in sorted(found.items(), key=lambda item: -item[1].mb):
        yield Row(f"  {role}: {_about(taken)}", f"{taken.mb:.0f} MB", number=taken.mb, unit="MB")


def _about(taken: Taken) -> str:
    return f"{taken.count} processes, {taken.threads} threads, {100 * taken.cores:.2f} % of a core"


def _make_input(servers: str, partitions: int) -> None:
    make_topics(servers, (INPUT, OUTPUT), partitions)
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for partition in range(partitions):
        producer.produce(INPUT, b"touch 1", partition=partition)
    if producer.flush(30):
        raise BenchmarkError("the records of the input were not written within 30 s")


SECTIONS = {
    "task": (
        "An idle job of one container without a pipeline",
        partial(_measured, (), 1, 2, {"job": 500, "cpu": 6, "container": 200}),
    ),
    "pipeline": (
        "An idle job of one container with a pipeline",
        partial(_measured, PIPELINE, 1, 2, {"job": 950, "cpu": 8, "container": 660}),
    ),
    "further": (
        "An idle job of four containers without a pipeline",
        partial(_measured, (), 4, 4, {"job": 900, "cpu": 10, "container": 145}),
    ),
    "tasks": (
        "An idle job of 1,000 tasks in one container without a pipeline",
        partial(_measured, (), 1, 1000, {"job": 800, "cpu": 10, "container": 480}),
    ),
}
