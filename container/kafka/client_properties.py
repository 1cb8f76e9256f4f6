"""Properties of this container's Kafka clients, and the errors of its transactions.

The values that are not the job's were measured: ``fetch.queue.backoff.ms`` at librdkafka's default
of a second was the limit of every consumer, not Python.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException
from confluent_kafka.admin import AdminClient

from homeport.config.errors import HomeportError, UnavailableError
from homeport.config.settings.sections import SystemConfig
from homeport.job_coordinator.kafka.clients import COMMITTED, error_of, unavailable
from homeport.job_coordinator.kafka.transient_errors import is_transient

_MIB = 1024 * 1024
_METADATA_S = 30.0

_INPUT = {
    "fetch.queue.backoff.ms": 10,
    "queued.min.messages": 100_000,
    "fetch.message.max.bytes": _MIB,
    # A commit does not wake a waiting fetch at once; this bounds how late its records are seen.
    "fetch.wait.max.ms": 50,
}
_RESTORE = {
    "fetch.queue.backoff.ms": 10,
    "queued.min.messages": 100_000,
    "fetch.message.max.bytes": 8 * _MIB,
    # At the head the broker would otherwise hold the answer, and with it the end, for long.
    "fetch.wait.max.ms": 10,
}
# A standby follows beside containers that work: little memory, few requests while nothing comes.
_FOLLOW = {
    "fetch.queue.backoff.ms": 100,
    "queued.min.messages": 5_000,
    "queued.max.messages.kbytes": 8 * 1024,
    "fetch.message.max.bytes": _MIB,
    "fetch.wait.max.ms": 500,
}
_PRODUCER = {
    "linger.ms": 5,
    "queue.buffering.max.messages": 2_000_000,
    "queue.buffering.max.kbytes": 1024 * 1024,
    # As Kafka's Java clients place keys.
    "partitioner": "murmur2_random",
}

_SWEEP_S = 20.0
"""Kafka looks for transactions that are over their time every 10 s, by default."""
TRANSACTION_TIMEOUT_MS = 10_000
"""All sends of a transaction happen at its end: this does not grow with the batch (safety I5)."""


class TransactionError(HomeportError):
    """A transaction was not committed, or its outcome is not known."""


class HangingTransactionError(UnavailableError):
    """A transaction in a partition is open for longer than Kafka lets one be.

    Its end has not reached the partition, and never will by itself: Kafka leaves its marker out
    where the partition has no leader at that moment (KAFKA-20734).
    """


class PartitionError(HomeportError):
    """A partition cannot be read, and waiting would not mend it."""


def longest_transaction_s(system: SystemConfig) -> float:
    """Return how long a transaction of the job's can be open: its time, and Kafka's to look."""
    timeout_ms = producer_properties(system, "")["transaction.timeout.ms"]
    return int(timeout_ms) / 1000 + _SWEEP_S


def unread(system: SystemConfig, what: str, error: KafkaError) -> HomeportError:
    """Return the failure of reading ``what``: Kafka's absence, or a fault of the partition's."""
    if is_transient(error):
        return unavailable(system, what, error)
    return PartitionError(f"system {system.name!r}: {what}: {error.str()}")


def input_properties(system: SystemConfig, ahead_bytes: int) -> dict[str, Any]:
    """Return those of a consumer of the job's input, which fetches ``ahead_bytes`` ahead."""
    # An answer of the broker's is no larger either: the library bounds it by this.
    queue = {"queued.max.messages.kbytes": max(1, ahead_bytes // 1024)}
    return _consumer(system, _INPUT | queue) | {"enable.partition.eof": False}


def restore_properties(system: SystemConfig) -> dict[str, Any]:
    """Return those of the consumer that reads changelogs and checkpoints to their head."""
    return _consumer(system, _RESTORE)


def follow_properties(system: SystemConfig) -> dict[str, Any]:
    """Return those of the consumer by which a standby follows its changelogs."""
    return _consumer(system, _FOLLOW)


def producer_properties(system: SystemConfig, transactional_id: str) -> dict[str, Any]:
    """Return those of the transactional producer of one incarnation."""
    timeout = {"transaction.timeout.ms": TRANSACTION_TIMEOUT_MS}
    return {
        **_PRODUCER,
        **timeout,
        **system.producer,
        "transactional.id": transactional_id,
        "enable.idempotence": True,
    }


def plain_producer_properties(system: SystemConfig) -> dict[str, Any]:
    """Return those of the producer of outputs that are not part of the transaction."""
    return {
        **_PRODUCER,
        # However long Kafka is away: it is waited for, and what was sent before goes on then.
        "message.timeout.ms": 0,
        **system.producer,
        "enable.idempotence": True,
        "acks": "all",
        # A report costs more than the send itself; how many are still out, ``flush`` says.
        "delivery.report.only.error": True,
    }


def know_topics(
    client: Consumer | AdminClient,
    system: SystemConfig,
    topics: Iterable[str],
    timeout_s: float = _METADATA_S,
) -> None:
    """Let the client know the leaders of ``topics``, so that an assignment begins at once.

    One that comes while the client is still connecting is looked at again only by a timer, a second
    later: about every tenth start.

    Raises:
        UnavailableError: Kafka does not answer.
    """
    for topic in topics:
        try:
            client.list_topics(topic, timeout_s)
        except KafkaException as error:
            raise unavailable(system, f"asking for topic {topic}", error_of(error)) from None


def _consumer(system: SystemConfig, tuned: Mapping[str, Any]) -> dict[str, Any]:
    return {
        **tuned,
        **system.consumer,
        **COMMITTED,
        # Required by the client; partitions are assigned by hand, so no group is ever joined.
        "group.id": "homeport",
        # Positions are always set by us; one that does not exist is a fault, never a silent jump.
        "auto.offset.reset": "error",
    }
