"""How many partitions an output topic has, for a task that places its records itself."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.client_properties import TransactionError
from homeport.container.kafka.sending import absent, topic_partitions
from homeport.job_coordinator.kafka import clients


def partition_count(systems: Mapping[str, SystemConfig], system: str, topic: str) -> int:
    """Return the number of partitions of ``topic``, which a broker may make by itself.

    Raises:
        TransactionError: there is no such topic.
        UnavailableError: Kafka does not answer.
    """
    view = systems[system]
    count = topic_partitions(clients.admin(view), topic)
    if count is None:
        raise clients.unavailable(view, f"asking for topic {topic!r}", "no answer")
    if count == 0:
        raise TransactionError(absent(topic))
    return count
