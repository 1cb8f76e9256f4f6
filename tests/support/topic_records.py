"""The committed records of a topic of one partition, as bytes."""

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
