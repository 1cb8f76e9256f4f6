"""The writers of a topic: producer id and epoch of each record batch, from the broker itself.

Clients do not receive them, so the batches are read from the broker's log directory. The
transaction coordinator's own topic ``__transaction_state`` has the owner of each producer id.

Format: Kafka's record batch of magic 2, and the records of ``__transaction_state`` (their key is a
version and the transactional id; their value begins with a version and the producer id).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from homeport.job_coordinator.model.incarnation import Incarnation

STATE_TOPIC = "__transaction_state"
_HEADER = struct.Struct(">qiibIhiqqqhii")
_MAGIC = 2
_LENGTH_FROM = 12
_CONTROL = 0x20
_POLL_S = 30.0


@dataclass(frozen=True, slots=True)
class Batch:
    """One record batch. ``first`` and ``last``: its offsets; ``is_marker``: a commit or an abort.

    A marker is written by the broker, for the producer named.
    """

    first: int
    last: int
    timestamp_ms: int
    producer_id: int
    producer_epoch: int
    is_marker: bool


def batches_of(data: bytes) -> Iterator[Batch]:
    """The batches of one segment, in order; one that is being written is left out."""
    at = 0
    while at + _HEADER.size <= len(data):
        found = _HEADER.unpack_from(data, at)
        first, length, _, magic, _, attributes, delta, _, timestamp, producer, epoch, _, _ = found
        end = at + _LENGTH_FROM + length
        if length == 0 or end > len(data):
            return
        if magic != _MAGIC:
            raise ValueError(f"a batch of magic {magic} at byte {at}")
        is_marker = bool(attributes & _CONTROL)
        yield Batch(first, first + delta, timestamp, producer, epoch, is_marker)
        at = end


def batches_in(log_directory: Path, topic: str, partition: int) -> list[Batch]:
    """All batches of a partition that the broker with that log directory has."""
    segments = sorted((log_directory / f"{topic}-{partition}").glob("*.log"))
    if not segments:
        raise FileNotFoundError(f"no segment of {topic} partition {partition} in {log_directory}")
    return [batch for segment in segments for batch in batches_of(segment.read_bytes())]


def transactional_ids(servers: str) -> dict[int, str]:
    """{producer id: transactional id}, as the transaction coordinators have it."""
    found: dict[int, str] = {}
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "nobody",
            "isolation.level": "read_uncommitted",
            "enable.auto.commit": False,
        }
    )
    try:
        ends = _ends(consumer)
        consumer.assign([TopicPartition(STATE_TOPIC, p, 0) for p in ends])
        while ends:
            record = consumer.poll(_POLL_S)
            assert record is not None, f"{STATE_TOPIC} cannot be read to its end"
            assert record.error() is None, record.error()
            if (value := record.value()) is not None:
                found[producer_id_of(value)] = transactional_id_of(record.key() or b"")
            partition = record.partition() or 0
            if (record.offset() or 0) + 1 >= ends.get(partition, 0):
                ends.pop(partition, None)
    finally:
        consumer.close()
    return found


def _ends(consumer: Consumer) -> dict[int, int]:
    """{partition: its end as it is now}, of those of the coordinators' that hold anything.

    A reader gets no end-of-partition event while a job writes into the partition.
    """
    partitions = consumer.list_topics(STATE_TOPIC, _POLL_S).topics[STATE_TOPIC].partitions
    ends = {}
    for partition in partitions:
        marks = consumer.get_watermark_offsets(TopicPartition(STATE_TOPIC, partition), _POLL_S)
        assert marks is not None, f"{STATE_TOPIC} partition {partition} has no end"
        low, high = marks
        if high > low:
            ends[partition] = high
    return ends


def transactional_id_of(key: bytes) -> str:
    """The transactional id in the key of a record of ``__transaction_state``."""
    _version, length = struct.unpack_from(">hh", key)
    return key[4 : 4 + length].decode()


def producer_id_of(value: bytes) -> int:
    """The producer id in the value of a record of ``__transaction_state``."""
    producer_id: int
    _version, producer_id = struct.unpack_from(">hq", value)
    return producer_id


def trespasses(batches: Iterable[Batch], writers: Mapping[int, Incarnation]) -> list[str]:
    """What one partition has that no zombie must have written: nothing where all is well.

    Once an incarnation has its first batch there, no batch of an earlier one of its processor may
    come, not even a marker. Once a producer was fenced, which raises its epoch, none of its lower
    epoch may come. And each batch is one of an incarnation's.
    """
    newest: dict[str, Incarnation] = {}
    epochs: dict[int, int] = {}
    faults = []
    for batch in batches:
        highest = epochs.setdefault(batch.producer_id, batch.producer_epoch)
        if batch.producer_epoch < highest:
            faults.append(
                f"offset {batch.first}: producer {batch.producer_id} wrote in epoch "
                f"{batch.producer_epoch}, after epoch {highest}"
            )
        epochs[batch.producer_id] = max(highest, batch.producer_epoch)
        writer = writers.get(batch.producer_id)
        if writer is None:
            faults.append(f"offset {batch.first}: producer {batch.producer_id} is no incarnation's")
            continue
        other = newest.get(writer.processor_id)
        if other is not None and writer.epoch < other.epoch:
            faults.append(f"offset {batch.first}: {writer} wrote after {other}")
        else:
            newest[writer.processor_id] = writer
    return faults
