"""The largest record that can be written to a topic."""

from __future__ import annotations

from homeport.config.sections import SystemConfig
from homeport.job_coordinator.kafka.topics import TopicAdmin

_PRODUCER_KEY = "message.max.bytes"
_TOPIC_KEY = "max.message.bytes"
_PRODUCER_DEFAULT = 1_000_000
"""librdkafka's."""
_TIMEOUT_S = 5.0


def record_limit(system: SystemConfig, topic: str) -> int:
    """Bytes that the producer sends and ``topic``, which exists, takes, whichever is less.

    Raises:
        UnavailableError: Kafka does not answer.
    """
    own = producer_limit(system)
    given = TopicAdmin(system, _TIMEOUT_S).topic_config(topic).get(_TOPIC_KEY, "")
    return min(own, int(given)) if given.isdigit() else own


def producer_limit(system: SystemConfig) -> int:
    """Bytes that the system's producer sends in one record."""
    return int(system.producer.get(_PRODUCER_KEY, _PRODUCER_DEFAULT))
