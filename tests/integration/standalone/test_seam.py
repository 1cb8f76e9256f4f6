"""One process runs one incarnation after another: what stays open, and what ends with each."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from standalone_jobs import PARTITIONS, StandaloneJob, on_zookeeper, standalone_job
from zookeeper_server import ZooKeeperServer

CODE = """
from homeport.container.api import BatchTask

HELD = []

def refuse(calls):
    for call in calls:
        try:
            call()
        except Exception as error:  # any class: a task sees it through its own wrappers
            if "that run has ended" not in str(error):
                raise
        else:
            raise AssertionError("a call of an ended run was taken")

class Counter(BatchTask):
    def init(self, context):
        self.counts = context.store("counts")
        self.context = context
        self.changed = set()
        self.is_closed = self.has_tried = False

    def process_batch(self, table, collector):
        if not self.has_tried:
            self.has_tried = True
            for task, store, send, own in HELD:
                if task.is_closed:
                    refuse([
                        lambda: store.get("0-0"),
                        lambda: store.put("0-0", 7),
                        lambda: list(store.all()),
                        lambda: send("out", b"7", b"0-0"),
                        lambda: own.store("counts"),
                        lambda: own.scheduler.schedule("t", after_ms=1),
                    ])
                    print("an ended run was refused", flush=True)
            HELD.append((self, self.counts, collector.send, self.context))
        for key in table.column("key").to_pylist():
            word = key.decode()
            self.counts.put(word, (self.counts.get(word) or 0) + 1)
            self.changed.add(word)

    def end_transaction(self, collector):
        for word in sorted(self.changed):
            collector.send("out", str(self.counts.get(word)).encode(), word.encode())
        self.changed.clear()

    def close(self):
        self.is_closed = True
"""


@pytest.fixture
def job(kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[StandaloneJob]:
    """A job whose tasks hold on to all that they get."""
    with standalone_job(kafka, tmp_path, on_zookeeper(zookeeper.connect), CODE) as made:
        yield made


def _tasks_of(job: StandaloneJob, name: str) -> list[set[str]]:
    """The tasks of each incarnation of the processor, the first one first."""
    found = [line["tasks"] for line in job.history("fenced") if line["processor_id"] == name]
    return [set(tasks) for tasks in found if isinstance(tasks, list)]


def _openings(job: StandaloneJob) -> dict[str, int]:
    """What names the last time that RocksDB opened the store of each task: its log."""
    files = job.folder.glob("stores-here/*/counts/*/LOG")
    return {file.parent.name.replace("_", " "): file.stat().st_ino for file in files}


def _started(job: StandaloneJob, *names: str) -> dict[str, int]:
    """How often each has begun so far."""
    return {name: job.started_by(name) for name in names}


def _all_began(job: StandaloneJob, before: dict[str, int]) -> bool:
    """Each has begun again."""
    return all(job.started_by(name) > times for name, times in before.items())


def test_stores_of_tasks_that_stay_are_not_opened_again(job: StandaloneJob) -> None:
    """Others join, are killed, and leave, at the same folders; each record counts once.

    Code that holds objects of an ended run is refused in the next one, in the same process. Each
    run but the first reads the coordinator stream on from where the one before stood.
    """
    job.produce(20)
    one, changes = job.processor("one"), 3
    job.until(lambda: job.started_by("one") > 0)
    job.until_counted()
    openings = _openings(job)
    assert len(openings) == PARTITIONS
    for number in range(changes):
        began = _started(job, "one", "two")
        two = job.processor("two")
        job.until(partial(_all_began, job, began))
        job.produce(20)
        job.until_counted()
        began = _started(job, "one")
        if number == 1:
            two.kill()
        else:
            job.stop(two)
        job.produce(20)
        job.until(partial(_all_began, job, began))
        job.until_counted()
    tasks = _tasks_of(job, "one")
    assert len(tasks) == 1 + 2 * changes
    stayed = set.intersection(*tasks)
    assert 0 < len(stayed) < PARTITIONS
    now = _openings(job)
    assert {task for task in now if now[task] == openings[task]} == stayed
    pids = {line["pid"] for line in job.history("started") if line["processor_id"] == "one"}
    assert len(pids) == 1
    logs = job.logs()
    assert "an ended run was refused" in logs
    of_two = job.started_by("two") - changes  # each of its processes has a first run
    assert logs.count("the coordinator stream is read on") == 2 * changes + of_two
    job.produce(20)
    job.until_counted()
    job.stop(one)
    assert job.counted() == job.sent
