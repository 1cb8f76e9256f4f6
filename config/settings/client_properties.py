"""Which properties of Kafka's clients have no effect, and what does what was wanted of them.

PURE. A property that is passed over without a word is one that a user counts on.
"""

from __future__ import annotations

from collections.abc import Iterator

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.kafka_names import HELD, Role
from homeport.config.secret_names import shown_value
from homeport.config.settings.sections import SystemConfig

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
"""What does what was wanted of a property that librdkafka does not have."""


def without_effect(config: Config, system: SystemConfig) -> Iterator[tuple[str, str]]:
    """Yield each given property of a system's clients that has no effect: (its key, why)."""
    roles = {Role.CONSUMER: keys.SYSTEM_CONSUMER, Role.PRODUCER: keys.SYSTEM_PRODUCER}
    for role, prefix_key in roles.items():
        prefix = prefix_key.named(system.name, "")
        for name, value in config.subset(prefix).items():
            held, why = HELD[role].get(name), None
            if prefix + name in system.ignored:
                instead = _INSTEAD.get(name)
                why = "librdkafka has nothing like it" + (f"; {instead}" if instead else "")
            elif held is not None and value.strip().lower() not in held.same:
                why = held.instead
            if why is not None:
                yield prefix + name, why.replace("<system>", system.name)


def client_warnings(config: Config, system: SystemConfig) -> Iterator[str]:
    """Yield one line for each such property, with its value and what holds instead."""
    for key, why in without_effect(config, system):
        yield f"{key} = {shown_value(key, config[key])} has no effect: {why}"
