"""A standalone job that counts by another key than its input has, on a real broker."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from standalone_jobs import DEADLINE_S, PARTITIONS, StandaloneJob, on_zookeeper, standalone_job
from stream_containers import COUNTER
from zookeeper_server import ZooKeeperServer

REKEYED = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.counts = context.store("counts")
        self.own = context.repartition("by-place")

    def process_batch(self, table, context):
        columns = (table.column(name).to_pylist() for name in ("key", "value", "stream"))
        for key, value, stream in zip(*columns):
            if stream != self.own:
                context.send("by-place", key, value)
                continue
            count = (self.counts.get(key.decode()) or 0) + 1
            self.counts.put(key.decode(), count)
            context.send("out", str(count).encode(), key)
"""
TYPED = """
from homeport.container.api import StreamTask

class Counter(StreamTask):
    def init(self, context):
        self.counts = context.store("counts")
        self.own = context.repartition("by-place")

    def process(self, message, context):
        if message.stream != self.own:
            context.send("by-place", message.key, message.value.decode())
            return
        count = (self.counts.get(message.key) or 0) + 1
        self.counts.put(message.key, count)
        context.send("out", str(count).encode(), message.key.encode())
"""
PLACES = 9


@pytest.fixture
def job(kafka: str, tmp_path: Path, zookeeper: ZooKeeperServer) -> Iterator[StandaloneJob]:
    """Counts places, by which its input is not partitioned."""
    more = {
        **on_zookeeper(zookeeper.connect),
        "task.repartition.by-place": "inputs",
        "task.repartition.purge.ms": "300",
    }
    with standalone_job(kafka, tmp_path, more, REKEYED) as made:
        yield made


def visit(job: StandaloneJob, count: int) -> None:
    """So many records, each of a plane that is at some place."""
    producer = Producer({"bootstrap.servers": job.servers, "enable.idempotence": True})
    for number in range(count):
        place = f"P{number % PLACES}"
        job.sent[place] += 1
        producer.produce(f"{job.name}-in", place, f"N{number}", partition=number % PARTITIONS)
    assert producer.flush(60) == 0


def left(job: StandaloneJob) -> Counter[str]:
    """How many offsets the topic of the repartition still has, and has had."""
    found = Counter[str]()
    consumer = Consumer({"bootstrap.servers": job.servers, "group.id": "none"})
    try:
        for number in range(PARTITIONS):
            place = TopicPartition(f"__homeport_repartition_{job.name}_1_by-place", number)
            low, high = consumer.get_watermark_offsets(place, 30)
            found += Counter(left=high - low, written=high)
    finally:
        consumer.close()
    return found


def test_places_are_counted_exactly_over_sigkill_and_other_numbers_of_processors(
    job: StandaloneJob,
) -> None:
    """The topic is made by the first processor, and loses what is committed."""
    visit(job, 200)
    one = job.processor("one")
    job.until_counted()
    two = job.processor("two")
    job.until(lambda: job.started_by("two") > 0)
    visit(job, 200)
    one.kill()
    visit(job, 200)
    job.until_counted()

    def is_purged() -> bool:
        visit(job, PARTITIONS * PLACES)  # a commit, by which a deletion leaves
        job.until_counted()
        return left(job)["left"] * 3 < left(job)["written"]

    job.until(is_purged, lambda: left(job))
    job.stop(two)
    again = job.processor("one")
    visit(job, 50)
    job.until_counted()
    job.stop(again)
    assert job.counted() == job.sent


def test_a_repartition_that_comes_back_is_refused_while_its_topic_has_records(
    job: StandaloneJob,
) -> None:
    """The position in it went with it, and the last records behind that were not deleted yet."""
    whole = job.config.read_text().replace("purge.ms=300", "purge.ms=60000")
    job.config.write_text(whole)
    visit(job, 200)
    one = job.processor("one")
    job.until_counted()
    job.stop(one)
    code = job.folder / "package" / "user_job.py"
    lines = [line for line in whole.splitlines() if not line.startswith("task.repartition.")]
    job.config.write_text("\n".join(lines))
    with_it = code.read_text()
    code.write_text(COUNTER.replace('"out"', f'"{job.name}-out"'))
    job.produce(3)
    one = job.processor("one")
    job.until_counted()
    job.stop(one)
    job.config.write_text(whole)
    code.write_text(with_it)
    again = job.processor("one")
    assert again.wait(DEADLINE_S) == 1, job.logs()
    assert "has records of an earlier time" in job.logs()
    assert job.counted() == job.sent


def test_a_file_with_another_schema_of_the_keys_is_refused(job: StandaloneJob) -> None:
    """Its bytes would choose other tasks than those that have the state; then it goes on."""
    code, schema = job.folder / "package" / "user_job.py", job.folder / "package" / "place.avsc"
    code.write_text(TYPED.replace('"out"', f'"{job.name}-out"'), encoding="utf-8")
    with job.config.open("a", encoding="utf-8") as file:
        file.write(
            "task.repartition.by-place.key.serde=place\n"
            "serializers.registry.place.class=avro\n"
            "serializers.registry.place.schema.file=place.avsc\n"
        )
    schema.write_text('"string"', encoding="utf-8")
    visit(job, 90)
    one = job.processor("one")
    job.until_counted()
    job.stop(one)
    visit(job, 90)
    schema.write_text('["null", "string"]', encoding="utf-8")
    one = job.processor("one")
    rule = "_by-place' were written by avro"
    job.until(lambda: rule in job.logs())
    one.terminate()
    one.wait(DEADLINE_S)
    assert "serializers.registry.place.schema.file = 'avro " in job.logs()
    schema.write_text('"string"', encoding="utf-8")
    one = job.processor("one")
    job.until_counted()
    job.stop(one)
