"""Records sent at a rate, and when a reader of committed records has each of them."""

from __future__ import annotations

import itertools
import json
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from confluent_kafka import Producer

from benchmarks.bed import broker, committed_reader, cores_s
from benchmarks.commit.input_records import make_topics
from benchmarks.commit.job import topic
from benchmarks.commit.tasks import OUTPUT, PARTITIONS
from benchmarks.cpu_time import tree_cpu_s
from benchmarks.processes import child
from benchmarks.report import BenchmarkError, Row, at_most, figure

_NUMBERS = itertools.count(1)
_KEYS = 1_000
_LIMIT_S = 60.0
_PIPELINE = {"task.pipeline.class": "benchmarks.latency.job:parse"}
_FIXED = {"task.transaction.idle.ms": "-1", "task.batch.linger.ms": "0"}
_WARM_S, _WINDOW_S = 10.0, 15.0
_RATES = (20, 1_000)


@dataclass(frozen=True, slots=True)
class Found:
    """One window. Units: ms; percent of the machine's time, of the container with its JVM."""

    records: int
    p50_ms: float
    p99_ms: float
    cpu: float
    machine: float


class Container:
    """One container's loop, in a process of its own."""

    def __init__(self, servers: str, name: str, process: subprocess.Popen[str]) -> None:
        self._name = name
        self._process = process
        self._sent = itertools.count()
        # What waits for its time in the clients would be part of each figure.
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
        output = topic(name, OUTPUT)
        self._reader = committed_reader(servers, output, PARTITIONS, fetch_wait_max_ms=10)

    def window(self, rate: int, seconds: float) -> Found:
        """What records took that were sent at ``rate`` a second.

        BenchmarkError: some did not come.
        """
        count = int(rate * seconds)
        own, whole = self._cpu_s(), cores_s()
        sender = threading.Thread(target=self._send, args=(rate, count))
        sender.start()
        took = list(itertools.islice(self._arrivals(), count))
        sender.join()
        busy, total = (b - a for a, b in zip(whole, cores_s(), strict=True))
        if len(took) < count:
            raise BenchmarkError(f"of {count} records {len(took)} came")
        share = 100 * (self._cpu_s() - own) / total
        cuts = statistics.quantiles(took, n=100)
        return Found(count, cuts[49], cuts[98], share, 100 * busy / total)

    def _send(self, rate: int, count: int) -> None:
        pause, began = threading.Event(), time.monotonic()
        for number in range(count):
            pause.wait(max(0.0, began + number / rate - time.monotonic()))
            sequence = next(self._sent)
            value = json.dumps({"n": sequence, "at": time.time()}).encode()
            key = b"key-%d" % (sequence % _KEYS)
            self._producer.produce(topic(self._name, "in"), value, key, sequence % PARTITIONS)
            self._producer.poll(0)
        self._producer.flush(_LIMIT_S)

    def _arrivals(self) -> Iterator[float]:
        while (message := self._reader.poll(_LIMIT_S)) is not None:
            now, value = time.time(), message.value()
            if message.error() is None and value is not None:
                yield 1000 * (now - json.loads(value)["at"])

    def _cpu_s(self) -> float:
        return tree_cpu_s(self._process.pid)

    def close(self) -> None:
        """The clients are closed."""
        self._reader.close()


@contextmanager
def container(servers: str, keys: Mapping[str, str]) -> Iterator[Container]:
    """A container with these keys that takes input."""
    name = f"latency{next(_NUMBERS)}"
    make_topics(servers, name)
    command = [sys.executable, "-m", "benchmarks.latency.job", servers, name, json.dumps(keys)]
    with child(command) as (process, given, lines):
        if lines.readline() != "begins\n":
            raise BenchmarkError("benchmarks.latency.job ended before it began")
        running = Container(servers, name, process)
        yield running
        running.close()
        given.close()
        process.wait(_LIMIT_S)


def rows() -> Iterator[Row]:
    """By default, with transactions that end early and batches that fill; and with neither."""
    with broker() as started:
        for what, keys, limits in (
            ("task alone", {}, (20.0, 50.0)),
            ("pipeline", _PIPELINE, (40.0, 100.0)),
        ):
            yield from _measured(started.bootstrap_servers, what, keys, limits)
            yield from _measured(
                started.bootstrap_servers, f"{what}, neither early nor filled", keys | _FIXED, None
            )


def _measured(
    servers: str, what: str, keys: Mapping[str, str], limits: tuple[float, float] | None
) -> Iterator[Row]:
    with container(servers, keys) as running:
        running.window(100, _WARM_S)
        for rate in _RATES:
            found = running.window(rate, _WINDOW_S)
            for name, ms, number in (("p50", found.p50_ms, 0), ("p99", found.p99_ms, 1)):
                limit = None if limits is None else limits[number]
                yield at_most(f"{what}: {rate:,}/s, {name}", ms, limit, "ms")
            yield figure(f"{what}: {rate:,}/s, CPU of the container", found.cpu, "%")
            yield figure(f"{what}: {rate:,}/s, the machine is busy", found.machine, "%")


SECTIONS = {
    "visible": (
        "from a record's send until a read_committed reader has it, exactly-once, one container",
        rows,
    )
}
