"""The values of windows: aggregates, results, and records that are in no window."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from homeport.container.api import MessageCollector
from homeport.container.callables import fault_of
from homeport.container.windows.spans import Span


@dataclass(frozen=True, slots=True)
class WindowResult:
    """The aggregate of one window; None for a session that has become part of an older one.

    ``is_final``: whether the window is closed, else it may change.
    """

    key: str
    start_ms: int
    end_ms: int
    value: Any
    is_final: bool


@dataclass(frozen=True, slots=True)
class Late:
    """A record that is in no window; ``value`` of a table's row is the row.

    ``is_ahead``: its time is too far ahead of the clock; else its windows were closed before.
    """

    key: str
    value: Any
    at_ms: int
    is_ahead: bool = False


@dataclass(frozen=True)
class Aggregate:
    """How a window aggregates its records.

    ``init`` returns the aggregate of no record. ``add`` returns the next aggregate, never None,
    from the aggregate and one more value. ``merge`` makes one aggregate of two, the older one
    first; sessions need it. ``name``, such as "miles", is kept with the windows to recognise the
    aggregate; without it the code of these functions is.
    """

    init: Callable[[], Any]
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any] | None = None
    name: str | None = None

    def __post_init__(self) -> None:
        """Require functions that take these arguments, and a name that is text; else TypeError."""
        name: object = self.name
        if not isinstance(name, str | None):
            raise TypeError(f"name is {name!r}: give a str, such as 'miles'")
        _require_runs("init", self.init, ())
        _require_runs("add", self.add, ("aggregate", "value"))
        if self.merge is not None:
            _require_runs("merge", self.merge, ("older", "newer"))


OnLate = Callable[[Late, MessageCollector], None]


def require_made(span: object, aggregate: object, on_late: object) -> None:
    """Require a span, an aggregate and a function for late records; else raise TypeError."""
    required: tuple[tuple[str, object, Any, str], ...] = (
        ("span", span, Span, "Tumbling(60_000)"),
        ("aggregate", aggregate, Aggregate, "Aggregate(init=int, add=...)"),
    )
    for name, given, kinds, example in required:
        if not isinstance(given, kinds):
            kind = "the class" if isinstance(given, type) else "an object of"
            name_of = getattr(given, "__name__", type(given).__name__)
            raise TypeError(f"{name} is {kind} {name_of}: give an object, such as {example}")
    if isinstance(on_late, type):
        raise TypeError(f"on_late is the class {on_late.__name__}: give a function or a method")
    if on_late is not None:
        _require_runs("on_late", on_late, ("late", "collector"))


def _require_runs(name: str, function: object, parameters: Sequence[str]) -> None:
    fault = fault_of(function, name, parameters)
    if fault is not None:
        raise TypeError(f"{name} is {fault.what}: {fault.remedy}")
