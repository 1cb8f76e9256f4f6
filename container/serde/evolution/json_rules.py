"""The rules by which a JSON schema reads the objects of another one. PURE.

Both schemas are {field: type}, the types in Arrow's words, as ``json_meaning`` returns them. A
field that an object lacks is null, and one that the schema lacks is passed over.
"""

import re
from collections.abc import Iterator, Mapping, Sequence

from homeport.container.serde.evolution.avro_rules import Path, at

_WHOLE = ("int8", "int16", "int32", "int64")
_EXACT_IN = {"float": ("int8", "int16"), "double": ("int8", "int16", "int32", "float")}
"""{type: those whose every number it has}; Arrow calls a float of 64 bits double."""
_DECIMAL = re.compile(r"decimal128\((\d+), (\d+)\)")
_OPENING, _CLOSING = "<[(", ">])"


def json_fault(writer: Mapping[str, str], reader: Mapping[str, str]) -> str | None:
    """Return why ``reader`` does not read objects of ``writer``, with the field; None: it does."""
    return _of_fields(writer, reader, ())


def _of_fields(writer: Mapping[str, str], reader: Mapping[str, str], path: Path) -> str | None:
    for name, was in writer.items():
        if name in reader:
            fault = _of_types(was, reader[name], (*path, name))
            if fault is not None:
                return fault
    return None


def _of_types(was: str, now: str, path: Path) -> str | None:
    if was == now or _is_wider(was, now):
        return None
    for kind in ("struct", "list", "map"):
        if was.startswith(f"{kind}<") and now.startswith(f"{kind}<"):
            return _of_parts(kind, _parts(was), _parts(now), path)
    return at(path, f"{was} is no {now}")


def _of_parts(kind: str, was: Sequence[str], now: Sequence[str], path: Path) -> str | None:
    if kind == "struct":
        return _of_fields(dict(map(_named, was)), dict(map(_named, now)), path)
    if kind == "list":
        return _of_types(_named(was[0])[1], _named(now[0])[1], (*path, "[]"))
    found = (_of_types(a, b, (*path, "{}")) for a, b in zip(was, now, strict=True))
    return next((fault for fault in found if fault is not None), None)


def _is_wider(was: str, now: str) -> bool:
    if was in _WHOLE and now in _WHOLE:
        return _WHOLE.index(was) < _WHOLE.index(now)
    decimals = _DECIMAL.fullmatch(was), _DECIMAL.fullmatch(now)
    if decimals[0] and decimals[1]:
        (digits, scale), (more, finer) = ([int(n) for n in d.groups()] for d in decimals if d)
        return finer >= scale and more - finer >= digits - scale
    return was in _EXACT_IN.get(now, ())


def _parts(kind: str) -> list[str]:
    """Return the parts of a type within its first and its last bracket."""
    return list(_split(kind[kind.index("<") + 1 : -1]))


def _split(text: str) -> Iterator[str]:
    depth = start = 0
    for place, sign in enumerate(text):
        depth += (sign in _OPENING) - (sign in _CLOSING)
        if depth == 0 and text.startswith(", ", place):
            yield text[start:place]
            start = place + 2
    yield text[start:]


def _named(part: str) -> tuple[str, str]:
    name, _, kind = part.partition(": ")
    return name, kind
