"""A stream container whose outputs are no part of its transactions, against a real broker."""

from __future__ import annotations

import signal
from collections import Counter
from dataclasses import replace

import pytest
from counted_words import has_a_sound_history, words
from stream_containers import Job, Make

from homeport.config.config import Config
from homeport.config.settings.sections import SystemConfig, TaskConfig
from homeport.job_coordinator.kafka.topics import TopicAdmin
from homeport.local_cluster.cluster import LocalCluster

TASK = """
from homeport.container.api import BatchTask

class Counter(BatchTask):
    def init(self, context):
        self.counts = context.store("counts")

    def process_batch(self, table, collector):
        for key, value in zip(table.column("key").to_pylist(), table.column("value").to_pylist()):
            word = key.decode()
            self.counts.put(word, (self.counts.get(word) or 0) + 1)
            size = int(value or b"0")
            text = b"x" * size if size else str(self.counts.get(word)).encode()
            collector.send("out", text, key)
"""
DECODED = """
from homeport.container.api import StreamTask

class Counter(StreamTask):
    def init(self, context):
        self.far = "other." + context.config["job.name"] + "-far"

    def process(self, message, collector, coordinator):
        collector.send(self.far, str(message.value).encode(), b"good")
"""
NEVER = "600000"


JOBS = {"code": TASK, "common": {"task.exactly.once": "false"}}
"""Of ``make``: a job from the code of its task and further keys."""


def _counts(count: int) -> Counter[bytes]:
    """The counts of the first ``count`` words."""
    return Counter(key or b"" for _, key, _ in words(count))


def _checkpoints(job: Job) -> list[tuple[bytes | None, bytes | None]]:
    return job.read(TaskConfig.of(job.config).checkpoint_topic)


def test_outputs_are_there_before_their_checkpoint(make: Make) -> None:
    """Even where the transaction, not its start's first, is far from its end.

    A SIGKILL then: they come once more.

    The next incarnation counts them again from the same state: at least once in the output, exactly
    once in store, changelog and checkpoint.
    """
    job = make(task_transaction_ms=NEVER, task_transaction_idle_ms="-1")
    first = job.start(1)
    job.produce([(0, b"first", b"")])
    job.until(lambda: job.processed() == 1, first)
    checkpoints, changelog = _checkpoints(job), job.read(job.topic("changelog"))
    job.produce(words(100))
    job.until(lambda: len(job.read(job.topic("out"))) == 101, first)
    assert _checkpoints(job) == checkpoints
    assert job.read(job.topic("changelog")) == changelog
    assert first.stop(signal.SIGKILL) == -signal.SIGKILL
    config = Config({**job.config, "task.transaction.ms": "50"})
    job.served.backend.model = replace(job.model, config=config)

    second = job.start(2, fence=[1])
    job.until(lambda: job.processed() == 101, second)
    job.produce(words(40))
    job.until(lambda: job.processed() == 141, second)
    assert second.stop() == 143
    right = Counter({b"first": 1}) + _counts(100) + _counts(40)
    assert job.table("changelog") == {w.decode(): n.to_bytes(8, "big") for w, n in right.items()}
    sent = Counter(job.read(job.topic("out")))
    once = {(w, str(n).encode()) for w, total in right.items() for n in range(1, total + 1)}
    assert set(sent) == once
    assert sum(sent.values()) == 1 + 100 + 140
    has_a_sound_history(job)


@pytest.mark.parametrize(
    ("size", "expected", "more"),
    [
        (
            3_000_000,
            "a record for <out> with key b'big': it has 3000003 bytes, with what the client adds 3",
            {},
        ),
        (
            1_500_000,
            "output stream <out>: a record of 1500003 bytes exceeds the limit of 1048588 bytes;",
            {"systems_kafka_producer_max_request_size": "5000000"},
        ),
    ],
    ids=["the producer's limit", "the topic's limit"],
)
def test_a_refused_record_stops_its_checkpoint(
    size: int, expected: str, more: dict[str, str], make: Make
) -> None:
    """Its send or the broker refuses it: the container fails with stream, size, limit; no commit.

    What else was sent may be in the output: it will be sent again.
    """
    job = make(**more)
    job.produce([(0, b"a", b""), (0, b"big", b"%d" % size), (0, b"z", b"")])
    assert expected.replace("<out>", job.topic("out")) in job.fails()
    assert job.processed() == 0
    assert job.read(job.topic("changelog")) == []
    assert job.history("transaction-ending") == []


@pytest.mark.long
def test_an_output_topic_that_is_absent_is_named(make: Make) -> None:
    """The library would only say that its records were not delivered in time."""
    job = make(TASK.replace('send("out"', 'send("absent"'))
    job.produce([(0, b"good", b"")])
    assert "no such topic in Kafka: 'absent'; create it" in job.fails()
    assert job.processed() == 0


@pytest.fixture
def afar(make: Make, broker: LocalCluster) -> Job:
    """A job whose outputs and dead letters are on other brokers than its checkpoints."""
    job = make(
        DECODED,
        systems_other_consumer_bootstrap_servers=broker.bootstrap_servers,
        systems_kafka_samza_msg_serde="json",
        task_drop_deserialization_errors="true",
        task_dead_letter_stream=f"other.dead{id(make)}",
    )
    admin = TopicAdmin(SystemConfig.of(job.config, "other"))
    for topic in (job.topic("far"), f"dead{id(make)}"):
        admin.create(topic, 1, 1, {})
    return job


def test_outputs_and_dead_letters_reach_other_brokers(afar: Job, broker: LocalCluster) -> None:
    """No transaction has to: input, state and checkpoint stay where they are."""
    afar.produce([(0, b"a", b"1"), (0, b"b", b"no json"), (1, b"c", b"2")])
    container = afar.start(1)
    afar.until(lambda: afar.processed() == 3, container)
    assert container.stop() == 143
    there = replace(afar, servers=broker.bootstrap_servers)
    assert sorted(there.read(afar.topic("far"))) == [(b"good", b"1"), (b"good", b"2")]
    assert there.read(afar.config["task.dead.letter.stream"].removeprefix("other.")) == [
        (b"b", b"no json")
    ]


def test_brokers_without_any_output_yet_delay_no_start(make: Make, broker: LocalCluster) -> None:
    """The container waits for a declared system when it needs it; no container fails by that."""
    job = make(DECODED, systems_other_consumer_bootstrap_servers=broker.bootstrap_servers)
    TopicAdmin(SystemConfig.of(job.config, "other")).create(job.topic("far"), 1, 1, {})
    broker.stop_kafka()
    try:
        container = job.start(1)
        job.report(container, 1)
        job.produce([(0, b"a", b"1"), (0, b"b", b"2")])
        away = "Kafka is away, waiting for"
        job.until(lambda: away in container.log.read_text(encoding="utf-8"), container)
        assert job.processed() == 0
    finally:
        broker.start_kafka()
    job.until(lambda: job.processed() == 2, container)
    assert container.stop() == 143
    sent = replace(job, servers=broker.bootstrap_servers).read(job.topic("far"))
    assert {key for key, _ in sent} == {b"good"}


def test_a_checkpoint_waits_for_the_brokers_of_the_outputs(afar: Job, broker: LocalCluster) -> None:
    """While they are away nothing is committed, and no container fails; then all goes on."""
    container = afar.start(1)
    afar.produce([(0, b"a", b"10")])
    afar.until(lambda: afar.processed() == 1, container)
    broker.stop_kafka()
    try:
        afar.produce([(0, b"a", b"11"), (0, b"a", b"12")])
        away = "Kafka is away, waiting for"
        afar.until(lambda: away in container.log.read_text(encoding="utf-8"), container)
        assert afar.processed() == 1
    finally:
        broker.start_kafka()
    afar.until(lambda: afar.processed() == 3, container)
    assert container.stop() == 143
    sent = replace(afar, servers=broker.bootstrap_servers).read(afar.topic("far"))
    assert [value for _, value in sent][-3:] == [b"10", b"11", b"12"]
