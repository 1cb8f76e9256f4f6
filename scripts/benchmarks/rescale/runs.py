"""A job at work gets more containers, then fewer: what its tasks and their reader notice.

A YARN on loopback. Commands, containers and the reader share the machine's clock.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from check_history.reading import read_jobs
from confluent_kafka import Producer
from flights_demo.job import DemoJob
from flights_demo.verdict import Reader, key_written_s

from benchmarks.bed import Busy, beside, committed_reader, make_topics
from benchmarks.failover.runs import wait_until
from benchmarks.report import BenchmarkError
from benchmarks.rescale.counted.package.counted_keys import GROW, OUTPUT
from benchmarks.rescale.outputs import Gap, Outputs
from benchmarks.rescale.phases import Begun, Side, begun
from homeport.local_cluster.cluster import LocalCluster

KEY, FEW, MANY = "job.container.count", 3, 5
PARTITIONS = 8
ALONE = ("cluster-manager.container.memory.mb=9216",)
"""More than half of a node, though it is not used: each container has a host of its own.

A task that moves to a new container finds no state there.
"""
MIXED = (*ALONE, "job.container.mixed-roles=true", "job.standbytasks.replication.factor=2")
PIPELINE = ("task.pipeline.class=counted_keys:parse",)
MOVED, STAYED, UNTOUCHED = "moved", "stayed", "untouched"
_INPUT = "counted-in"
_EXAMPLE = Path(__file__).parent / "counted"
_EACH_S = 0.02
_HOT_KEYS = 100
_GROW_KEYS = 10_000
_REST_S = 5.0


@dataclass(frozen=True, slots=True)
class Task:
    """How one task took a change. ``kind``: whether it, or its container's tasks, moved."""

    partition: int
    kind: str
    gap: Gap


@dataclass(frozen=True, slots=True)
class Change:
    """One change. ``total_s``: from the key's write until all tasks have output of their new run.

    ``lived``: {processor of both models: whether its process lived on}. ``records``: of changelogs,
    read by the tasks that moved.
    """

    counts: tuple[int, int]
    total_s: float
    tasks: Sequence[Task]
    begun: Sequence[Begun]
    lived: Mapping[str, bool]
    records: int
    load: float
    busy: float


class Bed:
    """The job, what feeds it, and a reader of its outputs."""

    def __init__(self, cluster: LocalCluster, overrides: Sequence[str]) -> None:
        self.outputs = Outputs()
        self.sent: Counter[tuple[int, bytes]] = Counter()
        self._cluster = cluster
        self._servers = cluster.bootstrap_servers
        self._job = DemoJob(_EXAMPLE, cluster.env(), self._servers, overrides)
        self._job.count = FEW
        make_topics(self._servers, (_INPUT, OUTPUT), PARTITIONS)
        # Without its lines about a broker that goes at the end.
        settings = {"bootstrap.servers": self._servers, "linger.ms": 0, "log_level": 0}
        self._producer = Producer(settings)

    @contextmanager
    def running(self, keys: int) -> Iterator[None]:
        """Inside the block the job is at work, each task with so many keys; it ends in order.

        BenchmarkError, after the block: a count is wrong.
        """
        with ExitStack() as stack:
            stack.enter_context(beside(self._read))
            self._job.submit()
            try:
                self._job.wait_until_running(lambda _: None)
                self._grow(keys)
                with beside(self._feed):
                    self._await_outputs()
                    time.sleep(_REST_S)  # what has just come up is at work in the background
                    yield
                self._producer.flush(30)
                wait_until(lambda: self.outputs.has_all(self.sent), "the last outputs")
            finally:
                self._job.kill()
        if faults := self.outputs.faults(self.sent):
            raise BenchmarkError(f"{len(faults)} counts are wrong: {'; '.join(faults[:3])}")

    def change(self, count: int) -> Change:
        """Set the number of containers, and wait until all of them work."""
        before, was, busy = self._containers(), self._tasks(), Busy()
        self._job.homeport("config", "set", KEY, str(count))
        written_ms = self._written_ms()
        # Before it, mixed containers may have versions in which new ones only read ahead.
        wait_until(lambda: len(self._tasks()) == count and all(self._tasks().values()), "the model")
        has = self._tasks()
        self._job.count = count
        epochs = {p: c["epoch"] for p, c in before.items() if was[p] != has.get(p)}
        self._job.wait_until_running(lambda _: None, epochs)
        self._await_outputs()
        share, until_ms = busy.share(), time.time() * 1000
        time.sleep(_REST_S)  # the last reports and lines of the history come in
        now = self._containers()
        tasks = [
            Task(partition, kind, self.outputs.gap(partition, written_ms, until_ms))
            for partition, kind in kinds(was, has).items()
        ]
        both = sorted(before.keys() & now.keys())
        return Change(
            counts=(len(was), len(has)),
            total_s=(max(t.gap.begun_ms or 0 for t in tasks) - written_ms) / 1000,
            tasks=tasks,
            begun=begun(self._events(), written_ms, _side(before, was), _side(now, has)),
            lived={p: before[p]["pid"] == now[p]["pid"] for p in both},
            records=_records(now, [t.partition for t in tasks if t.kind == MOVED]),
            load=busy.load,
            busy=share,
        )

    def _written_ms(self) -> float:
        reader = Reader(self._servers)
        try:
            return key_written_s(reader, KEY, self._job.name) * 1000
        finally:
            reader.close()

    def _containers(self) -> dict[str, dict[str, Any]]:
        return {c["processor_id"]: c for c in self._job.containers()}

    def _tasks(self) -> dict[str, frozenset[str]]:
        containers = self._job.get("")["containers"]
        return {p: _active(container["tasks"].values()) for p, container in containers.items()}

    def _events(self) -> Any:  # noqa: ANN401 - a list of events
        folders = [self._cluster.state_dir(node) for node in self._cluster.nodes]
        return read_jobs(folders, "boot", 0)[0].events

    # ------------------------------------------------------------------ records

    def _grow(self, keys: int) -> None:
        for first in range(0, keys, _GROW_KEYS):
            count = min(_GROW_KEYS, keys - first)
            for partition in range(PARTITIONS):
                self._send(partition, GROW, b"%d %d" % (first, count))
            wait_until(lambda: self.outputs.has_all(self.sent), "the state to grow")

    def _await_outputs(self) -> None:
        now_ms = time.time() * 1000
        wait_until(lambda: self.outputs.all_since(now_ms, PARTITIONS), "output of all tasks")

    def _feed(self, ended: threading.Event) -> None:
        began, number = time.monotonic(), 0
        while not ended.wait(max(0.0, began + number * _EACH_S - time.monotonic())):
            for partition in range(PARTITIONS):
                self._send(partition, b"key-%d" % (number % _HOT_KEYS), b"x")
            self._producer.poll(0)
            number += 1

    def _send(self, partition: int, key: bytes, value: bytes) -> None:
        self._producer.produce(_INPUT, value, key, partition)
        self.sent[partition, key] += 1

    def _read(self, ended: threading.Event) -> None:
        reader = committed_reader(self._servers, OUTPUT, PARTITIONS, fetch_wait_max_ms=10)
        try:
            while not ended.is_set():
                message = reader.poll(0.1)
                if message is not None and message.error() is None:
                    key, value = message.key() or b"", message.value() or b""
                    self.outputs.add(time.time() * 1000, message.partition() or 0, key, value)
        finally:
            reader.close()


def kinds(was: Mapping[str, frozenset[str]], has: Mapping[str, frozenset[str]]) -> dict[int, str]:
    """Return {partition: how its task took the change}, by the JobModels before and after."""
    owners = {task: p for p, tasks in was.items() for task in tasks}
    found = {}
    for processor, tasks in has.items():
        for task in tasks:
            is_same = was.get(processor) == tasks
            kind = UNTOUCHED if is_same else STAYED if owners[task] == processor else MOVED
            found[int(task.removeprefix("Partition "))] = kind
    return dict(sorted(found.items()))


def _active(tasks: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    return frozenset(t["task-name"] for t in tasks if t["task-mode"] == "Active")


def _side(containers: Mapping[str, Mapping[str, Any]], tasks: Mapping[str, frozenset[str]]) -> Side:
    return Side({p: container["epoch"] for p, container in containers.items()}, tasks)


def _records(containers: Mapping[str, Mapping[str, Any]], partitions: Sequence[int]) -> int:
    names = {f"Partition {partition}" for partition in partitions}
    stores = [store for c in containers.values() for store in c["restored"].values()]
    return sum(how["records"] for store in stores for name, how in store.items() if name in names)
