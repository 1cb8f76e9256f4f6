"""What topics hold: committed records, as bytes, and where partitions end."""

from __future__ import annotations

from confluent_kafka import Consumer, TopicPartition

_POLL_S = 20.0


def topic_records(servers: str, topic: str) -> list[tuple[bytes | None, bytes | None]]:
    """(key, value) of every record of partition 0, in their order."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[tuple[bytes | None, bytes | None]] = []
    try:
        while True:
            record = consumer.poll(_POLL_S)
            assert record is not None, f"{topic} cannot be read to its end"
            if record.error() is not None:
                return found
            found.append((record.key(), record.value()))
    finally:
        consumer.close()


def last_offsets(servers: str, topic: str, partitions: int) -> list[int]:
    """The offset of the last committed record of each partition; -1 where there is none."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_committed",
        }
    )
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(partitions)])
    found, ended = [-1] * partitions, 0
    try:
        while ended < partitions:
            record = consumer.poll(_POLL_S)
            assert record is not None, f"{topic} cannot be read to its end"
            if record.error() is not None:
                ended += 1
            else:
                found[record.partition() or 0] = record.offset() or 0
    finally:
        consumer.close()
    return found
