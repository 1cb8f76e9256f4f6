"""Facts: the span, emit and aggregate of a store's windows, which the store keeps.

PURE. Without facts, windows of two spans or aggregates of two functions look alike in a store.
"""

import functools
import hashlib
import importlib.util
from collections.abc import Callable, Mapping
from contextlib import suppress
from numbers import Number
from types import CodeType, FunctionType
from typing import Any

_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (Number, "a number"),
    (str, "text"),
    ((bytes, bytearray), "bytes"),
    (Mapping, "a dict"),
    ((list, tuple), "a list"),
)
_SIMPLE = (int, float, str, bytes, bool, type(None))
_DIGITS = 16
SPAN, EMIT, KIND, NAME, CODE = "span", "emit", "aggregate", "name", "code"
_EMIT_CLOSE, _EMIT_UPDATE = "close", "update"


def kind_of(aggregate: object) -> str | None:
    """Return the kind of value of a new window's aggregate; None: the value is None."""
    if aggregate is None:
        return None
    found = (text for kinds, text in _KINDS if isinstance(aggregate, kinds))
    return next(found, type(aggregate).__name__)


def code_of(*functions: Callable[..., Any] | None) -> str:
    """Return a text that changes with the functions' own code, and with Python's version."""
    said = "\n".join(map(_code, functions))
    return (
        f"{importlib.util.MAGIC_NUMBER.hex()} {hashlib.sha256(said.encode()).hexdigest()[:_DIGITS]}"
    )


def changed(store: str, kept: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """Return why windows with the facts ``now`` may not go on in ``store``; None: they may.

    Only facts in both count. Where aggregates have a name, it stands for their code.
    """
    for fact, what in ((SPAN, ""), (KIND, "aggregates that are "), (NAME, "aggregates named ")):
        was, is_now = kept.get(fact), now.get(fact)
        if was is not None and is_now is not None and was != is_now:
            return _refusal(store, f"{what}{was}", f"{what}{is_now}")
    if (kept.get(EMIT), now.get(EMIT)) == (_EMIT_CLOSE, _EMIT_UPDATE):
        return _refusal(store, "emit='close'", "emit='update', which never returns those windows")
    if NAME not in now and _has_other_code(kept.get(CODE), now.get(CODE)):
        return (
            f"the store {store!r} has windows of an aggregate whose code has changed: if its "
            "values mean what they did, give Aggregate a name, which then stands for the code; "
            "else set it back, or keep the new windows in another store"
        )
    return None


def _refusal(store: str, was: str, now: str) -> str:
    return (
        f"the store {store!r} was made with {was}, and now has {now}: set it back, keep the new "
        "windows in another store, or begin from nothing by run-job --reset-state"
    )


def _has_other_code(was: str | None, now: str | None) -> bool:
    if was is None or now is None:
        return False
    (python, code), (python_now, code_now) = was.split(" "), now.split(" ")
    return python == python_now and code != code_now


def _code(function: Any, within: tuple[object, ...] = ()) -> str:  # noqa: ANN401 - any callable
    if isinstance(function, functools.partial):
        given = [*function.args, *sorted(function.keywords.items())]
        return f"{_code(function.func, within)} {_simple(tuple(given))}"
    function = getattr(function, "__func__", function)
    code = getattr(function, "__code__", None)
    if isinstance(code, CodeType):
        return f"{_of_code(code, function.__doc__)} {_made_with(function, (*within, function))}"
    called: object = type(function).__call__
    own = getattr(called, "__code__", None)
    if isinstance(own, CodeType):
        return _of_code(own, getattr(called, "__doc__", None))
    return str(getattr(function, "__qualname__", type(function).__qualname__))


def _made_with(function: FunctionType, within: tuple[object, ...]) -> list[str]:
    """Return the values of the function's defaults and closure: a decorator's code is in these."""
    named = sorted((function.__kwdefaults__ or {}).items())
    given = [*(function.__defaults__ or ()), *named]
    for cell in function.__closure__ or ():
        with suppress(ValueError):  # an empty one
            given.append(cell.cell_contents)
    return [
        (_code(value, within) if callable(value) else _simple(value))
        for value in given
        if not any(value is outer for outer in within)
    ]


def _of_code(code: CodeType, doc: str | None = None) -> str:
    constants = [None if doc is not None and c == doc else c for c in code.co_consts]
    return f"{code.co_code.hex()} {code.co_names} {[_simple(c) for c in constants]}"


def _simple(value: object) -> str:
    if isinstance(value, CodeType):
        return _of_code(value)
    if isinstance(value, frozenset):
        return str(sorted(map(_simple, value)))
    if isinstance(value, tuple):
        return str(tuple(map(_simple, value)))
    return repr(value) if isinstance(value, _SIMPLE) else type(value).__qualname__
