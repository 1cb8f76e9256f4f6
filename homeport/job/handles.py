"""What a job's functions use: inputs, outputs, stores and timers of the task that is called.

While the job calls one of its functions, a handle stands for the part of the task that is called:
each thread and each coroutine has its own call. For a call in a thread the job binds the methods of
the task's part to the handle, in that thread: the functions call them without a way round.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import pyarrow as pa

from homeport.config.errors import HomeportError
from homeport.config.system_stream import SystemStream
from homeport.container.api import (
    HeaderPairs,
    KeyValueIterator,
    KeyValueStore,
    MessageCollector,
    Partitioner,
    TaskContext,
)
from homeport.job.schemas import Of

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class OutsideOfCallError(HomeportError):
    """A handle is used where the job calls none of its functions."""


@dataclass(slots=True)
class Call:
    """One call of a function of the job.

    ``windows``: {window: those of the task, and their lock}.
    """

    context: TaskContext
    windows: dict[str, tuple[Any, threading.RLock]] = field(default_factory=dict)


@dataclass(slots=True)
class CoroutineCall(Call):
    """One call of a coroutine. ``thread``: where it runs; None: it has returned.

    Tasks and threads that it begins inherit it, and may outlive it.
    """

    thread: int | None = field(default_factory=threading.get_ident)


class Calls(threading.local):
    """The calls of one job, of functions and of coroutines.

    ``call``: the one that this thread makes, None where it makes none. A thread that makes none
    may run the job's coroutines, whose calls a ContextVar keeps apart; that costs ten times as
    much, so functions do without. ``within``: how many calls of the same task are within it.
    ``handles``: what a call binds.
    """

    call: Call | None = None
    within = 0

    def __init__(
        self, job: str, of_coroutines: ContextVar[CoroutineCall | None], handles: list[Handle]
    ) -> None:
        self.job = job
        self.of_coroutines = of_coroutines
        self.handles = handles

    def current(self, what: str) -> Call:
        """Return the call that the code runs in; ``what`` is used in it.

        Raises:
            OutsideOfCallError: there is none.
        """
        if self.call is not None:
            return self.call
        call = self.of_coroutines.get()
        if call is None or call.thread != threading.get_ident():
            raise OutsideOfCallError(
                f"{what} of the job {self.job!r} is used outside of a call: use it in a function "
                "of that job, in the thread or coroutine in which the job calls it"
            )
        return call


@dataclass(frozen=True, slots=True)
class Input(Generic[K, V]):
    """One stream that the job reads."""

    stream: SystemStream
    key: Of[K]
    value: Of[V]

    def __str__(self) -> str:
        return str(self.stream)


if TYPE_CHECKING:
    _EachThread = object  # type checkers take any name for one of a ``threading.local``
else:
    _EachThread = threading.local


class Handle(_EachThread):
    """What a call binds; each thread has its own attributes."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        if self not in calls.handles:  # a further thread comes here too
            calls.handles.append(self)

    def methods(self, context: TaskContext) -> Mapping[str, Callable[..., object]]:
        """Return the methods that stand in the place of the handle's own in a call of the task."""
        raise NotImplementedError  # each kind has its own; mypy knows no ABC of a threading.local


class Output(Handle, Generic[K, V]):
    """One stream that the job writes.

    Args:
        stream: where to.
        key: the type of the keys.
        value: the type of the values.
        calls: the calls of the job.
    """

    def __init__(self, stream: SystemStream, key: Of[K], value: Of[V], calls: Calls) -> None:
        super().__init__(calls)
        self.stream, self.key, self.value = stream, key, value
        self.name = str(stream)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"Output({self.name!r}, key={_shown(self.key)}, value={_shown(self.value)})"

    def methods(self, context: TaskContext) -> Mapping[str, Callable[..., object]]:
        """Return ``send`` of the task."""
        return {"send": _send_to(self.name, context)}

    def send(
        self,
        key: K | None,
        value: V | None,
        *,
        partition: int | Partitioner | None = None,
        headers: Mapping[str, bytes | None] | HeaderPairs | None = None,
        timestamp: int | None = None,
    ) -> None:
        """Send one record; it leaves with the transaction. See ``MessageCollector.send``."""
        send = _send_to(self.name, self.calls.current(f"the output {self.name}").context)
        send(key, value, partition=partition, headers=headers, timestamp=timestamp)


def _send_to(name: str, collector: MessageCollector) -> Callable[..., None]:
    send_value = collector.send

    def send(
        key: object,
        value: object,
        *,
        partition: int | Partitioner | None = None,
        headers: Mapping[str, bytes | None] | HeaderPairs | None = None,
        timestamp: int | None = None,
    ) -> None:
        if partition is None and headers is None and timestamp is None:
            send_value(name, value, key)
        else:
            send_value(name, value, key, partition=partition, headers=headers, timestamp=timestamp)

    return send


def _shown(of_type: object) -> str:
    return getattr(of_type, "__name__", repr(of_type))


_READ = ("get", "get_all", "range", "prefix", "all", "get_arrow")
_WRITTEN = ("put", "delete", "put_all", "delete_all", "put_arrow")


class Reference(Handle, Generic[K, V]):
    """One store that an input fills; a task has its own part, or the whole that its container has.

    Args:
        name: as it is declared.
        key: the type of the keys.
        value: the type of the values.
        calls: the calls of the job.
    """

    _bound: tuple[str, ...] = _READ

    def __init__(self, name: str, key: Of[K], value: Of[V], calls: Calls) -> None:
        super().__init__(calls)
        self.name, self.key, self.value = name, key, value

    def __repr__(self) -> str:
        shown = f"{self.name!r}, key={_shown(self.key)}, value={_shown(self.value)}"
        return f"{type(self).__name__}({shown})"

    def methods(self, context: TaskContext) -> Mapping[str, Callable[..., object]]:
        """Return the methods of the task's part."""
        part = context.store(self.name)
        return {name: getattr(part, name) for name in self._bound}

    def _part(self) -> KeyValueStore[K, V]:
        """Return the part of the task that is called."""
        return self.calls.current(f"the store {self.name}").context.store(self.name)

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: V) -> V: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: Any = None) -> Any:
        """Return the value of ``key``, ``default`` where there is none."""
        return self._part().get(key, default)

    def __getitem__(self, key: K) -> V:
        """Return the value of ``key``; KeyError where there is none."""
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of those of ``keys`` that have one."""
        return self._part().get_all(keys)

    def range(self, start: K, end: K) -> KeyValueIterator[K, V]:
        """Return pairs with start <= key < end, in order. See ``ReadableStore.range``."""
        return self._part().range(start, end)

    def prefix(self, prefix: str | bytes) -> KeyValueIterator[K, V]:
        """Return pairs whose key's bytes begin with ``prefix``, in order."""
        return self._part().prefix(prefix)

    def all(self) -> KeyValueIterator[K, V]:
        """Return all pairs in the order of the key's bytes."""
        return self._part().all()

    def get_arrow(self, keys: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the values of ``keys``, in their order, null where there is none."""
        return self._part().get_arrow(keys)


class Store(Reference[K, V]):
    """One store of the job; each task has its own part."""

    _bound = (*_READ, *_WRITTEN)

    def put(self, key: K, value: V | None) -> None:
        """Put ``value`` under ``key``; None deletes it."""
        self._part().put(key, value)

    def delete(self, key: K) -> None:
        """Delete the value of ``key``; nothing happens where there is none."""
        self._part().delete(key)

    def __setitem__(self, key: K, value: V) -> None:
        """Put ``value`` under ``key``."""
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        """Delete the value of ``key``; nothing happens where there is none."""
        self.delete(key)

    def put_all(self, pairs: Mapping[K, V | None]) -> None:
        """Put each value under its key; None deletes it."""
        self._part().put_all(pairs)

    def delete_all(self, keys: Iterable[K]) -> None:
        """Delete the values of ``keys``."""
        self._part().delete_all(keys)

    def put_arrow(
        self, keys: pa.Array | pa.ChunkedArray, values: pa.Array | pa.ChunkedArray
    ) -> None:
        """Put the value at each key's place, the last one where a key repeats; null deletes it."""
        self._part().put_arrow(keys, values)
