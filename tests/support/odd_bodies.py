"""Bodies of requests that none of our programs sends: a right one with odd values in it."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

_DIGITS = "7" * 5_000
"""More than Python reads."""
ODD = (
    *("null", "true", "0", "-1", "1.5", "1e400", "-1e400", "NaN", "Infinity", '""', "[]", "{}"),
    *(str(10**400), str(-(10**400)), str(2**31), str(2**63 - 1), str(2**63), "-0", _DIGITS),
    *('"\\ud800"', '"\\u0000"', json.dumps("x" * 100_000), json.dumps("²"), json.dumps(_DIGITS)),
    *("[" * depth + "]" * depth for depth in (100, 900, 940, 960, 980, 2_000)),
    '{"a":1,"a":2}',
)
"""JSON that is no value of any field, or at the edge of one."""

_MARK = "odd value "


def _places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:  # noqa: ANN401 - JSON value
    yield at
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _places(inner, (*at, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from _places(inner, (*at, number))


def bodies(right: dict[str, Any]) -> st.SearchStrategy[bytes]:
    """``right``, as bytes, with odd values in up to three places."""
    places = [at for at in _places(right) if at]

    def made(odd: dict[tuple[Any, ...], str]) -> bytes:
        body = copy.deepcopy(right)
        for number, at in enumerate(sorted(odd, key=len, reverse=True)):
            inner = body
            for step in at[:-1]:
                inner = inner[step]
            inner[at[-1]] = f"{_MARK}{number}"
        text = json.dumps(body)
        for number, at in enumerate(sorted(odd, key=len, reverse=True)):
            text = text.replace(f'"{_MARK}{number}"', odd[at])
        return text.encode()

    odd = st.dictionaries(st.sampled_from(places), st.sampled_from(ODD), max_size=3).map(made)
    whole = st.one_of(st.binary(max_size=30), st.sampled_from(ODD).map(str.encode))
    return st.one_of(odd, odd, odd, whole)
