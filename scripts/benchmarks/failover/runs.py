"""Failures of a running job, one after the other: what they took, phase by phase.

A YARN on loopback with three nodes. The AM fills one of them; the job's container, and its standby
where it has one, change places between the other two. The cluster and the job serve all failures of
a configuration; the state serves all configurations.
"""

from __future__ import annotations

import os
import random
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from check_history.reading import Event, read_jobs
from confluent_kafka import Producer
from flights_demo.common import await_that
from flights_demo.job import DemoJob
from flights_demo.lost_host.timeline import Lost, first_output_ms, moments
from flights_demo.screen import Screen

from benchmarks.bed import Busy, beside, committed_reader, make_topics
from benchmarks.failover.grown.package.grown_state import OUTPUT, VALUE_BYTES
from benchmarks.report import BenchmarkError
from homeport.job_coordinator.clocks import boot_ms
from homeport.local_cluster.cluster import LocalCluster
from homeport.local_cluster.resource_manager import memory_mb, node_states

PROCESSOR = "0"
STANDBY = "0-0"
PIPELINE = ("task.pipeline.class=grown_state:parse",)
STANDBYS = ("job.hotstandby.enabled=true",)
PREWARMED = (*STANDBYS, "job.hotstandby.prewarm=true")
PREWARMED_AT_HOME = ("job.container.prewarm=true", "cluster-manager.container.memory.mb=2816")
PARTITIONS = 2

EXAMPLE = Path(__file__).parent / "grown"
INPUT = "grown-in"
KEYS_PER_RECORD = 4_000
_AM_MEMORY = "yarn.am.container.memory.mb"
_TOUCHES_PER_S = 20
_POLL_S, _LIMIT_S = 0.1, 300.0
_GROW_LIMIT_S = 900.0
_REST_S = 8.0
CALM_LAG = 500


@dataclass(frozen=True, slots=True)
class Failure:
    """One failure and its recovery. Units: seconds; by phase, as the status shows it.

    ``total_s``: from the SIGKILL to the successor's first committed output, by the history.
    ``stores_s``: of that, until its stores were open, validated and at their changelogs' heads.
    ``records``: what it read of its changelogs. ``load``, ``busy``: of the machine, meanwhile.
    """

    total_s: float
    phases_s: dict[str, float]
    stores_s: float
    records: int
    kind: str
    load: float
    busy: float


class Job:
    """The job of one configuration, at work on a state that is there already or is grown."""

    def __init__(self, cluster: LocalCluster, overrides: Sequence[str], count: int = 1) -> None:
        """``count``: of containers, without those of standbys."""
        self.cluster = cluster
        self.has_standby = STANDBYS[0] in overrides
        self._warmed = {
            PROCESSOR: PREWARMED_AT_HOME[0] in overrides,
            STANDBY: PREWARMED[-1] in overrides,
        }
        values = (*overrides, f"job.container.count={count}")
        self._job = DemoJob(EXAMPLE, cluster.env(), cluster.bootstrap_servers, values)
        self._job.count = count * (2 if self.has_standby else 1)

    @contextmanager
    def running(self) -> Iterator[None]:
        """It runs inside the block, and has ended in order after it."""
        self._job.submit()
        self._job.wait_until_running(lambda _: None)
        try:
            yield
        finally:
            self._job.kill()

    # ------------------------------------------------------------------ failures

    def lose_host(self) -> Failure:
        """The host of the active container dies, and is back at the end.

        Without a standby its successor finds no state where it comes to, as on a host that has
        never had any.
        """
        before = self._calm()
        home = before[PROCESSOR]["host"]
        if not self.has_standby:
            self._forget_state(home)
        with self._losing(home):
            return self._measure(before, lambda: self.cluster.kill_node(home))

    @contextmanager
    def _losing(self, home: str) -> Iterator[None]:
        """After the block YARN misses the node that died in it, and gets it back."""
        try:
            yield
            wait_until(lambda: self._nodes().get(home) == "LOST", f"YARN to miss {home}")
        finally:
            self.cluster.start_node(home)

    def lose_process(self) -> Failure:
        """The stream container's process dies and comes home."""
        before = self._calm()
        pid = before[PROCESSOR]["pid"]
        return self._measure(before, lambda: os.kill(pid, signal.SIGKILL))

    def _measure(self, before: dict[str, dict[str, Any]], kill: Callable[[], object]) -> Failure:
        standby = STANDBY if self.has_standby else None
        lost = Lost(PROCESSOR, before[PROCESSOR]["epoch"], standby)
        busy = Busy()
        killed_ms = boot_ms()
        kill()
        wait_until(lambda: self._is_recovered(lost), "the recovery")
        share = busy.share()
        wait_until(lambda: bool(self._output_ms(lost, killed_ms)), "a commit's history")
        output_ms = self._output_ms(lost, killed_ms) or 0
        now = self._containers()[PROCESSOR]
        recovery = now["recovery"]
        restored = [how for tasks in now["restored"].values() for how in tasks.values()]
        return Failure(
            total_s=(output_ms - killed_ms) / 1000,
            phases_s={name: ms / 1000 for name, ms in recovery["phases_ms"].items()},
            stores_s=now["seconds"]["stores"] + now["seconds"]["restore"],
            records=sum(how["records"] for how in restored),
            kind=recovery["kind"],
            load=busy.load,
            busy=share,
        )

    def _output_ms(self, lost: Lost, killed_ms: int) -> int | None:
        return first_output_ms(moments(self.events(), lost, killed_ms))

    def events(self) -> list[Event]:
        """Return the history of all processes of the job."""
        folders = [self.cluster.state_dir(node) for node in self.cluster.nodes]
        return read_jobs(folders, "boot", 0)[0].events

    def containers_mb(self) -> int:
        """Return the memory that YARN has granted to the containers, without that of the AM."""
        own_mb = int(self._job.get("")["config"][_AM_MEMORY])
        return memory_mb(self.cluster.rm_url, self._job.application) - own_mb

    def _is_recovered(self, lost: Lost) -> bool:
        now = self._containers()[PROCESSOR]
        recovery = now["recovery"]
        is_newer = now["epoch"] > lost.epoch and now["phase"] == "running"
        return bool(is_newer and recovery and recovery["is_over"])

    # ------------------------------------------------------------------ calm

    def _calm(self) -> dict[str, dict[str, Any]]:
        """The containers, once all of them work, none is behind, and all nodes are there."""
        wait_until(self._is_calm, "calm")
        time.sleep(_REST_S)  # what has just come up is at work in the background still
        wait_until(self._is_calm, "calm")
        return self._containers()

    def _is_calm(self) -> bool:
        containers = self._containers().values()
        return (
            len(containers) == self._job.count
            and all(c["phase"] == "running" and c["pid"] is not None for c in containers)
            and all((c["lag"] or 0) < CALM_LAG for c in containers)
            and all(c["lag"] is not None for c in containers if c["replica_of"] is not None)
            and all(_is_warm(c) for c in containers if self._warmed.get(c["processor_id"]))
            and set(self._nodes().values()) == {"RUNNING"}
            and not self._job.get("v1/status")["excluded_hosts"]
        )

    def _forget_state(self, home: str) -> None:
        for node in self.cluster.nodes:
            if node != home:
                stores = self.cluster.state_dir(node) / f"{self._job.name}-1" / "state"
                shutil.rmtree(stores, ignore_errors=True)

    def _nodes(self) -> dict[str, str]:
        return node_states(self.cluster.rm_url) or {}

    def _containers(self) -> dict[str, dict[str, Any]]:
        return {c["processor_id"]: c for c in self._job.containers()}


def _is_warm(container: dict[str, Any]) -> bool:
    return bool(container["spare"] == {"kind": "warm", "ready": True})


class Quiet(Screen):
    """Prints nothing: the benchmark's own lines and its table show what matters."""

    def say(self, text: str) -> None:
        """Print nothing."""


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait as the demo does, with the limit of a benchmark."""
    await_that(condition, what, Quiet(), _POLL_S, _LIMIT_S)


class Feeder:
    """Writes the input: what makes the state grow, then a change of one key now and then."""

    def __init__(self, servers: str) -> None:
        self._keys = 0
        self._done: dict[int, int] = {}
        make_topics(servers, (INPUT, OUTPUT), PARTITIONS)
        # It says nothing of a broker that goes at the end.
        settings = {"bootstrap.servers": servers, "linger.ms": 5, "log_level": 0}
        self._producer = Producer(settings)
        self._outputs = committed_reader(servers, OUTPUT, PARTITIONS)

    def close(self) -> None:
        """The connections are closed."""
        self._producer.flush(10)
        self._outputs.close()

    def grow_once(self, size_mb: int) -> None:
        """The running job has a state of so many MB, all of it committed; grown at the first call.

        BenchmarkError: it takes too long.
        """
        if self._keys:
            return
        keys = size_mb * 1_000_000 // VALUE_BYTES
        began = time.monotonic()
        deadline = began + _GROW_LIMIT_S
        for number, first in enumerate(range(0, keys, KEYS_PER_RECORD)):
            count = min(KEYS_PER_RECORD, keys - first)
            self._write(first, f"grow {first} {count}")
            # One record of each partition is under way, no more: each is megabytes to the task.
            self._await_done(number + 1 - PARTITIONS, deadline)
        self._keys = keys
        self._await_done(-(-keys // KEYS_PER_RECORD), deadline)
        print(f"  {size_mb} MB of state grew in {time.monotonic() - began:.0f} s", flush=True)

    def touching(self) -> AbstractContextManager[None]:
        """Inside the block keys of each partition are changed, some twenty a second."""
        return beside(self._touch)

    def _touch(self, ended: threading.Event) -> None:
        chance = random.Random(1)  # noqa: S311 - which keys is no secret
        while not ended.wait(1 / _TOUCHES_PER_S):
            for partition in range(PARTITIONS):
                number = chance.randrange(self._keys)
                while partition_of(number) != partition:
                    number = chance.randrange(self._keys)
                self._write(number, f"touch {number}")
            self._producer.poll(0)

    def _write(self, first: int, text: str) -> None:
        self._producer.produce(INPUT, text.encode(), partition=partition_of(first))

    def _await_done(self, records: int, deadline: float) -> None:
        while sum(self._done.values()) < records:
            message = self._outputs.poll(1)
            if message is not None and message.error() is None:
                self._done[message.partition() or 0] = int(message.value() or b"-1") + 1
            if time.monotonic() > deadline:
                raise BenchmarkError(
                    f"the state has not grown within {_GROW_LIMIT_S:.0f} s: {records} records"
                    f" should be done, {sum(self._done.values())} are"
                )


def partition_of(number: int) -> int:
    """The partition of the input whose task has the key of that number."""
    return number // KEYS_PER_RECORD % PARTITIONS
