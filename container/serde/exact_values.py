"""Checks of a user's value before a library writes it: refuse what it would cast. PURE."""

import math
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

FLOAT_LIMIT = (2 - 2**-24) * 2.0**127
"""From here on, rounding to 32 bits makes a number infinite."""
Convert = Callable[[Any], Any]


def of_class(value: Any, *kinds: type) -> Any:  # noqa: ANN401 - a user's value
    """Return ``value``; raise TypeError where it is of none of ``kinds``."""
    if not isinstance(value, kinds):
        raise TypeError(f"{kinds[0].__name__} is expected, not {type(value).__name__}")
    return value


def or_null(convert: Convert) -> Convert:
    """Return ``convert``, for values that may be None."""
    return lambda value: None if value is None else convert(value)


def text(value: Any) -> str:  # noqa: ANN401 - a user's value
    """Return the text ``value``; raise TypeError where it is none."""
    found: str = of_class(value, str)
    return found


def truth(value: Any) -> bool:  # noqa: ANN401 - a user's value
    """Return the truth value, also one of NumPy's; raise TypeError where it is none."""
    return bool(of_class(value, bool, np.bool_))


def octets(value: Any) -> bytes:  # noqa: ANN401 - a user's value
    """Return the bytes ``value``; raise TypeError where it is none."""
    return bytes(of_class(value, bytes, bytearray, memoryview))


def whole(value: Any) -> int:  # noqa: ANN401 - a user's value
    """Return the whole number, also one of NumPy's; raise TypeError where it is none."""
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"int is expected, not {type(value).__name__}")
    return operator.index(value)


def is_float(value: Any) -> bool:  # noqa: ANN401 - a user's value
    """Return whether ``value`` is a floating-point number, also one of NumPy's."""
    return isinstance(value, float | np.floating)


def double(value: Any) -> float:  # noqa: ANN401 - a user's value
    """Return a float of 64 bits; TypeError or ValueError where it is none, or does not fit."""
    if is_float(value):
        return float(value)
    number = whole(value)
    try:
        found = float(number)
    except OverflowError:
        found = math.inf
    if not math.isfinite(found) or int(found) != number:
        raise ValueError(f"{number} does not fit a double")
    return found


def single(value: Any) -> float:  # noqa: ANN401 - a user's value
    """Return a float that fits 32 bits: no infinity, no other integer. Errors as of ``double``."""
    number = double(value)
    is_beyond = math.isfinite(number) and abs(number) >= FLOAT_LIMIT
    if is_beyond or (not is_float(value) and float(np.float32(number)) != number):
        raise ValueError(f"{value} does not fit a float")
    return number


def pairs_of(value: Any) -> Iterable[tuple[Any, Any]]:  # noqa: ANN401 - a user's value
    """Return the entries of a map: a mapping, or the list of pairs that a column gives.

    Raises:
        TypeError: it is neither.
    """
    if isinstance(value, Mapping):
        return value.items()
    if not isinstance(value, list | tuple):
        raise TypeError(f"a map is a mapping or a list of pairs, not {type(value).__name__}")
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in value):  # noqa: PLR2004 - a pair
        raise TypeError("a map is a mapping, or a list of pairs of a key and a value")
    return value


def map_of(of_key: Convert, of_value: Convert) -> Convert:
    """Return a conversion of a map, as of ``pairs_of``, to a dict.

    It raises ValueError for a key that comes twice.
    """

    def convert(value: Any) -> dict[Any, Any]:  # noqa: ANN401 - a user's value
        found: dict[Any, Any] = {}
        for key, part in pairs_of(value):
            own = of_key(key)
            if own in found:
                raise ValueError(f"the map has the key {key!r} twice")
            found[own] = of_value(part)
        return found

    return convert
