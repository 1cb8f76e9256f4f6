"""What a job's functions use: inputs, outputs, stores and timers of the task that is called.

A handle has no state. While the job calls one of its functions, the handle stands for the part of
the task that is called. ContextVar makes that right in threads and in coroutines too.
"""

from __future__ import annotations

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
    collector: MessageCollector | None = None
    coordinator: TaskCoordinator | None = None


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one job. ``current``: the one that the code runs in, None outside."""

    job: str
    current: ContextVar[Call | None]

    @staticmethod
    def of(job: str) -> Calls:
        """Return the calls of the job ``job``; none is made yet."""
        return Calls(job, ContextVar(f"call of {job}", default=None))

    def outside(self, what: str) -> OutsideOfCallError:
        """Return the error of a use of ``what`` where no call is made."""
        return OutsideOfCallError(
            f"{what} of the job {self.job!r} is used outside of a call: use it in a function of "
            "that job, in the thread or coroutine in which the job calls it"
        )


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
        call = self.calls.current.get()
        if call is None or call.collector is None:
            raise self.calls.outside(f"the output {self.name}")
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

    @property
    def part(self) -> KeyValueStore:
        """Return the part of the task that is called; OutsideOfCallError where none is."""
        call = self.calls.current.get()
        if call is None:
            raise self.calls.outside(f"the store {self.name}")
        return call.stores[self.name]

    @overload
    def get(self, key: K) -> V | None: ...
    @overload
    def get(self, key: K, default: D) -> V | D: ...
    def get(self, key: K, default: Any = None) -> Any:
        """Return the value of ``key``, ``default`` where there is none."""
        found = self.part.get(key)
        return default if found is None else found

    def __getitem__(self, key: K) -> V:
        """Return the value of ``key``; KeyError where there is none."""
        found: V | None = self.part.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __setitem__(self, key: K, value: V) -> None:
        """Put ``value`` under ``key``."""
        self.part.put(key, value)

    def __delitem__(self, key: K) -> None:
        """Delete the value of ``key``; nothing happens where there is none."""
        self.part.delete(key)

    def __contains__(self, key: K) -> bool:
        return self.part.get(key) is not None

    def get_all(self, keys: Iterable[K]) -> dict[K, V]:
        """Return the values of those of ``keys`` that have one."""
        return self.part.get_all(keys)

    def put_all(self, pairs: Mapping[K, V | None]) -> None:
        """Put each value under its key; None deletes it."""
        self.part.put_all(pairs)

    def delete_all(self, keys: Iterable[K]) -> None:
        """Delete the values of ``keys``."""
        self.part.delete_all(keys)

    def range(self, start: K, end: K) -> KeyValueIterator:
        """Return pairs with start <= key < end, in order. See ``ReadableStore.range``."""
        return self.part.range(start, end)

    def prefix(self, prefix: str | bytes) -> KeyValueIterator:
        """Return pairs whose key's bytes begin with ``prefix``, in order."""
        return self.part.prefix(prefix)

    def all(self) -> KeyValueIterator:
        """Return all pairs in the order of the key's bytes."""
        return self.part.all()

    def get_arrow(self, keys: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the values of ``keys``, in their order, null where there is none."""
        return self.part.get_arrow(keys)

    def put_arrow(
        self, keys: pa.Array | pa.ChunkedArray, values: pa.Array | pa.ChunkedArray
    ) -> None:
        """Put the value at each key's place, the last one where a key repeats; null deletes it."""
        self.part.put_arrow(keys, values)
