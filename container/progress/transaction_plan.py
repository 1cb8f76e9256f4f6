"""The steps that commit one transaction, and that flush one store afterwards, in their order.

PURE. Source: safety I5, I7, I8, S1, S2. A transaction sends everything at its end.
A plan is the order of the steps and nothing else: the container may die between any two of them.
``COMMIT`` is Kafka's.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from typing import Any, NamedTuple

from homeport.config.system_stream import SystemStream
from homeport.container.progress import checkpoint
from homeport.job_coordinator.model.ids import TaskName
from homeport.job_coordinator.model.job_model import SystemStreamPartition

HeaderPairs = Sequence[tuple[str, bytes | None]]
"""Headers of one record in their order; a name may come more than once, and a value be null."""


class Headers(dict[str, Any]):
    """The headers of a record: of each name the last value; ``header_pairs`` has all of them."""

    _all: HeaderPairs | None = None

    @classmethod
    def of(cls, pairs: HeaderPairs) -> Headers:
        """Return ``pairs`` as headers."""
        found = cls(pairs)
        if len(found) != len(pairs):
            found._all = pairs
        return found

    def pairs(self) -> HeaderPairs:
        """Return all headers in their order; after a task has changed the dict, those in it."""
        if self._all is None or dict(self._all) != self:
            return list(self.items())
        return self._all


_MAPPING = (dict, Mapping)  # the cheapest to look for first


def header_pairs(headers: Mapping[str, bytes | None] | HeaderPairs) -> HeaderPairs:
    """Return all of ``headers``, in their order."""
    if isinstance(headers, Headers):
        return headers.pairs()
    return list(headers.items() if isinstance(headers, _MAPPING) else headers)


RESERVED_PREFIX = b"\x00homeport."
"""Beginning of the keys of a store that belong to this project; user keys may not begin so."""


class Action(StrEnum):
    """The action of one step. ``SEND_CHANGELOG`` and ``APPLY`` concern one store."""

    END_TASKS = "end-tasks"
    AWAIT_BROKER = "await-broker"
    SETTLE_OUTPUTS = "settle-outputs"
    RECORD_ENDING = "record-ending"
    BEGIN = "begin"
    SEND_OUTPUTS = "send-outputs"
    SEND_CHANGELOG = "send-changelog"
    SEND_CHECKPOINTS = "send-checkpoints"
    DELIVER = "deliver"
    COMMIT = "commit"
    RECORD_COMMITTED = "record-committed"
    APPLY = "apply"


@dataclass(frozen=True, slots=True, order=True)
class StoreId:
    """One store of one task."""

    store: str
    task_name: TaskName

    def __str__(self) -> str:
        return f"{self.store}/{self.task_name}"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of the plan; ``store``: the only store that it concerns."""

    action: Action
    store: StoreId | None = None

    def __str__(self) -> str:
        return str(self.action) if self.store is None else f"{self.action} {self.store}"


class Send(NamedTuple):
    """One record to be sent; ``partition`` None: the key's partitioner decides.

    ``system``: the topic's system; None: that of the checkpoints. ``timestamp_ms``: ms since 1970;
    None: the time of sending.
    """

    topic: str
    key: bytes | None
    value: bytes | None
    partition: int | None = None
    headers: list[tuple[str, bytes | None]] | None = None
    system: str | None = None
    timestamp_ms: int | None = None


class SendPairs:
    """Records for one topic, each with a key and a value at most; ``partition`` as of ``Send``.

    ``flat``: key and value of each in turn.
    """

    __slots__ = ("flat", "partition", "system", "topic")

    def __init__(self, topic: str, system: str | None, partition: int | None = None) -> None:
        self.topic = topic
        self.system = system
        self.partition = partition
        self.flat: list[bytes | None] = []

    @property
    def count(self) -> int:
        """Return the number of records."""
        return len(self.flat) // 2

    def __iter__(self) -> Iterator[Send]:
        for key, value in zip(self.flat[::2], self.flat[1::2], strict=True):
            yield Send(self.topic, key, value, self.partition, system=self.system)


@dataclass(frozen=True, slots=True)
class SendColumns:
    """As ``SendPairs``, from columns of Arrow's type large_binary; None: all are null.

    Arrow itself is not imported, since a restore worker has none.
    """

    topic: str
    system: str | None
    keys: Any
    values: Any
    partition: None = None

    @property
    def count(self) -> int:
        """Return the number of records."""
        return len(self.values)

    def __iter__(self) -> Iterator[Send]:
        keys = repeat(None) if self.keys is None else self.keys.to_pylist()
        for key, value in zip(keys, self.values.to_pylist(), strict=False):
            yield Send(self.topic, key, value, system=self.system)


Part = Send | SendPairs | SendColumns


def number_of(partition: int | None) -> int:
    """Return the partition as a client takes it: -1 for the partitioner's choice."""
    return -1 if partition is None else partition


class Sends:
    """Records to be sent; ``parts`` has those of one topic in their order."""

    def __init__(self, parts: Iterable[Part] = ()) -> None:
        self.parts = list(parts)

    def __bool__(self) -> bool:
        return bool(self.parts)

    def __iter__(self) -> Iterator[Send]:
        for part in self.parts:
            if isinstance(part, Send):
                yield part
            else:
                yield from part


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes by one transaction to one store of one task: {key: new value; None: deleted}."""

    store_id: StoreId
    changelog: SystemStream
    partition: int
    entries: Mapping[bytes, bytes | None]


@dataclass(frozen=True, slots=True)
class TransactionContent:
    """The content of one transaction; ``processed`` has **each** partition of a task."""

    outputs: Iterable[Send]
    changes: Sequence[Changes]
    processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]]


def transaction_plan(
    stores: Sequence[StoreId],
    logged: Sequence[StoreId],
    *,
    outputs_at_once: bool,
    checkpoints: bool,
) -> tuple[Step, ...]:
    """Return the steps that end a transaction, from the end of its tasks' work to the stores.

    ``logged``: those of ``stores`` with a changelog. ``outputs_at_once``: outputs are not part of
    the transaction; they are in Kafka before its checkpoints are sent (safety I8). ``checkpoints``:
    whether the job keeps them.
    """
    first = [Action.END_TASKS, Action.AWAIT_BROKER]
    outputs = [] if outputs_at_once else [Action.SEND_OUTPUTS]
    if outputs_at_once:
        first.append(Action.SETTLE_OUTPUTS)
    last = [Action.SEND_CHECKPOINTS] if checkpoints else []
    # The history has both: a container that dies between them has perhaps committed.
    last += [Action.DELIVER, Action.COMMIT, Action.RECORD_COMMITTED]
    return (
        *map(Step, [*first, Action.RECORD_ENDING, Action.BEGIN, *outputs]),
        *(Step(Action.SEND_CHANGELOG, store) for store in logged),
        *map(Step, last),
        *(Step(Action.APPLY, store) for store in stores),
    )


def checkpoint_sends(
    processed: Mapping[TaskName, Mapping[SystemStreamPartition, int]],
    grouper: str,
    topic: str,
    without_v2: Collection[TaskName] = (),
) -> Iterator[Send]:
    """Return one record per task, in the order of their names.

    ``without_v2``: tasks whose checkpoint of version 2 is deleted, so that Samza does not use it.
    """
    for task_name, offsets in sorted(processed.items()):
        if task_name in without_v2:
            old = checkpoint.CheckpointKey(grouper, task_name, checkpoint.CHECKPOINT_V2)
            yield Send(topic, checkpoint.encode_key(old), None, 0)
        key = checkpoint.encode_key(checkpoint.CheckpointKey(grouper, task_name))
        yield Send(topic, key, checkpoint.encode_value(offsets), 0)


class FlushAction(StrEnum):
    """The action of one step."""

    FLUSH = "flush"
    WRITE_OFFSET = "write-OFFSET"
    WRITE_OFFSET_V2 = "write-OFFSET-v2"
    WRITE_META = "write-STORE-META"


@dataclass(frozen=True, slots=True)
class FlushStep:
    """One step of the plan for ``store``; ``offset``: the one for an OFFSET file."""

    action: FlushAction
    store: StoreId
    offset: int | None = None

    def __str__(self) -> str:
        return f"{self.action} {self.store}"


@dataclass(frozen=True, slots=True)
class StoreProgress:
    """The progress of one store.

    ``position``: the changelog offset up to which it has all records; None: there is none.
    ``flushed``: the offset in OFFSET; None: there is no file. ``keeps_meta``: whether it has a
    STORE-META at all; ``is_meta_due``: whether that is written even if the store has not moved.
    """

    position: int | None
    flushed: int | None
    keeps_meta: bool
    is_meta_due: bool

    @property
    def has_moved(self) -> bool:
        """Return whether OFFSET lies behind."""
        return self.position is not None and self.position != self.flushed


def flush_plan(store: StoreId, progress: StoreProgress) -> tuple[FlushStep, ...]:
    """Return the steps that flush one store; none where nothing has changed.

    OFFSET gets the position before the flush (safety S1), and STORE-META the time at which that was
    the head (safety S2).
    """
    if progress.position is None:
        return ()
    meta = [FlushAction.WRITE_META] if progress.keeps_meta else []
    if not progress.has_moved:
        return tuple(FlushStep(action, store) for action in meta if progress.is_meta_due)
    return (
        FlushStep(FlushAction.FLUSH, store),
        FlushStep(FlushAction.WRITE_OFFSET, store, progress.position),
        FlushStep(FlushAction.WRITE_OFFSET_V2, store, progress.position),
        *(FlushStep(action, store) for action in meta),
    )
