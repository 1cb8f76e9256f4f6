"""The one table that turns Kafka's Java client properties into librdkafka's.

``systems.S.consumer.*`` and ``systems.S.producer.*`` take Java's names, as every Samza job writes
them, and librdkafka's own names, which pass through. What only the Java client knows is left out
and reported, never handed to librdkafka, which refuses names that it does not know.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from homeport.config.errors import ConfigError


class Role(Enum):
    """Which client a property set is for."""

    CONSUMER = "consumer"
    PRODUCER = "producer"


@dataclass(frozen=True)
class MappedProperties:
    """librdkafka's properties, and the given names without a counterpart there, both sorted."""

    properties: dict[str, str]
    ignored: tuple[str, ...]


_RENAMED: dict[str, str | None] = {
    # name in Java -> name in librdkafka; None: nothing there corresponds to it
    "auto.include.jmx.reporter": None,
    "buffer.memory": "queue.buffering.max.kbytes",
    "config.providers": None,
    "default.api.timeout.ms": None,
    "exclude.internal.topics": None,
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "group.protocol": None,
    "group.remote.assignor": None,
    "interceptor.classes": None,
    "key.deserializer": None,
    "key.serializer": None,
    "key.serializer.class": None,
    "max.block.ms": None,
    "max.poll.records": None,
    "max.request.size": "message.max.bytes",
    "metadata.broker.list": "bootstrap.servers",
    "metadata.max.idle.ms": None,
    "metric.reporters": None,
    "metrics.num.samples": None,
    "metrics.recording.level": None,
    "metrics.sample.window.ms": None,
    "partition.assignment.strategy": None,
    "partitioner.adaptive.partitioning.enable": None,
    "partitioner.availability.timeout.ms": None,
    "partitioner.class": None,
    "partitioner.ignore.keys": None,
    "producer.type": None,
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.client.callback.handler.class": None,
    "sasl.login.callback.handler.class": None,
    "sasl.login.class": None,
    "sasl.login.connect.timeout.ms": None,
    "sasl.login.read.timeout.ms": None,
    "sasl.mechanism": "sasl.mechanisms",
    "security.providers": None,
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "serializer.class": None,
    "socket.connection.setup.timeout.max.ms": None,
    "ssl.enabled.protocols": None,
    "ssl.engine.factory.class": None,
    "ssl.keymanager.algorithm": None,
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.keystore.type": None,
    "ssl.protocol": None,
    "ssl.provider": None,
    "ssl.secure.random.implementation": None,
    "ssl.trustmanager.algorithm": None,
    "ssl.truststore.certificates": "ssl.ca.pem",
    "ssl.truststore.location": None,
    "ssl.truststore.password": None,
    "ssl.truststore.type": None,
    "throw.on.fetch.stable.offset.unsupported": None,
    "value.deserializer": None,
    "value.serializer": None,
    "zookeeper.connect": None,
    "zookeeper.connection.timeout.ms": None,
    "zookeeper.session.timeout.ms": None,
}

_RENAMED_FOR: dict[Role, dict[str, str]] = {
    # the Java consumer's limit on a request is the socket's here; the producer's keeps its name
    Role.CONSUMER: {"request.timeout.ms": "socket.timeout.ms"},
    Role.PRODUCER: {},
}

_PRODUCER_ONLY = frozenset({"buffer.memory", "max.request.size"})

_CONNECTION = (
    "bootstrap.servers",
    "broker.",
    "client.",
    "connections.",
    "enable.ssl.",
    "metadata.max.age.ms",
    "reconnect.",
    "retry.backoff.",
    "sasl.",
    "security.",
    "socket.",
    "ssl.",
)
"""How to reach the brokers: names, and beginnings of names. An admin client needs no more."""

_SECURITY = ("enable.ssl.", "sasl.", "security.", "ssl.")

_JAAS_OPTION = re.compile(r"\b(username|password)\s*=\s*(\"(?:[^\"\\]|\\.)*\"|'[^']*'|[^\s;]+)")


def map_client_properties(given: Mapping[str, str], role: Role) -> MappedProperties:
    """``given`` in librdkafka's names.

    Where both forms of one property are given, librdkafka's own wins.

    Raises:
        ConfigError: a value has a form that cannot be converted.
    """
    mapped: dict[str, str] = {}
    own: dict[str, str] = {}
    ignored: list[str] = []
    for name, value in sorted(given.items()):
        if name == "sasl.jaas.config":
            mapped.update(_credentials(value))
            continue
        target = _target(name, role)
        if target is None:
            ignored.append(name)
        elif target == name:
            own[name] = value
        else:
            mapped[target] = _converted(name, value)
    return MappedProperties(dict(sorted((mapped | own).items())), tuple(ignored))


def _target(name: str, role: Role) -> str | None:
    if role is Role.CONSUMER and name in _PRODUCER_ONLY:
        return None
    return _RENAMED_FOR[role].get(name, _RENAMED.get(name, name))


def security_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of librdkafka's ``properties`` that say by which locks the brokers are reached."""
    return {name: value for name, value in properties.items() if name.startswith(_SECURITY)}


def connection_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Those of librdkafka's ``properties`` that say how to reach the brokers."""
    return {name: value for name, value in properties.items() if name.startswith(_CONNECTION)}


def _converted(name: str, value: str) -> str:
    if name != "buffer.memory":
        return value
    try:
        return str(max(1, int(value) // 1024))
    except ValueError:
        raise ConfigError(
            name, value, "it must be a whole number of bytes", "write a number, such as 33554432"
        ) from None


def _credentials(jaas: str) -> dict[str, str]:
    return {
        f"sasl.{option}": re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] in "\"'" else text
        for option, text in _JAAS_OPTION.findall(jaas)
    }
