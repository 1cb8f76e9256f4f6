"""Which record of a transaction its topic refuses, by the topic's configuration in Kafka."""

from __future__ import annotations

import time

from homeport.config.settings.sections import SystemConfig
from homeport.container.progress.topic_rules import (
    BATCH_BYTES,
    BATCH_SIZE,
    TopicRules,
    story,
    topics,
)
from homeport.container.progress.transaction_plan import TransactionContent
from homeport.job_coordinator.kafka.record_limit import producer_limit
from homeport.job_coordinator.kafka.topics import TopicAdmin

_TIMEOUT_S = 5.0
_MS_PER_S = 1000


def refused_record(system: SystemConfig, content: TransactionContent) -> str | None:
    """Name the record, why its topic refuses it, and the remedy; None where no reason is known.

    Raises:
        UnavailableError: Kafka does not answer.
    """
    admin = TopicAdmin(system, _TIMEOUT_S)
    sizes = producer_limit(system), int(system.producer.get(BATCH_SIZE, BATCH_BYTES))
    rules = {name: TopicRules.of(admin.topic_config(name), *sizes) for name in topics(content)}
    return story(content, rules, int(time.time() * _MS_PER_S))
