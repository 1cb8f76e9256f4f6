"""Java's client properties in librdkafka's words."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from homeport.config import kafka_names
from homeport.config.errors import ConfigError
from homeport.config.kafka_names import Role, map_client_properties


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
