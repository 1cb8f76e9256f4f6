"""The brokers in memory of one job, with the topics that a test says there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from homeport.container.processing.record_rules import (
    checked_headers,
    partition_number,
    require_bytes,
    whole_ms,
)
from homeport.testing.broker import Broker, settings_of
from homeport.testing.job_under_test import JobUnderTest

Topics = Mapping[str, Mapping[str, str]]
"""{``system.stream``: properties of the topic, as Kafka's}."""


def brokers_of(
    checked: JobUnderTest,
    partitions: int | Mapping[str, int],
    topics: Topics | None,
    now_ms: Callable[[], int],
) -> dict[str, Broker]:
    """Return {system: its broker}; systems with the same addresses share one.

    Each has the topics of the job. ``topics``: has those that are there beside; None: each topic is
    made by its first use, as by a broker with ``auto.create.topics.enable``.

    Raises:
        ValueError: a property is not one that a test may set.
    """
    general = partitions if isinstance(partitions, int) else 1
    job = checked.job
    by_address = {
        system.cluster: Broker(lambda _topic: general, now_ms) for system in job.systems.values()
    }
    brokers = {name: by_address[system.cluster] for name, system in job.systems.items()}
    counts = {} if isinstance(partitions, int) else partitions
    for name, settings in (topics or {}).items():
        stream = checked.stream(name)
        brokers[stream.system].set(stream.stream, settings_of(name, settings))
    for name, count in counts.items():
        stream = checked.stream(name)
        brokers[stream.system].create(stream.stream, count)
    for stream, count in checked.partitions.items():
        brokers[stream.system].create(stream.stream, count)
    for name in topics or {}:
        stream = checked.stream(name)
        brokers[stream.system].create(stream.stream, general)
    numbers = [task.changelog_partition for task in job.tasks]
    for store in job.stores:
        if store.changelog is not None:
            brokers[store.changelog.system].create(store.changelog.stream, max(numbers) + 1)
    brokers[job.task.checkpoint_system].create(job.task.checkpoint_topic, 1)
    if topics is not None:
        for broker in by_address.values():
            broker.makes_topics = False
    return brokers


def as_sent(
    key: object, value: object, partition: object, headers: object, timestamp: object
) -> tuple[Any, ...]:
    """Return what a broker gets of an input's record: key, value, partition, headers, timestamp.

    Raises:
        TypeError, ValueError: no producer could send it.
    """
    require_bytes("key", key)
    require_bytes("value", value)
    return (
        key,
        value,
        None if partition is None else partition_number(partition),
        None if headers is None else checked_headers(headers),
        None if timestamp is None else whole_ms(timestamp),
    )
