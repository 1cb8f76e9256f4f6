"""All that user code imports: tasks, their context, stores and the collector.

A job names the second of these, and the first where Spark is to work before it:

* a pipeline, ``task.pipeline.class=module:function``: ``pipeline(frame: DataFrame) -> DataFrame``,
  run in local Spark over each micro-batch; it keeps the column ``task`` (and ``offset``, unless
  ``task.pipeline.unordered=true``);
* a task class, ``task.class=module:Class``: a subclass of ``BatchTask``, handed Arrow tables, or of
  ``StreamTask``, handed one message at a time.

The columns of a micro-batch are those of ``BATCH_SCHEMA``; a pipeline may drop and add others as it
likes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self

import pyarrow as pa

BATCH_SCHEMA = pa.schema(
    [
        pa.field("task", pa.string(), nullable=False),
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("system", pa.string(), nullable=False),
        pa.field("stream", pa.string(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("offset", pa.int64(), nullable=False),
        pa.field("timestamp", pa.int64(), nullable=False),
        pa.field("headers", pa.map_(pa.string(), pa.binary())),
    ]
)
"""One micro-batch as it enters the pipeline, or the task where there is no pipeline.

``timestamp`` is in ms since 1970.
"""


class RecordTooLargeError(ValueError):
    """A value is larger than its store's limit, and the store has ``disallow.large.messages``."""


class KeyValueIterator(Protocol):
    """Pairs of a store as they stood at the call, whatever is written or committed since.

    What holds them there is let go at the end, at ``close``, and at the end of a ``with``: close
    one that is not read to its end.
    """

    def __iter__(self) -> Iterator[tuple[Any, Any]]:
        """The pairs that are left."""

    def __next__(self) -> tuple[Any, Any]:
        """The next pair."""

    def close(self) -> None:
        """No pair is left."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(self, *_error: object) -> None:
        """Closed."""


class KeyValueStore(Protocol):
    """One task's part of one store. Keys and values are objects of the store's serdes.

    Reads see this transaction's own writes. A write is in Kafka and in the store when the
    transaction is committed, or in neither.

    The forms for Arrow are for many keys at once: no Python object is made per element by their
    serdes. Their types are those of the serdes: ``string`` string, ``bytes`` binary, ``integer``
    int32, ``long`` int64, ``double`` float64; other serdes have none, and raise TypeError.

    With ``stores.<store>.disallow.large.messages`` a put of a value that is too large raises
    RecordTooLargeError and does nothing; with ``drop.large.messages`` it does nothing.
    """

    def get(self, key: Any) -> Any | None:  # noqa: ANN401 - the type is the serde's
        """The value of ``key``, None where there is none."""

    def get_all(self, keys: Iterable[Any]) -> dict[Any, Any]:
        """The values of those of ``keys`` that have one."""

    def get_arrow(self, keys: pa.Array | pa.ChunkedArray) -> pa.Array:
        """The values of ``keys``, in their order, null where there is none."""

    def put(self, key: Any, value: Any) -> None:  # noqa: ANN401 - a user's value
        """``key`` has ``value``; None deletes it."""

    def put_all(self, pairs: Mapping[Any, Any]) -> None:
        """Each key has its value; None deletes it."""

    def put_arrow(
        self, keys: pa.Array | pa.ChunkedArray, values: pa.Array | pa.ChunkedArray
    ) -> None:
        """Each key has the value at its place, the last one of a key's; null deletes it."""

    def delete(self, key: Any) -> None:  # noqa: ANN401 - a user's value
        """``key`` has no value."""

    def delete_all(self, keys: Iterable[Any]) -> None:
        """None of ``keys`` has a value."""

    def range(self, start: Any, end: Any) -> KeyValueIterator:  # noqa: ANN401 - a user's value
        """Pairs with start <= key < end, by the key's bytes."""

    def prefix(self, prefix: str | bytes) -> KeyValueIterator:
        """Pairs whose key's bytes begin with ``prefix``, in their order; str stands for UTF-8."""

    def all(self) -> KeyValueIterator:
        """All pairs in the order of the key's bytes."""

    def all_arrow(self, rows: int = 65536) -> Iterator[pa.RecordBatch]:
        """All pairs in that order, in batches of so many, columns ``key`` and ``value``.

        As they stand at the call, too.
        """


class MessageCollector(Protocol):
    """Where a task's output goes. Nothing leaves before the end of the transaction.

    With ``task.exactly.once=false`` it leaves when the task returns, and may be sent again.
    """

    def send(
        self,
        stream: str,
        value: bytes | None,
        key: bytes | None = None,
        *,
        partition: int | None = None,
        headers: dict[str, bytes] | None = None,
    ) -> None:
        """Sends one record to ``system.stream``, or to ``stream`` of the default system.

        Without ``partition`` the default of Java clients (murmur2 of the key) places it.
        """


class TaskContext(Protocol):
    """What a task may know of itself."""

    @property
    def task_name(self) -> str:
        """Name of the task, such as ``Partition 3``."""

    @property
    def config(self) -> dict[str, str]:
        """The job's configuration."""

    def store(self, name: str) -> KeyValueStore:
        """The task's part of the store ``name``; KeyError, naming the known ones, without it."""


@dataclass(frozen=True, slots=True)
class IncomingMessage:
    """One record of an input.

    Without a pipeline ``key`` and ``value`` are objects of the stream's ``samza.key.serde`` and
    ``samza.msg.serde``, or bytes where none is configured; None is null in Kafka. After a pipeline
    ``value`` is the row, {column: value} without ``task``, and ``key`` its column ``key``, or None;
    the other fields are of the columns of their names. Where the pipeline dropped one, the text is
    empty, the number -1.

    ``timestamp`` is in ms since 1970.
    """

    system: str
    stream: str
    partition: int
    offset: int
    key: Any
    value: Any
    timestamp: int
    headers: Mapping[str, bytes]


class TaskCoordinator(Protocol):
    """What a StreamTask may ask of its container."""

    def commit(self) -> None:
        """Asks for a commit of all tasks of the container.

        At the end of the micro-batch the transaction ends, stores are flushed and OFFSET files
        written.
        """

    def shutdown(self) -> None:
        """Votes for the end of the container; a vote stands.

        At the end of the micro-batch in which the last of its tasks has voted, all of them get
        ``end_of_stream``, a last transaction and commit follow, and the container has finished: it
        is not started again, and the job has succeeded when every container has. Until then tasks
        are handed messages as before, those that have voted too.
        """


class StreamTask(ABC):
    """Handed one message at a time. One instance per task; never called concurrently.

    An exception fails the container and nothing of the open transaction is kept, unless its class
    is among ``task.ignored.exceptions`` and the task's own code raised it: then it is counted and
    logged, and what the call had done until then stands. What comes out of a store, the collector
    or anything else of this project is never skipped, and a store that cannot be read or written
    fails the container even where the task has caught that. ``init`` and ``close`` have no such
    exception.
    """

    def init(self, context: TaskContext) -> None:
        """Called once, after the stores are restored and before the first message."""

    @abstractmethod
    def process(
        self, message: IncomingMessage, collector: MessageCollector, coordinator: TaskCoordinator
    ) -> None:
        """Processes one message; those of one partition come in the order of their offsets."""

    def window(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called every ``task.window.ms``, first after one such time, between micro-batches."""

    def end_of_stream(self, collector: MessageCollector, coordinator: TaskCoordinator) -> None:
        """Called once when the container finishes, every task having voted: it may still send.

        Kafka's streams have no end of their own.
        """

    def close(self) -> None:
        """Called once when the container stops in order."""


class BatchTask(ABC):
    """Handed one Arrow table per micro-batch. One instance per task; never called concurrently."""

    def init(self, context: TaskContext) -> None:
        """Called once, after the stores are restored and before the first batch."""

    @abstractmethod
    def process_batch(self, table: pa.Table, collector: MessageCollector) -> None:
        """Processes the rows of this task, ordered by stream, partition and offset.

        An exception fails the container; nothing of the open transaction is kept.
        """

    def end_transaction(self, collector: MessageCollector) -> None:
        """Called at the end of each transaction with a batch for it: the last chance to send."""

    def close(self) -> None:
        """Called once when the container stops in order."""
