"""How many partitions an output topic has, for a task's own partitioner."""

from __future__ import annotations

from collections.abc import Mapping

from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.clients import TransactionError
from homeport.container.kafka.sending import absent
from homeport.job_coordinator.kafka.topics import TopicAdmin


def partition_count(systems: Mapping[str, SystemConfig], system: str, topic: str) -> int:
    """The number of partitions of ``topic``.

    Raises:
        TransactionError: there is no such topic.
        UnavailableError: Kafka does not answer.
    """
    count = TopicAdmin(systems[system]).partition_counts([topic]).get(topic)
    if count is None:
        raise TransactionError(absent(topic))
    return count
