"""Topics whose records a broker has compacted, or deleted, where tests need it."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin import ResourceType as Kind
from stream_containers import DEADLINE_S, Job

_BROKER = "1"
RETENTION_MS = 1000
_COMPACTED_S = 90.0


def alter(servers: str, kind: Kind, name: str, properties: dict[str, str | None]) -> None:
    """Properties of a topic or a broker are so; None: as by default."""
    set_, delete = AlterConfigOpType.SET, AlterConfigOpType.DELETE
    entries = [
        ConfigEntry(key, value, incremental_operation=delete if value is None else set_)
        for key, value in properties.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=entries)
    admin = AdminClient({"bootstrap.servers": servers})
    admin.incremental_alter_configs([resource])[resource].result(DEADLINE_S)


@contextmanager
def quick_cleaner(kafka: str) -> Iterator[str]:
    """The broker looks for what to compact all the time."""
    alter(kafka, Kind.BROKER, _BROKER, {"log.cleaner.backoff.ms": "100"})
    try:
        yield kafka
    finally:
        alter(kafka, Kind.BROKER, _BROKER, {"log.cleaner.backoff.ms": None})


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
    alter(job.servers, Kind.TOPIC, topic, dict(fast))
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
