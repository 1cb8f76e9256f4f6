"""Callables: finds, before the call, why a call of a job's function would not run its body.

PURE. Calls of generators, of coroutines that nothing awaits, and with other parameters never do.
"""

import functools
import inspect
import sys
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, NamedTuple

from homeport.config.errors import HomeportError

_GENERATOR = "a generator: a call of it runs nothing of its body"
_ASYNC_GENERATOR = "an async generator: a call of it runs nothing of its body"
_COROUTINE = "a coroutine, which nothing would await"
_NO_YIELD = "remove its yield: send by the collector, or return a value"
_SELF = "self"
_CONTEXT = "context"
_FORMER = ("collector", "coordinator")
"""The parameters of a StreamTask in the place of the context."""
_BOUND = (
    *(FunctionType, staticmethod, classmethod, functools.partialmethod),
    *((functools.partial,) if sys.version_info >= (3, 14) else ()),
)
"""Attributes that a class binds; other descriptors are the job's own code, which is not run."""


_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class TaskFailedError(HomeportError):
    """User code raised; the container fails with it as the cause."""


class Fault(NamedTuple):
    """Why a callable would not run, and the remedy."""

    what: str
    remedy: str


def fault_of(
    found: object,
    name: str,
    parameters: Sequence[str],
    *,
    former: Sequence[str] | None = None,
    may_be_coroutine: bool = False,
    is_method: bool = False,
    no_yield: str = _NO_YIELD,
) -> Fault | None:
    """Return why ``found``, called with so many arguments, would not run; None: it would.

    ``former``: other parameters that it may take.
    ``is_method``: whether the remedy names ``self``. ``no_yield``: the remedy for generators.
    What cannot be seen, such as the parameters of a function in C, is no fault.
    """
    if not callable(found):
        return Fault(f"{_kind(found)}, which cannot be called", f"define {name} as a function")
    runs = _body(found)
    if inspect.isasyncgenfunction(runs):
        return Fault(_ASYNC_GENERATOR, no_yield)
    if inspect.isgeneratorfunction(runs):
        return Fault(_GENERATOR, no_yield)
    if inspect.iscoroutinefunction(runs) and not may_be_coroutine:
        return Fault(_COROUTINE, "use def")
    wrong = _wrong_arguments(found, len(parameters))
    if wrong is None or (former is not None and _wrong_arguments(found, len(former)) is None):
        return None
    written = ", ".join([_SELF, *parameters] if is_method else parameters)
    given = " or ".join(f"({', '.join(form)})" for form in (parameters, former) if form is not None)
    return Fault(f"not to be called with {given}: {wrong}", f"write def {name}({written})")


def method_fault(
    owner: type, base: type, name: str, *, may_be_coroutine: bool = False
) -> Fault | None:
    """Return why the method, called as that of ``base``, would not run; None: it would."""
    own, of_base = inspect.getattr_static(owner, name, None), inspect.getattr_static(base, name)
    if own is of_base:
        return None
    if isinstance(own, _BOUND):
        # As an object of the class would have it: none is made, whose code would run.
        own = own.__get__(_Nobody(), owner)
    elif is_bound(own):
        return None
    parameters = list(inspect.signature(of_base).parameters.values())[1:]
    fixed = [each.name for each in parameters if each.kind is each.POSITIONAL_OR_KEYWORD]
    former = None
    if len(fixed) < len(parameters):  # the base leaves the rest to the task
        fixed, former = [*fixed, _CONTEXT], [*fixed, *_FORMER]
    return fault_of(
        own, name, fixed, former=former, may_be_coroutine=may_be_coroutine, is_method=True
    )


def is_bound(attribute: object) -> bool:
    """Return whether a class hands its object over to ``attribute``, or makes what it calls."""
    if isinstance(attribute, functools.partial):
        return isinstance(attribute, _BOUND)  # Python 3.13 announces that 3.14 binds it
    return hasattr(type(attribute), "__get__")


def takes_context(hook: Callable[..., object], before: int) -> bool:
    """Return whether ``hook``, a task's method, takes the context behind ``before`` arguments.

    False: it requires a collector and a coordinator there, has parameters of these names whatever
    their defaults, or takes whatever comes. Where a decorator does that, or shows no parameters,
    the function that it wraps decides.
    """
    for follows in (False, True):
        try:
            signature = inspect.signature(hook, follow_wrapped=follows)
        except (TypeError, ValueError):
            continue  # such as an object of functools.cache: what it wraps has parameters
        parameters = signature.parameters.values()
        required = [p.kind for p in parameters if p.default is p.empty]
        if inspect.Parameter.VAR_POSITIONAL not in required:
            names = [p.name for p in parameters if p.kind in _BY_POSITION][before:]
            is_former = tuple(names[: len(_FORMER)]) == _FORMER
            return not is_former and sum(kind in _BY_POSITION for kind in required) <= before + 1
    return False


def object_fault(made: object, base: type) -> str | None:
    """Return why a method of ``made``, called as that of ``base`` is, would not run; else None."""
    for name in (name for name in vars(base) if not name.startswith("_")):
        parameters = list(inspect.signature(getattr(base, name)).parameters)[1:]
        fault = fault_of(getattr(made, name, None), name, parameters, is_method=True)
        if fault is not None:
            return f"{name} of {_kind(made)} is {fault.what}: {fault.remedy}"
    return None


def is_coroutine(owner: type, name: str) -> bool:
    """Return whether the method of that name is a coroutine."""
    return inspect.iscoroutinefunction(_body(getattr(owner, name, None)))


def making_fault(owner: type) -> Fault | None:
    """Return why no object can be made of the class without arguments; None: one can."""
    wrong = _wrong_arguments(owner, 0)
    return None if wrong is None else Fault(f"not to be made without arguments: {wrong}", "")


def unrun(found: object) -> str | None:
    """Return a sentence if a call returned something to run instead of running; else None."""
    if found is None:
        return None
    if inspect.isawaitable(found) or inspect.isasyncgen(found):
        return "it has returned a coroutine, which is never awaited"
    return "it has returned a generator, which is never run" if inspect.isgenerator(found) else None


class _Nobody:
    """Stands for an object of a class, of which none is made."""


def _body(found: Any) -> Any:  # noqa: ANN401 - any callable
    while isinstance(found, functools.partial):
        found = found.func
    if inspect.isroutine(found) or isinstance(found, type):
        return found
    return type(found).__call__


def _wrong_arguments(found: Any, count: int) -> str | None:  # noqa: ANN401 - any callable
    try:
        # A decorator's own parameters count, not those of what it says to wrap.
        signature = inspect.signature(found, follow_wrapped=False)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*[None] * count)
    except TypeError as error:
        return str(error)
    return None


def _kind(found: object) -> str:
    return "None" if found is None else f"a {type(found).__name__}"
