"""Functions of both kinds of producers: to enqueue a record, look for topics, name a refusal."""

import time
from collections.abc import Callable, Mapping

from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient, TopicMetadata

from homeport.config.declarations import all_keys as keys
from homeport.config.settings.sections import SystemConfig
from homeport.container.kafka.client_properties import TransactionError
from homeport.container.progress.topic_rules import (
    BATCH_BYTES,
    BATCH_SIZE,
    TopicRules,
    story,
    topics,
)
from homeport.container.progress.transaction_plan import Send, TransactionContent, number_of
from homeport.job_coordinator.kafka import clients
from homeport.job_coordinator.kafka.record_limit import producer_limit
from homeport.job_coordinator.kafka.topics import TopicAdmin

SEND_S = 30.0
"""How long records may take to be sent."""

_ROOM_S = 0.05
_LOOK_S = 5.0
_LOOKS = 3
_LOOK_PAUSE_S = 0.5
_UNKNOWN = KafkaError.UNKNOWN_TOPIC_OR_PART
_BEING_MADE = frozenset({_UNKNOWN, KafkaError.LEADER_NOT_AVAILABLE})

Delivered = Callable[[KafkaError | None, Message], None]


def enqueue(
    producer: Producer,
    send: Send,
    delivered: Delivered | None,
    look: Callable[[], None] | None = None,
) -> None:
    """Put the record into the producer's queue.

    ``delivered`` is called with the report; None: no report is wanted. ``look`` is called every now
    and then while the queue is full; it raises to give up.

    Raises:
        KafkaException: the library refuses the record, or its queue stayed full.
    """
    topic, key, value, partition, headers, _, timestamp_ms = send
    produce: Callable[..., None] = producer.produce
    place, time_ms = number_of(partition), timestamp_ms or 0
    deadline: float | None = None
    while True:
        try:
            # Names of arguments would add a third to the cost of the call.
            produce(topic, value, key, place, delivered, None, time_ms, headers or None)
        except BufferError:
            # The queue is full: wait for deliveries, for SEND_S at most.
            deadline = deadline or time.monotonic() + SEND_S
            if time.monotonic() > deadline:
                why = f"the producer's queue stayed full for {SEND_S:g} s"
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT_QUEUE, why)) from None  # noqa: SLF001 - a public name of the library
            producer.poll(_ROOM_S)
            if look is not None:
                look()
        else:
            return


def has_topic(client: Producer | AdminClient, name: str) -> bool | None:
    """Return whether Kafka has the topic; None where it does not answer.

    Without this, the library would only report that the records of an absent topic timed out.
    """
    found = _looked_up(client, name)
    if found is None:
        return None
    return found.error is None or found.error.code() != _UNKNOWN


def _looked_up(client: Producer | AdminClient, name: str) -> TopicMetadata | None:
    """Request the topic more than once: a broker that creates topics first answers no."""
    for look in range(_LOOKS):
        if look:
            time.sleep(_LOOK_PAUSE_S)
        try:
            found: TopicMetadata = client.list_topics(name, timeout=_LOOK_S).topics[name]
        except KafkaException:
            return None
        if found.error is None or found.error.code() not in _BEING_MADE:
            break
    return found


def absent(name: str) -> str:
    """Return the fault and the remedy where there is no such topic."""
    key = keys.TASK_OUTPUTS_CREATE_PARTITIONS.name
    made = f"name it in {keys.TASK_OUTPUTS.name} and set {key}"
    return f"no such topic in Kafka: {name!r}; create it, or {made}, or correct its name"


_TIMEOUT_S = 5.0
_MS_PER_S = 1000


def refused_record(system: SystemConfig, content: TransactionContent) -> str | None:
    """Return the refused record, the reason, and the remedy; None where no reason is known.

    Raises:
        UnavailableError: Kafka does not answer.
    """
    admin = TopicAdmin(system, _TIMEOUT_S)
    sizes = producer_limit(system), int(system.producer.get(BATCH_SIZE, BATCH_BYTES))
    rules = {name: TopicRules.of(admin.topic_config(name), *sizes) for name in topics(content)}
    return story(content, rules, int(time.time() * _MS_PER_S))


def partition_count(systems: Mapping[str, SystemConfig], system: str, topic: str) -> int:
    """Return the number of partitions of ``topic``, which the request may create.

    Raises:
        TransactionError: there is no such topic.
        UnavailableError: Kafka does not answer.
    """
    found = _looked_up(clients.admin(systems[system]), topic)
    error = None if found is None else found.error
    if found is not None and error is None:
        return len(found.partitions)
    if error is not None and error.code() == _UNKNOWN:
        raise TransactionError(absent(topic))
    raise clients.unavailable(systems[system], f"asking for topic {topic!r}", "no answer")
