"""TaskInstance: the user's task object of one task, its context and its collector."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, NoReturn, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from homeport.config.config import Config
from homeport.config.declarations import all_keys as keys
from homeport.config.errors import HomeportError, in_one_line
from homeport.config.settings.input_section import repartition_name
from homeport.config.settings.sections import repartitions
from homeport.config.system_stream import is_topic_name
from homeport.container.api import (
    BatchTask,
    Column,
    HeaderPairs,
    KeyValueStore,
    Metrics,
    Partitioner,
    Scheduler,
    Timer,
)
from homeport.container.callables import TaskFailedError, unrun
from homeport.container.host.run_over import OVER
from homeport.container.processing.record_rules import (
    checked_headers,
    named,
    partition_number,
    require_size,
    time_ms,
)
from homeport.container.processing.timers import Partitions, Timers
from homeport.container.progress.topic_rules import CLIENT_OVERHEAD_BYTES
from homeport.container.progress.transaction_plan import Send, SendColumns, SendPairs, Sends
from homeport.container.reporting.own_metrics import OwnMetrics
from homeport.container.serde.arrow_serdes import arrow_form, is_binary, lengths, whole_binary
from homeport.container.serde.serdes import Serde, SerdesOf
from homeport.job_coordinator.model.ids import TaskName

_Found = TypeVar("_Found")
_SERDE_KEYS = (keys.STREAM_KEY_SERDE, keys.STREAM_MSG_SERDE)
_OWN_SERDE_KEYS = (keys.TASK_REPARTITION_KEY_SERDE, keys.TASK_REPARTITION_MSG_SERDE)


class _Place:
    """A topic that the tasks send to. ``names``: system and topic. ``pairs``: grow, or None."""

    __slots__ = ("names", "pairs", "system", "topic")

    def __init__(self, names: tuple[str, str]) -> None:
        self.names = names
        self.system, self.topic = names
        self.pairs: SendPairs | None = None


class Outputs:
    """Collects the records to send; implements ``homeport.container.api.MessageCollector``.

    ``sends``: the records that have not left yet. ``size_bytes``: the size of all records of the
    open transaction. ``systems``: all declared ones. ``usable``: those that outputs may go to, only
    those on the transaction's brokers if outputs are part of it. ``serdes_of``: None: all are
    bytes. ``count_of``: from (system, topic) to its number of partitions. ``limits`` {system: bytes
    of the largest record that its client sends}. ``named`` {name of a repartition: system, topic}.
    """

    def __init__(
        self,
        systems: Collection[str],
        usable: Collection[str],
        default_system: str | None,
        serdes_of: SerdesOf | None = None,
        count_of: Callable[[str, str], int] | None = None,
        limits: Mapping[str, int] | None = None,
        named: Mapping[str, tuple[str, str]] | None = None,
    ) -> None:
        self._limits = limits or {}
        self._small = min(self._limits.values(), default=math.inf) - CLIENT_OVERHEAD_BYTES
        self._counts = None if count_of is None else Counts(count_of)
        self._systems = frozenset(systems)
        self._usable = frozenset(usable)
        self._default = default_system
        self._serdes_of = serdes_of
        self._named = named or {}
        self._places: dict[str, _Place] = {}
        self._serdes: dict[str, tuple[Serde | None, Serde | None]] = {}
        self.sends = Sends()
        self.size_bytes = 0

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
        """Send one record with the transaction, or at once if outputs are no part of it.

        Raises:
            ValueError: the stream is on other brokers than the transaction, or has no known system;
                the record is too large, or its time or partition does not exist.
            TypeError: the serde of key or value cannot carry it, or it is not bytes and has none; a
                partition, a timestamp or a header has a type that Kafka does not take.
        """
        try:
            place = self._places.get(stream)
        except TypeError:  # a list or another object without a hash
            place = None
        if place is None:
            place = self._placed(stream)
        size = 0
        if key is not None:
            if not isinstance(key, bytes):
                key = self._encoded(stream, place.names, 0, (key, value))
            size = len(key)
        if value is not None:
            if not isinstance(value, bytes):
                value = self._encoded(stream, place.names, 1, (key, value))
            size += len(value)
        if headers is None and partition is None and timestamp is None and size <= self._small:
            pairs = place.pairs or self._opened(place)
            pairs.flat.extend((key, value))
        else:
            if callable(partition):
                partition = placed(partition, key, place.names, self._counts)
            try:
                send = self._checked(place.names, key, value, size, partition, headers, timestamp)
            except (TypeError, ValueError) as error:
                raise type(error)(f"{named(stream, key)}: {error}") from None
            place.pairs = None  # later ones come behind this record
            self.sends.parts.append(send)
        self.size_bytes += size

    def send_arrow(self, stream: str, values: Column, keys: Column | None = None) -> None:
        """Send a record of each of ``values``, with the key at its place; as ``send`` of each.

        Raises:
            ValueError: as ``send``, or there are not as many keys as values.
            TypeError: as ``send``, or the serde has no Arrow type.
        """
        place = self._placed(stream)
        if keys is not None and len(keys) != len(values):
            raise ValueError(
                f"send_arrow to {stream}: {len(values)} values, and {len(keys)} keys: give a key "
                "for each, null where there is none, or no keys"
            )
        given = keys, values
        whole = None if keys is None else self._column(stream, place.names, 0, given)
        records = SendColumns(
            place.topic, place.system, whole, self._column(stream, place.names, 1, given)
        )
        if not records.count:
            return
        sizes = lengths(records.values)
        if records.keys is not None:
            sizes = pc.add(sizes, lengths(records.keys))
        largest, limit = pc.max(sizes).as_py(), self._limits.get(place.system)
        if limit is not None and largest > self._small:
            worst = next(islice(records, pc.index(sizes, largest).as_py(), None))
            try:
                require_size(worst.key, worst.value, (), limit)
            except ValueError as error:
                raise ValueError(f"{named(stream, worst.key)}: {error}") from None
        place.pairs = None  # later ones come behind these records
        self.sends.parts.append(records)
        self.size_bytes += pc.sum(sizes).as_py()

    def _column(
        self, stream: str, place: tuple[str, str], which: int, given: tuple[Any, Any]
    ) -> pa.Array:
        """Return the bytes of one of both columns, as one array of large_binary."""
        column = given[which]
        if not isinstance(column, pa.Array | pa.ChunkedArray):
            raise TypeError(
                f"send_arrow to {stream} takes arrays of Arrow, not {type(column).__name__}: "
                "give pa.array(...), or send each"
            )
        if is_binary(column.type):
            return whole_binary(column)
        serde = (self._serdes.get(stream) or self._loaded(stream, place))[which]
        if serde is None:
            kinds = [c is None or is_binary(c.type) for c in given]
            raise self._without_serde(stream, place, str(column.type), kinds)
        form = arrow_form(serde.name)
        if form is None:
            raise TypeError(
                f"send_arrow to {stream}: the serde {serde.name!r} has no Arrow type: send each"
            )
        return whole_binary(form.encoded(column))

    def _opened(self, place: _Place) -> SendPairs:
        place.pairs = pairs = SendPairs(place.topic, place.system)
        self.sends.parts.append(pairs)
        return pairs

    def _checked(
        self,
        place: tuple[str, str],
        key: bytes | None,
        value: bytes | None,
        size: int,
        partition: object,
        headers: object,
        timestamp: object,
    ) -> Send:
        system, topic = place
        number = None if partition is None else partition_number(partition)
        if number is not None and self._counts is not None:
            self._counts.require(place, number)
        elif number is not None and number < 0:
            raise ValueError(f"it has no partition {number}: partitions begin at 0")
        time = None if timestamp is None else time_ms(timestamp)
        pairs = None if headers is None else checked_headers(headers)
        limit = self._limits.get(system)
        if limit is not None and (pairs or size > self._small):
            require_size(key, value, pairs or (), limit)
        return Send(topic, key, value, number, pairs, system, time)

    def take(self) -> Sends:
        """Return the records that have not left yet, for the caller to send, and keep none."""
        taken, self.sends = self.sends, Sends()
        for place in self._places.values():
            place.pairs = None
        return taken

    def clear(self) -> None:
        """Remove all records of the transaction."""
        self.take()
        self.size_bytes = 0

    def end(self) -> None:
        """Refuse every further call: the run that this is of has ended."""
        self._places = self.sends = OVER

    def _encoded(
        self, stream: str, place: tuple[str, str], which: int, pair: tuple[object, object]
    ) -> bytes:
        serde = (self._serdes.get(stream) or self._loaded(stream, place))[which]
        if serde is None:
            are_bytes = [part is None or isinstance(part, bytes) for part in pair]
            raise self._without_serde(stream, place, type(pair[which]).__name__, are_bytes)
        return serde.to_bytes(pair[which])

    def _loaded(self, stream: str, place: tuple[str, str]) -> tuple[Serde | None, Serde | None]:
        found = (None, None) if self._serdes_of is None else self._serdes_of(*place)
        self._serdes[stream] = found
        return found

    def _without_serde(
        self, stream: str, place: tuple[str, str], kind: str, are_bytes: Sequence[bool]
    ) -> TypeError:
        own = repartition_name(place[1])
        of_stream = _SERDE_KEYS if own is None else _OWN_SERDE_KEYS
        needed = [
            key.named(*(place if own is None else (own,)))
            for key, known, is_bytes in zip(of_stream, self._serdes[stream], are_bytes, strict=True)
            if known is None and not is_bytes
        ]
        return TypeError(
            f"a record for {stream} must have bytes or None as key and value, not {kind}: set "
            f"{' and '.join(needed)}, such as string or json"
        )

    def _placed(self, stream: str) -> _Place:
        names = self._names(stream)
        same = (place for place in self._places.values() if place.names == names)
        found = next(same, None) or _Place(names)
        self._places[stream] = found
        return found

    def _names(self, stream: object) -> tuple[str, str]:
        if not isinstance(stream, str):
            raise TypeError(
                f"send to {stream!r}: give the stream's name as a str, such as 'totals'"
            )
        if stream in self._named:
            return self._named[stream]
        # Topics may have dots in their names; only a declared system before the first one counts.
        system, dot, topic = stream.partition(".")
        if not (dot and system in self._systems):
            if self._default is None:
                raise ValueError(f"{stream!r} names no system, and job.default.system is not set")
            system, topic = self._default, stream
        if not is_topic_name(topic):
            raise ValueError(
                f"{stream!r}: {topic!r} cannot be the name of a Kafka topic: use letters, digits, "
                "'.', '_' and '-', at most 249 of them"
            )
        if system not in self._usable:
            raise ValueError(
                f"{stream!r}: system {system} has other brokers than the job's checkpoints, "
                "and one transaction cannot reach both; with task.exactly.once=false outputs are "
                "no part of it"
            )
        return system, topic


@dataclass
class Requests:
    """The requests of a container's tasks. ``votes``: tasks that voted for the end."""

    votes: set[str] = field(default_factory=set)
    commit: bool = False

    def has_all_of(self, tasks: Collection[str]) -> bool:
        """Return whether there are tasks, and all have voted for the end."""
        return bool(tasks) and self.votes.issuperset(tasks)


class Context:
    """Implements ``homeport.container.api.TaskContext``.

    ``timers``: the task's, for its container; ``scheduler``: the same, for the task. ``send`` and
    ``send_arrow``: those of the container's collector between ``open`` and ``close``; else they
    raise HomeportError.
    """

    def __init__(
        self,
        task_name: TaskName,
        config: Mapping[str, str],
        stores: Mapping[str, KeyValueStore],
        timers: Timers | None = None,
        partitions: Partitions = (),
        metrics: Metrics | None = None,
    ) -> None:
        self.task_name = task_name
        self.metrics = OwnMetrics().of_task(task_name) if metrics is None else metrics
        self.timers = timers or Timers()
        self.scheduler: Scheduler = self.timers
        self.partitions = partitions
        self._config = dict(config)
        self._stores = dict(stores)
        self._repartitions: dict[str, str] | None = None
        self._requests: Requests | None = None
        self.send: Callable[..., None] = _refuse_send
        self.send_arrow: Callable[..., None] = _refuse_send

    def open(self, outputs: Outputs, requests: Requests) -> None:
        """Let the task send and ask: it is initialised."""
        self.send, self.send_arrow = outputs.send, outputs.send_arrow
        self._requests = requests

    def close(self) -> None:
        """Let the task no longer send or ask."""
        self.send = self.send_arrow = _refuse_send
        self._requests = None

    def end(self) -> None:
        """Refuse every further call: the run that this is of has ended."""
        self.timers.end()
        self._stores = self._config = self._repartitions = OVER

    def commit(self) -> None:
        """Ask the container to commit at the end of the micro-batch."""
        self._asked("commit").commit = True

    def shutdown(self) -> None:
        """Vote for the end of the container."""
        self._asked("shutdown").votes.add(self.task_name)

    def _asked(self, what: str) -> Requests:
        if self._requests is None:
            raise _not_now(what)
        return self._requests

    @property
    def config(self) -> dict[str, str]:
        """Return a copy of the job's configuration."""
        return dict(self._config)

    def shared(self, guard: Callable[[Any], Any]) -> Context:
        """Return a context for threads, whose stores and scheduler ``guard`` has made safe."""
        stores = {name: guard(store) for name, store in self._stores.items()}
        found = Context(
            self.task_name, self._config, stores, self.timers, self.partitions, self.metrics
        )
        found.scheduler = guard(self.timers)
        return found

    def repartition(self, name: str) -> str:
        """Return the topic of ``task.repartition.<name>``.

        Raises:
            KeyError: there is no such repartition; the message names the existing ones.
        """
        found = self._repartitions
        if found is None:  # code may ask at each record
            found = {own.name: own.stream.stream for own in repartitions(Config(self._config))}
            self._repartitions = found
        if name not in found:
            known = ", ".join(found) or "none"
            raise KeyError(f"no repartition {name!r} is configured; known: {known}")
        return found[name]

    def store(self, name: str) -> KeyValueStore:
        """Return the task's part of the store ``name``.

        Raises:
            KeyError: there is no such store; the message names the existing ones.
        """
        try:
            return self._stores[name]
        except KeyError:
            known = ", ".join(sorted(self._stores)) or "none"
            raise KeyError(f"no store {name!r} is configured; known: {known}") from None


def _refuse_send(stream: str, *_: object, **__: object) -> NoReturn:
    raise _not_now(f"send to {stream!r}")


def _not_now(what: str) -> HomeportError:
    return HomeportError(f"{what}: a task's init and close cannot; do it in its other methods")


class TaskInstance:
    """Calls the user's object, and attributes each exception.

    Raises:
        TaskFailedError: (from every method) the object raised, or its code did not run.
    """

    def __init__(
        self, task_class: type[BatchTask], context: Context, outputs: Outputs, requests: Requests
    ) -> None:
        self._name = context.task_name
        self._context = context
        self._task = checked(self._name, "init", task_class)
        self._call("init", self._task.init, context)
        context.open(outputs, requests)

    def process_batch(self, rows: pa.Table) -> None:
        """Call the task with ``rows``."""
        self._call("process_batch", self._task.process_batch, rows, self._context)

    def on_timer(self, timer: Timer) -> None:
        """Call the task for ``timer``."""
        self._call(f"on_timer of {timer.name!r}", self._task.on_timer, timer, self._context)

    def end_transaction(self) -> None:
        """Give the task its last chance to send."""
        self._call("end_transaction", self._task.end_transaction, self._context)

    def close(self) -> None:
        """Close the task."""
        self._context.close()
        self._call("close", self._task.close)

    def window(self) -> None:
        """Do nothing: a BatchTask has no windows."""

    def end_of_stream(self) -> None:
        """End the input of the task."""
        self._call("end_of_stream", self._task.end_of_stream, self._context)

    def _call(self, step: str, hook: Callable[..., object], *arguments: object) -> None:
        require_run(self._name, step, checked(self._name, step, hook, *arguments))


def checked(task_name: str, step: str, hook: Callable[..., _Found], *arguments: object) -> _Found:
    """Return the result of the user's ``hook``; raise TaskFailedError if it raises."""
    try:
        return hook(*arguments)
    except BaseException as error:  # user code may raise anything, SystemExit too
        raise task_failed(task_name, step, error) from error


def require_run(task_name: str, step: str, found: object) -> None:
    """Raise TaskFailedError if the call that returned ``found`` has not run."""
    reason = unrun(found)
    if reason is not None:
        hidden = TypeError(f"{reason}: define it without a decorator that hides what it is")
        raise task_failed(task_name, step, hidden)


def task_failed(task_name: str, step: str, error: BaseException) -> TaskFailedError:
    """Return the failure of a task whose code raised ``error``, in one line."""
    return TaskFailedError(f"task {task_name!r} failed in {step}: {in_one_line(error)}")


class Counts:
    """The numbers of partitions of topics; ``count_of`` requests each once, and then it stays."""

    def __init__(self, count_of: Callable[[str, str], int]) -> None:
        self._count_of = count_of
        self._known: dict[tuple[str, str], int] = {}

    def of(self, place: tuple[str, str]) -> int:
        """Return the number of partitions of one topic; ``place``: system and topic."""
        found = self._known.get(place)
        if found is None:
            found = self._known[place] = self._count_of(*place)
        return found

    def require(self, place: tuple[str, str], partition: int) -> None:
        """Raise ValueError if the topic at ``place`` has no such partition.

        A partition beyond the known number may be new: the number is requested once more.
        """
        count = self.of(place)
        if partition >= count:
            del self._known[place]
            count = self.of(place)
        if not 0 <= partition < count:
            raise ValueError(
                f"it has no partition {partition}: the topic has partitions 0 to {count - 1}"
            )


def placed(
    partitioner: Partitioner, key: bytes | None, place: tuple[str, str], counts: Counts | None
) -> int:
    """Return the partition that ``partitioner`` gives ``key``; ValueError where there is none."""
    count = 1 if counts is None else counts.of(place)
    found: object = partitioner(key, count)
    try:
        number = partition_number(found)
    except TypeError:
        number = -1
    if 0 <= number < count:
        return number
    name = getattr(partitioner, "__qualname__", type(partitioner).__name__)
    raise ValueError(
        f"the partitioner {name} gave {found!r} for {'.'.join(place)}, which has {count} "
        f"partitions: return an int from 0 to {count - 1}"
    )
