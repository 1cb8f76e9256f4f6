"""InputConsumer: the job's input of this container, one Arrow table per micro-batch."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from confluent_kafka import Consumer, Message, TopicPartition

from homeport.config.settings.sections import SystemConfig
from homeport.container.api import BATCH_SCHEMA
from homeport.container.kafka.clients import input_properties, know_topics, unread
from homeport.job_coordinator.kafka.clients import consumer
from homeport.job_coordinator.kafka.transient_errors import is_transient
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)

_HEADERS = BATCH_SCHEMA.field("headers").type


@dataclass(frozen=True)
class MicroBatch:
    """Rows of ``BATCH_SCHEMA``, sorted by task, stream, partition and offset.

    ``first``, ``processed``: the first and the last offset of each of the task's partitions that
    has rows here.
    """

    table: pa.Table
    size_bytes: int
    first: Mapping[TaskName, Mapping[SystemStreamPartition, int]]
    processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]]


class InputConsumer:
    """Reads what its tasks read, from where each of them left off. Not thread-safe.

    Args:
        systems: every system that an input partition belongs to, by name.
        starts: {task: {partition: next offset}}. A partition of several tasks is read once, from
            the smallest offset; each task sees only what follows its own.
    """

    def __init__(
        self,
        systems: Mapping[str, SystemConfig],
        starts: Mapping[TaskName, Mapping[SystemStreamPartition, int]],
    ) -> None:
        self._systems = systems
        self._readers: dict[SystemStreamPartition, list[tuple[TaskName, int]]] = {}
        for task_name, offsets in sorted(starts.items()):
            for ssp, offset in offsets.items():
                self._readers.setdefault(ssp, []).append((task_name, offset))
        self._next = {ssp: min(o for _, o in tasks) for ssp, tasks in self._readers.items()}
        self._consumers: dict[str, Consumer] = {}
        for system in sorted({ssp.system for ssp in self._readers}):
            client = consumer(systems[system], input_properties(systems[system]))
            places = [
                TopicPartition(ssp.stream, ssp.partition, offset)
                for ssp, offset in self._next.items()
                if ssp.system == system
            ]
            know_topics(client, systems[system], sorted({place.topic for place in places}))
            client.assign(places)
            self._consumers[system] = client

    def poll(self, max_rows: int, timeout_s: float) -> MicroBatch | None:
        """What has arrived, at most ``max_rows`` per system; None after ``timeout_s`` of nothing.

        Never waits for a batch to fill.

        Raises:
            PartitionError: a partition cannot be read any more.
            UnavailableError: Kafka is away for longer than the library bears.
        """
        grouped: dict[SystemStreamPartition, list[Message]] = {}
        patience = timeout_s / max(1, len(self._consumers))
        for system, client in self._consumers.items():
            first = client.consume(1, 0 if grouped else patience)
            if first:
                self._group(system, first + client.consume(max_rows - 1, 0), grouped)
        return self._batch(grouped) if grouped else None

    def _group(
        self,
        system: str,
        messages: Sequence[Message],
        grouped: dict[SystemStreamPartition, list[Message]],
    ) -> None:
        # By a plain tuple: to hash a partition's own object costs more than all else here.
        by_place: dict[tuple[str | None, int | None], list[Message]] = {}
        for message in messages:
            if message.error() is not None:
                self._passed_over(system, message)
                continue
            place = (message.topic(), message.partition())
            group = by_place.get(place)
            if group is None:
                by_place[place] = [message]
            else:
                group.append(message)
        for (topic, partition), group in by_place.items():
            grouped[SystemStreamPartition(system, topic or "", partition or 0)] = group

    def lag(self) -> int:
        """Records that are known to be there and were not handed out yet."""
        total = 0
        for ssp, following in self._next.items():
            place = TopicPartition(ssp.stream, ssp.partition)
            _, end = self._consumers[ssp.system].get_watermark_offsets(place, cached=True)
            total += max(0, end - following)
        return total

    def is_caught_up(self) -> bool:
        """Whether, after a poll that brought nothing, nothing waits: every partition has answered.

        Offsets alone do not show it, as those of a transaction's end hold no record.
        """
        return all(
            self._consumers[ssp.system].get_watermark_offsets(
                TopicPartition(ssp.stream, ssp.partition), cached=True
            )[1]
            >= 0
            for ssp in self._next
        )

    def close(self) -> None:
        """Nothing is read any more."""
        for client in self._consumers.values():
            client.close()
        self._consumers.clear()

    def _passed_over(self, system: str, message: Message) -> None:
        error = message.error()
        if error is None or is_transient(error):
            return
        what = (
            f"reading the input {message.topic()} partition {message.partition()} "
            f"at offset {message.offset()}"
        )
        raise unread(self._systems[system], what, error)

    def _batch(self, grouped: Mapping[SystemStreamPartition, list[Message]]) -> MicroBatch | None:
        parts: dict[TaskName, list[tuple[SystemStreamPartition, list[Message]]]] = {}
        first: dict[TaskName, dict[SystemStreamPartition, int]] = {}
        processed: dict[TaskName, dict[SystemStreamPartition, int]] = {}
        size = 0
        for ssp, messages in sorted(grouped.items()):
            last = messages[-1].offset() or 0
            self._next[ssp] = last + 1
            for task_name, start in self._readers[ssp]:
                own = messages
                if (own[0].offset() or 0) < start:
                    own = [m for m in messages if (m.offset() or 0) >= start]
                if own:
                    parts.setdefault(task_name, []).append((ssp, own))
                    first.setdefault(task_name, {})[ssp] = own[0].offset() or 0
                    processed.setdefault(task_name, {})[ssp] = last
                    size += sum(map(len, own))
        tables = [_table(t, ssp, own) for t in sorted(parts) for ssp, own in parts[t]]
        if not tables:
            return None
        table = pa.concat_tables(tables).combine_chunks()
        return MicroBatch(table, size, first, processed)


def _table(
    task_name: TaskName, ssp: SystemStreamPartition, messages: Sequence[Message]
) -> pa.Table:
    count = len(messages)
    headers = [m.headers() for m in messages]
    columns = [
        pa.repeat(pa.scalar(task_name, pa.string()), count),
        pa.array([m.key() for m in messages], pa.binary()),
        pa.array([m.value() for m in messages], pa.binary()),
        pa.repeat(pa.scalar(ssp.system, pa.string()), count),
        pa.repeat(pa.scalar(ssp.stream, pa.string()), count),
        pa.repeat(pa.scalar(ssp.partition, pa.int32()), count),
        pa.array([m.offset() for m in messages], pa.int64()),
        pa.array([m.timestamp()[1] for m in messages], pa.int64()),
        pa.array(headers, _HEADERS) if any(headers) else pa.nulls(count, _HEADERS),
    ]
    return pa.Table.from_arrays(columns, schema=BATCH_SCHEMA)
