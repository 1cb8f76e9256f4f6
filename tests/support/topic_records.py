"""What topics hold: committed records, as bytes, and where partitions end."""

from __future__ import annotations

from confluent_kafka import Consumer, Message, TopicPartition

_POLL_S = 20.0


def committed(servers: str, topic: str, partitions: int) -> list[Message]:
    """Every committed record up to the ends as they are now, in the order of each partition."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found: list[Message] = []
    ended = 0
    try:
        while ended < partitions:
            record = consumer.poll(_POLL_S)
            assert record is not None, f"{topic} cannot be read to its end"
            if record.error() is not None:
                ended += 1
            else:
                found.append(record)
    finally:
        consumer.close()
    return found


def topic_records(servers: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """(key, value) of every record of partition 0, in their order."""
    return [(record.key(), record.value()) for record in committed(servers, topic, 1)]


def last_offsets(servers: str, topic: str, partitions: int) -> list[int]:
    """The offset of the last committed record of each partition; -1 where there is none."""
    found = [-1] * partitions
    for record in committed(servers, topic, partitions):
        found[record.partition() or 0] = record.offset() or 0
    return found
