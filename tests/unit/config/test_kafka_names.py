"""Properties of Kafka's clients: in librdkafka's words, or without effect, which is warned of."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from homeport.config import kafka_names
from homeport.config.config import Config
from homeport.config.errors import ConfigError
from homeport.config.kafka_names import Role, map_client_properties
from homeport.config.settings.validation import validate


def test_names_are_mapped_passed_or_left_out() -> None:
    """Java's names become librdkafka's, librdkafka's own pass, Java-only ones are reported."""
    mapped = map_client_properties(
        {
            "fetch.max.wait.ms": "10",
            "request.timeout.ms": "5000",
            "queued.min.messages": "7",
            "key.deserializer": "x.Y",
            "buffer.memory": "1",
            "zookeeper.connect": "z:2181",
        },
        Role.CONSUMER,
    )
    assert mapped.properties == {
        "fetch.wait.max.ms": "10",
        "queued.min.messages": "7",
        "socket.timeout.ms": "5000",
    }
    assert tuple(mapped.ignored) == ("buffer.memory", "key.deserializer", "zookeeper.connect")


def test_units_are_converted() -> None:
    """buffer.memory is in bytes, its counterpart in KiB; what is no number is the user's fault."""
    assert map_client_properties({"buffer.memory": "33554432"}, Role.PRODUCER).properties == {
        "queue.buffering.max.kbytes": "32768"
    }
    with pytest.raises(ConfigError, match="whole number of bytes"):
        map_client_properties({"buffer.memory": "32m"}, Role.PRODUCER)


def test_librdkafkas_own_name_wins() -> None:
    """Both forms given: the one that is meant for this client counts."""
    given = {"fetch.max.wait.ms": "10", "fetch.wait.max.ms": "20"}
    mapped = map_client_properties(given, Role.CONSUMER)
    assert mapped.properties == {"fetch.wait.max.ms": "20"}


def test_jaas_credentials_become_two_properties() -> None:
    """The login module's line holds user and password, quoted, escaped or bare."""
    line = 'a.b.PlainLoginModule required username="me" password="p\\"w;=";'
    assert map_client_properties({"sasl.jaas.config": line}, Role.CONSUMER).properties == {
        "sasl.password": 'p"w;=',
        "sasl.username": "me",
    }
    bare = "x required username=me password=secret;"
    assert map_client_properties({"sasl.jaas.config": bare}, Role.CONSUMER).properties == {
        "sasl.password": "secret",
        "sasl.username": "me",
    }


def test_every_target_is_a_name_that_librdkafka_knows() -> None:
    """No entry of the table leads to a name that the library refuses."""
    values = {"bootstrap.servers": "h:1", "sasl.mechanisms": "PLAIN", "socket.timeout.ms": "10000"}
    targets = {*kafka_names._RENAMED.values(), *kafka_names._RENAMED_FOR[Role.CONSUMER].values()}
    given: dict[str, str | int | float | bool] = {
        name: values.get(name, "2000") for name in sorted(targets)
    }
    Producer({**given, "log_level": 0})


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
