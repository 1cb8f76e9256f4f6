"""A counting job on processors that are processes, with a broker and a ZooKeeper; its input comes.

What processors do is read from where they write it, as the demo does: ZooKeeper and the history.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from check_history.reading import values_in
from confluent_kafka import Producer
from flights_demo.processors import Processors, commits
from zookeeper_process import ZooKeeperServer

from benchmarks.bed import beside, broker, make_topics
from benchmarks.failover.runs import Quiet
from benchmarks.jobs import config_of, store_keys
from benchmarks.standalone.package.counting import STORE
from homeport.config.config import Config
from homeport.job_coordinator.standalone.nodes import root_of
from homeport.local_cluster.processes import NODE_VARIABLE

SESSION_MS = 3000
_JOB, _ROOT = "counting", "/homeport"
_FED_EACH_S = 0.1
_TRANSACTION_MS = 100


@dataclass(frozen=True, slots=True)
class Bed:
    """A job's processors, and the folders of their state."""

    processors: Processors
    state: Path

    def commits(self) -> dict[str, list[int]]:
        """{task: when transactions of it were committed, in ms since 1970, sorted}."""
        found: dict[str, list[int]] = {}
        for path in self.state.glob("*/*/.history/*.jsonl"):
            for done in commits(values_in(path)):
                found.setdefault(done.task, []).append(done.at_ms)
        return {task: sorted(times) for task, times in found.items()}


def longest_pause_ms(times: Iterable[int], since_ms: float, until_ms: float) -> float:
    """The longest time between two commits of one task that overlaps the span.

    PURE. Before the first commit, and after the last one, nothing is known.
    """
    pairs = itertools.pairwise(sorted(times))
    return max((b - a for a, b in pairs if b >= since_ms and a <= until_ms), default=0)


@contextmanager
def bed(tasks: int, debounce_ms: int, more: Mapping[str, str]) -> Iterator[Bed]:
    """The job's processors may be started; its input has ``tasks`` partitions, and comes."""
    with broker() as cluster:
        environment = {**cluster.env(), NODE_VARIABLE: "zookeeper"}
        zookeeper = ZooKeeperServer(cluster.log_dir, environment)
        zookeeper.start()
        try:
            with _fed(cluster.bootstrap_servers, tasks):
                logs, state = cluster.log_dir / "processors", cluster.log_dir.parent / "standalone"
                logs.mkdir(parents=True, exist_ok=True)
                keys = {**_keys(cluster.bootstrap_servers, zookeeper.connect, debounce_ms), **more}
                file = logs / "job.properties"
                file.write_text("".join(f"{k}={v}\n" for k, v in keys.items()), encoding="utf-8")
                name = _JOB, "1"
                processors = Processors(
                    [f"--config-path={file}"],
                    {**environment, NODE_VARIABLE: "processors"},
                    state,
                    logs,
                    zookeeper.connect,
                    root_of(_ROOT, app=name, job=name, stage="1"),
                    Quiet(),
                )
                try:
                    yield Bed(processors, state)
                finally:
                    processors.close()
        finally:
            zookeeper.kill()


def _keys(servers: str, connect: str, debounce_ms: int) -> Config:
    own = {
        "task.class": "counting:Counter",
        "task.inputs": f"kafka.{_JOB}-in",
        "task.transaction.ms": str(_TRANSACTION_MS),
        "yarn.package.path": str(Path(__file__).parent / "package"),
        **store_keys(STORE, f"{_JOB}-changelog", "long", "string"),
        "job.coordinator.zk.connect": connect,
        "job.coordinator.zk.root": _ROOT,
        "job.coordinator.zk.session.timeout.ms": str(SESSION_MS),
        "job.debounce.time.ms": str(debounce_ms),
    }
    return config_of(servers, own, _JOB)


@contextmanager
def _fed(servers: str, partitions: int) -> Iterator[None]:
    topic = f"{_JOB}-in"
    make_topics(servers, [topic], partitions)
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 5, "log_level": 0})

    def feed(ended: threading.Event) -> None:
        while not ended.wait(_FED_EACH_S):
            for partition in range(partitions):
                producer.produce(topic, b"x", b"key-%d" % partition, partition=partition)
            producer.poll(0)

    try:
        with beside(feed):
            yield
    finally:
        producer.flush(10)
