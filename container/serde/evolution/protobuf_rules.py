"""The rules by which a message of Protobuf reads the bytes of another one. PURE.

Both are as ``protobuf_meaning`` returns them: {message or enum: fields or values, by number}, the
message itself first. Fields may have two parts more: whether they are required, and their oneof.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from homeport.container.serde.evolution.avro_rules import Path, at

_MESSAGES, _ENUM = (10, 11), 14
_NAMES = {
    1: "double",
    2: "float",
    3: "int64",
    4: "uint64",
    5: "int32",
    8: "bool",
    9: "string",
    11: "message",
    12: "bytes",
    13: "uint32",
    14: "enum",
}
_PARTS = 7
"""The parts of a field without its oneof."""
_INT64, _UINT64, _INT32, _STRING, _BYTES, _UINT32, _SINT32, _SINT64 = 3, 4, 5, 9, 12, 13, 17, 18
_WIDER = {
    *((_INT32, _INT64), (_UINT32, _UINT64), (_UINT32, _INT64)),
    *((_SINT32, _SINT64), (_STRING, _BYTES)),
}
_KNOWN = "google.protobuf."
Message = Mapping[str, Sequence[Sequence[Any]]]


def protobuf_fault(writer: Message, reader: Message) -> str | None:
    """Return why messages of ``writer`` are not read by ``reader``, with the field, or None."""
    return _Pair(writer, reader).of_messages(next(iter(writer)), next(iter(reader)), ())


class _Pair:
    def __init__(self, writer: Message, reader: Message) -> None:
        self._writer, self._reader = writer, reader
        self._seen: set[tuple[str, str]] = set()

    def of_messages(self, was: str, now: str, path: Path) -> str | None:
        """Return the first fault of the fields of two messages, by their full names."""
        if was != now and _KNOWN in {was[: len(_KNOWN)], now[: len(_KNOWN)]}:
            return at(path, f"{was} is no {now}")
        if (was, now) in self._seen:
            return None
        self._seen.add((was, now))
        old = {field[0]: field for field in self._writer[was]}
        numbers = {field[1]: field[0] for field in self._writer[was]}
        for field in self._reader[now]:
            number, name, *_ = field
            inside = (*path, name)
            if numbers.get(name, number) != number:
                return at(inside, f"it had the number {numbers[name]}, and has {number}")
            is_lacked = number not in old or old[number][6:7] == [False]
            if field[6:7] == [True] and is_lacked:
                return at(inside, "older values may lack it, and it is required")
            if number not in old:
                continue
            fault = self._of_fields(old[number], field, inside)
            if fault is not None:
                return fault
        return _of_oneofs(old, self._reader[now], path)

    def _of_fields(self, was: Sequence[Any], now: Sequence[Any], path: Path) -> str | None:
        kinds = was[2], now[2]
        if was[3] != now[3]:
            return at(path, "a repeated field is no single one")
        if was[4] != now[4]:
            return at(path, "a value that is not set would be read as another one")
        if kinds[0] == kinds[1] == _ENUM:
            return self._of_enums(was[5], now[5], path)
        if kinds[0] == kinds[1] and kinds[0] in _MESSAGES:
            return self.of_messages(was[5], now[5], path)
        if kinds[0] == kinds[1] or kinds in _WIDER:
            return None
        return at(path, f"{_shown(kinds[0])} is no {_shown(kinds[1])}")

    def _of_enums(self, was: str, now: str, path: Path) -> str | None:
        old, new = ({(n, name) for n, name in of} for of in (self._writer[was], self._reader[now]))
        numbers = {number for number, _ in old}
        differing = sorted(old ^ {value for value in new if value[0] in numbers})
        if differing:
            number, name = differing[0]
            return at(path, f"the enum's value {number} ({name}) is another one, or missing")
        return None


def _of_oneofs(
    old: Mapping[int, Sequence[Any]], reader: Sequence[Sequence[Any]], path: Path
) -> str | None:
    """Return which field of a oneof an older value may have beside another one of it."""
    first: dict[str, Sequence[Any]] = {}
    for field in reader:
        was, oneof = old.get(field[0], ()), "".join(field[7:])
        if len(was) > _PARTS and oneof:
            other = first.setdefault(oneof, was)
            if other is not was and not other[7] == was[7] != "":
                return at((*path, field[1]), f"older values may have it beside {other[1]}")
    return None


def _shown(kind: int) -> str:
    return _NAMES.get(kind, f"type {kind}")
