"""What a job's functions use: inputs, outputs, stores and timers of the task that is called.

While the job calls one of its functions, a handle stands for the part of the task that is called:
each thread and each coroutine has its own call. For a call in a thread the job binds the methods of
the task's part to the handle, in that thread: the functions call them without a way round.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from homeport.config.errors import HomeportError
from homeport.config.system_stream import SystemStream
from homeport.container.api import (
    Column,
    HeaderPairs,
    KeyValueStore,
    Partitioner,
    ReadableStore,
    TaskContext,
)
from homeport.job.schemas import Of

K = TypeVar("K")
V = TypeVar("V")


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

    def current(self, what: Handle | str) -> Call:
        """Return the call that the code runs in; ``what`` is used in it.

        Raises:
            OutsideOfCallError: there is none.
        """
        if self.call is not None:
            return self.call
        call = self.of_coroutines.get()
        if call is None or call.thread != threading.get_ident():
            used = what if isinstance(what, str) else f"the {what._kind} {what.name}"  # noqa: SLF001 - of this module
            raise OutsideOfCallError(
                f"{used} of the job {self.job!r} is used outside of a call: use it in a function "
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
    """What a call binds; each thread has its own attributes.

    Args:
        name: as it is declared.
        calls: the calls of the job.
    """

    _kind: str
    """For errors."""

    def __init__(self, name: str, calls: Calls) -> None:
        self.name, self.calls = name, calls
        if self not in calls.handles:  # a further thread comes here too
            calls.handles.append(self)

    def methods(self, context: TaskContext) -> Mapping[str, Callable[..., object]]:  # noqa: ARG002 - of those that bind some
        """Return the methods that stand in the place of the handle's own in a call of the task."""
        return {}


class _Typed(Handle, Generic[K, V]):
    """A handle whose keys are of the type ``key``, and whose values are of the type ``value``."""

    def __init__(self, name: str, calls: Calls, key: Of[K], value: Of[V]) -> None:
        super().__init__(name, calls)
        self.key, self.value = key, value

    def __repr__(self) -> str:
        types = (getattr(of, "__name__", repr(of)) for of in (self.key, self.value))
        return "{}({!r}, key={}, value={})".format(type(self).__name__, self.name, *types)


class _Sending(_Typed[K, V]):
    """A handle that sends records. ``name``: as ``MessageCollector.send`` takes it."""

    def __str__(self) -> str:
        return self.name

    def methods(self, context: TaskContext) -> Mapping[str, Callable[..., object]]:
        name, send_value = self.name, context.send

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
                send_value(
                    name, value, key, partition=partition, headers=headers, timestamp=timestamp
                )

        send.__qualname__ = f"{name}.send"  # Python's error for missing arguments names it so
        return {"send": send}

    def send(
        self,
        key: K | None,
        value: V | None,
        *,
        partition: int | Partitioner | None = None,
        headers: Mapping[str, bytes | None] | HeaderPairs | None = None,
        timestamp: int | None = None,
    ) -> None:
        self.calls.current(self).context.send(
            self.name, value, key, partition=partition, headers=headers, timestamp=timestamp
        )

    def send_arrow(self, keys: Column | None, values: Column) -> None:
        self.calls.current(self).context.send_arrow(self.name, values, keys)


class Output(_Sending[K, V]):
    """One stream that the job writes. ``name``: as in ``kafka.totals``."""

    _kind = "output"

    @property
    def stream(self) -> SystemStream:
        """Return system and topic."""
        system, _, topic = self.name.partition(".")
        return SystemStream(system, topic)


class Repartition(_Sending[K, V]):
    """One topic that the job writes and reads. ``name``: of ``task.repartition.<name>``."""

    _kind = "repartition"

    @property
    def topic(self) -> str:
        """Return its topic: what a function of batches finds in the column ``stream``."""
        return self.calls.current(self).context.repartition(self.name)


class Reference(_Typed[K, V], ReadableStore[K, V]):
    """One store that an input fills; a task has its own part, or the whole that its container has.

    ``_bound``: the names of its methods.
    """

    _kind = "store"
    _bound: tuple[str, ...] = ()

    def methods(self, context: TaskContext) -> Mapping[str, Callable[..., object]]:
        """Return the methods of the task's part."""
        part = context.store(self.name)
        return {name: getattr(part, name) for name in self._bound}

    def __getitem__(self, key: K) -> V:
        found = self.get(key)
        if found is None:
            raise KeyError(key)
        return found

    def __contains__(self, key: K) -> bool:
        return self.get(key) is not None

    if not TYPE_CHECKING:  # mypy refuses a write by itself

        def __setitem__(self, key: object, value: object) -> None:
            """Refuse a write; TypeError."""
            raise TypeError(
                f"{self.name}[{key!r}] is of reference data, which its topic alone fills: send to "
                "the topic, or declare a job.store"
            )

        def __delitem__(self, key: object) -> None:
            Reference.__setitem__(self, key, None)


class Store(Reference[K, V], KeyValueStore[K, V]):
    """One store of the job; each task has its own part."""

    def __setitem__(self, key: K, value: V) -> None:
        """Put ``value`` under ``key``."""
        self.put(key, value)

    def __delitem__(self, key: K) -> None:
        self.delete(key)


def _add_methods(of: type, to: Any) -> None:  # noqa: ANN401 - a class of handles
    """Give handles the methods of a store: each looks up the part of the task that is called.

    A call in a thread binds the part's own in their place.
    """
    names = [name for name in vars(of) if not name.startswith("_")]
    to._bound = *to._bound, *names  # noqa: SLF001 - of this module

    def method(name: str) -> Callable[..., Any]:
        @functools.wraps(getattr(of, name))
        def call(handle: Reference[Any, Any], *given: Any, **named: Any) -> Any:  # noqa: ANN401 - of any method
            part = handle.calls.current(handle).context.store(handle.name)
            return getattr(part, name)(*given, **named)

        return call

    for name in names:
        setattr(to, name, method(name))


_add_methods(ReadableStore, Reference)
_add_methods(KeyValueStore, Store)
