"""Bounds of Avro's bytes, which the library does not check. PURE.

The library reads a record that holds itself by recursive calls in C: too deep a nesting ends the
process. It makes as many elements without bytes as a count in the bytes demands.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

_DEEPEST = 100
"""Records within one another, as in Protobuf, at most; each takes some stack of the library."""
_MOST_EMPTY = 1000
"""Elements without bytes in one record, at most."""
_LONG_BITS = 63
_SIZES = {"null": 0, "boolean": 1, "float": 4, "double": 8}
_LENGTHS = ("bytes", "string")
_RECORDS = ("record", "error")


class _Walk:
    """A walk through the bytes of one value; the bytes before ``at`` are passed."""

    __slots__ = ("at", "data", "empty_left")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.empty_left = _MOST_EMPTY

    def number(self) -> int:
        found = shift = 0
        while True:
            self.skip(1)
            octet = self.data[self.at - 1]
            found |= (octet & 127) << shift
            if octet < 128:  # noqa: PLR2004 - the bit of a number that goes on
                return (found >> 1) ^ -(found & 1)
            shift += 7
            if shift > _LONG_BITS:  # else Python's number would grow with the bytes
                raise ValueError("a number has more than 64 bits")

    def skip(self, count: int) -> None:
        if not 0 <= count <= len(self.data) - self.at:
            raise EOFError("it ends too early")
        self.at += count


_Step = Callable[[_Walk, int], object]
"""Passes one value, which is nested in so many records."""


def bounds_of(schema: Any) -> Callable[[bytes], object] | None:  # noqa: ANN401 - a schema that fastavro has parsed
    """Return a check of bytes before the library reads them; None: the schema needs none.

    The check raises ValueError or EOFError.
    """
    steps = _Steps()
    step = steps.of(schema)
    if not steps.have_bounds:
        return None
    return lambda data: step(_Walk(data), 0)


class _Steps:
    """Makes the steps that pass values of one schema.

    ``have_bounds``: whether a record holds itself, or an element may be without bytes.
    """

    def __init__(self) -> None:
        self.have_bounds = False
        self._made: dict[str, _Step | None] = {}
        self._empty: dict[str, bool] = {}

    def of(self, schema: Any) -> _Step:  # noqa: ANN401 - as above
        if isinstance(schema, list):
            return _branch([self.of(branch) for branch in schema])
        if isinstance(schema, str):
            return self._of_name(schema)
        name = schema.get("name")
        if name is None:
            return self._of_type(schema)
        self._made[name] = None
        step = self._of_type(schema)
        self._empty[name] = self._is_empty(schema)
        self._made[name] = step
        return step

    def _of_name(self, name: str) -> _Step:
        if name not in self._made:
            return self._of_type({"type": name})
        found = self._made[name]
        if found is not None:
            return found
        self.have_bounds = True

        def later(walk: _Walk, depth: int) -> None:
            step = self._made[name]
            assert step is not None  # noqa: S101 - it is made by the time that anything is read
            step(walk, depth)

        return later

    def _of_type(self, schema: Mapping[str, Any]) -> _Step:
        kind = schema["type"]
        if kind in _RECORDS:
            return _record([self.of(field["type"]) for field in schema["fields"]])
        if kind == "array":
            step, is_empty = self.of(schema["items"]), self._is_empty(schema["items"])
            self.have_bounds |= is_empty
            return _blocks(step, is_empty=is_empty)
        if kind == "map":
            return _blocks(_entry(self.of(schema["values"])), is_empty=False)
        if kind in _LENGTHS:
            return _length
        size = schema["size"] if kind == "fixed" else _SIZES.get(kind)
        if size is None:
            return lambda walk, _: walk.number()
        return lambda walk, _: walk.skip(size)

    def _is_empty(self, schema: Any) -> bool:  # noqa: ANN401 - as above
        if isinstance(schema, list):
            return False
        if isinstance(schema, str):
            return schema == "null" or self._empty.get(schema, False)
        kind = schema["type"]
        if kind in _RECORDS:
            return all(self._is_empty(field["type"]) for field in schema["fields"])
        return schema["size"] == 0 if kind == "fixed" else self._is_empty(kind)


def _length(walk: _Walk, _: int) -> None:
    walk.skip(walk.number())


def _branch(steps: Sequence[_Step]) -> _Step:
    def step(walk: _Walk, depth: int) -> None:
        index = walk.number()
        if not 0 <= index < len(steps):
            raise ValueError(f"a union of {len(steps)} types has no type {index}")
        steps[index](walk, depth)

    return step


def _record(steps: Sequence[_Step]) -> _Step:
    def step(walk: _Walk, depth: int) -> None:
        if depth > _DEEPEST:
            raise ValueError(f"records are nested deeper than {_DEEPEST}")
        for part in steps:
            part(walk, depth + 1)

    return step


def _entry(value: _Step) -> _Step:
    def step(walk: _Walk, depth: int) -> None:
        _length(walk, depth)
        value(walk, depth)

    return step


def _blocks(element: _Step, *, is_empty: bool) -> _Step:
    def step(walk: _Walk, depth: int) -> None:
        while count := walk.number():
            if count < 0:
                count = -count
                walk.number()  # the block's length
            if is_empty:
                walk.empty_left -= count
                if walk.empty_left < 0:
                    raise ValueError(f"more than {_MOST_EMPTY} elements have no bytes")
                continue
            for _ in range(count):
                element(walk, depth)

    return step
