"""The one table that turns Kafka's Java client properties into librdkafka's.

``systems.S.consumer.*`` and ``systems.S.producer.*`` take Java's names, as every Samza job writes
them, and librdkafka's own names, which pass through. What only the Java client knows is left out
and reported, never handed to librdkafka, which refuses names that it does not know.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from homeport.config.errors import ConfigError
from homeport.config.number_text import whole_of


class Role(Enum):
    """Which client a property set is for."""

    CONSUMER = "consumer"
    PRODUCER = "producer"


@dataclass(frozen=True)
class MappedProperties:
    """librdkafka's properties, and {given name: why it has no effect}, both sorted."""

    properties: dict[str, str]
    ignored: dict[str, str]


SERVERS = ("bootstrap.servers", "metadata.broker.list")
"""The names of the property with the addresses of brokers."""
_RENAMED = {
    "buffer.memory": "queue.buffering.max.kbytes",
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "max.request.size": "message.max.bytes",
    "metadata.broker.list": "bootstrap.servers",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "sasl.mechanism": "sasl.mechanisms",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "ssl.keystore.certificate.chain": "ssl.certificate.pem",
    "ssl.keystore.key": "ssl.key.pem",
    "ssl.truststore.certificates": "ssl.ca.pem",
}
"""{name in Java: name in librdkafka}, where they differ."""

_JAVA_ALONE = """
    auto.include.jmx.reporter config.providers default.api.timeout.ms exclude.internal.topics
    group.protocol group.remote.assignor interceptor.classes key.deserializer key.serializer
    key.serializer.class max.block.ms max.poll.records metadata.max.idle.ms metric.reporters
    metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy partitioner.adaptive.partitioning.enable
    partitioner.availability.timeout.ms partitioner.class partitioner.ignore.keys producer.type
    sasl.client.callback.handler.class sasl.login.callback.handler.class sasl.login.class
    sasl.login.connect.timeout.ms sasl.login.read.timeout.ms security.providers serializer.class
    socket.connection.setup.timeout.max.ms ssl.enabled.protocols ssl.engine.factory.class
    ssl.keymanager.algorithm ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.location
    ssl.truststore.password ssl.truststore.type throw.on.fetch.stable.offset.unsupported
    value.deserializer value.serializer zookeeper.connect zookeeper.connection.timeout.ms
    zookeeper.session.timeout.ms
"""
_JAVA_ONLY = frozenset(_JAVA_ALONE.split())
"""Names of the Java client to which nothing in librdkafka corresponds."""

_RENAMED_FOR: dict[Role, dict[str, str]] = {
    # the Java consumer's limit on a request is the socket's here; the producer's keeps its name
    Role.CONSUMER: {"request.timeout.ms": "socket.timeout.ms"},
    Role.PRODUCER: {},
}


@dataclass(frozen=True)
class Held:
    """What a client has in place of a property that a user cannot set.

    ``instead``: that, in words, with ``<system>`` for the system's name. ``same``: the values that
    mean the same.
    """

    instead: str
    same: frozenset[str] = frozenset()


_NO_GROUP = "no consumer group is joined: the job model gives each task its partitions"
_CHECKPOINTS = (
    "positions are in the job's checkpoints: job.name and job.id name them, task.commit.ms says "
    "how often stores are flushed"
)
_START = (
    "a task begins at its checkpoint; without one, systems.<system>.samza.offset.default is oldest "
    "or upcoming; where records are gone, systems.<system>.input.lost says what it does"
)
_IDS = "transactional ids are made of job.name, job.id, container and epoch, and fence each other"
_ALL = "each record is in all replicas in sync, and once: min.insync.replicas of the topic counts"
_FALSE = frozenset({"false"})
_ALL_ACKS = frozenset({"all", "-1"})

HELD: Mapping[Role, Mapping[str, Held]] = {
    Role.CONSUMER: {
        "auto.commit.enable": Held(_CHECKPOINTS, _FALSE),
        "auto.commit.interval.ms": Held(_CHECKPOINTS),
        "auto.offset.reset": Held(_START),
        "enable.auto.commit": Held(_CHECKPOINTS, _FALSE),
        "enable.auto.offset.store": Held(_CHECKPOINTS, _FALSE),
        "enable.partition.eof": Held("each client has it where it needs it"),
        "group.id": Held(f"{_NO_GROUP}; {_CHECKPOINTS}"),
        "group.instance.id": Held(_NO_GROUP),
        "isolation.level": Held("committed records alone are read", frozenset({"read_committed"})),
    },
    Role.PRODUCER: {
        "acks": Held(_ALL, _ALL_ACKS),
        "delivery.report.only.error": Held("each client has it where it needs it"),
        "enable.idempotence": Held(_ALL, frozenset({"true"})),
        "request.required.acks": Held(_ALL, _ALL_ACKS),
        "transactional.id": Held(_IDS),
    },
}
"""{librdkafka's name: what holds}, for the properties that a user of a job cannot set."""

_KEYS = "set systems.<system>.samza.key.serde"
_VALUES = "set systems.<system>.samza.msg.serde"
_INSTEAD = {
    "key.deserializer": _KEYS,
    "key.serializer": _KEYS,
    "value.deserializer": _VALUES,
    "value.serializer": _VALUES,
    "max.poll.records": "task.batch.max.bytes bounds a micro-batch",
    "partitioner.class": "give collector.send a partition, or a function as its partition",
    "ssl.truststore.location": "set ssl.ca.location beside it, to a file of PEM",
}
"""{Java's name of a property that librdkafka does not have: what to use instead}."""

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
    """Return ``given`` in librdkafka's names, without those that Homeport holds itself.

    Where both forms of one property are given, librdkafka's own wins. ConfigError: a value has a
    form that cannot be converted.
    """
    mapped: dict[str, str] = {}
    own: dict[str, str] = {}
    ignored: dict[str, str] = {}
    for name, value in sorted(given.items()):
        if name == "sasl.jaas.config":
            mapped.update(_credentials(value))
            continue
        target = _target(name, role)
        if target is None:
            instead = _INSTEAD.get(name)
            ignored[name] = "librdkafka has nothing like it" + (f"; {instead}" if instead else "")
        elif (held := HELD[role].get(target)) is not None:
            if value.strip().lower() not in held.same:
                ignored[name] = held.instead
        elif target == name:
            own[name] = value
        else:
            mapped[target] = _converted(name, value)
    return MappedProperties(dict(sorted((mapped | own).items())), ignored)


def _target(name: str, role: Role) -> str | None:
    if name in _JAVA_ONLY or (role is Role.CONSUMER and name in _PRODUCER_ONLY):
        return None
    return _RENAMED_FOR[role].get(name, _RENAMED.get(name, name))


def security_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those of librdkafka's ``properties`` that authenticate and encrypt."""
    return {name: value for name, value in properties.items() if name.startswith(_SECURITY)}


def connection_properties(properties: Mapping[str, str]) -> dict[str, str]:
    """Return those of librdkafka's ``properties`` by which the brokers are reached."""
    return {name: value for name, value in properties.items() if name.startswith(_CONNECTION)}


def _converted(name: str, value: str) -> str:
    if name != "buffer.memory":
        return value
    try:
        return str(max(1, whole_of(value.strip()) // 1024))
    except ValueError:
        raise ConfigError(
            name, value, "it must be a whole number of bytes", "write a number, such as 33554432"
        ) from None


def _credentials(jaas: str) -> dict[str, str]:
    return {
        f"sasl.{option}": re.sub(r"\\(.)", r"\1", text[1:-1]) if text[0] in "\"'" else text
        for option, text in _JAAS_OPTION.findall(jaas)
    }


def policies(text: str) -> frozenset[str]:
    """Return the policies in a ``cleanup.policy``."""
    return frozenset(part.strip() for part in text.split(","))
