"""The errors that pass by themselves: one table for all readers and writers of Kafka.

Kafka's own Java clients retry what extends ``RetriableException`` (org.apache.kafka.common.errors,
Kafka 4.3). librdkafka retries most of these errors too, and reports the rest. The table leaves out:

- UNKNOWN_TOPIC_OR_PART, UNKNOWN_TOPIC_ID, INCONSISTENT_TOPIC_ID: the topic is gone or was replaced,
  which each caller has to see;
- CORRUPT_MESSAGE: a record that is damaged on the broker's disk stays damaged;
- errors of consumer groups, share groups and leader elections: nothing here uses these.
"""

from confluent_kafka import KafkaError

DISCONNECTED = frozenset(
    {
        KafkaError._TRANSPORT,  # noqa: SLF001 - public names of the library, written this way by it
        KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - as above
        KafkaError._RESOLVE,  # noqa: SLF001 - as above
    }
)
"""The library has lost a broker."""

OVERDUE = frozenset(
    {
        KafkaError._TIMED_OUT,  # noqa: SLF001 - as above
        KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001 - as above
        KafkaError._MSG_TIMED_OUT,  # noqa: SLF001 - as above
        KafkaError._WAIT_COORD,  # noqa: SLF001 - as above
    }
)
"""The library has repeated a request until its time was over."""

RETRIABLE = frozenset(
    {
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.REQUEST_TIMED_OUT,
        KafkaError.BROKER_NOT_AVAILABLE,
        KafkaError.REPLICA_NOT_AVAILABLE,
        KafkaError.NETWORK_EXCEPTION,
        KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
        KafkaError.COORDINATOR_NOT_AVAILABLE,
        KafkaError.NOT_COORDINATOR,
        KafkaError.NOT_ENOUGH_REPLICAS,
        KafkaError.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        KafkaError.NOT_CONTROLLER,
        KafkaError.CONCURRENT_TRANSACTIONS,
        KafkaError.KAFKA_STORAGE_ERROR,
        KafkaError.FETCH_SESSION_ID_NOT_FOUND,
        KafkaError.INVALID_FETCH_SESSION_EPOCH,
        KafkaError.LISTENER_NOT_FOUND,
        KafkaError.FENCED_LEADER_EPOCH,
        KafkaError.UNKNOWN_LEADER_EPOCH,
        KafkaError.OFFSET_NOT_AVAILABLE,
        KafkaError.PREFERRED_LEADER_NOT_AVAILABLE,
        KafkaError.ELIGIBLE_LEADERS_NOT_AVAILABLE,
        KafkaError.THROTTLING_QUOTA_EXCEEDED,
    }
)
"""A partition, a coordinator or the cluster itself is changing."""

_TRANSIENT = DISCONNECTED | OVERDUE | RETRIABLE


def is_transient(error: KafkaError) -> bool:
    """Return whether the same request may succeed later, without a change by anybody."""
    return error.retriable() or error.code() in _TRANSIENT
