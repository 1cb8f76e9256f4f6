"""Deletions that Kafka has compacted away, and directories that were away then (safety S2)."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin import ResourceType as Kind
from stream_containers import DEADLINE_S, Job, make_job

from homeport.job_coordinator.http.messages import Started
from homeport.job_coordinator.model.outcomes import RestoreKind

KEEPER = """
import json
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.store = context.store("counts")

    def process_batch(self, table, collector):
        pairs = zip(table.column("key").to_pylist(), table.column("value").to_pylist())
        for key, value in pairs:
            if key == b"list":
                keys = [key for key, _ in self.store.all()]
                collector.send("out", json.dumps(keys).encode(), value)
            elif value is None:
                self.store.delete(key.decode())
            else:
                self.store.put(key.decode(), int(value))
"""
BROKER = "1"
RETENTION_MS = 1000
COMPACTED_S = 90.0


def alter(servers: str, kind: Kind, name: str, properties: dict[str, str | None]) -> None:
    """Properties of a topic or a broker are so; None: as by default."""
    set_, delete = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    entries = [
        ConfigEntry(key, value, incremental_operation=delete if value is None else set_)
        for key, value in properties.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)


@pytest.fixture
def cleaning(kafka: str) -> Iterator[str]:
    """A broker that looks for what to compact all the time."""
    alter(kafka, Kind.BROKER, BROKER, {"log.cleaner.backoff.ms": "100"})
    yield kafka
    alter(kafka, Kind.BROKER, BROKER, {"log.cleaner.backoff.ms": None})


@pytest.fixture
def job(cleaning: str, tmp_path: Path) -> Iterator[Job]:
    """A job of one partition; its task stores each record and reports its keys."""
    made = make_job(cleaning, tmp_path, KEEPER, {})
    yield made
    made.close()


class Incarnations:
    """One container after the other."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self.epoch = 0
        self.sent = 0

    def run(self, *records: tuple[bytes, bytes | None]) -> tuple[Started, list[str]]:
        """Starts, processes these records and stops. Returns how it restored, and its keys."""
        job, self.epoch = self.job, self.epoch + 1
        container = job.start(self.epoch, fence=range(1, self.epoch))
        report = job.report(container, self.epoch)
        name = b"%d" % self.epoch
        job.produce([(0, key, value) for key, value in (*records, (b"list", name))])
        self.sent += len(records) + 1
        job.until(lambda: job.processed() == self.sent, container)
        assert container.stop() == 143
        keys: list[str] = json.loads(job.table("out")[name.decode()] or b"")
        return report, keys


def until_compacted(job: Job, gone: set[bytes]) -> None:
    """Of these keys the changelog has neither a value nor a deletion any more.

    A partition's last segment is never compacted, and a new one begins with a record only.
    """
    topic = job.topic("changelog")
    fast = {
        "segment.ms": "50",
        "min.cleanable.dirty.ratio": "0",
        "delete.retention.ms": str(RETENTION_MS),
    }
    alter(job.servers, Kind.TOPIC, topic, dict(fast))
    producer = Producer({"bootstrap.servers": job.servers})
    deadline = time.monotonic() + COMPACTED_S
    pause = threading.Event()
    while gone & {key for key, _ in job.read(topic)}:
        assert time.monotonic() < deadline, "not compacted away"
        producer.produce(topic, (0).to_bytes(8, "big"), b"filler", partition=0)
        assert producer.flush(DEADLINE_S) == 0
        pause.wait(0.2)


def test_deletions_that_were_compacted_away_do_not_come_back(job: Job) -> None:
    """A directory that was away for longer is rebuilt; before, it read the deletions and was kept.

    A store that only read what follows its position would have the deleted keys for ever: at the
    end nothing in the changelog mentions them.
    """
    containers = Incarnations(job)
    stores, away = job.folder / "stores", job.folder / "away"
    _, keys = containers.run(*((b"k%d" % i, b"%d" % i) for i in range(10)))
    assert keys == [f"k{i}" for i in range(10)]
    shutil.copytree(stores, away)
    _, keys = containers.run(*((b"k%d" % i, None) for i in range(5)))
    kept = [f"k{i}" for i in range(5, 10)]
    assert keys == kept

    shutil.rmtree(stores)
    shutil.copytree(away, stores)
    young, keys = containers.run()
    assert young.restored["counts"]["Partition 0"].kind is RestoreKind.TAIL
    assert keys == kept

    until_compacted(job, {b"k%d" % i for i in range(5)})
    shutil.rmtree(stores)
    shutil.copytree(away, stores)
    stale, keys = containers.run()
    how = stale.restored["counts"]["Partition 0"]
    assert how.kind is RestoreKind.FULL
    assert "deletions are kept for 1 s: stale" in (how.reason or "")
    assert how.refusal == "stale"
    assert keys == ["filler", *kept]
