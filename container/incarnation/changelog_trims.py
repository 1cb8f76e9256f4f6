"""The records that take a Samza job's changelog back to its end in the last checkpoint.

Samza writes to a changelog as it processes, and its checkpoint later. A job that ends in between
leaves records whose input is read again: Samza's next start writes the older values over them. So
does the first start here, in the transaction of the task's first own checkpoint, which names no end
(safety S8). If the values need several transactions, the last one has the checkpoint: after a
container that dies before it, the next start finds the same end and the same values.
"""

import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from homeport.config.errors import StoreError
from homeport.container.kafka.checkpoints import Checkpoint
from homeport.container.progress.restore import (
    ChangelogTopic,
    OffsetRange,
    Trim,
    may_be_compacted,
    trim_fault,
    trim_of,
)
from homeport.container.progress.transaction_plan import Changes
from homeport.container.storage.changelog_reader import ChangelogReader
from homeport.container.storage.task_store import TaskStore
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

_LOG = logging.getLogger(__name__)

_RECORDS = 50_000
_BYTES = 16 << 20
"""Limits of one transaction: it takes a fraction of a second, and Kafka allows some."""


@dataclass(frozen=True, slots=True)
class StoreTrim:
    """The trim of one store of one task, and the records that carry it out."""

    changes: Changes
    trim: Trim


def read_trims(
    stores: Sequence[TaskStore],
    reader: ChangelogReader,
    checkpoints: Mapping[TaskName, Checkpoint],
    now_ms: int,
) -> tuple[StoreTrim, ...]:
    """Return the trim of each restored store whose task's checkpoint names an end of its changelog.

    Raise StoreError where a changelog cannot be taken back to there.
    """
    ends = list(_ends(stores, checkpoints))
    if not ends:
        return ()
    places = [(s.changelog, s.task.changelog_partition) for s, _ in ends]
    topics = reader.topics([changelog for changelog, _ in places])
    found = []
    for (store, offset), changelog in zip(ends, reader.ranges(places), strict=True):
        topic = topics[store.changelog]
        held = OffsetRange(changelog.oldest, 0 if store.position is None else store.position + 1)
        age_ms = now_ms - checkpoints[store.task.task_name].written_ms
        trim = _read_trim(store, offset, held, topic, reader, age_ms)
        place = store.id, store.changelog, store.task.changelog_partition
        found.append(StoreTrim(Changes(*place, trim.entries), trim))
    return tuple(found)


def _ends(
    stores: Sequence[TaskStore], checkpoints: Mapping[TaskName, Checkpoint]
) -> Iterator[tuple[TaskStore, int]]:
    for store in stores:
        task = store.task
        known = checkpoints.get(task.task_name)
        if known is None or not known.is_samzas:
            continue
        ssp = SystemStreamPartition(
            store.changelog.system, store.changelog.stream, task.changelog_partition
        )
        offset = known.changelogs.get(ssp)
        if offset is not None:
            yield store, offset
        elif store.position is not None:
            _LOG.warning(
                "store %s: the checkpoint of the job before does not say where %s ends; the state "
                "is all that it holds",
                store.name,
                ssp,
            )


def _read_trim(
    store: TaskStore,
    offset: int,
    held: OffsetRange,
    topic: ChangelogTopic,
    reader: ChangelogReader,
    age_ms: int,
) -> Trim:
    place = f"{store.changelog} partition {store.task.changelog_partition}"
    fault = trim_fault(offset, held, topic)
    if fault is not None:
        raise StoreError(
            f"store {store.name}: the state of the last checkpoint ends at offset {offset} of "
            f"{place}, but {fault}; let the Samza job run until its next commit, or begin from "
            "nothing by run-job --reset-state"
        )
    partition = store.task.changelog_partition
    behind: dict[bytes, bytes | None] = {}
    for chunk in reader.read(store.changelog, partition, offset + 1, held.head):
        behind.update(chunk.entries)
    before: dict[bytes, bytes | None] = {}
    if behind:
        for chunk in reader.read(store.changelog, partition, held.oldest, offset + 1):
            before.update({k: v for k, v in chunk.entries.items() if k in behind})
    trim = trim_of(offset, behind, before, is_compacted=may_be_compacted(topic, age_ms))
    if trim.unsure:
        _LOG.warning(
            "store %s: of %d keys that changed behind offset %d of %s no older value is there; "
            "the checkpoint is %.0f s old and min.compaction.lag.ms is %d, so that Kafka may have "
            "removed one; such a key begins from nothing",
            store.name,
            trim.unsure,
            offset,
            place,
            age_ms / 1000,
            topic.compaction_lag_ms,
        )
    return trim


def portions(
    changes: Iterable[Changes], records: int = _RECORDS, size: int = _BYTES
) -> list[list[Changes]]:
    """Return ``changes`` by transaction: one at least, each within the limits.

    One record may exceed ``size`` alone.
    """
    found: list[list[Changes]] = [[]]
    left, room = records, size
    for item in changes:
        part: dict[bytes, bytes | None] = {}
        for key, value in item.entries.items():
            needed = len(key) + len(value or b"")
            if left < records and (left == 0 or needed > room):
                if part:
                    found[-1].append(replace(item, entries=part))
                found.append([])
                part, left, room = {}, records, size
            part[key] = value
            left, room = left - 1, room - needed
        if part:
            found[-1].append(replace(item, entries=part))
    return found
