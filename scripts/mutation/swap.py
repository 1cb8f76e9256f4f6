"""Gives the functions of an imported module the code of a changed source, without an import.

What runs at the import alone (constants, defaults, classes' own statements) cannot be changed so.
"""

from __future__ import annotations

import functools
import gc
import inspect
import os
from collections.abc import Iterator
from itertools import zip_longest
from types import CodeType, FunctionType


class Functions:
    """The functions that an imported module has made, also those that are wrapped since.

    ``source``: the text that was imported.
    """

    def __init__(self, path: str, source: str) -> None:
        self._path = path
        self._code = compile(source, path, "exec", dont_inherit=True)
        self._made: dict[tuple[str, int], list[FunctionType]] = {}
        real = functools.cache(os.path.realpath)
        for made in gc.get_objects():
            if type(made) is FunctionType and real(made.__code__.co_filename) == real(path):
                self._made.setdefault(_place(made.__code__), []).append(made)

    def take(self, source: str) -> bool:
        """Give the functions the code of ``source``; False, and no change, where that cannot be.

        ``source`` differs from the one imported in one place.
        """
        pairs = list(_differing(self._code, compile(source, self._path, "exec", dont_inherit=True)))
        found = [(self._made.get(_place(old), []), old, new) for old, new in pairs]
        fit = [(made, new) for made, old, new in found if _has_a_place(old, new, made)]
        if not pairs or len(fit) < len(pairs) or not fit[0][0]:
            return False
        for made, new in fit:
            for function in made:
                function.__code__ = new
        return True


def _place(code: CodeType) -> tuple[str, int]:
    return code.co_qualname, code.co_firstlineno


def _has_a_place(old: CodeType, new: CodeType, made: list[FunctionType]) -> bool:
    """Return whether ``new`` can stand for ``old``: both are a function's, of the same closure."""
    is_function = old.co_flags & new.co_flags & inspect.CO_OPTIMIZED
    return bool(is_function) and (not made or old.co_freevars == new.co_freevars)


def _differing(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """Yield each code that differs, with what stands in its place, outer ones first.

    A function differs where one within it does, as it makes that one when it runs.
    """
    within = list(_within(old, new))
    is_function = bool(old.co_flags & inspect.CO_OPTIMIZED)
    if _own(old) != _own(new) or (within and is_function):
        yield old, new
    yield from within


def _within(old: CodeType, new: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    for before, after in zip_longest(_codes(old), _codes(new)):
        if before is not None and after is not None:
            yield from _differing(before, after)


def _codes(code: CodeType) -> list[CodeType]:
    return [value for value in code.co_consts if isinstance(value, CodeType)]


def _own(code: CodeType) -> tuple[object, ...]:
    """Return what a code does itself, without lines, and without the codes within it."""
    values = tuple(v.co_name if isinstance(v, CodeType) else repr(v) for v in code.co_consts)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return (code.co_code, values, code.co_exceptiontable, code.co_argcount, *names)
