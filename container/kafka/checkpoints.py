"""Checkpoints in Kafka: containers read them at their start, and a tool writes them."""

import logging
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from confluent_kafka import KafkaError, KafkaException, Message

from homeport.config.errors import StoreError, UnavailableError, WireError
from homeport.config.settings.sections import SystemConfig
from homeport.config.system_stream import SystemStream
from homeport.container.kafka.log_reader import LogReader
from homeport.container.progress import checkpoint
from homeport.container.progress.restore import OffsetRange
from homeport.job_coordinator.kafka.clients import error_of, producer, unavailable
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)
_TIMEOUT_S = 30.0
_TAIL = 5_000
"""So many offsets before the end have the last checkpoints of tasks at work."""
_DECODERS = {
    checkpoint.CHECKPOINT_V1: checkpoint.decode_value,
    checkpoint.CHECKPOINT_V2: checkpoint.decode_value_v2,
}


@dataclass(frozen=True)
class Checkpoint:
    """``offsets``: last processed. ``changes``: positions that an operator has set.

    ``changelogs``: the end of the state in each changelog, in a checkpoint of Samza's.
    ``written_ms``: when it was written. ``has_v2``: whether the topic also has one of version 2.
    """

    offsets: dict[SystemStreamPartition, int]
    changes: tuple[checkpoint.Change, ...] = ()
    changelogs: dict[SystemStreamPartition, int] = field(default_factory=dict)
    written_ms: int = 0
    has_v2: bool = False

    @property
    def is_samzas(self) -> bool:
        """Return whether Samza has written it, or may read another one of the same task."""
        return bool(self.changelogs) or self.has_v2


def read_whole_checkpoints(
    reader: LogReader,
    topic: str,
    grouper: str,
    tasks: Collection[TaskName],
    floors: Mapping[SystemStream, int],
) -> dict[TaskName, Checkpoint]:
    """Return the last checkpoint, of either version, of each of ``tasks`` that has one.

    Samza writes both versions at each commit. It reads version 1 by default, the only one that we
    write.

    Shapes: ``floors`` {input: offset in ``topic``}. Positions below belong to a former topic of
    that name, and are left out (safety S7).

    Raises:
        StoreError: a checkpoint of one of the tasks was written under another grouper.
        UnavailableError: the topic cannot be read.
    """
    ends = reader.ends([(topic, 0)])[topic, 0]
    return checkpoints_in(last_records(reader, topic, tasks, ends), topic, grouper, tasks, floors)


def last_records(
    reader: LogReader, topic: str, tasks: Collection[TaskName], ends: OffsetRange
) -> list[Message]:
    """Return the last record of each key of ``tasks``, and perhaps of others, in their order.

    The end of the topic is read first, and is enough where it has two checkpoints of each task:
    what Samza writes beside the last one lies behind the one before it.

    UnavailableError: the topic cannot be read.
    """
    start = max(ends.oldest, ends.head - _TAIL)
    last, counts = _last(reader, topic, start, ends.head)
    if start > ends.oldest:
        keys = map(_key, (key for key, count in counts.items() if count > 1))
        if not set(tasks) <= {key.task_name for key in keys if key is not None}:
            last = {**_last(reader, topic, ends.oldest, start)[0], **last}
    return sorted(last.values(), key=lambda record: record.offset() or 0)


def _last(
    reader: LogReader, topic: str, start: int, head: int
) -> tuple[dict[bytes | None, Message], Counter[bytes | None]]:
    # Each transaction adds a record: between two compactions, 100,000 records may have few keys.
    last: dict[bytes | None, Message] = {}
    counts = Counter[bytes | None]()
    for records in reader.read(topic, 0, start, head):
        last.update((record.key(), record) for record in records)
        counts.update([record.key() for record in records])
    return last, counts


def checkpoints_in(
    records: Iterable[Message],
    topic: str,
    grouper: str,
    tasks: Collection[TaskName],
    floors: Mapping[SystemStream, int],
) -> dict[TaskName, Checkpoint]:
    """Return the checkpoints in the ``last_records``; all else as of ``read_whole_checkpoints``."""
    newest: dict[TaskName, tuple[checkpoint.CheckpointKey, Message]] = {}
    has_v2: set[TaskName] = set()
    for record in records:
        key = _key(record.key())
        if key is None or key.task_name not in tasks or key.kind not in _DECODERS:
            continue
        if key.kind == checkpoint.CHECKPOINT_V2:
            if record.value() is None:
                continue
            has_v2.add(key.task_name)
        newest[key.task_name] = (key, record)
    found: dict[TaskName, Checkpoint] = {}
    for task_name, (key, record) in newest.items():
        value, at = record.value(), record.offset() or 0
        if key.grouper != grouper:
            raise StoreError(
                f"the checkpoint of {task_name!r} in {topic} was written under the grouper "
                f"{key.grouper}, this job uses {grouper}: set it back, or use another job.id"
            )
        if value is not None:
            content = _DECODERS[key.kind](value)
            offsets = {
                ssp: offset
                for ssp, offset in content.offsets.items()
                if at >= floors.get(ssp.system_stream, 0)
            }
            changes = tuple(change for change in _changes(record) if change.ssp in offsets)
            found[task_name] = Checkpoint(
                offsets, changes, content.changelogs, record.timestamp()[1], task_name in has_v2
            )
    return found


def _changes(record: Message) -> tuple[checkpoint.Change, ...]:
    data = dict(record.headers() or ()).get(checkpoint.CHANGES_HEADER)
    try:
        return checkpoint.decode_changes(data) if isinstance(data, bytes) else ()
    except WireError as error:
        _LOG.warning("what an operator has changed in a checkpoint is not known: %s", error)
        return ()


def _key(data: bytes | None) -> checkpoint.CheckpointKey | None:
    try:
        return checkpoint.decode_key(data or b"")
    except WireError as error:
        _LOG.warning("a record of the checkpoint topic is passed over: %s", error)
        return None


def write_checkpoint(
    system: SystemConfig,
    topic: str,
    key: checkpoint.CheckpointKey,
    offsets: Mapping[SystemStreamPartition, int],
    changes: Iterable[checkpoint.Change],
) -> None:
    """Write a checkpoint of the last processed ``offsets`` to all replicas.

    Its header has ``changes``, which the task's next container puts into its history.

    Call this while the job does not run. The record is outside of any transaction: a reader of the
    topic's head sees it at once. The caller has fenced every id that might still commit one.

    Raises:
        UnavailableError: Kafka did not confirm it; perhaps it has the record.
    """
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message: object) -> None:
        if error is not None:
            refused.append(error)

    limit = {"message.timeout.ms": int(_TIMEOUT_S * 1000)}
    client = producer(system, {"enable.idempotence": True, "acks": "all", **limit})
    what = f"writing a checkpoint to {topic}"
    value = checkpoint.encode_value(offsets)
    headers: list[tuple[str, str | bytes | None]] = [
        (checkpoint.CHANGES_HEADER, checkpoint.encode_changes(changes))
    ]
    try:
        client.produce(
            topic, value, checkpoint.encode_key(key), 0, on_delivery=delivered, headers=headers
        )
        unsent = client.flush(_TIMEOUT_S)
    except KafkaException as error:
        raise unavailable(system, what, error_of(error)) from None
    if refused:
        raise unavailable(system, what, refused[0])
    if unsent:
        raise UnavailableError(f"{what}: no answer within {_TIMEOUT_S:g} s; look with show")
