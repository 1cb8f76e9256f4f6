"""Properties of Kafka's clients that have no effect: each is warned of, with what holds instead."""

from __future__ import annotations

import pytest

from homeport.config.config import Config
from homeport.config.settings.validation import validate

JOB = {
    "job.name": "j",
    "job.default.system": "k",
    "task.class": "m:T",
    "task.inputs": "k.in",
    "systems.k.consumer.bootstrap.servers": "b:1",
}


def _warned(name: str, value: str) -> list[str]:
    return list(validate(Config({**JOB, f"systems.k.{name}": value})))


@pytest.mark.parametrize(
    ("name", "value", "instead"),
    [
        ("consumer.auto.offset.reset", "earliest", "systems.k.samza.offset.default is oldest"),
        ("consumer.group.id", "mine", "no consumer group is joined"),
        ("consumer.group.instance.id", "1", "no consumer group is joined"),
        ("consumer.isolation.level", "read_uncommitted", "committed records alone are read"),
        ("consumer.enable.auto.commit", "true", "positions are in the job's checkpoints"),
        ("consumer.auto.commit.interval.ms", "5", "positions are in the job's checkpoints"),
        ("consumer.max.poll.records", "5", "task.batch.max.bytes bounds a micro-batch"),
        ("consumer.key.deserializer", "x.Y", "set systems.k.samza.key.serde"),
        ("producer.value.serializer", "x.Y", "set systems.k.samza.msg.serde"),
        ("producer.transactional.id", "x", "transactional ids are made of job.name"),
        ("producer.enable.idempotence", "false", "each record is in all replicas in sync"),
        ("producer.acks", "1", "each record is in all replicas in sync"),
        ("producer.request.required.acks", "0", "each record is in all replicas in sync"),
        ("producer.partitioner.class", "x.Y", "give collector.send a partition"),
        ("producer.producer.type", "sync", "librdkafka has nothing like it"),
    ],
)
def test_what_is_set_without_effect_is_warned_of(name: str, value: str, instead: str) -> None:
    """One line has key, value, what holds, and the key that does what was wanted."""
    (line,) = _warned(name, value)
    assert line.startswith(f"systems.k.{name} = {value} has no effect: ")
    assert instead in line
    assert "<system>" not in line


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("consumer.isolation.level", "read_committed"),
        ("consumer.enable.auto.commit", "False"),
        ("producer.acks", "all"),
        ("producer.acks", "-1"),
        ("producer.enable.idempotence", " true "),
        ("consumer.client.id", "me"),
        ("producer.linger.ms", "50"),
    ],
)
def test_what_holds_anyway_is_not_warned_of(name: str, value: str) -> None:
    """Nor is what the client gets."""
    assert _warned(name, value) == []


def test_a_secret_is_masked() -> None:
    """A warning is logged."""
    (line,) = _warned("consumer.ssl.truststore.password", "hunter2")
    assert "hunter2" not in line
