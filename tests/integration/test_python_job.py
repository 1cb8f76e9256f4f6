"""A job in one Python file on YARN, and a job that moves there from a properties file."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
import python_job_of_all
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from forked_tool import WRITER, run_forked
from topic_records import committed
from yarn_jobs import KEYS, Job, wait_for

_FILE = """
from homeport import Job

job = Job({name!r}, kafka={kafka!r}, containers=3, keys={keys!r})
source = job.input("{name}-in", key=str)
counts = job.store("counts", key=str, value=object, changelog="{name}-counts")


@job.each(source)
def count(key: str, _value: bytes) -> None:
    counts[key] = counts.get(key, 0) + 1
    job.context.metrics.counter("records").inc()
    job.context.metrics.gauge("newest", kind="count").set(counts[key])
"""
_DECLARED = ("job.name", "systems.kafka.consumer.", "stores.", "task.", "yarn.package.path")


@pytest.mark.long
def test_a_job_moves_from_a_properties_file_to_a_python_file(
    make_job: Callable[[str], Job],
) -> None:
    """Its state goes along: what both counted is exact, over SIGKILL of a container.

    `run-job` ships the file alone as the job's package.
    """
    job = make_job("one-file")
    job.begin(300)
    job.expects(300)
    job.kill()
    keys = {key: v for key, v in job.values.items() if not key.startswith(_DECLARED)}
    own = "metrics.reporter.snapshot"
    keys |= {
        "metrics.reporters": "snapshot",
        f"{own}.class": "org.apache.samza.metrics.reporter.MetricsSnapshotReporterFactory",
        f"{own}.stream": f"kafka.{job.name}-metrics",
        f"{own}.interval": "1",
        "task.outputs.create.partitions": "1",
    }
    job.path = job.path.with_name("one_file.py")
    job.text = _FILE.format(name=job.name, kafka=job.servers, keys=keys)
    job.produce(300, first=300)
    job.run()
    pids = job.settled()
    os.kill(pids["1"], signal.SIGKILL)
    job.produce(300, first=600)
    wait_for(lambda: job.pids().get("1", pids["1"]) != pids["1"], job)
    job.expects(900)
    assert len(job.counts()) == KEYS
    shown = job.operator("config", "show")
    assert f"task.class={job.path.stem}:job" in shown.stdout.splitlines()
    _shows_its_metrics(job)
    _takes_each_command(job)
    job.end()


def _takes_each_command(job: Job) -> None:
    """Each names the job by its Python file; one gives the running job new code from another."""
    for words in (("doctor",), ("config", "diff"), ("explain", "0"), ("job-model",), ("status",)):
        done = job.operator(*words)
        assert done.returncode == 0, (words, done.stderr, done.stdout)
    key = "task.commit.ms"
    write = ["--type=set-config", f"--key={key}", "--value=700", f"--config-path={job.path}"]
    written = run_forked(write, job.environment, limit_s=60, module=WRITER)
    assert written.returncode == 0, written.stderr
    wait_for(lambda: job.operator("config", "get", key).stdout == "700\n", job)  # the AM follows
    new = job.path.parent / "new" / job.path.name
    new.parent.mkdir()
    new.write_text(job.text.replace("counts.get(key, 0) + 1", "counts.get(key, 0) + 1000"))
    done = job.operator("upgrade", f"--package={new}", "--watch-ms=1000", limit_s=240)
    assert done.returncode == 0, done.stderr
    job.produce(KEYS)
    wait_for(lambda: sum(job.counts().values()) >= 900 + 1000 * KEYS, job)
    assert sorted(job.counts().values()) == [1000 + 900 // KEYS] * KEYS


def _shows_its_metrics(job: Job) -> None:
    """The status, ``/metrics`` and the snapshots have them; a killed process begins at 0."""

    def is_shown() -> bool:
        lines = job.operator("status").stdout.splitlines()
        counted = [line.split()[1] for line in lines if line.startswith("records ")]
        return bool(counted) and 300 <= int(counted[0]) <= 600

    wait_for(is_shown, job)
    assert 'newest{kind="count"}  ' in job.operator("status").stdout
    text = job.get_text("metrics")
    assert 'job_records_total{processor="0"} ' in text
    assert 'job_newest{kind="count",processor="0",task="Partition ' in text

    def has_snapshot() -> bool:
        found = committed(job.servers, f"{job.name}-metrics", 1)
        snapshots = [json.loads(record.value() or b"{}") for record in found]
        return any(s["metrics"].get("job", {}).get("records", 0) > 0 for s in snapshots)

    wait_for(has_snapshot, job)


PARTITIONS = 3
PLANES = {f"N{number}": f"model {number % 3}" for number in range(9)}
"""Those of N9 are unknown."""
TAILS = (*PLANES, "N9")


class Flights:
    """Flights of ten planes, each ten seconds after the one before, and what is right of them."""

    def __init__(self, servers: str, name: str) -> None:
        self.servers, self.name = servers, name
        self.right = Counter[tuple[str, int]]()
        hour_ms = 3_600_000
        self.first_ms = self.at_ms = int(time.time() * 1000) // hour_ms * hour_ms - hour_ms

    def topics(self) -> None:
        """The inputs exist, and the planes are there."""
        topics = [NewTopic(f"{self.name}-{of}", PARTITIONS) for of in ("flights", "planes")]
        admin = AdminClient({"bootstrap.servers": self.servers})
        made = admin.create_topics(topics)
        assert [found.result(30) for found in made.values()] == [None, None]
        producer = Producer({"bootstrap.servers": self.servers, "partitioner": "murmur2_random"})
        for tail, model in PLANES.items():
            producer.produce(f"{self.name}-planes", key=tail, value=model)
        assert producer.flush(30) == 0

    def fly(self, rounds: int) -> None:
        """Each plane has so many more flights, and every third has none of any miles."""
        producer = Producer({"bootstrap.servers": self.servers, "partitioner": "murmur2_random"})
        for _ in range(rounds):
            for number, tail in enumerate(TAILS):
                miles = 0 if number % 3 == 2 else number + 1
                self._send(producer, tail, miles, self.at_ms)
                start_ms = self.at_ms - self.at_ms % python_job_of_all.SIZE_MS
                if miles:
                    self.right[f"{tail} {PLANES.get(tail)}", start_ms] += miles
            self.at_ms += 10_000
        assert producer.flush(30) == 0

    def end(self) -> None:
        """All windows of before close in each partition, and one flight comes too late."""
        producer = Producer({"bootstrap.servers": self.servers})
        for partition in range(PARTITIONS):
            self._send(producer, "end", 1, self.at_ms + 200_000, partition)
        producer.flush(30)
        self._send(producer, "late", 4, self.first_ms, 0)
        assert producer.flush(30) == 0

    def _send(
        self, producer: Producer, tail: str, miles: int, at_ms: int, partition: int = -1
    ) -> None:
        value = json.dumps({"tail": tail, "miles": miles})
        topic = f"{self.name}-flights"
        producer.produce(topic, key=tail, value=value, timestamp=at_ms, partition=partition)

    def windows(self) -> list[tuple[tuple[str, int], int]]:
        """What the job has sent of closed windows, as committed."""
        found = []
        for record in committed(self.servers, f"{self.name}-summed", PARTITIONS):
            value = json.loads(record.value() or b"")
            found.append((((record.key() or b"").decode(), value["from"]), value["miles"]))
        return found

    def late(self) -> list[tuple[bytes | None, bytes | None]]:
        """What the job has sent of late flights."""
        records = committed(self.servers, f"{self.name}-lost", PARTITIONS)
        return [(record.key(), record.value()) for record in records]


def test_a_job_of_every_kind_is_exact_over_sigkill(make_job: Callable[[str], Job]) -> None:
    """A pipeline with reference data, windows and late records, in one file, with Spark on YARN."""
    job = make_job("job-of-all")
    keys = {key: v for key, v in job.values.items() if not key.startswith(_DECLARED)}
    keys |= {"cluster-manager.container.memory.mb": "1280", "job.container.count": "2"}
    text = Path(python_job_of_all.__file__).read_text("utf-8")
    text = text.replace('NAME = "job-of-all"', f"NAME = {job.name!r}")
    text = text.replace('"here:1"', repr(job.servers))
    job.text = text.replace('keys={"cluster', f'keys={{**{keys!r}, "cluster')
    job.path = job.path.with_name("job_of_all.py")
    flights = Flights(job.servers, job.name)
    flights.topics()
    flights.fly(20)
    job.run()
    pids = job.settled()
    wait_for(lambda: len(flights.windows()) > 0, job)
    os.kill(pids["1"], signal.SIGKILL)
    flights.fly(20)
    wait_for(lambda: job.pids().get("1", pids["1"]) != pids["1"], job)
    flights.end()
    wait_for(lambda: len(flights.windows()) >= len(flights.right), job)
    wait_for(lambda: len(flights.late()) > 0, job)
    assert sorted(flights.windows()) == sorted(flights.right.items())
    assert flights.late() == [(b"late None", (4).to_bytes(8, "big"))]
    job.end()
