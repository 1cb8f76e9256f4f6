"""The largest record that can be written to a topic."""

from homeport.config.config import INT_MAX
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.coordinator_stream.message_bytes import whole_number
from homeport.job_coordinator.kafka.topics import TopicAdmin

_PRODUCER_KEY = "message.max.bytes"
_TOPIC_KEY = "max.message.bytes"
_PRODUCER_DEFAULT = 1_000_000
"""librdkafka's."""
_TIMEOUT_S = 5.0


def record_limit(system: SystemConfig, topic: str) -> int:
    """Return the bytes of the largest record to ``topic``, which exists.

    UnavailableError: Kafka does not answer.
    """
    own = producer_limit(system)
    given = TopicAdmin(system, _TIMEOUT_S).topic_config(topic).get(_TOPIC_KEY, "")
    limit = whole_number(given, INT_MAX)
    return own if limit is None else min(own, limit)


def producer_limit(system: SystemConfig) -> int:
    """Return the bytes of the largest record that the system's producer sends."""
    return int(system.producer.get(_PRODUCER_KEY, _PRODUCER_DEFAULT))
