"""All that user code imports: tasks, their context, stores and the collector.

A job names the second of these, and the first where Spark is to work before it, or alone:

* a pipeline, ``task.pipeline.class=module:function``: ``pipeline(frame: DataFrame) -> DataFrame``,
  run in local Spark over each micro-batch, or ``task.pipeline.sql``; where a row is not made of
  one row, it selects ``task`` (and ``offset``, unless ``task.pipeline.unordered=true``);
* a task class, ``task.class=module:Class``: a subclass of ``BatchTask``, handed Arrow tables, or of
  ``StreamTask``, handed one message at a time.

The columns of a micro-batch are those of ``BATCH_SCHEMA``; a pipeline may drop and add others as it
likes.

Where the inputs' ``samza.msg.serde`` has a schema, ``value`` is of its type: a struct, with the
fields that the schema names.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Self, TypeAlias, overload

import pyarrow as pa

from homeport.container.progress.transaction_plan import HeaderPairs as HeaderPairs  # noqa: PLC0414 - a name for users
from homeport.container.progress.transaction_plan import Headers as Headers  # noqa: PLC0414 - a name for users
from homeport.container.progress.transaction_plan import header_pairs as header_pairs  # noqa: PLC0414 - a name for users

if TYPE_CHECKING:
    # Type checkers alone know the defaults, so that ``KeyValueStore`` means a store of any types.
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
    K_co = TypeVar("K_co", covariant=True, default=Any)
    V_co = TypeVar("V_co", covariant=True, default=Any)
    D = TypeVar("D")
else:
    from typing import TypeVar

    K, V, D = TypeVar("K"), TypeVar("V"), TypeVar("D")
    K_co, V_co = TypeVar("K_co", covariant=True), TypeVar("V_co", covariant=True)

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

Partition = tuple[str, str, int]
"""System, stream and number of one partition."""
Column: TypeAlias = "pa.Array | pa.ChunkedArray"


class RecordTooLargeError(ValueError):
    """A value is larger than its store's limit, and the store has ``disallow.large.messages``."""


class ReadOnlyStoreError(TypeError):
    """A write to a store that an input fills."""


class KeyValueIterator(Protocol[K_co, V_co]):
    """Pairs of a store as they stood at the call, whatever is written or committed since.

    What holds them there is let go at the end, at ``close``, and at the end of a ``with``: close
    one that is not read to its end.
    """

    def __iter__(self) -> Iterator[tuple[K_co, V_co]]:
        """Return the pairs that are left."""

    def __next__(self) -> tuple[K_co, V_co]:
        """Return the next pair."""

    def close(self) -> None:
        """End the iteration: no pair is left."""

    def __enter__(self) -> Self:
        """Itself."""

    def __exit__(self, *_error: object) -> None:
        """Closed."""


class ReadableStore(Protocol[K, V]):
    """One task's part of one store, to be read. Keys and values are objects of the store's serdes.

    A type checker takes the types of both from an annotation, as in
    ``totals: KeyValueStore[str, float] = context.store("totals")``.

    An adjunct store, which an input fills, is no more than this: a write raises ReadOnlyStoreError.
    Within a micro-batch it stands still.

    The forms for Arrow are for many keys at once: no Python object is made per element by their
    serdes. Their types are those of the serdes: ``string`` string, ``bytes`` binary, ``integer``
    int32, ``long`` int64, ``double`` float64; other serdes have none, and raise TypeError.
    """

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V) -> V: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of ``key``, ``default`` where there is none."""

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of those of ``keys`` that have one."""

    def get_arrow(self, keys: Column) -> pa.Array:
        """Return the values of ``keys``, in their order, null where there is none."""

    def range(self, start: K, end: K) -> KeyValueIterator[K, V]:
        """Return pairs with start <= key < end: numbers of ``integer`` and ``long`` in their order.

        All other keys are in that of their bytes, which for ``string`` and ``bytes`` is their own;
        ``double`` has it from 0 on, and ``json`` goes by its text. ValueError where the range would
        be wrong for that.
        """

    def prefix(self, prefix: str | bytes) -> KeyValueIterator[K, V]:
        """Return pairs whose key's bytes begin with ``prefix``, in order; str: its UTF-8."""

    def all(self) -> KeyValueIterator[K, V]:
        """Return all pairs in the order of the key's bytes."""

    def all_arrow(self, rows: int = 65536) -> Iterator[pa.RecordBatch]:
        """Return all pairs in that order, in batches of so many, columns ``key`` and ``value``.

        As they stand at the call, too.
        """


class KeyValueStore(ReadableStore[K, V], Protocol[K, V]):
    """One task's part of one store.

    Reads see this transaction's own writes. A write is in Kafka and in the store when the
    transaction is committed, or in neither.

    With ``stores.<store>.disallow.large.messages`` a put of a value that is too large raises
    RecordTooLargeError and does nothing; with ``drop.large.messages`` it does nothing.
    """

    def put(self, key: K, value: V | None) -> None:
        """Put ``value`` under ``key``; None deletes it."""

    def put_all(self, pairs: Mapping[K, V | None]) -> None:
        """Put each value under its key; None deletes it."""

    def put_arrow(self, keys: Column, values: Column) -> None:
        """Put the value at each key's place, the last one where a key repeats; null deletes it."""

    def delete(self, key: K) -> None:
        """Delete the value of ``key``."""

    def delete_all(self, keys: Iterable[K]) -> None:
        """Delete the values of ``keys``."""


Partitioner = Callable[[bytes | None, int], int]
"""(key, number of partitions) to a partition from 0 on; asked for each record that it places."""


class MessageCollector(Protocol):
    """Where a task's output goes. Nothing leaves before the end of the transaction.

    With ``task.exactly.once=false`` it leaves when the task returns, and may be sent again.
    """

    def send(
        self,
        stream: str,
        value: Any,  # noqa: ANN401 - the type is the serde's
        key: Any = None,  # noqa: ANN401 - as above
        *,
        partition: int | Partitioner | None = None,
        headers: Mapping[str, bytes | None] | HeaderPairs | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Send one record to ``system.stream``, or to ``stream`` of the default system.

        ``stream`` may be a repartition's name: the tasks of the job read the record.

        Bytes are sent as they are, None as null, which deletes its key in a compacted topic; any
        other key and value is encoded by the stream's ``samza.key.serde`` and ``samza.msg.serde``.

        Without ``partition`` the default of Java clients (murmur2 of the key) places it; a function
        of the key's bytes and the number of partitions may do so. ``timestamp``: in ms since 1970;
        None: the time of sending. ``headers``: a mapping, or pairs, of which several may have one
        name; those of a message are passed on whole.
        """

    def send_arrow(self, stream: str, values: Column, keys: Column | None = None) -> None:
        """Send a record for each of ``values``, with the key at its place, as ``send`` would.

        No Python object is made per record. Binary elements are sent as they are, null as None.
        Other types are those of the stream's serdes, as in ``KeyValueStore``; ``json`` and others
        have none.
        """


@dataclass(frozen=True, slots=True)
class Timer:
    """One call that a task has asked for. ``at_ms``: its time, in ms since 1970.

    ``is_event_time``: whether that is a time of the input, else one of the clock.
    """

    name: str
    key: str
    at_ms: int
    is_event_time: bool = False


class Scheduler(Protocol):
    """A task's timers: each one ends in one call of its ``on_timer``, between micro-batches.

    A timer has a name and a key, and there is one of both at a time: scheduled again it has another
    time. The call is part of the open transaction, and so is what it schedules.

    With ``task.timers.store`` timers are kept in that store, and are there again before ``init``
    after any end of the container; those whose time has passed meanwhile come first. Without it
    they are in memory, and ``init`` schedules what the task needs.
    """

    @property
    def now_ms(self) -> int:
        """The time of the clock, in ms since 1970."""

    @property
    def watermark_ms(self) -> int | None:
        """How far event time has come; None before it is known, or without a lateness.

        The oldest of the newest timestamps of the task's partitions, less
        ``task.watermark.lateness.ms``, as of the micro-batch before. A partition without a record
        for ``task.watermark.idle.ms`` is left out.
        """

    def schedule(
        self, name: str, key: str = "", *, at_ms: int | None = None, after_ms: int | None = None
    ) -> None:
        """Have ``on_timer`` called once the clock is at ``at_ms``, or ``after_ms`` from now.

        Raises:
            TypeError: name or key is no str. Nothing is scheduled after an error.
            ValueError: not one of both is given, ``after_ms`` is below 1, or the name has a ``/``.
        """

    def schedule_event(self, name: str, key: str = "", *, at_ms: int) -> None:
        """Have ``on_timer`` called once the watermark is at ``at_ms``.

        Raises:
            ValueError: ``task.watermark.lateness.ms`` is not set, or the name has a ``/``.
        """

    def scheduled(self, name: str, key: str = "") -> Timer | None:
        """Return the timer of that name and key, None where there is none."""

    def cancel(self, name: str, key: str = "") -> None:
        """Cancel the timer of that name and key, if there is one."""


class TaskCoordinator(Protocol):
    """What a task may ask of its container."""

    def commit(self) -> None:
        """Ask for a commit of all tasks of the container.

        At the end of the micro-batch the transaction ends, stores are flushed and OFFSET files
        written.
        """

    def shutdown(self) -> None:
        """Vote for the end of the container; a vote stands.

        At the end of the micro-batch in which the last of its tasks has voted, all of them get
        ``end_of_stream``, a last transaction and commit follow, and the container has finished: it
        is not started again, and the job has succeeded when every container has. Until then tasks
        are handed messages as before, those that have voted too.
        """


class Counter(Protocol):
    """A number that grows, from 0 at the container's start."""

    def inc(self, amount: float = 1) -> None:
        """Add ``amount``; ValueError where it is below 0, or not finite."""


class Gauge(Protocol):
    """A number of one task."""

    def set(self, value: float) -> None:
        """Replace the number; ValueError where it is not finite."""

    def inc(self, amount: float = 1) -> None:
        """Add ``amount``, which may be below 0; ValueError where it is not finite."""


class Histogram(Protocol):
    """How often values were within each bound, and their sum."""

    def observe(self, value: float) -> None:
        """Count ``value``; ValueError where it is not finite."""


class Metrics(Protocol):
    """The metrics of a job's own; see docs/metrics.md.

    The same name and labels give the same series, in any task of the container; each task has its
    own gauges. Labels are text. Keep a series, or ask for it again: both are cheap.

    Raises:
        ValueError: (from every method) Prometheus does not take the name or a label, or the name
            has had another kind, other labels or other bounds.
    """

    def counter(self, name: str, /, **labels: str) -> Counter:
        """Return the counter ``job_<name>_total``."""

    def gauge(self, name: str, /, **labels: str) -> Gauge:
        """Return the task's gauge ``job_<name>``."""

    def histogram(self, name: str, bounds: Sequence[float] = ..., /, **labels: str) -> Histogram:
        """Return the histogram ``job_<name>``; ``bounds``: 0.005 to 10 by default, for seconds."""


class TaskContext(MessageCollector, TaskCoordinator, Protocol):
    """All that a task may know and use: its stores, timers, metrics, output and container.

    It is the same object for the task's whole life. ``init`` and ``close`` cannot use ``send``,
    ``commit`` and ``shutdown``: they raise HomeportError there.
    """

    @property
    def task_name(self) -> str:
        """Name of the task, such as ``Partition 3``."""

    @property
    def config(self) -> dict[str, str]:
        """The job's configuration."""

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """What the task reads: (system, stream, partition) of each, sorted."""

    @property
    def scheduler(self) -> Scheduler:
        """The task's timers."""

    @property
    def metrics(self) -> Metrics:
        """The job's own metrics."""

    def store(self, name: str) -> KeyValueStore[Any, Any]:
        """Return the task's part of the store ``name``; KeyError, with the known names."""

    def repartition(self, name: str) -> str:
        """Return the topic of ``task.repartition.<name>``: the ``stream`` of its records."""


class IncomingMessage(NamedTuple):
    """One record of an input, a named tuple.

    Without a pipeline ``key`` and ``value`` are objects of the stream's ``samza.key.serde`` and
    ``samza.msg.serde``, or bytes where none is configured; None is null in Kafka. After a pipeline
    ``value`` is the row, {column: value} without ``task``, and ``key`` its column ``key``, or None;
    the other fields are of the columns of their names. Where the pipeline dropped one, the text is
    empty, the number -1.

    ``timestamp`` is in ms since 1970. ``headers`` has the last value of each name;
    ``header_pairs(headers)`` has all.
    """

    system: str
    stream: str
    partition: int
    offset: int
    key: Any
    value: Any
    timestamp: int
    headers: Mapping[str, bytes]


class KeyValueExtractor(ABC):
    """Which entry of an adjunct store a record of its stream becomes.

    One instance per store and task; never called concurrently. Keys and values are objects of the
    store's serdes. A key that is None: the record is not stored. A value that is None: its key has
    no value any more.
    """

    @abstractmethod
    def get_key(self, message: IncomingMessage) -> Any | None:  # noqa: ANN401 - the type is the serde's
        """Return the key under which the record is stored."""

    @abstractmethod
    def get_value(self, message: IncomingMessage) -> Any | None:  # noqa: ANN401 - as above
        """Return the value under it."""

    def get_arrow(
        self,
        table: pa.Table,  # noqa: ARG002 - a user's extractor uses it
    ) -> tuple[Column, Column] | None:
        """The keys and values of all rows of ``table``, which has the columns of ``BATCH_SCHEMA``.

        For serdes with a type in Arrow, as in ``KeyValueStore``. None: ``get_key`` and
        ``get_value`` are called for each record.
        """
        return None


class KeyValueExtractorFactory(ABC):
    """Named by ``stores.<store>.adstore.key.value.extractor.factory``; made without arguments."""

    @abstractmethod
    def get_key_value_extractor(self, config: Mapping[str, str]) -> KeyValueExtractor:
        """Return an extractor for one store of one task; ``config``: the job's configuration."""


class AdjunctEntries(Protocol):
    """One adjunct store, as a manager of a job's own fills it."""

    def put(self, key: Any, value: Any) -> None:  # noqa: ANN401 - the type is the serde's
        """Put ``value`` under ``key`` for the record that is processed; None deletes it.

        Both are objects of the store's serdes. Tasks see it with all that its batch brings.
        """


class BaseStorageManager(Protocol):
    """The stores of one task, or those that the container's tasks share, for a manager."""

    def adjunct(self, store: str) -> AdjunctEntries | None:
        """Return that store; None: this task does not fill it, or it is of another kind."""

    def reset_partitions(self) -> Collection[Partition]:
        """Return the partitions whose stores were not found, or not valid, at the start."""


class OffsetManager(Protocol):
    """Where the container's tasks stood in their input at the start."""

    def last_processed(self, task_name: str, partition: Partition) -> int | None:
        """Return the offset before the first that the task is handed; None: there is none."""


class AdjunctDataStoreManager(ABC):
    """What each record of a stream that fills a store passes, instead of an extractor.

    One instance per task; never called concurrently.
    """

    @abstractmethod
    def process(self, message: IncomingMessage) -> bool:
        """Put the record's entries, none or several, into the store of its stream.

        True: it is stored, as a record of such a stream must be; else the container ends, as the
        store's position moves past it, and a task might never see it. The same record may come
        again after a crash.
        """


class AdjunctDataStoreManagerFactory(ABC):
    """Named by ``adstore.manager.factory``; made without arguments."""

    @abstractmethod
    def get_adjunct_data_store_manager(
        self,
        task_name: str,
        config: Mapping[str, str],
        ssps: Collection[Partition],
        container_storage_manager: BaseStorageManager,
        task_storage_manager: BaseStorageManager,
        should_write_to_container_stores: bool,  # noqa: FBT001 - the document's argument
        offset_manager: OffsetManager,
    ) -> AdjunctDataStoreManager:
        """A manager for one task, once stores and offsets are as the container's start finds them.

        ``ssps``: all partitions of the task. ``should_write_to_container_stores``: whether records
        of broadcast streams come to this task's manager; one task's in each container gets them.
        """


class StreamTask(ABC):
    """Handed one message at a time. One instance per task.

    Each of ``process``, ``window``, ``on_timer`` and ``end_of_stream`` takes the context last. In
    its place it may take a MessageCollector and a TaskCoordinator, as in Samza. The number of
    parameters without a default decides, once, when the class is loaded.

    Calls of one task never overlap, but where ``process`` is a coroutine or
    ``task.max.concurrency`` is above 1: then messages of different keys may be processed at once.

    An exception fails the container and nothing of the open transaction is kept, unless its class
    is among ``task.ignored.exceptions`` and the task's own code raised it: then it is counted and
    logged, and what the call had done until then stands. What comes out of a store, the collector
    or anything else of this project is never skipped, and a store that cannot be read or written
    fails the container even where the task has caught that. ``init`` and ``close`` have no such
    exception.
    """

    def init(self, context: TaskContext) -> Awaitable[None] | None:
        """Initialise the task, once, after the stores are restored and before the first message."""

    @abstractmethod
    def process(
        self,
        message: IncomingMessage,
        *arguments: Any,  # noqa: ANN401 - a context, or a collector and a coordinator
        **named: Any,  # noqa: ANN401 - none; so type checkers take both forms
    ) -> Awaitable[None] | None:
        """Process one message; those of one partition come in the order of their offsets.

        Write ``process(self, message, context)``.
        """

    def window(self, *arguments: Any, **named: Any) -> Awaitable[None] | None:  # noqa: ANN401 - as of process
        """Run every ``task.window.ms``, first after one such time, between micro-batches.

        Write ``window(self, context)``.
        """

    def on_timer(
        self,
        timer: Timer,
        *arguments: Any,  # noqa: ANN401, ARG002 - as of process
        **named: Any,  # noqa: ANN401, ARG002 - as of process
    ) -> Awaitable[None] | None:
        """React to ``timer``, whose time has come and which is no longer scheduled.

        Write ``on_timer(self, timer, context)``.
        """
        raise _undefined(self, timer)

    def end_of_stream(self, *arguments: Any, **named: Any) -> Awaitable[None] | None:  # noqa: ANN401 - as of process
        """Take the end of the input, once, when the container finishes; the task may still send.

        Every task has voted, or the job is drained. Kafka's streams have no end of their own.
        Write ``end_of_stream(self, context)``.
        """

    def close(self) -> Awaitable[None] | None:
        """Close the task, once, when the container stops in order."""


class BatchTask(ABC):
    """Handed one Arrow table per micro-batch. One instance per task; never called concurrently.

    A method may call its last parameter ``collector``: the context is one.
    """

    def init(self, context: TaskContext) -> None:
        """Initialise the task, once, after the stores are restored and before the first batch."""

    @abstractmethod
    def process_batch(self, table: pa.Table, context: TaskContext) -> None:
        """Process the rows of this task, ordered by stream, partition and offset.

        An exception fails the container; nothing of the open transaction is kept.
        """

    def on_timer(self, timer: Timer, context: TaskContext) -> None:  # noqa: ARG002 - as above
        """React to ``timer``, whose time has come and which is no longer scheduled."""
        raise _undefined(self, timer)

    def end_transaction(self, context: TaskContext) -> None:
        """Send the last of each transaction that has a batch or a timer for the task."""

    def end_of_stream(self, context: TaskContext) -> None:
        """Take the end of a drained job's input, once; the task may still send.

        ``end_transaction`` follows.
        """

    def close(self) -> None:
        """Close the task, once, when the container stops in order."""


def _undefined(task: object, timer: Timer) -> NotImplementedError:
    # The method is not abstract: only a task that schedules timers has to define it.
    return NotImplementedError(
        f"the timer {timer.name!r} is due, and {type(task).__name__} has no on_timer: define it"
    )
