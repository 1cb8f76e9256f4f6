"""What topics hold: committed records, as bytes, and where partitions end; their properties."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)
from waiting import until

_POLL_S = 60.0
_ANSWER_S = 10.0
_LINES = 200


class _LastLines(logging.Handler):
    """Keeps the last lines of a log, for the text of a failure."""

    def __init__(self) -> None:
        super().__init__()
        self.lines = deque[str](maxlen=_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        self.lines.append(f"{record.created:.3f} {record.getMessage()}")


def partitions_of(servers: str, topic: str) -> list[int]:
    """Return the numbers of the topic's partitions; KafkaException: no broker answers in a minute.

    A request to a broker that stood still may get no answer: another one follows it.
    """
    deadline = time.monotonic() + _POLL_S
    while True:
        try:
            found = AdminClient({"bootstrap.servers": servers}).list_topics(topic, _ANSWER_S)
        except KafkaException:
            if time.monotonic() > deadline:
                raise
        else:
            return sorted(found.topics[topic].partitions)


def records_from(servers: str, places: Sequence[TopicPartition]) -> list[Message]:
    """Return the committed records of each partition from its offset to its end as it is now.

    Where no end comes for a minute, the failure has the last lines of librdkafka's own log: an end
    that was not reported (tests/FLAKY.md) cannot be explained without them.
    """
    last = _LastLines()
    log = logging.Logger("librdkafka", logging.DEBUG)  # noqa: LOG001 - of one reader, for its time
    log.addHandler(last)
    properties = {
        "bootstrap.servers": servers,
        "group.id": "reader",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": "read_committed",
        "fetch.wait.max.ms": 10,
        "debug": "broker,fetch,metadata,topic",
    }
    consumer = Consumer(properties, logger=log)
    found: list[Message] = []
    try:
        for place in places:
            consumer.assign([place])
            while True:
                record = consumer.poll(_POLL_S)
                if record is None:
                    record = consumer.poll(0)  # brings the log of the meantime
                assert record is not None, "\n".join([f"No end of {place}", *last.lines])
                error = record.error()
                if error is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    break
                found.append(record)
    finally:
        consumer.close()
    return found


def committed(servers: str, topic: str, partitions: int) -> list[Message]:
    """Every committed record up to the ends as they are now, partition after partition."""
    return records_from(servers, [TopicPartition(topic, p, 0) for p in range(partitions)])


def topic_records(servers: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """(key, value) of every record of partition 0, in their order."""
    return [(record.key(), record.value()) for record in committed(servers, topic, 1)]


def last_offsets(servers: str, topic: str, partitions: int) -> list[int]:
    """The offset of the last committed record of each partition; -1 where there is none."""
    found = [-1] * partitions
    for record in committed(servers, topic, partitions):
        found[record.partition() or 0] = record.offset() or 0
    return found


def alter(
    servers: str,
    name: str,
    properties: Mapping[str, str | None],
    kind: ResourceType = ResourceType.TOPIC,
) -> None:
    """Properties of a topic or a broker are so; None: as by default.

    The controller answers before each broker has the change, so the description is waited for.
    """
    set_, delete = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    entries = [
        ConfigEntry(key, value, incremental_operation=delete if value is None else set_)
        for key, value in properties.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result(_POLL_S)
    wanted = {key: value for key, value in properties.items() if value is not None}
    asked = ConfigResource(kind, name)

    def shows_them() -> bool:
        found = admin.describe_configs([asked])[asked].result(_POLL_S)
        return all(
            _as_number(found[key].value) == _as_number(value) for key, value in wanted.items()
        )

    until(shows_them, lambda: wanted)


def _as_number(value: str | None) -> float | str | None:
    """A broker describes the ratio "0" as "0.0"."""
    try:
        return None if value is None else float(value)
    except ValueError:
        return value
