"""Properties of this container's Kafka clients, and the errors of its transactions.

The values that the job does not set were measured. With librdkafka's default of a second,
``fetch.queue.backoff.ms`` was the limit of every consumer, not Python.
"""

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
    # A commit does not wake a waiting fetch; this bounds the delay of its records.
    "fetch.wait.max.ms": 50,
}
_RESTORE = {
    "fetch.queue.backoff.ms": 10,
    "queued.min.messages": 100_000,
    "fetch.message.max.bytes": 8 * _MIB,
    # At the head, the broker holds the answer back, and with it the news of the end.
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
"""Kafka looks for overdue transactions every 10 s by default."""
TRANSACTION_TIMEOUT_MS = 10_000
"""A transaction sends all at its end: this need not grow with the batch (safety I5)."""


class TransactionError(HomeportError):
    """A transaction was not committed, or its outcome is not known."""


class HangingTransactionError(UnavailableError):
    """A transaction in a partition has been open for longer than Kafka allows.

    Its marker never reaches the partition by itself: Kafka leaves it out where the partition has no
    leader at that moment (KAFKA-20734).
    """


class PartitionError(HomeportError):
    """A partition cannot be read, and waiting would not help."""


def longest_transaction_s(system: SystemConfig) -> float:
    """Return the longest life of a transaction: its time-out, and Kafka's time to notice it."""
    timeout_ms = producer_properties(system, "")["transaction.timeout.ms"]
    return int(timeout_ms) / 1000 + _SWEEP_S


def unread(system: SystemConfig, what: str, error: KafkaError) -> HomeportError:
    """Return the failure of reading ``what``: Kafka is away, or the partition is at fault."""
    if is_transient(error):
        return unavailable(system, what, error)
    return PartitionError(f"system {system.name!r}: {what}: {error.str()}")


def input_properties(system: SystemConfig, ahead_bytes: int) -> dict[str, Any]:
    """Return the properties of a consumer of input, which fetches ``ahead_bytes`` ahead."""
    # The library bounds an answer of the broker by this, too.
    queue = {"queued.max.messages.kbytes": max(1, ahead_bytes // 1024)}
    return _consumer(system, _INPUT | queue) | {"enable.partition.eof": False}


def restore_properties(system: SystemConfig) -> dict[str, Any]:
    """Return the properties of a consumer that reads changelogs and checkpoints to their head."""
    return _consumer(system, _RESTORE)


def follow_properties(system: SystemConfig) -> dict[str, Any]:
    """Return the properties of a consumer with which a standby follows its changelogs."""
    return _consumer(system, _FOLLOW)


def producer_properties(system: SystemConfig, transactional_id: str) -> dict[str, Any]:
    """Return the properties of the transactional producer of one incarnation."""
    return {
        **_PRODUCER,
        "transaction.timeout.ms": TRANSACTION_TIMEOUT_MS,
        **system.producer,
        "transactional.id": transactional_id,
        "enable.idempotence": True,
    }


def plain_producer_properties(system: SystemConfig) -> dict[str, Any]:
    """Return the properties of the producer of outputs outside of the transaction."""
    return {
        **_PRODUCER,
        # The producer waits for Kafka without a limit, and then delivers what it has.
        "message.timeout.ms": 0,
        **system.producer,
        "enable.idempotence": True,
        "acks": "all",
        # A report costs more than the send itself; ``flush`` returns how many records are left.
        "delivery.report.only.error": True,
    }


def know_topics(
    client: Consumer | AdminClient,
    system: SystemConfig,
    topics: Iterable[str],
    timeout_s: float = _METADATA_S,
) -> None:
    """Let the client fetch the leaders of ``topics``, so that an assignment begins at once.

    An assignment while the client is still connecting waits for a timer of a second: about one
    start in ten.

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
        # We set all positions; one that does not exist is a fault, never a silent jump.
        "auto.offset.reset": "error",
    }
