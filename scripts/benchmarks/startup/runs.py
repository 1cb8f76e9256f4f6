"""Starts of a new job on a cluster that has nothing else to do: what they took, step by step.

A YARN on loopback with three nodes; each start is of a job of its own, whose topics and state are
not there yet, and whose input waits. Commands and containers share the machine's clock.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from check_history.reading import Event, UnreadableError, read_jobs
from confluent_kafka import Producer
from flights_demo.job import DemoJob

from benchmarks.bed import Busy, cluster, make_topics
from benchmarks.failover.grown.package.grown_state import OUTPUT
from benchmarks.failover.runs import EXAMPLE, INPUT, PARTITIONS, PIPELINE, wait_until
from benchmarks.report import BenchmarkError, Row, machine_rows, phased
from homeport.job_coordinator.clocks import boot_ms
from homeport.local_cluster.cluster import LocalCluster

_UP_S, _RUN_S = 45, 35

#: Lines of run-job, and events of the history: (step that they end, how they begin or their name).
_LINES = (
    ("run-job checks configuration, Kafka and YARN", "checked:"),
    ("the application is submitted", "submitted "),
)
_EVENTS = (
    ("the AM has decided on the container", "permit-granted"),
    ("its process starts", "child-started"),
    ("it is about to take input", "started"),
    ("it has its first record", "first-record"),
    ("its first output is committed", "transaction-committed"),
)
STEPS = tuple(step for step, _ in (*_LINES, *_EVENTS))


@dataclass(frozen=True, slots=True)
class Start:
    """One start. Units: seconds; ``reached_s``: {step: from the command on, until its end}."""

    reached_s: Mapping[str, float]
    load: float
    busy: float

    @property
    def total_s(self) -> float:
        """From the command to the first committed output."""
        return self.reached_s[STEPS[-1]]

    @property
    def steps_s(self) -> dict[str, float]:
        """{step: what it took}; one that ended before those before it took nothing."""
        found, before = {}, 0.0
        for step in STEPS:
            until = max(before, self.reached_s[step])
            found[step], before = until - before, until
        return found


def _measured(what: str, overrides: Sequence[str], limit_s: float, runs: int) -> Iterator[Row]:
    """``runs`` starts, one after the other."""
    minutes = -(-(_UP_S + runs * _RUN_S) // 60)
    print(f"  {runs} starts take some {minutes} minutes on two cores", flush=True)
    with cluster() as yarn:
        _make_input(yarn.bootstrap_servers)
        found = []
        for number in range(1, runs + 1):
            found.append(_start(yarn, f"start-{number}", overrides))
            print(_line_of(number, runs, found[-1]), flush=True)
    yield from rows_of(what, found, limit_s)


def rows_of(what: str, found: Sequence[Start], limit_s: float) -> Iterator[Row]:
    """In all, step by step, and how busy the machine was."""
    steps = {step: [start.steps_s[step] for start in found] for step in STEPS}
    totals = [start.total_s for start in found]
    whole = f"{what}: run-job to first committed output"
    yield from phased(whole, totals, steps, limit_s, "until {}")
    yield from machine_rows([start.load for start in found], [start.busy for start in found])


def _line_of(number: int, runs: int, start: Start) -> str:
    steps = ", ".join(f"{seconds:.2f}" for seconds in start.steps_s.values())
    return (
        f"  {number} of {runs}: {start.total_s:.2f} s ({steps}); load {start.load:.1f}, "
        f"cores {start.busy:.0%} busy"
    )


def _make_input(servers: str) -> None:
    make_topics(servers, (INPUT, OUTPUT), PARTITIONS)
    producer = Producer({"bootstrap.servers": servers, "log_level": 0})
    for partition in range(PARTITIONS):
        producer.produce(INPUT, b"touch 1", partition=partition)
    if producer.flush(30):
        raise BenchmarkError("the records of the input were not written within 30 s")


def _start(cluster: LocalCluster, name: str, overrides: Sequence[str]) -> Start:
    own = (f"job.name={name}", *overrides)
    job = DemoJob(EXAMPLE, cluster.env(), cluster.bootstrap_servers, own)
    busy, began_ms = Busy(), boot_ms()
    try:
        reached = _run(job, cluster)
        wait_until(lambda: len(_events(cluster, name)) == len(_EVENTS), "a first commit")
        share = busy.share()
        reached |= _events(cluster, name)
    finally:
        job.kill()
    return Start({step: (at - began_ms) / 1000 for step, at in reached.items()}, busy.load, share)


def _run(job: DemoJob, cluster: LocalCluster) -> dict[str, int]:
    """The AM answers; {step of run-job: when it ended}."""
    environment = {**os.environ, **cluster.env(), "PYTHONUNBUFFERED": "1"}
    reached: dict[str, int] = {}
    said: list[str] = []
    with subprocess.Popen(
        job.command("run"),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as child:
        assert child.stdout is not None  # noqa: S101 - for the type checker
        for line in child.stdout:
            said.append(line.strip())
            for step, begin in _LINES:
                if line.startswith(begin):
                    reached.setdefault(step, boot_ms())
    if child.returncode != 0 or len(reached) < len(_LINES):
        raise BenchmarkError(f"run-job: exit {child.returncode}: {' / '.join(said[-3:])}")
    return reached


def _events(cluster: LocalCluster, name: str) -> dict[str, int]:
    """{step of the AM and the container: when it ended}, as far as the history has it."""
    folders = [cluster.state_dir(node) for node in cluster.nodes]
    try:
        jobs = {job.name: job for job in read_jobs(folders, "boot", 0)}
    except UnreadableError:  # nothing is written yet
        return {}
    events: list[Event] = jobs[f"{name}-1"].events if f"{name}-1" in jobs else []
    found: dict[str, int] = {}
    for step, event_name in _EVENTS:
        at = [event.at for event in events if event.name == event_name]
        if at:
            found[step] = min(at)
    return found


SECTIONS = {
    "task": (
        "A job without a pipeline, from run-job's start to the first committed output",
        partial(_measured, "without a pipeline", (), 6.0),
    ),
    "pipeline": (
        "A job with a pipeline, from run-job's start to the first committed output",
        partial(_measured, "with a pipeline", PIPELINE, 9.0),
    ),
}
