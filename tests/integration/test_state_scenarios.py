"""Samza's acceptance scenarios of state, checkpoints and the run loop, on a real broker.

Those that need no broker are in ``tests/spec``; ``tests/spec/scenarios.toml`` lists all.
"""

from __future__ import annotations

import signal
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from job_configs import kafka_system
from stream_containers import DEADLINE_S, Make

from homeport.config.errors import StoreError
from homeport.container.kafka.checkpoints import read_whole_checkpoints
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress.checkpoint import CheckpointKey, encode_key, encode_value
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

TASK = """
from pathlib import Path
from homeport.container.api import StreamTask

class Counter(StreamTask):
    def init(self, context):
        self.name = context.task_name.encode()
        self.store = context.store("counts")
        self.windows = 0
        print("holds", [key for key, _ in self.store.all()], flush=True)

    def process(self, message, collector, coordinator):
        word = message.value
        collector.send("out", word.encode(), b"order")
        if word == ":crash_once" and Path.cwd().name == "work-1":
            raise RuntimeError("crashed once")
        if word.startswith("-"):
            self.store.delete(word[1:])
        else:
            self.store.put(word.removeprefix(":"), 1)
        if not word.startswith(":"):
            coordinator.commit()

    def window(self, collector, coordinator):
        self.windows += 1
        collector.send("out", str(self.windows).encode(), b"windows-" + self.name)
        if self.windows == 4:
            coordinator.shutdown()
"""


COMMITS_ON_REQUEST = {
    "systems.kafka.samza.msg.serde": "string",
    "task.transaction.ms": "600000",
    "task.transaction.idle.ms": "-1",
    "task.commit.ms": "600000",
}


JOBS = {"code": TASK, "common": COMMITS_ON_REQUEST}
"""Of ``make``: a job of strings that commits on request alone; further keys with underscores."""


def _words(*words: str) -> list[tuple[int, bytes, bytes]]:
    return [(0, b"k", word.encode()) for word in words]


@pytest.mark.parametrize("exactly_once", ["true", "false"])
def test_after_a_crash_the_state_is_that_of_the_last_commit(make: Make, exactly_once: str) -> None:
    """R32: [1, 2, 3], and 98 and 99 are nowhere: they never reached the changelog, uncommitted.

    R33: Samza at least once has [1, 2, 3, 98, 99]; here the changelog is transactional in both
    modes, so that the state is exact, and they are counted when they are processed again.
    """
    job = make(task_exactly_once=exactly_once)
    first = job.start(1)
    job.produce(_words("1", "2", "3", "2", "97", "-97"))
    job.until(lambda: job.processed() == 6, first)
    job.produce(_words(":98", ":99", ":crash_once"))
    assert first.process.wait(DEADLINE_S) == 1
    assert "crashed once" in first.last_line()
    committed = {"1", "2", "3"}
    table = job.table("changelog")
    assert {key for key, value in table.items() if value is not None} == committed
    assert set(table) == committed | {"97"}

    second = job.start(2, fence=[1])
    job.report(second, 1)
    job.until(lambda: "holds ['1', '2', '3']" in second.log.read_text(encoding="utf-8"), second)
    job.produce(_words("4"))
    job.until(lambda: job.processed() == 10, second)
    assert second.stop(signal.SIGTERM) == 143
    kept = {key for key, value in job.table("changelog").items() if value is not None}
    assert kept == committed | {"98", "99", "crash_once", "4"}


def test_a_store_that_was_never_written_to_starts_empty(make: Make) -> None:
    """R34: the second start finds nothing, and does not fail."""
    job = make()
    for epoch in (1, 2):
        container = job.start(epoch, fence=range(1, epoch))
        report = job.report(container, epoch)
        assert {how.records for how in report.restored["counts"].values()} == {0}
        assert container.stop() == 143


def test_messages_are_processed_in_their_order(make: Make) -> None:
    """L1: one after the other, by offset."""
    job = make()
    words = [f":w{i}" for i in range(500)]
    container = job.start(1)
    job.produce(_words(*words, "end"))
    job.until(lambda: job.processed() == 501, container)
    out = [value for key, value in job.read(job.topic("out")) if key == b"order"]
    assert out == [word.encode() for word in (*words, "end")]
    assert container.stop() == 143


def test_a_vote_in_a_window_is_the_last_one(make: Make) -> None:
    """L3: given in the fourth call, there are exactly four; the container ends when all voted."""
    job = make(task_window_ms="50")
    container = job.start(1)
    assert container.process.wait(DEADLINE_S) == 0
    out = job.table("out")
    assert out == {"windows-Partition 0": b"4", "windows-Partition 1": b"4"}


@pytest.fixture
def checkpoints(kafka: str) -> Iterator[tuple[LogReader, str, Producer]]:
    """A reader, an empty checkpoint topic, and its writer."""
    system = kafka_system(kafka)
    topic = f"checkpoints-{uuid.uuid4().hex[:10]}"
    TopicAdmin(system).create(topic, 1, 1, {"cleanup.policy": "compact"})
    reader = LogReader(system, lambda _: None)
    yield reader, topic, Producer({"bootstrap.servers": kafka})
    reader.close()


def test_the_newest_checkpoint_of_a_task_counts(
    checkpoints: tuple[LogReader, str, Producer],
) -> None:
    """K3: whatever stands between and behind, over several polls; other versions are passed over.

    K6: one that was written under another grouper is refused.
    """
    reader, topic, producer = checkpoints
    ssp = SystemStreamPartition("kafka", "in", 0)
    first, second = TaskName("Partition 0"), TaskName("Partition 1")

    def write(task: TaskName, grouper: str, offset: int, kind: str = "checkpoint") -> None:
        key = encode_key(CheckpointKey(grouper, task, kind))
        producer.produce(topic, encode_value({ssp: offset}), key)
        assert producer.flush(DEADLINE_S) == 0

    for offset in range(1200):
        producer.produce(topic, encode_value({ssp: offset}), encode_key(CheckpointKey("G", first)))
    assert producer.flush(DEADLINE_S) == 0
    write(first, "G", 5)
    write(first, "G", 9, "checkpoint-v3")
    write(second, "Other", 3)
    found = read_whole_checkpoints(reader, topic, "G", [first], {})
    assert {task: own.offsets for task, own in found.items()} == {first: {ssp: 5}}
    with pytest.raises(StoreError, match="was written under the grouper Other"):
        read_whole_checkpoints(reader, topic, "G", [first, second], {})
