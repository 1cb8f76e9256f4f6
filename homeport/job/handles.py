"""What a job's functions use: inputs, outputs, stores and timers of the task that is called.

A handle has no state. While the job calls one of its functions, the handle stands for the part of
the task that is called: each thread and each coroutine has its own call.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar, overload

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
    TaskCoordinator,
)

K = TypeVar("K")
V = TypeVar("V")
D = TypeVar("D")


class OutsideOfCallError(HomeportError):
    """A handle is used where the job calls none of its functions."""


@dataclass(slots=True)
class Call:
    """One call of a function of the job.

    ``stores``: {name: the task's part}. ``coordinator``: None for a task that gets batches.
    """

    context: TaskContext
    stores: Mapping[str, KeyValueStore]
    collector: MessageCollector
    coordinator: TaskCoordinator | None = None


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
    much, so functions do without.
    """

    call: Call | None = None

    def __init__(self, job: str, of_coroutines: ContextVar[CoroutineCall | None]) -> None:
        self.job = job
        self.of_coroutines = of_coroutines

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

    def coordinator(self, what: str) -> TaskCoordinator:
        """Return what takes requests of the call; OutsideOfCallError where nothing does."""
        coordinator = self.current(what).coordinator
        if coordinator is None:
            rule = "functions of batches and of the start cannot ask their container for it"
            raise OutsideOfCallError(f"{what} of the job {self.job!r}: {rule}")
        return coordinator


@dataclass(frozen=True, slots=True)
class Input(Generic[K, V]):
    """One stream that the job reads."""

    stream: SystemStream
    key: type[K]
    value: type[V]

    def __str__(self) -> str:
        return str(self.stream)


@dataclass(frozen=True, slots=True)
class Output(Generic[K, V]):
    """One stream that the job writes."""

    stream: SystemStream
    key: type[K]
    value: type[V]
    calls: Calls = field(repr=False)
    name: str = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", str(self.stream))

    def __str__(self) -> str:
        return self.name

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
        call = self.calls.call or self.calls.current(f"the output {self.name}")
        if partition is None and headers is None and timestamp is None:
            call.collector.send(self.name, value, key)
        else:
            call.collector.send(
                self.name, value, key, partition=partition, headers=headers, timestamp=timestamp
            )


@dataclass(frozen=True, slots=True)
class Store(Generic[K, V]):
    """One store of the job; each task has its own part."""

    name: str
    key: type[K]
    value: type[V]
    calls: Calls = field(repr=False)

    def _part(self) -> KeyValueStore:
        """Return the part of the task that is called."""
        call = self.calls.call or self.calls.current(f"the store {self.name}")
        return call.stores[self.name]

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: Any = None) -> Any:
        """Return the value of ``key``, ``default`` where there is none."""
        found = self._part().get(key)
        return default if found is None else found

    def __getitem__(self, key: K) -> V:
        """Return the value of ``key``; KeyError where there is none."""
        found: V | None = self._part().get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: K, value: V) -> None:
        """Put ``value`` under ``key``."""
        self._part().put(key, value)

    def __delitem__(self, key: K) -> None:
        """Delete the value of ``key``; nothing happens where there is none."""
        self._part().delete(key)

    def __contains__(self, key: K) -> bool:
        return self._part().get(key) is not None

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of those of ``keys`` that have one."""
        return self._part().get_all(keys)

    def put_all(self, pairs: Mapping[K, V | None]) -> None:
        """Put each value under its key; None deletes it."""
        self._part().put_all(pairs)

    def delete_all(self, keys: Iterable[K]) -> None:
        """Delete the values of ``keys``."""
        self._part().delete_all(keys)

    def range(self, start: K, end: K) -> KeyValueIterator:
        """Return pairs with start <= key < end, in order. See ``ReadableStore.range``."""
        return self._part().range(start, end)

    def prefix(self, prefix: str | bytes) -> KeyValueIterator:
        """Return pairs whose key's bytes begin with ``prefix``, in order."""
        return self._part().prefix(prefix)

    def all(self) -> KeyValueIterator:
        """Return all pairs in the order of the key's bytes."""
        return self._part().all()

    def get_arrow(self, keys: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the values of ``keys``, in their order, null where there is none."""
        return self._part().get_arrow(keys)

    def put_arrow(
        self, keys: pa.Array | pa.ChunkedArray, values: pa.Array | pa.ChunkedArray
    ) -> None:
        """Put the value at each key's place, the last one where a key repeats; null deletes it."""
        self._part().put_arrow(keys, values)
