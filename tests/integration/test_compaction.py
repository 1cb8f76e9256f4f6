"""Deletions that Kafka has compacted away, and directories that were away then (safety S2)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from compacted_topics import quick_cleaner, until_compacted
from stream_containers import Job, make_job

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


@pytest.fixture
def cleaning(kafka: str) -> Iterator[str]:
    """A broker that looks for what to compact all the time."""
    with quick_cleaner(kafka):
        yield kafka


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
