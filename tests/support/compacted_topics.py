"""Topics whose records a broker has compacted, or deleted, where tests need it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ResourceType
from stream_containers import DEADLINE_S, Job
from topic_records import alter

_BROKER = "1"
RETENTION_MS = 1000
_COMPACTED_S = 90.0


@contextmanager
def quick_cleaner(kafka: str) -> Iterator[str]:
    """The broker looks for what to compact all the time."""
    alter(kafka, _BROKER, {"log.cleaner.backoff.ms": "100"}, ResourceType.BROKER)
    try:
        yield kafka
    finally:
        alter(kafka, _BROKER, {"log.cleaner.backoff.ms": None}, ResourceType.BROKER)


def until_compacted(
    job: Job, gone: set[bytes], name: str = "changelog", filler: bytes = b"\0" * 8
) -> None:
    """Wait until the topic has neither a value nor a deletion of these keys any more.

    A partition's last segment is never compacted, and a new one begins with a record only.
    """
    topic = job.topic(name)
    fast = {
        "segment.ms": "50",
        "min.cleanable.dirty.ratio": "0",
        "delete.retention.ms": str(RETENTION_MS),
    }
    alter(job.servers, topic, fast)
    producer = Producer({"bootstrap.servers": job.servers})
    deadline = time.monotonic() + _COMPACTED_S
    pause = threading.Event()
    while gone & {key for key, _ in job.read(topic)}:
        assert time.monotonic() < deadline, "not compacted away"
        producer.produce(topic, filler, b"filler", partition=0)
        assert producer.flush(DEADLINE_S) == 0
        pause.wait(0.2)


def delete_before(job: Job, name: str, offset: int) -> None:
    """Partition 0 of the topic begins at that offset, as after retention."""
    admin = AdminClient({"bootstrap.servers": job.servers})
    (deleted,) = admin.delete_records([TopicPartition(job.topic(name), 0, offset)]).values()
    assert deleted.result(DEADLINE_S).low_watermark == offset
