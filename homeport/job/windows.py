"""Windows of event time: a handle that adds records to sums per key, and gives closed windows."""

import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeAlias, TypeVar

import pyarrow as pa

from homeport.config.errors import ConfigError
from homeport.container.api import IncomingMessage, TaskContext
from homeport.container.windows import Aggregate, Hopping, Session, Tumbling, WindowResult, Windows
from homeport.job.handles import Call, Calls, Handle

A = TypeVar("A")
V = TypeVar("V")
Emit: TypeAlias = Literal["close", "update"]
SERDES = ("json", "long", "double", "string", "bytes")
"""The serdes of stores that can keep windows."""
_ADDED = (int, float, str, bytes, list)
TIMER = "homeport.windows"
"""The name of timers by which windows whose input rests are closed."""
_ADVANCE_MS = 1_000
"""So often a task closes windows whose input rests."""


@dataclass
class WindowSpec:
    """How the windows of one store are made, and the functions for what comes of them.

    ``options``: further arguments of ``Windows``. ``handlers``: {``closed`` or ``late``: it}.
    """

    name: str
    span: Hopping | Session
    aggregate: Aggregate
    options: Mapping[str, Any]
    handlers: dict[str, Callable[[Any], Any]] = field(default_factory=dict)

    def made(self, context: TaskContext) -> Windows:
        """Return new windows of a task, for its start."""
        own, late = (self.name, self.span, self.aggregate), self.handlers.get("late")
        on_late = None if late is None else lambda found, _collector: late(found)
        return Windows(context, *own, on_late=on_late, **self.options)

    def wait(self, context: TaskContext) -> None:
        """Schedule the next look at windows whose input rests."""
        context.scheduler.schedule(TIMER, self.name, after_ms=_ADVANCE_MS)


class Window(Handle, Generic[A, V]):
    """The windows of one store. ``A``: what is added; ``V``: what a window has of it."""

    _kind = "window"

    def __init__(self, spec: WindowSpec, value: type[V], calls: Calls) -> None:
        super().__init__(spec.name, calls)
        self.spec, self.value = spec, value

    def __repr__(self) -> str:
        return f"Window({self.name!r}, {self.spec.span.text})"

    def begin(self, call: Call) -> None:
        """Make the windows of a task, and a timer, at its start."""
        call.windows[self.name] = self.spec.made(call.context), threading.RLock()
        self.spec.wait(call.context)

    def add(
        self,
        message: IncomingMessage,
        value: A,
        *,
        key: str | None = None,
        at_ms: int | None = None,
    ) -> None:
        """Add ``value`` to the windows of the message's key and time, or of ``key`` and ``at_ms``.

        Windows that close by it go to the function under ``@job.closed`` before the call returns.
        """
        windows, lock, context = self._task()
        given: object = message
        if not isinstance(given, IncomingMessage):
            self._require_message(given)
        with lock:
            self._give(windows.add(message, context, key=key, value=value, at_ms=at_ms))

    def add_table(
        self,
        table: pa.Table,
        sums: Sequence[tuple[str, str]],
        *,
        key: str = "key",
        at: str = "timestamp",
    ) -> None:
        """Add all rows of a batch. See ``Windows.add_table``."""
        windows, lock, context = self._task()
        with lock:
            self._give(windows.add_table(table, context, sums, key=key, at=at))

    def at(self, key: str, time_ms: int) -> list[WindowResult]:
        """Return the windows of ``key`` that have ``time_ms``. See ``Windows.at``."""
        windows, lock, _ = self._task()
        with lock:
            return windows.at(key, time_ms)

    def advance(self, to_ms: int | None = None) -> None:
        """Advance event time to at least ``to_ms``, and close what ends by it."""
        windows, lock, _ = self._task()
        with lock:
            self._give(windows.advance(to_ms))

    def tick(self) -> None:
        """Close windows whose input rests, and come again."""
        self.advance()
        self.spec.wait(self._task()[2])

    def _require_message(self, given: object) -> None:
        # Text has a method of that name; what stands for a message has its number.
        if isinstance(given, str | bytes) or not hasattr(given, "partition"):
            raise TypeError(
                f"{self.name}.add takes the message first, not {type(given).__name__}: let the "
                f"function take (key, value, message), and write {self.name}.add(message, value)"
            )

    def _task(self) -> tuple[Windows, threading.RLock, TaskContext]:
        call = self.calls.current(self)
        windows, lock = call.windows[self.name]
        return windows, lock, call.context

    def _give(self, found: Sequence[WindowResult]) -> None:
        closed = self.spec.handlers.get("closed") if found else None
        if closed is not None:
            for result in found:
                closed(result)


def spec_of(  # noqa: PLR0913 - each is one choice, by its name
    name: str,
    value: Any,  # noqa: ANN401 - a type, or a schema
    *,
    add: Callable[[Any, Any], Any] | None,
    merge: Callable[[Any, Any], Any] | None,
    init: Callable[[], Any] | None,
    meaning: str | None,
    size: int | None,
    step: int | None,
    gap: int | None,
    **options: object,
) -> WindowSpec:
    """Return how the windows of a store are made, by arguments of ``job.window``.

    Raises:
        ConfigError: values of the type cannot be added so, or arguments do not fit each other.
    """

    def refused(rule: str, remedy: str = "correct it") -> ConfigError:
        return ConfigError("job.window", name, rule, remedy)

    if add is None:
        if value not in _ADDED:
            what = getattr(value, "__name__", value)
            raise refused(f"{what} has no sum", "give add=, of the sum and one more value")
        add, merge, meaning = operator.add, merge or operator.add, meaning or "sum"
    elif gap is not None and merge is None:
        raise refused("sessions grow together", "give merge=, of two values to one")
    if init is None and (value in (Any, object) or not isinstance(value, type)):
        raise refused("it has no first value", "give init=")
    try:
        span: Hopping | Session
        if size is not None and gap is None:
            span = Tumbling(size) if step is None else Hopping(size, step)
        elif gap is not None and size is None and step is None:
            span = Session(gap)
        else:
            rule = "windows have a size, and perhaps a step, or they are sessions with a gap"
            given = f"size={size}, step={step}, gap={gap}"
            raise refused(f"{rule}; given: {given}", "give size= or gap=, in ms")
        return WindowSpec(name, span, Aggregate(init or value, add, merge, meaning), options)
    except (TypeError, ValueError) as error:
        raise refused(str(error)) from None
